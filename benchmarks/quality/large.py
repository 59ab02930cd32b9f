"""Gangs that fit into a cluster of 5,120 nodes of which little is free: the same for a seed.

Groups of pod sets require racks, and all of them one block. There is a place for them in one of
ten blocks; elsewhere nodes have some of everything free, so that many racks take one of the pod
sets, and few all of a group.
"""

from __future__ import annotations

from random import Random

from benchmarks.quality.feasible import (
    BLOCK,
    NODE,
    RACK,
    Instance,
    gang_of,
    packed,
    request_of,
)
from topology import NODE_LEVEL, Capacity, ResourceAxis, build

BLOCKS, RACKS, PER_RACK = 10, 32, 16
MOST_FREE = (60, 34, 56, 4)  # of a node, where the gang need not be: pods, cores, GiB, GPUs


def instance(seed: int) -> Instance:
    """One of them: three to six groups of three pod sets."""
    rng = Random(f"large/{seed}")
    racks = [(f"b{at}", f"r{at}.{rack}") for at in range(BLOCKS) for rack in range(RACKS)]
    used = None
    while used is None:
        groups = [
            [(rng.randint(4, 14), request_of(rng)) for _ in range(3)]
            for _ in range(rng.randint(3, 6))
        ]
        used = packed(rng, racks, PER_RACK, groups, is_nested=True)
    names = {f"{rack}.n{node}": (block, rack) for block, rack in racks for node in range(PER_RACK)}
    paths = {name: (*around, name) for name, around in names.items()}
    tree = build([BLOCK, RACK, NODE_LEVEL], paths, generation=1)
    axis = ResourceAxis()
    axis.vector([("cpu", 1), ("memory", 1), ("nvidia.com/gpu", 1)])
    capacity = Capacity(axis, tree)
    for slot, name in enumerate(tree.nodes):
        free = used.get(name) or [rng.randint(0, most) for most in MOST_FREE]
        capacity.set_node(slot, NODE, is_open=True)
        # Pod slots are never scarce here.
        taken = (most - its for most, its in zip(NODE[1:], free[1:], strict=True))
        capacity.use(slot, (0, *taken), 1)
    return Instance(capacity, gang_of(groups, is_nested=True))
