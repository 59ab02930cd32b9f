"""KAI's PodGroups in simulated worlds: as native ones, in the words of KAI's pod-grouper.

They have no sub-groups, and name a Topology where they require a level. What KAI's scheduler would
write on them is tested elsewhere. `pod_group.py` has the words, `life.py` all that happens.
"""
