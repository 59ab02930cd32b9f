"""Sentences that hold for every cluster, and every small one held against brute force."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hash_seeds import patient, printed
from tests.text import BLOCK, GPU, RACK
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    Gang,
    Group,
    Leader,
    NoFit,
    Placement,
    PodSet,
    ResourceAxis,
    Slice,
    Tree,
    build,
    complete,
    find,
    invariants,
)

pytestmark = pytest.mark.slow

LEVELS = (BLOCK, RACK, NODE_LEVEL)


@dataclass(frozen=True)
class Node:
    block: str
    rack: str
    gpu: int
    cpu: int
    used: int
    is_open: bool


nodes_of = st.builds(
    Node,
    block=st.sampled_from(["b1", "b2"]),
    rack=st.sampled_from(["r1", "r2", "r3"]),
    gpu=st.integers(0, 5),
    cpu=st.integers(0, 6),
    used=st.integers(0, 2),
    is_open=st.sampled_from([True, True, True, False]),
)
clusters = st.lists(nodes_of, min_size=1, max_size=8).map(
    lambda nodes: {f"n{index}": node for index, node in enumerate(nodes)}
)
constraints = st.sampled_from(
    [
        Constraint(),
        *(Constraint(required=level) for level in LEVELS),
        *(Constraint(preferred=level) for level in LEVELS),
        Constraint(required=BLOCK, preferred=RACK),
        Constraint(required=RACK, preferred=NODE_LEVEL),
    ]
)
pod_sets = st.builds(
    lambda pods, gpu, cpu, constraint: PodSet("w", pods, (1, cpu, gpu), constraint=constraint),
    st.integers(1, 6),
    st.integers(0, 2),
    st.integers(0, 3),
    constraints,
)


def shaped(pods: int, parts: int, slice_level: str, fields: tuple[Constraint, bool]) -> PodSet:
    """Slices of equal size, one layer or two, and perhaps a leader."""
    constraint, has_leader = fields
    named = constraint.preferred or constraint.required
    if named is not None and LEVELS.index(named) > LEVELS.index(slice_level):
        slice_level = NODE_LEVEL
    layers = [Slice(pods, slice_level)]
    if slice_level != NODE_LEVEL:
        layers.append(Slice(1, NODE_LEVEL))
    leader = Leader("boss", (1, 1, 1)) if has_leader else None
    return PodSet(
        "w",
        pods * parts,
        (1, 1, 1),
        constraint=constraint,
        slices=tuple(layers),
        leader=leader,
    )


shaped_pod_sets = st.one_of(
    pod_sets,
    st.builds(
        shaped,
        st.integers(1, 3),
        st.integers(1, 2),
        st.sampled_from(LEVELS),
        st.tuples(constraints, st.booleans()),
    ),
)


def build_cluster(nodes: dict[str, Node]) -> tuple[Tree, Capacity]:
    tree = build(LEVELS, {n: (node.block, node.rack, n) for n, node in nodes.items()}, 1)
    capacity = Capacity(ResourceAxis(), tree)
    capacity.axis.row(GPU)
    for name, node in nodes.items():
        slot = tree.slot_of[name]
        capacity.set_node(slot, (4, node.cpu, node.gpu), node.is_open)
        capacity.use(slot, (1, node.used, node.used))
    return tree, capacity


def gang_of(*members: PodSet) -> Gang:
    return Gang("ns/gang", Group("root", members))


def search(nodes: dict[str, Node], *members: PodSet) -> Placement | NoFit:
    tree, capacity = build_cluster(nodes)
    gang = gang_of(*members)
    answer = find(tree, capacity, gang, {})
    if isinstance(answer, Placement):
        invariants.check(tree, capacity, gang=gang, placement=answer)
    return answer


def named_apart(members: list[PodSet]) -> list[PodSet]:
    """The same pod sets with a name each, plain ones: without slices and leaders."""
    return [
        PodSet(f"w{index}", one.pods, one.request, constraint=one.constraint)
        for index, one in enumerate(members)
    ]


@given(clusters, st.lists(pod_sets, min_size=1, max_size=3))
def test_a_placement_is_whole_and_no_node_gets_more_than_it_takes(
    nodes: dict[str, Node], members: list[PodSet]
) -> None:
    named = named_apart(members)
    tree, capacity = build_cluster(nodes)
    answer = find(tree, capacity, gang_of(*named), {})
    if isinstance(answer, NoFit):
        assert 0 <= answer.available < answer.needed
        return
    free = capacity.free()
    for pod_set, placed in zip(named, answer.pod_sets, strict=True):
        assert placed.pods == pod_set.pods
        for slot, pods in placed.slots:
            assert capacity.is_open[slot]
            free[:, slot] -= pods * np.array(pod_set.request)
            assert free[:, slot][np.array(pod_set.request) > 0].min() >= 0


@given(clusters, pod_sets, st.sampled_from(LEVELS))
def test_a_required_level_yields_one_domain(
    nodes: dict[str, Node], pod_set: PodSet, level: str
) -> None:
    required = PodSet("w", pod_set.pods, pod_set.request, constraint=Constraint(required=level))
    tree, capacity = build_cluster(nodes)
    answer = find(tree, capacity, gang_of(required), {})
    slots = [] if isinstance(answer, NoFit) else [slot for slot, _ in answer.pod_sets[0].slots]
    assert len({tree.path(2, slot)[: LEVELS.index(level) + 1] for slot in slots}) == bool(slots)


@given(clusters, shaped_pod_sets, st.integers(0, 7), st.integers(0, 3))
def test_adding_capacity_never_turns_a_fit_into_a_no_fit(
    nodes: dict[str, Node], pod_set: PodSet, index: int, more: int
) -> None:
    before = search(nodes, pod_set)
    name = f"n{index % len(nodes)}"
    node = nodes[name]
    roomier = Node(node.block, node.rack, node.gpu + more, node.cpu + more, node.used, True)
    after = search(nodes | {name: roomier, "added": roomier}, pod_set)
    if isinstance(before, NoFit):
        # With a leader the numbers are those of the domain it would take, which may be another.
        led = pod_set.leader is not None
        assert isinstance(after, Placement) or led or after.available >= before.available
    else:
        assert isinstance(after, Placement)


@given(clusters, shaped_pod_sets, st.permutations(range(8)))
def test_permuting_the_nodes_changes_nothing(
    nodes: dict[str, Node], pod_set: PodSet, order: list[int]
) -> None:
    permuted = {f"n{n}": nodes[f"n{n}"] for n in order if n < len(nodes)}
    assert search(permuted, pod_set) == search(nodes, pod_set)


@given(
    clusters, shaped_pod_sets, st.permutations(["b1", "b2"]), st.permutations(["r1", "r2", "r3"])
)
def test_relabelling_domains_changes_nothing_but_ties(
    nodes: dict[str, Node], pod_set: PodSet, blocks: list[str], racks: list[str]
) -> None:
    relabelled = {
        name: Node(
            blocks[int(node.block[1]) - 1],
            racks[int(node.rack[1]) - 1],
            node.gpu,
            node.cpu,
            node.used,
            node.is_open,
        )
        for name, node in nodes.items()
    }
    before, after = search(nodes, pod_set), search(relabelled, pod_set)
    if isinstance(before, NoFit):
        # Which of two equally good domains the layers are counted in is a tie.
        assert before == replace(after, layers=before.layers)
        return
    assert isinstance(after, Placement)
    one, other = before.pod_sets[0], after.pod_sets[0]
    assert one.level == other.level
    assert pod_set.leader or len(one.domains) == len(other.domains)


@given(clusters, st.lists(pod_sets, min_size=1, max_size=2))
def test_holding_and_releasing_a_placement_restores_the_books_exactly(
    nodes: dict[str, Node], members: list[PodSet]
) -> None:
    named = named_apart(members)
    tree, capacity = build_cluster(nodes)
    answer = find(tree, capacity, gang_of(*named), {})
    before = [
        capacity.held.copy(),
        capacity.free_now.copy(),
        *map(np.copy, capacity.free_by_domain),
    ]
    entries = [
        (slot, pod_set.request, pods)
        for pod_set, placed in zip(named, getattr(answer, "pod_sets", ()), strict=False)
        for slot, pods in placed.slots
    ]
    for entry in entries:
        capacity.hold(*entry)
        invariants.check(tree, capacity)
    for entry in reversed(entries):
        capacity.release(*entry)
    after = [capacity.held, capacity.free_now, *capacity.free_by_domain]
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))


@given(clusters, shaped_pod_sets)
def test_a_placement_with_slices_and_leader_is_whole(
    nodes: dict[str, Node], pod_set: PodSet
) -> None:
    answer = search(nodes, pod_set)  # which checks every claim of `invariants`
    if isinstance(answer, NoFit):
        assert answer.available < answer.needed or answer.leader
        return
    assert [placed.pods for placed in answer.pod_sets] == [
        pod_set.pods,
        *[1] * (pod_set.leader is not None),
    ]


@given(clusters, shaped_pod_sets, st.data())
def test_pods_of_a_lost_node_are_replaced_and_the_others_stay(
    nodes: dict[str, Node], pod_set: PodSet, data: st.DataObject
) -> None:
    tree, capacity = build_cluster(nodes)
    gang = gang_of(pod_set)
    before = find(tree, capacity, gang, {})
    if isinstance(before, NoFit):
        return
    used = sorted({slot for placed in before.pod_sets for slot, _ in placed.slots})
    lost = set(data.draw(st.lists(st.sampled_from(used), min_size=1, max_size=3)))
    kept = {
        placed.pod_set: [(slot, pods) for slot, pods in placed.slots if slot not in lost]
        for placed in before.pod_sets
    }
    requests = {"w": pod_set.request, "boss": (1, 1, 1)}
    for name, entries in kept.items():
        for slot, pods in entries:
            capacity.use(slot, requests[name], pods)
    for slot in lost:
        capacity.set_node(slot, (), is_open=False)
    after = complete(tree, capacity, gang, {}, kept)
    if isinstance(after, NoFit):
        assert str(after)
        return
    for name, entries in kept.items():
        for slot, pods in entries:
            capacity.unuse(slot, requests[name], pods)
    invariants.check(tree, capacity, gang=gang, placement=after)
    for placed in after.pod_sets:
        here = dict(placed.slots)
        assert not lost & here.keys()
        assert all(here[slot] >= pods for slot, pods in kept[placed.pod_set])


@given(clusters, pod_sets)
def test_a_placement_that_is_held_leaves_no_room_for_what_did_not_fit_beside_it(
    nodes: dict[str, Node], pod_set: PodSet
) -> None:
    second = PodSet("second", pod_set.pods, pod_set.request, constraint=pod_set.constraint)
    together = search(nodes, pod_set, second)
    tree, capacity = build_cluster(nodes)
    alone = find(tree, capacity, gang_of(pod_set), {})
    if isinstance(alone, NoFit):
        assert together == alone
        return
    for slot, pods in alone.pod_sets[0].slots:
        capacity.hold(slot, pod_set.request, pods)
    after = find(tree, capacity, gang_of(second), {})
    if isinstance(after, Placement):
        assert isinstance(together, Placement)
        assert together.pod_sets == (*alone.pod_sets, *after.pod_sets)
    else:
        assert isinstance(together, NoFit)
        assert (together.pod_set, together.available) == ("second", after.available)


def arrangements(nodes: dict[str, Node], pod_set: PodSet) -> list[tuple[str, ...]]:
    """Every way to put the pods on nodes, tried one by one."""
    found = []
    for names in combinations_with_replacement(sorted(nodes), pod_set.pods):
        for name in set(names):
            node, pods = nodes[name], names.count(name)
            has = (4 - 1, node.cpu - node.used, node.gpu - node.used)
            asks = [pods * amount for amount in pod_set.request]
            if not node.is_open or any(a > h for a, h in zip(asks, has, strict=True) if a):
                break
        else:
            found.append(names)
    return found


def narrowest(nodes: dict[str, Node], names: tuple[str, ...]) -> int:
    """Index of the narrowest level at which these nodes are one domain; -1 if there is none."""
    paths = [(nodes[name].block, nodes[name].rack, name) for name in names]
    return max(
        (level for level in range(3) if len({path[: level + 1] for path in paths}) == 1),
        default=-1,
    )


@settings(max_examples=150)
@given(clusters, pod_sets)
def test_brute_force_finds_a_place_exactly_where_the_search_does_and_none_narrower(
    nodes: dict[str, Node], pod_set: PodSet
) -> None:
    possible = arrangements(nodes, pod_set)
    best = max((narrowest(nodes, names) for names in possible), default=-1)
    answer = search(nodes, pod_set)
    required, preferred = pod_set.constraint.required, pod_set.constraint.preferred
    if required is not None:
        fits = bool(possible) and best >= LEVELS.index(required)
    else:
        fits = bool(possible)
    assert isinstance(answer, Placement) == fits
    if isinstance(answer, Placement) and (required or preferred):
        start = LEVELS.index(preferred or required or "")
        assert answer.pod_sets[0].level == max(0, min(start, best))
        assert (len(answer.pod_sets[0].domains) == 1) == (best >= 0)


SCRIPT = """
import random
from tests.topology.nested.test_walk_oracle import random_question
from tests.topology.nested.test_complete_oracle import random_loss
from topology import complete, find
from tests.topology.pod_set.test_search_properties import Node, PodSet, Constraint, RACK, search
nodes = {f"n{i}": Node(f"b{i % 2}", f"r{i % 3}", i % 5, 6, i % 2, True) for i in range(12)}
for constraint in (Constraint(), Constraint(required=RACK), Constraint(preferred=RACK)):
    for pods in (2, 5, 11):
        print(repr(search(nodes, PodSet("w", pods, (1, 1, 1), constraint=constraint))))
for seed in range(60):
    one, loss = random_question(random.Random(seed)), random_loss(random.Random(seed))
    print(repr(find(one.tree, one.capacity, one.gang, one.masks, one.options)))
    if loss is not None:
        lost = loss.question
        print(repr(complete(lost.tree, lost.capacity, lost.gang, lost.masks, loss.kept)))
"""


@patient
def test_equal_inputs_give_equal_answers_whatever_the_hash_seed() -> None:
    answers = printed(SCRIPT)
    assert answers[0] == answers[1]
    assert answers[0].count("Placement(") > 60
