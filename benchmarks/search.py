"""How long one search takes, beside the bare division and sums over the same arrays.

    python -m benchmarks.search [--json] [--nodes 640,2500,5000,15000,100000]

Block, rack and node: 16 nodes to a rack, 32 racks to a block, four resources, nodes used to
different degrees. Search and bare kernel take turns in one run; both figures are the least of
many, since whatever else runs on the machine only ever adds to them.

`growth` rows set the time at the most nodes against that at 5,000: value is how many times as
long, baseline how many times as many nodes, ratio the growth per node (1 is linear). `pods` rows
set a gang of 10,000 pods against one of 100 on the same nodes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.table import Row, show
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    Gang,
    Group,
    Leader,
    NoFit,
    PodSet,
    ResourceAxis,
    Slice,
    build,
    find,
    packing_scores,
)

BLOCK = "cloud.provider.com/topology-block"
RACK = "cloud.provider.com/topology-rack"
NODES_PER_RACK, RACKS_PER_BLOCK = 16, 32
GIB = 2**30

# Milliseconds for one search.
TARGETS = {5_000: 0.3, 15_000: 1.0, 100_000: 8.0}
TARGET_RATIO = 6
GROWTH_FROM = 5_000  # nodes; from there on time grows at most as they do
FEW_PODS, MANY_PODS = 100, 10_000


def synthetic(nodes: int) -> Capacity:
    """A cluster of racks in blocks whose nodes are used to different degrees; always the same."""
    paths = {}
    for node in range(nodes):
        rack = node // NODES_PER_RACK
        paths[f"n{node}"] = (f"b{rack // RACKS_PER_BLOCK}", f"r{rack}", f"n{node}")
    tree = build([BLOCK, RACK, NODE_LEVEL], paths, generation=1)
    axis = ResourceAxis()
    capacity = Capacity(axis, tree)
    offered = axis.vector(
        [("pods", 110), ("cpu", 64_000), ("memory", 512 * GIB), ("nvidia.com/gpu", 8)]
    )
    chance = np.random.default_rng(1)
    for slot, pods in enumerate(chance.integers(0, 9, size=nodes).tolist()):
        capacity.set_node(slot, offered, is_open=True)
        capacity.use(slot, request_of(axis), pods)
    return capacity


def request_of(axis: ResourceAxis) -> tuple[int, ...]:
    """One GPU with its share of the node."""
    return axis.vector([("pods", 1), ("cpu", 8_000), ("memory", 60 * GIB), ("nvidia.com/gpu", 1)])


def bare(capacity: Capacity, free: np.ndarray, request: tuple[int, ...]) -> int:
    """The least any search does: divide each asked row, add up each level, take the largest."""
    pods = free[0] // request[0]
    for row in range(1, len(request)):
        np.minimum(pods, free[row] // request[row], out=pods)
    np.maximum(pods, 0, out=pods)
    tree = capacity.tree
    racks = np.add.reduceat(pods, tree.starts[1])
    blocks = np.add.reduceat(racks, np.searchsorted(tree.starts[1], tree.starts[0]))
    return int(blocks.max()) + int(racks.max())


def cases(capacity: Capacity) -> list[tuple[str, PodSet | Group, float]]:
    """Name, what is asked for, and how much more than one simple search it may take."""
    axis, request = capacity.axis, request_of(capacity.axis)
    one_block = int(capacity.free_by_domain[0][3].max())
    half = int(capacity.free_by_domain[0][3].sum()) // 2
    leader = Leader("leader", axis.vector([("pods", 1), ("cpu", 4_000), ("memory", 16 * GIB)]))
    two_layers = (Slice(16, RACK), Slice(2, NODE_LEVEL))

    def asked(pods: int, constraint: Constraint, **fields: Any) -> PodSet:
        return PodSet("workers", pods, request, constraint=constraint, **fields)

    # How many slices the best block takes; the search says so of more than any takes.
    too_many = asked(one_block * 16, Constraint(required=BLOCK), slices=two_layers)
    none = find(capacity.tree, capacity, Gang("ns/gang", Group("root", (too_many,))), {})
    assert isinstance(none, NoFit)
    one_block_of_slices = none.available
    return [
        ("required rack", asked(64, Constraint(required=RACK)), 1),
        ("required rack, none fits", asked(8 * NODES_PER_RACK + 1, Constraint(required=RACK)), 1),
        ("preferred rack, falls back to a block", asked(1024, Constraint(preferred=RACK)), 1),
        (
            "preferred rack, falls back to blocks",
            asked(one_block + 1, Constraint(preferred=RACK)),
            1,
        ),
        ("unconstrained", asked(1024, Constraint()), 1),
        ("unconstrained, half of all that is free", asked(half, Constraint()), 1),
        (
            "slices of 2 layers in one block",
            asked(512, Constraint(required=BLOCK), slices=two_layers),
            10,
        ),
        (
            "slices of 2 layers over blocks",
            asked(16 * (one_block_of_slices * 9 // 8), Constraint(), slices=two_layers),
            10,
        ),
        ("leader + workers, one rack", asked(64, Constraint(required=RACK), leader=leader), 10),
        (
            "leader + workers, over blocks",
            asked(one_block + 1, Constraint(preferred=RACK), leader=leader),
            10,
        ),
        ("leader + workers, unconstrained", asked(1024, Constraint(), leader=leader), 10),
        ("3 nested groups of 16", nested(request), 10),
    ]


def nested(request: tuple[int, ...]) -> Group:
    """A block for all, inside it a rack each for three groups of two pod sets."""
    replicas = tuple(
        Group(
            f"replica-{index}",
            (PodSet(f"prefill-{index}", 4, request), PodSet(f"decode-{index}", 12, request)),
            Constraint(required=RACK),
        )
        for index in range(3)
    )
    return Group("all", replicas, Constraint(required=BLOCK))


def sizes_of_gangs(axis: ResourceAxis) -> list[tuple[str, Gang, Gang]]:
    """Name, and two gangs that differ in nothing but their pods: few, and many."""
    small = axis.vector([("pods", 1), ("cpu", 100)])

    def gang(pods: int, constraint: Constraint) -> Gang:
        return Gang("bench/gang", Group("root", (PodSet("w", pods, small, constraint=constraint),)))

    wishes = [
        ("required block", Constraint(required=BLOCK)),
        ("preferred block", Constraint(preferred=BLOCK)),
        ("unconstrained", Constraint()),
    ]
    return [(name, gang(FEW_PODS, wish), gang(MANY_PODS, wish)) for name, wish in wishes]


def interleaved(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Least seconds of both, measured in turns so that a busy time hits them alike."""
    took: tuple[list[float], list[float]] = ([], [])
    until = time.perf_counter() + 1.0
    while time.perf_counter() < until or len(took[0]) < 15:
        for times, call in zip(took, (first, second), strict=True):
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
    return min(took[0]), min(took[1])


