"""Gangs for which there certainly is room, on small clusters: always the same for a seed.

Nodes are filled by a hidden packing of the gang; background load then takes most of what that
leaves. `each`: every pod set requires a rack of its own choice, as a gang of several roles does.
`nested`: groups of pod sets require racks, and all of them one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    Gang,
    Group,
    PodSet,
    ResourceAxis,
    build,
)

BLOCK = "cloud.provider.com/topology-block"
RACK = "cloud.provider.com/topology-rack"
LEFT_FREE = (0.0, 0.1, 0.3)  # of what the hidden packing leaves
NODE = (110, 64, 256, 8)  # pods, cores, GiB, GPUs
MOST_PODS = 6
MOST_TRIES = 200  # at a hidden packing

Request = tuple[int, ...]


@dataclass(frozen=True)
class Instance:
    """Books, and a gang that fits into them."""

    capacity: Capacity
    gang: Gang


def instance(seed: int, *, is_mixed: bool, is_nested: bool) -> Instance:
    """One of them; `is_mixed`: each pod set has a request of its own, else all have the same."""
    rng = Random(f"{seed}/{is_mixed}/{is_nested}")
    while True:
        racks = [
            (f"b{block}", f"r{block}.{rack}")
            for block in range(rng.randint(1, 2))
            for rack in range(rng.randint(2, 4))
        ]
        per_rack = rng.randint(2, 4)
        groups = _groups(rng, is_mixed=is_mixed, is_nested=is_nested)
        used = packed(rng, racks, per_rack, groups, is_nested=is_nested)
        if used is not None:
            break
    paths = {
        f"{rack}.n{node}": (block, rack, f"{rack}.n{node}")
        for block, rack in racks
        for node in range(per_rack)
    }
    tree = build([BLOCK, RACK, NODE_LEVEL], paths, generation=1)
    axis = ResourceAxis()
    axis.vector([("cpu", 1), ("memory", 1), ("nvidia.com/gpu", 1)])
    capacity = Capacity(axis, tree)
    left = rng.choice(LEFT_FREE)
    for slot, name in enumerate(tree.nodes):
        capacity.set_node(slot, NODE, is_open=True)
        hidden = used.get(name, [0] * len(NODE))
        taken = [
            rest - int(rest * left)
            for rest in (most - its for most, its in zip(NODE, hidden, strict=True))
        ]
        # Pod slots are never scarce here.
        capacity.use(slot, (0, *taken[1:]), 1)
    return Instance(capacity, gang_of(groups, is_nested=is_nested))


def _groups(rng: Random, *, is_mixed: bool, is_nested: bool) -> list[list[tuple[int, Request]]]:
    """(pods, request) of the pod sets of each group; one pod set to a group unless nested."""
    common = request_of(rng)
    sizes = [rng.randint(1, 3) for _ in range(rng.randint(2, 3))] if is_nested else None
    sizes = sizes or [1] * rng.randint(2, 5)
    return [
        [(rng.randint(1, MOST_PODS), request_of(rng) if is_mixed else common) for _ in range(size)]
        for size in sizes
    ]


def request_of(rng: Random) -> Request:
    return (1, rng.randint(1, 24), rng.randint(1, 96), rng.randint(0, 4))


def packed(
    rng: Random,
    racks: list[tuple[str, str]],
    per_rack: int,
    groups: list[list[tuple[int, Request]]],
    *,
    is_nested: bool,
) -> dict[str, list[int]] | None:
    """What a packing uses of each node; None: none was found."""
    for _ in range(MOST_TRIES):
        used: dict[str, list[int]] = {}
        blocks = sorted({block for block, _ in racks})
        block = rng.choice(blocks) if is_nested else None
        may = [rack for around, rack in racks if block in (None, around)]
        if all(_put(rng, used, rng.choice(may), per_rack, group) for group in groups):
            return used
    return None


def _put(
    rng: Random,
    used: dict[str, list[int]],
    rack: str,
    per_rack: int,
    pod_sets: list[tuple[int, Request]],
) -> bool:
    for pods, request in pod_sets:
        for _ in range(pods):
            names = [f"{rack}.n{node}" for node in range(per_rack)]
            rng.shuffle(names)
            for name in names:
                its = used.setdefault(name, [0] * len(NODE))
                if all(a + b <= most for a, b, most in zip(its, request, NODE, strict=True)):
                    used[name] = [a + b for a, b in zip(its, request, strict=True)]
                    break
            else:
                return False
    return True


def gang_of(groups: list[list[tuple[int, Request]]], *, is_nested: bool) -> Gang:
    one_rack = Constraint(required=RACK)
    if not is_nested:
        members = tuple(
            PodSet(f"p{at}", pods, request, constraint=one_rack)
            for at, [(pods, request)] in enumerate(groups)
        )
        return Gang("ns/g", Group("g", members))
    return Gang(
        "ns/g",
        Group(
            "g",
            tuple(
                Group(
                    f"g{at}",
                    tuple(PodSet(f"p{at}.{i}", pods, req) for i, (pods, req) in enumerate(group)),
                    one_rack,
                )
                for at, group in enumerate(groups)
            ),
            Constraint(required=BLOCK),
        ),
    )
