"""KAI's PodGroups in simulated worlds: as native ones, in the words of KAI's pod-grouper.

    pod_group, life                     without sub-groups; a Topology where they require a level
    tree, drawn, checks, rest, in_parts     sub-groups on different Topologies, side by side

They are in worlds of their own, each of the two. What KAI's scheduler would write on them is
tested elsewhere.
"""
