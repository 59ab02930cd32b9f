"""How often a pod is requeued for another sample: counted, bounded, and fair to namespaces."""

from __future__ import annotations

from app.state.pods.samples import LONGEST_SECONDS, MOST_SAMPLES, Samples


def pauses(samples, uid="a", namespace="team"):
    """How long it waits before each further sample, until it has had enough."""
    found = []
    while (at := samples.next_at(namespace, uid, 100.0)) is not None:
        found.append(at - 100.0)
    return found


def test_the_first_is_at_once_and_each_further_one_later_until_it_has_had_enough():
    found = pauses(Samples())
    assert len(found) == MOST_SAMPLES
    assert found[0] == 0.0
    assert found == sorted(found)
    assert found[-1] == LONGEST_SECONDS


def test_one_that_is_bound_or_gone_is_forgotten():
    samples = Samples(most=1)
    pauses(samples)
    samples.forget("a")
    samples.forget("unknown")
    assert len(pauses(samples)) == MOST_SAMPLES


def test_where_many_are_counted_those_of_the_loudest_namespace_get_no_more():
    samples = Samples(most=3)
    for uid in ("l1", "l2", "l3"):
        assert samples.next_at("loud", uid, 0.0) == 0.0
    assert samples.next_at("loud", "l4", 0.0) is None
    assert samples.next_at("quiet", "q1", 0.0) == 0.0
    assert samples.next_at("loud", "l4", 0.0) is None
    assert samples.next_at("loud", "l3", 0.0) is not None
    samples.forget("l1")  # which gave its place up
    samples.forget("l2")
    assert samples.next_at("loud", "l4", 0.0) == 0.0
