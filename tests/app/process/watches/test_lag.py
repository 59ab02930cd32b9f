"""How far the watch is behind, by our own bindings."""

from __future__ import annotations

from app.process.watches.lag import LONGEST_SECONDS, MOST_AWAITED, MOST_GONE, WatchLag


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


def test_a_pod_that_is_gone_is_awaited_no_more_and_is_no_lag():
    watch, observed = lag()
    watch.bound("a", 10.0, is_shown=False)
    watch.bound("b", 12.0, is_shown=False)
    watch.gone("a")
    assert watch.longest(15.0) == 3.0
    assert observed == []


def test_a_pod_that_was_gone_before_the_answer_came_is_not_awaited():
    watch, observed = lag()
    watch.gone("a")
    watch.bound("a", 10.0, is_shown=False)
    assert watch.longest(20.0) == 0.0
    assert observed == []


def test_a_list_shows_bindings_and_which_pods_are_gone():
    watch, observed = lag()
    for uid in ("shown", "gone", "to come"):
        watch.bound(uid, 10.0, is_shown=False)
    watch.listed({"shown": "n1", "to come": "", "other": "n2"}, 12.0)
    assert observed == [2.0]
    watch.shown("gone", 13.0)
    assert observed == [2.0]
    assert watch.longest(15.0) == 5.0
    watch.shown("to come", 15.0)
    assert watch.longest(16.0) == 0.0


def test_what_is_remembered_of_pods_that_are_gone_is_bounded():
    watch, _ = lag()
    for number in range(MOST_GONE + 1):
        watch.gone(str(number))
    watch.bound("0", 10.0, is_shown=False)
    assert watch.longest(20.0) == 10.0
    watch.gone("0")
    watch.bound("2", 30.0, is_shown=False)
    assert watch.longest(40.0) == 0.0


def test_what_is_awaited_is_bounded():
    watch, observed = lag()
    for number in range(MOST_AWAITED + 1):
        watch.bound(str(number), float(number), is_shown=False)
    watch.shown("0", 20_000.0)
    watch.shown("1", 20_000.0)
    assert observed == [19_999.0]
