"""Pauses grow, and their lower half is certain."""

from __future__ import annotations

from itertools import accumulate
from random import Random

import pytest

from app.kube.client.backoff import Backoff


@pytest.mark.parametrize("seed", range(50))
def test_at_most_five_attempts_fall_into_ten_seconds(seed):
    backoff = Backoff(Random(seed))
    attempts = [0.0, *accumulate(backoff.pause() for _ in range(8))]
    assert sum(moment <= 10 for moment in attempts) <= 5


def test_pauses_stay_between_half_a_second_and_the_longest():
    backoff = Backoff(Random(1), longest=6.0)
    pauses = [backoff.pause() for _ in range(200)]
    assert min(pauses) >= 0.5
    assert max(pauses) <= 6.0
    assert min(pauses[10:]) >= 3.0


def test_a_reset_starts_from_the_shortest_pause():
    backoff = Backoff(Random(1))
    for _ in range(10):
        backoff.pause()
    backoff.reset()
    assert backoff.pause() <= 1.0


def test_replicas_do_not_pause_alike():
    first, second = Backoff(Random(1)), Backoff(Random(2))
    assert [first.pause() for _ in range(5)] != [second.pause() for _ in range(5)]


def test_after_the_longest_pause_there_is_time_to_start_a_gang_within_ten_seconds():
    backoff = Backoff(Random(1))
    assert max(backoff.pause() for _ in range(200)) <= 8.0
