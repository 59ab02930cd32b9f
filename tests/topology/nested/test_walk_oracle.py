"""Groups in groups on small clusters, against brute force.

What is found is a place by every rule; what is said to be proven has none in any arrangement of
the needed pods on the nodes, and very little that has one is not found.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, repeat
from typing import Any

import numpy as np
import pytest

from tests.text import BLOCK
from tests.topology.random_clusters import LEVELS, random_cluster
from topology import (
    Capacity,
    Constraint,
    DomainOrder,
    Gang,
    Group,
    Leader,
    NoFit,
    Options,
    Placement,
    PodSet,
    Slice,
    Tree,
    find,
    invariants,
)

Kept = dict[str, list[tuple[int, int]]]

CASES, SEEDS, PODS_MAX, NODES_MAX = 1250, 8, 6, 8  # with those of `test_oracle` 20,000
ONE_IN = {
    "group in a group": 3,
    "group in a group in a group": 20,
    "required": 2,
    "required of a group in a group": 10,
    "preferred": 2,
    "slices": 5,
    "leader": 5,
    "fewer members needed": 5,
    "fewer pods needed": 5,
    "none needed": 8,
    "two alike": 5,
    "two alike with leaders": 60,
    "another order": 3,
    "6 pods": 10,
    "8 nodes": 12,
}
"""At least one question in so many is of that kind."""


@dataclass(frozen=True)
class Question:
    """One random gang on one random cluster."""

    tree: Tree
    capacity: Capacity
    gang: Gang
    masks: dict[Any, Any]
    options: Options


def random_question(chance: random.Random) -> Question:
    tree, capacity = random_cluster(
        chance, nodes_max=NODES_MAX, pods=[1, 2, 3, 9], amount_max=5, open_share=0.92
    )
    masks = {
        shape: np.array([chance.random() < 0.8 for _ in tree.nodes], dtype=np.bool_)
        for shape in "AB"
    }
    options = Options(order=chance.choice(list(DomainOrder)))
    return Question(tree, capacity, random_gang(chance), masks, options)


def random_gang(chance: random.Random) -> Gang:
    left, names = PODS_MAX, iter(range(99))

    def pod_set() -> PodSet:
        nonlocal left
        pods = chance.randint(1, min(3, left))
        left -= pods
        name, leader = f"p{next(names)}", None
        if left > 0 and chance.random() < 0.2:
            left -= 1
            leader = Leader(f"{name}-leader", (1, chance.randint(0, 3)), chance.choice("ABC"))
        constraint = random_constraint(chance)
        return PodSet(
            name,
            pods,
            (1, chance.choice([0, 1, 1, 2, 3])),
            chance.choice("ABC"),
            constraint,
            needed=chance.randint(0, pods) if chance.random() < 0.25 else None,
            slices=random_slices(chance, pods, constraint) if chance.random() < 0.2 else (),
            leader=leader,
        )

    def group(depth: int) -> Group:
        nonlocal left
        members: list[Group | PodSet] = [pod_set()]
        members += [
            group(depth + 1) if depth < 2 and chance.random() < 0.5 else pod_set()
            for _ in range(chance.randint(0, 2))
            if left > 0
        ]
        copied = chance.choice(members)
        if pods_of(copied) <= left and chance.random() < 0.5:
            left -= pods_of(copied)
            members.append(alike(copied, names))
        chance.shuffle(members)
        constraint = random_constraint(chance)
        if any(isinstance(one, PodSet) and one.slices for one in members):
            # A level narrower than the slices of a pod set cannot be meant for it.
            constraint = chance.choice([Constraint(), Constraint(required=BLOCK)])
        return Group(
            f"g{next(names)}",
            tuple(members),
            constraint,
            needed=chance.randint(0, len(members)) if chance.random() < 0.25 else None,
        )

    return Gang("ns/gang", group(0))


def alike(member: Group | PodSet, names: Iterator[int]) -> Group | PodSet:
    """The same under other names: of equal requests, shapes and constraints."""
    if isinstance(member, Group):
        inner = tuple(alike(one, names) for one in member.members)
        return replace(member, name=f"g{next(names)}", members=inner)
    name = f"p{next(names)}"
    leader = None if member.leader is None else replace(member.leader, name=f"{name}-leader")
    return replace(member, name=name, leader=leader)


def pods_of(member: Group | PodSet) -> int:
    if isinstance(member, Group):
        return sum(map(pods_of, member.members))
    return member.pods + (member.leader is not None)


def random_slices(chance: random.Random, pods: int, constraint: Constraint) -> tuple[Slice, ...]:
    """Slices of one size that divides the pods, no wider than the pod set's own levels."""
    size = chance.choice([size for size in range(1, pods + 1) if pods % size == 0])
    named = constraint.preferred or constraint.required
    widest = 0 if named is None else LEVELS.index(named)
    return (Slice(size, LEVELS[chance.randint(widest, 2)]),)


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


