"""Whose turn it is: passes over the gangs that wait, and back-offs."""

from __future__ import annotations

import pytest

from app.dialects.spec import GangKey
from app.state.gang.gang import Gang
from app.state.plan.queue import Queue
from app.state.settings import EngineSettings


def gang(name: str, *, complete_at: float = 0.0) -> Gang:
    return Gang(GangKey("default", name, "group"), complete_at=complete_at)


def queue() -> Queue:
    return Queue(EngineSettings(retry_seconds=1.0, retry_seconds_most=60.0))


def test_a_pass_takes_the_gangs_in_order_and_the_others_behind_them():
    waiting, late, early = queue(), gang("late", complete_at=2.0), gang("early", complete_at=1.0)
    waiting.want_pass()
    waiting.begin_pass([late, early], [gang("runs").key])
    assert [key.name for key in waiting.turns(10)] == ["early", "late", "runs"]


def test_a_long_pass_is_continued_and_not_begun_anew():
    waiting, gangs = queue(), [gang(f"g{number}") for number in range(3)]
    waiting.want_pass()
    waiting.begin_pass(gangs, [])
    first = [key.name for key in waiting.turns(2)]
    waiting.want_pass()
    waiting.begin_pass(gangs, [])
    assert [first, [key.name for key in waiting.turns(2)]] == [["g0", "g1"], ["g2"]]
    assert waiting.is_busy()  # the pass that was wanted meanwhile


def test_without_a_wanted_pass_there_are_no_turns():
    waiting = queue()
    waiting.begin_pass([gang("g")], [])
    assert list(waiting.turns(10)) == []
    assert not waiting.is_busy()


@pytest.mark.parametrize(("losses", "seconds"), [(1, 1), (2, 2), (4, 8), (7, 60), (1000, 60)])
def test_a_back_off_doubles_with_each_loss_up_to_its_limit(losses, seconds):
    waiting, lost = queue(), gang("g")
    for _ in range(losses):
        waiting.back_off(lost, 100.0)
    assert lost.back_off.not_before == 100.0 + seconds
    assert waiting.is_due(lost, 100.0 + seconds)
    assert not waiting.is_due(lost, 99.0 + seconds)


def test_a_gang_that_runs_begins_its_back_off_anew():
    waiting, lost = queue(), gang("g")
    waiting.back_off(lost, 100.0, losses=5)
    waiting.reset(lost)
    waiting.back_off(lost, 200.0)
    assert lost.back_off.not_before == 201.0


def test_the_end_of_a_back_off_wants_a_pass_once():
    waiting, lost = queue(), gang("g")
    waiting.back_off(lost, 100.0)
    waiting.retry([lost], 100.5)
    assert not waiting.is_busy()
    waiting.retry([lost], 101.0)
    assert waiting.is_busy()
    waiting.begin_pass([], [])
    waiting.retry([lost], 102.0)
    assert not waiting.is_busy()
