"""Sentences that hold for gangs of groups, whatever the cluster."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.nested.test_walk_oracle import LEVELS, Question, random_question
from topology import Capacity, Constraint, Gang, Group, NoFit, Placement, build, find
from topology.model.answer import Pairs

pytestmark = pytest.mark.slow


def answer_to(asked: Question) -> Placement | NoFit:
    return find(asked.tree, asked.capacity, asked.gang, asked.masks, asked.options)


@given(st.integers(0, 10**6), st.lists(st.integers(0, 4), min_size=8, max_size=8))
def test_adding_capacity_never_turns_a_fit_of_groups_into_a_no_fit(
    seed: int, more: list[int]
) -> None:
    asked = random_question(random.Random(seed))
    before = answer_to(asked)
    for slot, extra in enumerate(more[: len(asked.tree.nodes)]):
        offered = asked.capacity.allocatable[:, slot] + extra
        is_open = bool(asked.capacity.is_open[slot]) or extra > 2
        asked.capacity.set_node(slot, offered.tolist(), is_open=is_open)
    after = answer_to(asked)
    assert isinstance(after, Placement) or isinstance(before, NoFit)


@given(st.integers(0, 10**6), st.permutations(range(8)))
def test_permuting_the_nodes_changes_nothing_for_groups(seed: int, order: list[int]) -> None:
    asked = random_question(random.Random(seed))
    slots = [slot for slot in order if slot < len(asked.tree.nodes)]
    paths = {asked.tree.nodes[slot]: asked.tree.path(2, slot) for slot in slots}
    tree = build(LEVELS, paths, 1)
    capacity = Capacity(asked.capacity.axis, tree)
    for slot in slots:
        offered = asked.capacity.allocatable[:, slot].tolist()
        is_open = bool(asked.capacity.is_open[slot])
        capacity.set_node(tree.slot_of[asked.tree.nodes[slot]], offered, is_open=is_open)
    assert answer_to(replace(asked, tree=tree, capacity=capacity)) == answer_to(asked)


@given(st.integers(0, 10**6), st.booleans())
def test_a_level_of_a_group_of_one_pod_set_means_what_it_means_on_the_pod_set(
    seed: int, is_balanced: bool
) -> None:
    asked = random_question(random.Random(seed))
    first = next(asked.gang.pod_sets())
    may_balance = first.constraint.preferred and not first.constraint.required
    constraint = replace(first.constraint, balanced=bool(is_balanced and may_balance))
    alone = replace(first, constraint=constraint, needed=None)
    inside = Group("g", (replace(alone, constraint=Constraint()),), constraint)
    answers = [
        answer_to(replace(asked, gang=Gang("ns/gang", Group("root", (member,)))))
        for member in (alone, inside)
    ]
    assert answers[0] == answers[1]


@given(st.integers(0, 10**6), st.permutations("ab"), st.permutations("xyz"))
def test_relabelling_domains_does_not_decide_whether_groups_fit(
    seed: int, blocks: list[str], racks: list[str]
) -> None:
    asked = random_question(random.Random(seed))
    paths = {}
    for slot, name in enumerate(asked.tree.nodes):
        block, rack, _ = asked.tree.path(2, slot)
        paths[name] = (blocks["ab".index(block)], racks["xyz".index(rack)], name)
    tree = build(LEVELS, paths, 1)
    capacity = Capacity(asked.capacity.axis, tree)
    for slot, name in enumerate(asked.tree.nodes):
        offered = asked.capacity.allocatable[:, slot].tolist()
        capacity.set_node(tree.slot_of[name], offered, bool(asked.capacity.is_open[slot]))
    moved = [asked.tree.slot_of[name] for name in tree.nodes]
    masks = {shape: mask[moved] for shape, mask in asked.masks.items()}
    after = answer_to(replace(asked, tree=tree, capacity=capacity, masks=masks))
    assert isinstance(after, Placement) == isinstance(answer_to(asked), Placement)


@given(st.integers(0, 10**6), st.lists(st.integers(0, 9), min_size=8, max_size=8))
def test_what_closed_nodes_have_and_what_runs_there_changes_nothing_for_groups(
    seed: int, offered: list[int]
) -> None:
    asked = random_question(random.Random(seed))
    for slot in (~asked.capacity.is_open).nonzero()[0].tolist():
        asked.capacity.set_node(slot, (), is_open=False)
    before = answer_to(asked)
    for slot in (~asked.capacity.is_open).nonzero()[0].tolist():
        asked.capacity.set_node(slot, (9, offered[slot]), is_open=False)
        asked.capacity.use(slot, (1, 1), offered[-1 - slot])
    assert answer_to(asked) == before


@given(st.integers(0, 10**6), st.lists(st.tuples(st.integers(0, 7), st.integers(1, 3)), max_size=4))
def test_pods_that_arrive_count_like_pods_on_the_books(
    seed: int, arriving: list[tuple[int, int]]
) -> None:
    asked = random_question(random.Random(seed))
    rows = asked.capacity.allocatable.shape[0]
    pods = [((amount,) * rows, slot) for slot, amount in arriving if slot < len(asked.tree.nodes)]
    options = replace(
        asked.options, arriving=[(request, Pairs.of([(slot, 1)])) for request, slot in pods]
    )
    answer = answer_to(replace(asked, options=options))
    for request, slot in pods:
        asked.capacity.use(slot, request)
    assert answer == answer_to(asked)