def has_place(question: Question, kept: Kept | None = None) -> bool:
    """Whether any arrangement of the needed pods keeps every rule, the kept ones as they are.

    Kept pods are on the books; a group's required domain is the one its kept pods are in.
    """
    tree, capacity, stays = question.tree, question.capacity, kept or {}
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
        home = {slot for name in names_of(member) for slot, _ in stays.get(name, ())}
        return [here for here in by_domain.values() if home <= set(here)]

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

        return any(rest(chosen) for chosen in combinations(group.members, least_of(group)))

    def on(pod_set: PodSet, slots: list[int], then: Callable[[], bool]) -> bool:
        here = stays.get(pod_set.name, [])
        least = whole_slices(pod_set, here)
        leader = pod_set.leader
        if leader is None or leader.name in stays or not least:
            return workers(pod_set, slots, least, then)
        for slot in may_host(leader.shape, slots):
            take(slot, leader.request, 1)
            fits = min(free[slot]) >= 0 and workers(pod_set, slots, least, then)
            take(slot, leader.request, -1)
            if fits:
                return True
        return False

    def may_host(shape: Any, slots: list[int]) -> list[int]:
        mask = question.masks.get(shape)
        return [slot for slot in slots if capacity.is_open[slot] and (mask is None or mask[slot])]

    def workers(pod_set: PodSet, slots: list[int], least: int, then: Callable[[], bool]) -> bool:
        here = stays.get(pod_set.name, [])
        missing = least - sum(pods for _, pods in here)
        for way in combinations_with_replacement(may_host(pod_set.shape, slots), max(0, missing)):
            if not are_whole(pod_set, way, here):
                continue
            for slot in way:
                take(slot, pod_set.request, 1)
            fits = all(min(free[slot]) >= 0 for slot in way) and then()
            for slot in way:
                take(slot, pod_set.request, -1)
            if fits:
                return True
        return False

    def whole_slices(pod_set: PodSet, here: list[tuple[int, int]]) -> int:
        """The fewest pods that are enough: no fewer than are there, and no slice in part."""
        least = max(least_of(pod_set), sum(pods for _, pods in here))
        if not pod_set.slices:
            return least
        needs = sum(
            -(-pods // pod_set.slices[0].pods) for pods in in_slices(pod_set, here).values()
        )
        return max(least, needs * pod_set.slices[0].pods)

    def in_slices(pod_set: PodSet, here: list[tuple[int, int]]) -> Counter[int]:
        domain_of = tree.domain_of[LEVELS.index(pod_set.slices[0].level)]
        pods_in: Counter[int] = Counter()
        for slot, pods in here:
            pods_in[int(domain_of[slot])] += pods
        return pods_in

    def are_whole(pod_set: PodSet, way: tuple[int, ...], here: list[tuple[int, int]]) -> bool:
        if not pod_set.slices:
            return True
        together = in_slices(pod_set, [*here, *((slot, 1) for slot in way)])
        return not any(pods % pod_set.slices[0].pods for pods in together.values())

    return placed(question.gang.root, list(range(len(tree.nodes))), lambda: True)


def least_of(member: Group | PodSet) -> int:
    """Pods or members that are needed; of a pod set with slices whole ones."""
    if isinstance(member, Group):
        return len(member.members) if member.needed is None else member.needed
    size = member.slices[0].pods if member.slices else 1
    return member.pods if member.needed is None else -(-member.needed // size) * size


def names_of(member: Group | PodSet) -> list[str]:
    if isinstance(member, PodSet):
        return [member.name, *([member.leader.name] if member.leader is not None else [])]
    return [name for one in member.members for name in names_of(one)]


def is_enough(member: Group | PodSet, pods: dict[str, int]) -> bool:
    if isinstance(member, PodSet):
        has_leader = member.leader is None or pods[member.leader.name] == 1 or not pods[member.name]
        return has_leader and least_of(member) <= pods[member.name] <= member.pods
    return sum(is_enough(one, pods) for one in member.members) >= least_of(member)


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


def kinds(question: Question) -> list[str]:
    """What is special about a question."""
    pod_sets, groups = list(question.gang.pod_sets()), [question.gang.root]
    inner = [one for one in groups[0].members if isinstance(one, Group)]
    innermost = [one for group in inner for one in group.members if isinstance(one, Group)]
    groups += [*inner, *innermost]
    wishes = [one.constraint for one in (*groups, *pod_sets)]
    looks = Counter(repr(alike(one, repeat(0))) for one in (*groups, *pod_sets))
    twins = [look for look, times in looks.items() if times > 1]
    has_kind = {
        "group in a group": bool(inner),
        "group in a group in a group": bool(innermost),
        "required": any(wish.required for wish in wishes),
        "required of a group in a group": any(one.constraint.required for one in groups[1:]),
        "preferred": any(wish.preferred for wish in wishes),
        "slices": any(one.slices for one in pod_sets),
        "leader": any(one.leader for one in pod_sets),
        "fewer members needed": any(least_of(one) < len(one.members) for one in groups),
        "fewer pods needed": any(least_of(one) < one.pods for one in pod_sets),
        "none needed": any(one.needed == 0 for one in (*groups, *pod_sets)),
        "two alike": bool(twins),
        "two alike with leaders": any("Leader(" in look for look in twins),
        "another order": question.options.order is not DomainOrder.TIGHTEST,
        "6 pods": sum(one.pods + (one.leader is not None) for one in pod_sets) == 6,
        "8 nodes": len(question.tree.nodes) == 8,
    }
    return [kind for kind, has in has_kind.items() if has]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_found_is_a_place_and_what_is_proven_has_none(seed: int) -> None:
    chance = random.Random(seed)
    questions = [random_question(chance) for _ in range(CASES)]
    drawn = Counter(kind for question in questions for kind in kinds(question))
    for kind, one_in in ONE_IN.items():
        assert drawn[kind] * one_in >= CASES, f"{kind}: {drawn[kind]} of {CASES}"
    assert drawn.keys() == ONE_IN.keys()
    checked = [check(question) for question in questions]
    placeable = sum(fits for fits, _ in checked)
    found = sum(is_found for _, is_found in checked)
    assert CASES // 4 < placeable < CASES
    assert found == placeable


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_with_any_number_of_tries_a_proof_is_never_wrong(seed: int) -> None:
    chance, answers = random.Random(300 + seed), Counter[str]()
    for _ in range(CASES // 2):
        asked = random_question(chance)
        asked = replace(asked, options=replace(asked.options, tries=chance.randint(0, 6)))
        answer = find(asked.tree, asked.capacity, asked.gang, asked.masks, asked.options)
        if isinstance(answer, Placement):
            answers["found"] += 1
        elif answer.is_proven:
            answers["proven"] += 1
            assert not has_place(asked), f"{asked.gang}: {answer}"
        else:
            answers["not found"] += 1
    assert min(answers.values()) > 0
    assert len(answers) == 3


def test_the_same_question_gets_the_same_answer() -> None:
    for seed in range(50):
        answers = [
            find(one.tree, one.capacity, one.gang, one.masks, one.options)
            for one in (random_question(random.Random(seed)), random_question(random.Random(seed)))
        ]
        assert answers[0] == answers[1]
        assert isinstance(answers[0], Placement | NoFit)
