"""What a tick may do, and whose turn it is where that is too little."""

from __future__ import annotations

from app.dialects.spec import GangKey
from app.state.turns.budget import MOST_OWED, Budget


def key(namespace: str, name: str) -> GangKey:
    return GangKey(namespace, name, "group")


def test_a_budget_is_spent_once_as_much_was_done_as_it_allows():
    budget = Budget(100)
    budget.spend("a", 99)
    assert not budget.is_spent
    budget.spend("b", 1)
    assert budget.is_spent
    budget.begin()
    assert not budget.is_spent


def test_what_a_namespace_has_spent_is_forgotten_by_halves():
    budget = Budget(100)
    budget.spend("a", 8)
    for expected in (4, 2, 1, 0):
        budget.begin()
        assert budget.spent_by("a") == expected


def test_namespaces_take_turns_and_who_has_spent_least_begins():
    budget = Budget(100)
    budget.spend("a", 5)
    gangs = [key("a", "1"), key("a", "2"), key("a", "3"), key("b", "1"), key("c", "1")]
    budget.spend("b", 1)
    assert [(each.namespace, each.name) for each in budget.in_turns(gangs)] == [
        ("c", "1"),
        ("b", "1"),
        ("a", "1"),
        ("a", "2"),
        ("a", "3"),
    ]


def ticks_owed(budget: Budget, namespace: str) -> int:
    for ticks in range(1_000):
        budget.begin()
        if not budget.owes(namespace):
            return ticks
    raise AssertionError("for ever")


def test_what_a_tick_does_beyond_its_budget_is_owed_by_the_namespace_it_was_done_for():
    budget = Budget(100)
    budget.spend("a", 99)
    budget.spend("b", 401)  # 400 of it are beyond: the next tick, and three more
    assert ticks_owed(budget, "b") == 3
    budget.spend("a", 100)
    budget.spend("b", 401)
    budget.begin()
    assert not budget.owes("a")
    assert budget.owes("b")


def test_a_tick_that_does_up_to_twice_its_budget_keeps_no_turn_from_anybody():
    budget = Budget(100)
    budget.spend("a", 200)
    assert ticks_owed(budget, "a") == 0


def test_no_namespace_owes_more_than_so_many_ticks():
    budget = Budget(100)
    for _ in range(5):
        budget.spend("a", 10**9)
    assert ticks_owed(budget, "a") == MOST_OWED
