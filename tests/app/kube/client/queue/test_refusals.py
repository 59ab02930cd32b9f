"""How long no write is tried in a namespace where one was forbidden."""

from __future__ import annotations

from app.kube.client.queue.refusals import FIRST_SECONDS, Refusals
from tests.app.kube.conftest import Clock


def pauses(refusals: Refusals, clock: Clock, times: int) -> list[float]:
    """For how long none is tried, where each that is tried is forbidden."""
    found = []
    for _ in range(times):
        refusals.note("team")
        began = clock.now
        while refusals.holds("team"):
            clock.now += 1.0
        found.append(clock.now - began)
    return found


def test_a_right_that_is_missing_for_a_moment_costs_ten_seconds(clock):
    refusals = Refusals(300.0, clock)
    assert not refusals.holds("team")
    refusals.note("team")
    assert refusals.holds("team")
    assert not refusals.holds("other")
    clock.now += FIRST_SECONDS
    assert not refusals.holds("team")


def test_one_that_stays_away_costs_a_write_every_five_minutes(clock):
    refusals = Refusals(300.0, clock)
    assert pauses(refusals, clock, 8) == [10, 20, 40, 80, 160, 300, 300, 300]


def test_several_writes_that_are_forbidden_at_one_time_are_one_refusal(clock):
    refusals = Refusals(300.0, clock)
    for _ in range(4):  # as many are under way at once
        refusals.note("team")
    clock.now += FIRST_SECONDS
    assert not refusals.holds("team")


def test_after_a_time_without_any_the_first_pause_is_short_again(clock):
    refusals = Refusals(300.0, clock)
    pauses(refusals, clock, 6)
    clock.now += 600.0
    assert pauses(refusals, clock, 1) == [10]


def test_the_longest_may_be_shorter_than_the_first(clock):
    assert pauses(Refusals(0.0, clock), clock, 1) == [0]
    assert pauses(Refusals(3.0, clock), clock, 2) == [3, 3]
