"""Clusters as text: one node per line, its path and what it offers.

    b1/r1/n1 gpu=8 cpu=64            110 pods unless it says otherwise
    b1/r1/n2 gpu=3/8 pods=10         3 of the 8 GPUs are used
    b1/r2/n3 gpu=8 closed            not ready, or unschedulable

cpu is in cores, gpu is short for nvidia.com/gpu, everything else is in base units. One to
four parts make a path of zone, block, rack and node; longer ones have levels by number.
"""

from __future__ import annotations

from topology import NODE_LEVEL, Capacity, Placement, ResourceAxis, Tree, build

ZONE = "topology.kubernetes.io/zone"
BLOCK = "cloud.provider.com/topology-block"
RACK = "cloud.provider.com/topology-rack"
GPU = "nvidia.com/gpu"


def cluster(text: str, generation: int = 1) -> tuple[Tree, Capacity]:
    """The tree and the capacity of the nodes written down; resources in order of first sight."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    paths = {path.split("/")[-1]: path.split("/") for path, *_ in lines}
    assert len(paths) == len(lines), "a node's name occurs twice"
    depth = len(lines[0][0].split("/")) if lines else 3
    levels = [ZONE, BLOCK, RACK, NODE_LEVEL][-depth:]
    levels = [*(f"level-{level}" for level in range(depth - len(levels))), *levels]
    tree = build(levels, paths, generation)
    capacity = Capacity(ResourceAxis(), tree)
    for path, *words in lines:
        slot = tree.slot_of[path.split("/")[-1]]
        amounts = dict(word.split("=") for word in words if word != "closed")
        offered = {"pods": "110"} | {name: text.split("/")[-1] for name, text in amounts.items()}
        used = {name: text.split("/")[0] for name, text in amounts.items() if "/" in text}
        capacity.set_node(slot, vector(capacity.axis, **offered), "closed" not in words)
        capacity.use(slot, vector(capacity.axis, **used))
    return tree, capacity


def vector(axis: ResourceAxis, **amounts: int | str) -> tuple[int, ...]:
    """Amounts as words of a node's line have them, in rows of the axis."""
    named = {"gpu": GPU}
    return axis.vector(
        (named.get(name, name), int(amount) * (1000 if name == "cpu" else 1))
        for name, amount in amounts.items()
    )


def pods_per_node(tree: Tree, answer: Placement) -> dict[str, dict[str, int]]:
    """Pods by the name of their node, of each pod set."""
    return {
        placed.pod_set: {tree.nodes[slot]: pods for slot, pods in placed.slots}
        for placed in answer.pod_sets
    }
