"""Gangs of groups that lost some of their pods, on small clusters against brute force.

What stays is where it was, what is found keeps every rule, and very little that has a place is
not found.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from tests.topology.nested import test_walk_oracle as whole
from tests.topology.nested.test_walk_oracle import Kept, Question
from topology import Gang, NoFit, complete, find, invariants

CASES, SEEDS = 1250, 2


@dataclass(frozen=True)
class Loss:
    """A gang that was placed, and its pods that are still there, which are on the books."""

    question: Question
    kept: Kept


def random_loss(chance: random.Random) -> Loss | None:
    """None: the random gang had no place to lose pods from."""
    question = whole.random_question(chance)
    placed = find(question.tree, question.capacity, question.gang, question.masks)
    if isinstance(placed, NoFit):
        return None
    lost_nodes = {slot for slot in range(len(question.tree.nodes)) if chance.random() < 0.25}
    kept: Kept = {}
    requests = requests_of(question.gang)
    for one in placed.pod_sets:
        for slot, pods in one.slots:
            stays = 0 if slot in lost_nodes else chance.choice([0, pods, pods, pods])
            if stays:
                kept.setdefault(one.pod_set, []).append((slot, stays))
                question.capacity.use(slot, requests[one.pod_set], stays)
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
    assert fits, f"{gang}, {kept}: {answer}"
    requests = requests_of(gang)
    for placed in answer.pod_sets:
        here = dict(placed.slots)
        for slot, pods in kept.get(placed.pod_set, []):
            assert here[slot] >= pods
            capacity.unuse(slot, requests[placed.pod_set], pods)
    invariants.check(tree, capacity, gang=gang, placement=answer)
    assert whole.is_enough(gang.root, {placed.pod_set: placed.pods for placed in answer.pod_sets})
    return fits, True


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
