"""Sums by namespace: what comes and goes again leaves nothing behind."""

from __future__ import annotations

from app.state.cache.totals import Totals

LARGE = (("cpu", 3000), ("pods", 1))
SMALL = (("memory", 5), ("pods", 1))


def test_requests_of_a_namespace_are_added_by_resource():
    totals = Totals()
    for namespace, request in (("a", LARGE), ("a", SMALL), ("b", SMALL)):
        totals.add(namespace, request)
    assert totals.of("a") == {"cpu": 3000, "memory": 5, "pods": 2}
    assert totals.of("b") == {"memory": 5, "pods": 1}
    assert totals.of("c") == {}


def test_what_is_removed_is_as_if_it_had_never_been_there():
    totals, never = Totals(), Totals()
    totals.add("a", LARGE)
    totals.add("a", SMALL)
    never.add("a", SMALL)
    totals.remove("a", LARGE)
    assert totals == never
    totals.remove("a", SMALL)
    assert totals == Totals()


def test_what_is_asked_for_may_be_changed_by_the_asker():
    totals = Totals()
    totals.add("a", SMALL)
    totals.of("a").update(dict(SMALL))
    assert totals.of("a") == {"memory": 5, "pods": 1}
