"""What is to be looked at again comes once, by the first time that was asked for."""

from __future__ import annotations

from app.state.turns.later import Later


def test_what_is_due_comes_in_the_order_of_time_and_once() -> None:
    later = Later[str]()
    for key, at in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
        later.look(key, at)
    assert list(later.taken(2.0)) == ["a", "b"]
    assert list(later.taken(2.0)) == []
    assert list(later.taken(9.0)) == ["c"]


def test_of_two_times_the_first_counts() -> None:
    later = Later[str]()
    later.look("a", 5.0)
    later.look("a", 2.0)
    later.look("a", 7.0)
    assert list(later.taken(2.0)) == ["a"]
    assert list(later.taken(9.0)) == []
    assert len(later) == 0


def test_what_is_dropped_does_not_come_unless_it_is_asked_for_again() -> None:
    later = Later[str]()
    later.look("a", 1.0)
    later.drop("a")
    assert list(later.taken(9.0)) == []
    later.look("a", 1.0)
    assert list(later.taken(9.0)) == ["a"]


def test_equal_times_come_in_the_order_in_which_they_were_asked_for() -> None:
    later = Later[str]()
    for key in ("b", "a", "c"):
        later.look(key, 1.0)
    assert list(later.taken(1.0)) == ["b", "a", "c"]
