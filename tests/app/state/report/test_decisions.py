"""The last decisions are remembered: a bounded number of a namespace, and of namespaces."""

from __future__ import annotations

from app.dialects.spec import GangKey
from app.state.report.decisions import (
    MOST_DOMAINS,
    MOST_NAMESPACES,
    MOST_OF_NAMESPACE,
    Decisions,
)

GANG = GangKey("team-a", "train", "job")


def test_one_namespace_does_not_push_out_what_was_decided_in_another() -> None:
    decisions = Decisions()
    decisions.note(GANG, "running", 1.0)
    for at in range(3 * MOST_OF_NAMESPACE):
        decisions.note(GangKey("noisy", f"g{at}", "job"), "no-place", 2.0)
    assert [each.gang for each in decisions.last("team-a", 10)] == [GANG]
    every = list(decisions.last("", 10_000))
    assert len(every) == MOST_OF_NAMESPACE + 1
    assert [each.number for each in every] == sorted((e.number for e in every), reverse=True)


def test_the_namespace_that_was_quiet_longest_is_forgotten_first() -> None:
    decisions = Decisions()
    decisions.note(GANG, "running", 1.0)
    for at in range(MOST_NAMESPACES):
        decisions.note(GangKey(f"n{at}", "g", "job"), "running", 2.0)
    assert list(decisions.last("team-a", 10)) == []
    assert len(list(decisions.last("", 10_000))) == MOST_NAMESPACES


def test_a_place_is_remembered_by_its_first_domains() -> None:
    decisions = Decisions()
    places = [(f"node-{at}", f"rack=r{at % 9}") for at in range(50)]
    decisions.note(GANG, "placed", 1.0, places=places)
    (found,) = decisions.last("team-a", 1)
    assert found.nodes == 50
    assert len(found.domains) == MOST_DOMAINS
    assert set(found.domains) <= {domain for _, domain in places}


def test_the_edition_is_another_one_whenever_what_is_remembered_is() -> None:
    decisions, names = Decisions(), [f"n{at}" for at in range(MOST_NAMESPACES + 1)]
    seen: dict[tuple[str, int], list[int]] = {}
    for at in range(3 * MOST_NAMESPACES):
        for namespace in ("", *names):
            numbers = [each.number for each in decisions.last(namespace, 10_000)]
            edition = decisions.edition(namespace)
            assert seen.setdefault((namespace, edition), numbers) == numbers
            assert edition == max(numbers, default=0)
        decisions.note(GangKey(names[at * at % len(names)], "g", "job"), "running", 1.0)
    assert len(seen) > 3 * MOST_NAMESPACES
