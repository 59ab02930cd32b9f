"""How far the watch is behind, by our own bindings."""

from __future__ import annotations

from app.process.watch_lag import LONGEST_SECONDS, MOST_AWAITED, WatchLag


def lag():
    observed: list[float] = []
    return WatchLag(observed.append), observed


def test_the_lag_is_from_the_answer_to_the_event():
    watch, observed = lag()
    watch.bound("a", 10.0, is_shown=False)
    watch.shown("a", 10.5)
    watch.shown("a", 11.0)
    assert observed == [0.5]


def test_an_event_that_came_before_the_answer_is_no_lag():
    watch, observed = lag()
    watch.shown("a", 9.0)
    watch.bound("a", 10.0, is_shown=True)
    assert observed == [0.0]
    assert watch.longest(20.0) == 0.0


def test_the_binding_that_is_awaited_longest_is_told_until_it_is_shown():
    watch, _ = lag()
    watch.bound("a", 10.0, is_shown=False)
    watch.bound("b", 12.0, is_shown=False)
    assert watch.longest(15.0) == 5.0
    watch.shown("a", 15.0)
    assert watch.longest(15.0) == 3.0


def test_a_pod_that_the_watch_never_shows_is_forgotten():
    watch, observed = lag()
    watch.bound("deleted", 10.0, is_shown=False)
    assert watch.longest(10.0 + LONGEST_SECONDS) == LONGEST_SECONDS
    assert watch.longest(10.1 + LONGEST_SECONDS) == 0.0
    watch.shown("deleted", 700.0)
    assert observed == []


def test_what_is_awaited_is_bounded():
    watch, observed = lag()
    for number in range(MOST_AWAITED + 1):
        watch.bound(str(number), float(number), is_shown=False)
    watch.shown("0", 20_000.0)
    watch.shown("1", 20_000.0)
    assert observed == [19_999.0]