def measure(nodes: int) -> list[Row]:
    """All cases at one size."""
    capacity = synthetic(nodes)
    tree, request, free = capacity.tree, request_of(capacity.axis), capacity.free()
    rows = []
    for case, member, times in cases(capacity):
        gang = Gang("bench/gang", Group("root", (member,)))
        fits = not isinstance(find(tree, capacity, gang, {}), NoFit)
        assert fits == ("none fits" not in case), case
        searched, barest = interleaved(
            partial(find, tree, capacity, gang, {}), partial(bare, capacity, free, request)
        )
        target = ""
        if nodes in TARGETS:
            target = f"<= {TARGETS[nodes] * times:g} ms, <= {TARGET_RATIO * times}x"
        pods = sum(one.pods for one in gang.pod_sets())
        rows.append(_row(f"{case}, {pods} pods", nodes, searched, barest, target))
    for case, few, many in sizes_of_gangs(capacity.axis):
        for gang in (few, many):
            assert not isinstance(find(tree, capacity, gang, {}), NoFit), case
        long, short = interleaved(
            partial(find, tree, capacity, many, {}), partial(find, tree, capacity, few, {})
        )
        rows.append(
            _row(f"pods, {case}: {MANY_PODS} against {FEW_PODS}", nodes, long, short, "<= 2x")
        )
    ordinary = capacity.axis.vector([("pods", 1), ("cpu", 500)])
    scored, barest = interleaved(
        lambda: packing_scores(tree, capacity, ordinary), lambda: bare(capacity, free, request)
    )
    rows.append(_row("packing scores", nodes, scored, barest, ""))
    changed, _ = interleaved(lambda: _hold_and_release(capacity, request), lambda: None)
    rows.append(
        Row("search", "one change of a node", nodes, changed * 1e3 / 2, "ms", target="<= 0.1 ms")
    )
    return rows


def growth(rows: Sequence[Row]) -> list[Row]:
    """How each case grows from `GROWTH_FROM` nodes to the most there are."""
    most = max((row.nodes for row in rows), default=0)
    if most <= GROWTH_FROM:
        return []
    times, grown = most / GROWTH_FROM, []
    before = {_case(row): row.value for row in rows if row.nodes == GROWTH_FROM}
    for row in rows:
        if row.nodes == most and row.baseline is not None and _case(row) in before:
            value = row.value / before[_case(row)]
            grown.append(
                Row(
                    benchmark="search",
                    case=f"growth, {_case(row)}",
                    nodes=most,
                    value=value,
                    unit="x",
                    baseline=times,
                    ratio=value / times,
                    target=f"<= {times:g}x",
                )
            )
    return grown


def _case(row: Row) -> str:
    """The name of a case without its number of pods."""
    return row.case.rpartition(", ")[0] if row.case.endswith(" pods") else row.case


def _hold_and_release(capacity: Capacity, request: tuple[int, ...]) -> None:
    capacity.hold(0, request)
    capacity.release(0, request)


def _row(case: str, nodes: int, seconds: float, barest: float, target: str) -> Row:
    return Row(
        benchmark="search",
        case=case,
        nodes=nodes,
        value=seconds * 1e3,
        unit="ms",
        baseline=barest * 1e3,
        ratio=seconds / barest,
        target=target,
    )


def main() -> None:
    """Measures every size asked for and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--nodes", default="640,2500,5000,15000,100000", help="with commas")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.nodes.split(",")]
    rows = [row for nodes in sizes for row in measure(nodes)]
    show([*rows, *growth(rows)], as_json=arguments.json)


if __name__ == "__main__":
    main()
