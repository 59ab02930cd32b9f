"""Groups in groups on small clusters, against brute force.

What is found is a place by every rule; what is said to be proven has none in any arrangement of
the needed pods on the nodes, and very little that has one is not found.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from tests.text import BLOCK, RACK
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
    Tree,
    build,
    find,
    invariants,
)

LEVELS = (BLOCK, RACK, NODE_LEVEL)
CASES, SEEDS, PODS_MAX, NODES_MAX = 1250, 4, 5, 6


@dataclass(frozen=True)
class Question:
    """One random gang on one random cluster."""

    tree: Tree
    capacity: Capacity
    gang: Gang
    masks: dict[Any, Any]
    options: Options


def random_question(chance: random.Random) -> Question:
    nodes = {
        f"n{node}": (chance.choice("ab"), chance.choice("xyz"), f"n{node}")
        for node in range(chance.randint(1, NODES_MAX))
    }
    tree = build(LEVELS, nodes, 1)
    capacity = Capacity(ResourceAxis(), tree)
    for slot in range(len(nodes)):
        offered = (chance.choice([1, 2, 3, 9]), chance.randint(0, 5))
        capacity.set_node(slot, offered, is_open=chance.random() < 0.92)
    masks = {
        shape: np.array([chance.random() < 0.8 for _ in nodes], dtype=np.bool_) for shape in "AB"
    }
    options = Options(order=chance.choice(list(DomainOrder)))
    return Question(tree, capacity, random_gang(chance), masks, options)


def random_gang(chance: random.Random) -> Gang:
    left, names = PODS_MAX, iter(range(99))

    def pod_set() -> PodSet:
        nonlocal left
        pods = chance.randint(1, min(3, left))
        left -= pods
        return PodSet(
            f"p{next(names)}",
            pods,
            (1, chance.choice([0, 1, 1, 2, 3])),
            chance.choice("ABC"),
            random_constraint(chance),
            needed=chance.randint(1, pods) if chance.random() < 0.2 else None,
        )

    def group(depth: int) -> Group:
        members: list[Group | PodSet] = [pod_set()]
        members += [
            group(depth + 1) if depth < 2 and chance.random() < 0.5 else pod_set()
            for _ in range(chance.randint(0, 2))
            if left > 0
        ]
        chance.shuffle(members)
        return Group(
            f"g{next(names)}",
            tuple(members),
            random_constraint(chance),
            needed=chance.randint(1, len(members)) if chance.random() < 0.2 else None,
        )

    return Gang("ns/gang", group(0))


def random_constraint(chance: random.Random) -> Constraint:
    required = chance.randint(0, 2)
    level, narrower = LEVELS[required], LEVELS[chance.randint(required, 2)]
    return chance.choice(
        [
            Constraint(),
            Constraint(),
            Constraint(required=level),
            Constraint(preferred=level),
            Constraint(required=level, preferred=narrower),
        ]
    )


def has_place(question: Question) -> bool:
    """Whether any arrangement of the needed pods keeps every rule."""
    tree, capacity = question.tree, question.capacity
    free = [column.tolist() for column in capacity.free().T]

    def take(slot: int, request: tuple[int, ...], pods: int) -> None:
        for row, amount in enumerate(request):
            free[slot][row] -= amount * pods

    def inside(member: Group | PodSet, slots: list[int]) -> list[list[int]]:
        required = member.constraint.required
        if required is None:
            return [slots]
        domain_of = tree.domain_of[LEVELS.index(required)]
        by_domain: dict[int, list[int]] = {}
        for slot in slots:
            by_domain.setdefault(int(domain_of[slot]), []).append(slot)
        return list(by_domain.values())

    def placed(member: Group | PodSet, slots: list[int], then: Callable[[], bool]) -> bool:
        return any(
            on(member, here, then) if isinstance(member, PodSet) else all_of(member, here, then)
            for here in inside(member, slots)
        )

    def all_of(group: Group, slots: list[int], then: Callable[[], bool]) -> bool:
        def rest(members: tuple[Group | PodSet, ...]) -> bool:
            if not members:
                return then()
            return placed(members[0], slots, lambda: rest(members[1:]))

        return any(
            rest(chosen)
            for chosen in combinations(group.members, group.needed or len(group.members))
        )

    def on(pod_set: PodSet, slots: list[int], then: Callable[[], bool]) -> bool:
        mask = question.masks.get(pod_set.shape)
        may_host = [
            slot for slot in slots if capacity.is_open[slot] and (mask is None or mask[slot])
        ]
        for way in combinations_with_replacement(may_host, pod_set.needed or pod_set.pods):
            for slot in way:
                take(slot, pod_set.request, 1)
            fits = all(min(free[slot]) >= 0 for slot in way) and then()
            for slot in way:
                take(slot, pod_set.request, -1)
            if fits:
                return True
        return False

    return placed(question.gang.root, list(range(len(tree.nodes))), lambda: True)


def is_enough(member: Group | PodSet, pods: dict[str, int]) -> bool:
    if isinstance(member, PodSet):
        return (member.needed or member.pods) <= pods[member.name] <= member.pods
    enough = sum(is_enough(one, pods) for one in member.members)
    return enough >= (member.needed or len(member.members))


def check(question: Question) -> tuple[bool, bool]:
    """Holds one answer against brute force; whether there was a place, and whether it was found."""
    fits = has_place(question)
    answer = find(question.tree, question.capacity, question.gang, question.masks, question.options)
    if isinstance(answer, NoFit):
        assert not (fits and answer.is_proven), f"{question.gang}: {answer}"
        assert str(answer)
        return fits, False
    assert fits, f"{question.gang}: {answer}"
    invariants.check(
        question.tree,
        question.capacity,
        gang=question.gang,
        placement=answer,
        masks=question.masks,
    )
    pods = {placed.pod_set: placed.pods for placed in answer.pod_sets}
    assert is_enough(question.gang.root, pods)
    return fits, True


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_found_is_a_place_and_what_is_proven_has_none(seed: int) -> None:
    chance = random.Random(seed)
    checked = [check(random_question(chance)) for _ in range(CASES)]
    placeable = sum(fits for fits, _ in checked)
    found = sum(is_found for _, is_found in checked)
    assert CASES // 4 < placeable < CASES
    assert found == placeable


def test_the_same_question_gets_the_same_answer() -> None:
    for seed in range(50):
        answers = [
            find(one.tree, one.capacity, one.gang, one.masks, one.options)
            for one in (random_question(random.Random(seed)), random_question(random.Random(seed)))
        ]
        assert answers[0] == answers[1]
        assert isinstance(answers[0], Placement | NoFit)
