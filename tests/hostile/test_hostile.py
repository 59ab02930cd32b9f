"""20,000 mutated inputs break nothing, and what does break something is found and made small."""

from __future__ import annotations

import json
import random

import pytest

from app.state.settings import EngineSettings
from tests.hostile.__main__ import played, problem_of
from tests.hostile.mutations import Mutation, drawn, smallest
from tests.hostile.rig import REVIEWS, SIMULATE, Broken, Rig, targets

TARGETS = list(targets())
SEEDS = 4
INPUTS = 5_000  # of each seed
MOST_VISITS = EngineSettings().visits_per_tick  # for one input: no more than a tick may do


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_nothing_breaks_whatever_is_sent_or_stored(seed):
    failure, rig = await played(seed, INPUTS)
    assert failure is None
    visits, _ = rig.most_visits
    assert 0 < visits < MOST_VISITS


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
async def test_the_input_that_is_mutated_is_a_valid_one(target):
    """Else most mutations of it would be refused for the same reason."""
    rig = Rig()
    body = json.dumps(target.thing).encode()
    assert await problem_of(rig, [(target, Mutation(()))], settles=True) == ""
    if not target.name.startswith("/"):
        assert rig.taken_of(target.name, body).uid
    elif target.name == SIMULATE:
        assert "gangs" in json.loads(await rig.answer(target.name, body))
    elif target.name in REVIEWS:
        answer = json.loads(await rig.answer(target.name, body))
        assert answer["response"]["allowed"] is True
    else:
        answer = json.loads(await rig.answer(target.name, body))
        assert "malformed" not in str(answer)


async def test_what_breaks_is_found_and_made_small(monkeypatch):
    """A reader that fails on one word: an edit that brings it is enough."""
    give = Rig.give

    async def fails_on_a_word(self, target, body):
        await give(self, target, body)
        if b"../../etc/passwd" in body:
            raise RuntimeError("the word")

    monkeypatch.setattr(Rig, "give", fails_on_a_word)
    failure, _ = await played(1, 2_000)
    assert failure is not None
    assert failure.problem == "RuntimeError: the word"
    assert len(failure.mutation.edits) == 1
    assert b"../../etc/passwd" in failure.body


async def test_what_is_left_behind_is_noticed():
    rig = Rig()
    pod = next(each for each in TARGETS if each.name == "Pod")
    await rig.give(pod, json.dumps(pod.thing).encode())
    rig.forget()
    with pytest.raises(Broken, match="left behind: gangs"):
        rig.settle()


async def test_a_mutation_is_the_same_each_time_and_its_parts_are_mutations():
    rng = random.Random(5)
    for mutation in (drawn(rng) for _ in range(50)):
        assert mutation.applied(TARGETS[0].thing) == mutation.applied(TARGETS[0].thing)
        for less in mutation.smaller():
            assert set(less.edits) < set(mutation.edits)


async def test_the_smallest_has_only_what_it_takes():
    async def fails(mutation):
        return {3, 5} <= set(mutation.edits)

    assert await smallest(Mutation((1, 3, 4, 5, 9)), fails) == Mutation((3, 5))
