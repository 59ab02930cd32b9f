"""Pacing, with a clock made of numbers."""

from __future__ import annotations

import pytest

from app.controllers.pace import TokenBucket, jittered


def test_a_burst_is_free_and_then_the_rate_holds():
    bucket = TokenBucket(per_second=10, burst=3, now=0.0)
    waits = [bucket.reserve(0.0) for _ in range(6)]
    assert waits == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_tokens_grow_with_time_up_to_the_burst():
    bucket = TokenBucket(per_second=10, burst=2, now=0.0)
    assert [bucket.reserve(0.0) for _ in range(2)] == [0, 0]
    assert [bucket.reserve(1000.0) for _ in range(3)] == pytest.approx([0, 0, 0.1])


@pytest.mark.parametrize("burst", [1, 5])
def test_over_a_long_time_never_more_than_burst_and_rate(burst):
    bucket = TokenBucket(per_second=5, burst=burst, now=0.0)
    now, granted = 0.0, 0
    while now <= 20:
        now += bucket.reserve(now)
        granted += 1
    assert granted <= burst + 5 * 20 + 1
    assert granted >= 5 * 20


def test_jitter_stays_within_half_and_whole():
    pauses = [jittered(2.0) for _ in range(200)]
    assert 1.0 <= min(pauses) <= max(pauses) <= 2.0
    assert max(pauses) - min(pauses) > 0.5
