"""Gangs of groups that lost some of their pods, on small clusters against brute force.

What stays is where it was, what is found keeps every rule, and very little that has a place is
not found.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.topology.nested import test_walk_oracle as whole
from tests.topology.nested.test_walk_oracle import LEVELS, Kept, Question
from topology import (
    Constraint,
    Gang,
    Group,
    Leader,
    NoFit,
    Options,
    PodSet,
    Slice,
    complete,
    find,
    invariants,
)

CASES, SEEDS = 625, 4
SLICED_CASES = 250
SLICED_ONE_IN = {
    "leader lost": 2,
    "no leader": 6,
    "workers of a slice lost": 6,
    "all workers stay": 4,
    "another pod set": 4,
    "required": 6,
    "preferred": 6,
}
"""Of the gangs with slices that lost pods, at least one in so many is of that kind."""


@dataclass(frozen=True)
class Loss:
    """A gang that was placed, and its pods that are still there, which are on the books."""

    question: Question
    kept: Kept


def random_loss(chance: random.Random) -> Loss | None:
    """None: the random gang had no place to lose pods from."""
    return loss_of(whole.random_question(chance), chance, lambda name: chance.choice([0, 1, 1, 1]))


def random_slice_loss(chance: random.Random) -> Loss | None:
    """Of workers in slices and their leader some pods are lost, the leader in any case."""
    question = whole.random_question(chance)
    question = replace(question, gang=sliced_gang(chance), options=Options())
    return loss_of(question, chance, lambda name: name != "leader" and chance.random() < 0.8)


def sliced_gang(chance: random.Random) -> Gang:
    size, slices = chance.choice([(2, 1), (2, 2), (3, 1), (2, 2)])
    at = chance.randint(0, 2)
    wish = chance.choice(
        [
            Constraint(),
            Constraint(required=LEVELS[chance.randint(0, at)]),
            Constraint(preferred=LEVELS[chance.randint(0, at)]),
        ]
    )
    leader = Leader("leader", (1, chance.randint(0, 3)), chance.choice("ABC"))
    workers = PodSet(
        "w",
        size * slices,
        (1, chance.choice([0, 1, 1, 2])),
        "A",
        wish,
        slices=(Slice(size, LEVELS[at]),),
        leader=leader if chance.random() < 0.7 else None,
    )
    members: list[Group | PodSet] = [workers]
    if chance.random() < 0.5:
        members.append(PodSet("other", 1, (1, chance.randint(0, 2)), chance.choice("AB")))
    chance.shuffle(members)
    return Gang("ns/gang", Group("root", tuple(members)))


def loss_of(question: Question, chance: random.Random, stays: Callable[[str], int]) -> Loss | None:
    """Some nodes are lost, and on the others what does not stay; None: it had no place."""
    placed = find(question.tree, question.capacity, question.gang, question.masks)
    if isinstance(placed, NoFit):
        return None
    lost_nodes = {slot for slot in range(len(question.tree.nodes)) if chance.random() < 0.25}
    kept: Kept = {}
    requests = requests_of(question.gang)
    for one in placed.pod_sets:
        for slot, pods in one.slots:
            if slot not in lost_nodes and stays(one.pod_set):
                kept.setdefault(one.pod_set, []).append((slot, pods))
                question.capacity.use(slot, requests[one.pod_set], pods)
    for slot in lost_nodes:
        question.capacity.set_node(slot, (), is_open=False)
    return Loss(question, kept)


def requests_of(gang: Gang) -> dict[str, tuple[int, ...]]:
    leaders = [one.leader for one in gang.pod_sets() if one.leader is not None]
    return {one.name: one.request for one in (*gang.pod_sets(), *leaders)}


def check(loss: Loss) -> tuple[bool, bool]:
    """Holds one answer against brute force; whether there was a place, and whether it was found."""
    question, kept = loss.question, loss.kept
    tree, capacity, gang = question.tree, question.capacity, question.gang
    fits = whole.has_place(question, kept)
    before = [capacity.used.copy(), capacity.held.copy()]
    answer = complete(tree, capacity, gang, question.masks, kept, question.options)
    assert np.array_equal(before, [capacity.used, capacity.held])
    if isinstance(answer, NoFit):
        assert not answer.is_proven or not any(kept.values())
        assert str(answer)
        return fits, False
    pods_of = {placed.pod_set: placed.pods for placed in answer.pod_sets}
    alone = left_alone(gang, kept, pods_of)
    assert fits or alone, f"{gang}, {kept}: {answer}"
    requests = requests_of(gang)
    for placed in answer.pod_sets:
        here = dict(placed.slots)
        for slot, pods in kept.get(placed.pod_set, []):
            assert here[slot] >= pods
            capacity.unuse(slot, requests[placed.pod_set], pods)
    invariants.check(tree, capacity, gang=without_slices(gang, alone), placement=answer)
    assert whole.is_enough(gang.root, pods_of | dict.fromkeys(alone, 0))
    return True, True


def left_alone(gang: Gang, kept: Kept, pods: dict[str, int]) -> set[str]:
    """Pod sets and leaders of which some pods stay, nothing is added, and more would be needed.

    So it is where the gang does without them: pods that stay are part of every answer.
    """
    alone: set[str] = set()
    for pod_set in gang.pod_sets():
        names = whole.names_of(pod_set)
        stay = {name: sum(here for _, here in kept.get(name, [])) for name in names}
        is_kept = any(stay.values()) and all(pods[name] == stay[name] for name in names)
        size = pod_set.slices[0].pods if pod_set.slices else 1
        is_whole = pods[pod_set.name] >= whole.least_of(pod_set) and pods[pod_set.name] % size == 0
        has_leader = pod_set.leader is None or pods[pod_set.leader.name] == 1
        if is_kept and not (is_whole and has_leader):
            alone |= set(names)
    return alone


def without_slices(gang: Gang, alone: set[str]) -> Gang:
    """The gang, where slices of pod sets that are left alone need not be whole."""

    def plain(member: Group | PodSet) -> Group | PodSet:
        if isinstance(member, PodSet):
            return replace(member, slices=()) if member.name in alone else member
        return replace(member, members=tuple(map(plain, member.members)))

    root = plain(gang.root)
    assert isinstance(root, Group)
    return replace(gang, root=root)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_lost_pods_of_groups_get_a_place_exactly_where_there_is_one(seed: int) -> None:
    chance = random.Random(seed)
    losses = [loss for _ in range(CASES) if (loss := random_loss(chance)) is not None]
    checked = [check(loss) for loss in losses]
    placeable = sum(fits for fits, _ in checked)
    assert len(losses) > CASES // 3
    assert len(losses) // 4 < placeable < len(losses)
    assert sum(is_found for _, is_found in checked) == placeable


def kinds(loss: Loss) -> list[str]:
    """What is special about the loss of pods of a gang with slices."""
    pod_sets = {one.name: one for one in loss.question.gang.pod_sets()}
    workers = pod_sets["w"]
    stay = sum(pods for _, pods in loss.kept.get("w", []))
    has_kind = {
        "leader lost": workers.leader is not None,
        "no leader": workers.leader is None,
        "workers of a slice lost": 0 < stay < workers.pods,
        "all workers stay": stay == workers.pods,
        "another pod set": "other" in pod_sets,
        "required": workers.constraint.required is not None,
        "preferred": workers.constraint.preferred is not None,
    }
    return [kind for kind, has in has_kind.items() if has]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_leader_and_pods_lost_of_slices_get_a_place_exactly_where_there_is_one(seed: int) -> None:
    chance = random.Random(seed)
    losses = [loss for _ in range(SLICED_CASES) if (loss := random_slice_loss(chance)) is not None]
    drawn = Counter(kind for loss in losses for kind in kinds(loss))
    for kind, one_in in SLICED_ONE_IN.items():
        assert drawn[kind] * one_in >= len(losses), f"{kind}: {drawn[kind]} of {len(losses)}"
    checked = [check(loss) for loss in losses]
    placeable = sum(fits for fits, _ in checked)
    assert len(losses) > SLICED_CASES // 5
    assert len(losses) // 4 < placeable < len(losses)
    assert sum(is_found for _, is_found in checked) == placeable
