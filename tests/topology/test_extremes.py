"""The largest, the smallest and the oddest clusters and gangs: right answers, no overflow."""

from __future__ import annotations

import pytest

from tests.text import BLOCK, RACK, cluster, vector
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    DomainOrder,
    Gang,
    Group,
    NoFit,
    Options,
    Placement,
    PodSet,
    ResourceAxis,
    Slice,
    Tree,
    build,
    complete,
    find,
    invariants,
    levels_of,
    packing_scores,
)
from topology.model.levels import LEVELS_MAX

EIB = 2**60
NODES, NODES_PER_BLOCK, NODES_PER_RACK = 100_000, 500, 20


def gang_of(*members: PodSet | Group, constraint: Constraint | None = None) -> Gang:
    return Gang("ns/gang", Group("root", members, constraint or Constraint()))


@pytest.fixture(scope="module")
def largest() -> tuple[Tree, Capacity]:
    """100,000 nodes of 2 EiB each; of the first block one node is over-committed by 1 EiB."""
    paths = {
        f"n{node:06}": (
            f"b{node // NODES_PER_BLOCK:03}",
            f"r{node // NODES_PER_RACK:04}",
            f"n{node:06}",
        )
        for node in range(NODES)
    }
    tree = build((BLOCK, RACK, NODE_LEVEL), paths, 1)
    capacity = Capacity(ResourceAxis(), tree)
    offered = vector(capacity.axis, pods=110, memory=2 * EIB)
    for slot in range(NODES):
        capacity.set_node(slot, offered, is_open=True)
    capacity.use(0, vector(capacity.axis, memory=EIB), 3)
    return tree, capacity


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constraint", "most"),
    [
        (Constraint(required=BLOCK), 2 * NODES_PER_BLOCK),
        (Constraint(required=RACK), 2 * NODES_PER_RACK),
        (Constraint(preferred=RACK), 2 * NODES - 2),
        (Constraint(), 2 * NODES - 2),
    ],
)
def test_a_hundred_thousand_nodes_of_two_exbibytes_take_exactly_what_they_have(
    largest: tuple[Tree, Capacity], constraint: Constraint, most: int
) -> None:
    tree, capacity = largest
    request = vector(capacity.axis, pods=1, memory=EIB)
    fits = find(tree, capacity, gang_of(PodSet("w", most, request, constraint=constraint)), {})
    assert isinstance(fits, Placement)
    [placed] = fits.pod_sets
    assert placed.pods == most
    assert {pods for _, pods in placed.slots} == {2}
    assert 0 not in dict(placed.slots)
    refused = find(
        tree, capacity, gang_of(PodSet("w", most + 1, request, constraint=constraint)), {}
    )
    assert isinstance(refused, NoFit)
    assert refused.is_proven
    assert refused.excluded == (("insufficient memory", 1),)


@pytest.mark.slow
def test_groups_on_a_hundred_thousand_nodes_lie_in_the_rack_of_each_and_the_block_of_all(
    largest: tuple[Tree, Capacity],
) -> None:
    tree, capacity = largest
    request = vector(capacity.axis, pods=1, memory=EIB)
    replicas = tuple(
        Group(f"g{index}", (PodSet(f"w{index}", 40, request),), Constraint(required=RACK))
        for index in range(25)
    )
    gang = gang_of(*replicas, constraint=Constraint(required=BLOCK))
    answer = find(tree, capacity, gang, {})
    assert isinstance(answer, Placement)
    slots = [slot for placed in answer.pod_sets for slot, _ in placed.slots]
    assert len(slots) == len(set(slots)) == NODES_PER_BLOCK
    assert len({int(tree.domain_of[0][slot]) for slot in slots}) == 1


def ten_thousand_members() -> tuple[Tree, Capacity, tuple[PodSet, ...]]:
    """101 nodes of 100 GPUs, and 10,000 pod sets of one pod with one GPU."""
    text = "\n".join(f"b{node // 32}/r{node // 8}/n{node:02} gpu=100" for node in range(101))
    tree, capacity = cluster(text)
    request = vector(capacity.axis, pods=1, gpu=1)
    return tree, capacity, tuple(PodSet(f"w{index}", 1, request) for index in range(10_000))


@pytest.mark.slow
def test_a_gang_of_ten_thousand_members_has_a_place_for_each() -> None:
    tree, capacity, members = ten_thousand_members()
    gang = gang_of(*members)
    answer = find(tree, capacity, gang, {})
    assert isinstance(answer, Placement)
    invariants.check(tree, capacity, gang=gang, placement=answer)
    assert [placed.pod_set for placed in answer.pod_sets] == [one.name for one in members]


