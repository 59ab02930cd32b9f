"""Answers that are given again for a moment, and no longer."""

from __future__ import annotations

from app.fresh import FRESH_SECONDS, Fresh


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_answer_is_given_again_as_long_as_it_is_fresh():
    clock = Clock()
    fresh = Fresh[str, int](most=2, clock=clock)
    assert fresh.get("a") is None
    fresh.put("a", 1)
    clock.now += FRESH_SECONDS / 2
    assert fresh.get("a") == 1
    assert fresh.get("b") is None
    clock.now += FRESH_SECONDS / 2
    assert fresh.get("a") is None


def test_as_many_are_kept_as_may_be_the_newest_ones():
    fresh = Fresh[int, int](most=3, clock=Clock())
    for number in range(6):
        fresh.put(number, number)
    assert [fresh.get(number) for number in range(6)] == [None, None, None, 3, 4, 5]


def test_one_that_is_put_again_is_the_newest():
    fresh = Fresh[str, int](most=2, clock=Clock())
    for key in ("a", "b", "a", "c"):
        fresh.put(key, 1)
    assert [fresh.get(key) for key in "abc"] == [1, None, 1]


def test_what_is_no_longer_fresh_is_not_kept():
    clock = Clock()
    fresh = Fresh[int, bytes](most=8, clock=clock)
    for number in range(8):
        fresh.put(number, b"")
    clock.now += FRESH_SECONDS
    fresh.put(8, b"")
    assert len(fresh) == 1