@pytest.mark.slow
def test_a_gang_that_needs_all_but_one_of_ten_thousand_members_does_without_one() -> None:
    tree, capacity, members = ten_thousand_members()
    elastic = Gang("ns/gang", Group("root", members, needed=9_999))
    capacity.set_node(0, vector(capacity.axis, pods=110, gpu=100), is_open=False)
    capacity.set_node(1, vector(capacity.axis, pods=110, gpu=99), is_open=True)
    answer = find(tree, capacity, elastic, {})
    assert isinstance(answer, Placement)
    assert sum(placed.pods for placed in answer.pod_sets) == 9_999


ODD = {
    "no nodes": "",
    "one closed node": "b1/r1/n1 gpu=4 closed",
    "one node that is over-committed": "b1/r1/n1 gpu=9/4",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
@pytest.mark.parametrize("is_nested", [False, True])
def test_clusters_that_take_nothing_refuse_everything_and_say_so(
    text: str, is_nested: bool
) -> None:
    tree, capacity = cluster(text)
    pods = PodSet(
        "w", 1, vector(capacity.axis, pods=1, gpu=1), constraint=Constraint(preferred=RACK)
    )
    member = Group("g", (pods, PodSet("v", 2, pods.request)), Constraint(required=RACK))
    gang = gang_of(member if is_nested else pods)
    for answer in (find(tree, capacity, gang, {}), complete(tree, capacity, gang, {}, {})):
        assert isinstance(answer, NoFit)
        assert (answer.available, answer.is_proven) == (0, True)


def test_one_node_takes_a_gang_of_groups_and_its_lost_pods() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4")
    request = vector(capacity.axis, pods=1, gpu=1)
    inner = Group(
        "g", (PodSet("a", 2, request), PodSet("b", 2, request)), Constraint(required=RACK)
    )
    gang = gang_of(inner)
    answer = find(tree, capacity, gang, {})
    assert isinstance(answer, Placement)
    assert [placed.slots for placed in answer.pod_sets] == [((0, 2),), ((0, 2),)]
    capacity.use(0, request, 3)
    assert complete(tree, capacity, gang, {}, {"a": [(0, 2)], "b": [(0, 1)]}) == answer


def test_sixteen_levels_hold_groups_slices_and_what_they_lost() -> None:
    text = "\n".join(
        "/".join([*(f"d{node >> (14 - depth)}" for depth in range(15)), f"n{node:05}"]) + " gpu=1"
        for node in range(0, 2**14, 2**10)
    )
    tree, capacity = cluster(text)
    assert len(tree.levels) == 16
    request = vector(capacity.axis, pods=1, gpu=1)
    halves = tuple(
        Group(
            f"g{index}",
            (PodSet(f"w{index}", 4, request, slices=(Slice(2, tree.levels[3]),)),),
            Constraint(required=tree.levels[2]),
        )
        for index in range(2)
    )
    gang = gang_of(Group("half", halves, Constraint(required=tree.levels[1])))
    answer = find(tree, capacity, gang, {})
    assert isinstance(answer, Placement)
    invariants.check(tree, capacity, gang=gang, placement=answer)
    lost = answer.pod_sets[0].slots[0][0]
    kept = {
        placed.pod_set: [entry for entry in placed.slots if entry[0] != lost]
        for placed in answer.pod_sets
    }
    for entries in kept.values():
        for slot, pods in entries:
            capacity.use(slot, request, pods)
    assert complete(tree, capacity, gang, {}, kept) == answer


@pytest.mark.parametrize("order", DomainOrder)
@pytest.mark.parametrize("level", range(LEVELS_MAX))
def test_sixteen_levels_above_the_nodes_are_searched(level: int, order: DomainOrder) -> None:
    """A node's path is its number in bits, the last of which stand in the narrowest levels."""
    levels = [f"level-{number}" for number in range(LEVELS_MAX)]
    nodes = {f"n{n}": (*f"{n:016b}", f"n{n}") for n in range(8)}
    tree = build(levels_of(levels), nodes, 1)
    capacity = Capacity(ResourceAxis(), tree)
    for slot in range(8):
        capacity.set_node(slot, (1,), is_open=slot != 0)
    nodes_in_one = 2 ** min(3, LEVELS_MAX - 1 - level)
    pods = PodSet("w", nodes_in_one - (nodes_in_one == 8), (1,))
    inner = Group("inner", (pods,), Constraint(required=levels[level]))
    outer = gang_of(Group("middle", (inner,), Constraint(required=levels[0])))
    placed = find(tree, capacity, outer, {}, Options(order=order))
    assert isinstance(placed, Placement)
    invariants.check(tree, capacity, gang=outer, placement=placed)
    [on] = placed.pod_sets
    assert on.pods == pods.pods
    assert packing_scores(tree, capacity, (1,)).tolist() == [0] * 8  # all is free, or closed
