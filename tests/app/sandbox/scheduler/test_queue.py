"""When a pod is tried again."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.apiserver.storage.store import Stored
from app.sandbox.scheduler.cluster_events import ClusterEvent, Happening
from app.sandbox.scheduler.cycle.diagnosis import EXTENDER
from app.sandbox.scheduler.cycle.filters import FIT
from app.sandbox.scheduler.facts.pod_facts import PodFacts, facts_of
from app.sandbox.scheduler.queue import QueuedPod, QueueSettings, SchedulingQueue
from tests.app.sandbox.objects import node, pod

BY_EXTENDER = frozenset({EXTENDER})
BY_FIT = frozenset({FIT})
BY_ERROR: frozenset[str] = frozenset()


def facts(name: str, priority: int = 0, **spec: Any) -> PodFacts:
    body = pod(name, **spec)
    body["metadata"] |= {"uid": name, "namespace": "default", "resourceVersion": "1"}
    body["spec"]["priority"] = priority
    return facts_of(Stored(body, 1))


def queue_of(*names: str) -> SchedulingQueue:
    queue = SchedulingQueue(QueueSettings())
    for name in names:
        queue.add(facts(name), now=100.0)
    return queue


def popped(queue: SchedulingQueue, now: float) -> QueuedPod:
    found = queue.pop(now)
    assert found is not None
    return found


def test_priority_goes_first_then_who_came_first() -> None:
    queue = SchedulingQueue(QueueSettings())
    for name, priority, now in (("a", 0, 1.0), ("b", 5, 2.0), ("c", 0, 0.5), ("d", 5, 3.0)):
        queue.add(facts(name, priority), now)
    assert [popped(queue, 4.0).uid for _ in range(4)] == ["b", "d", "c", "a"]


def test_a_gated_pod_is_not_tried_until_its_last_gate_is_gone() -> None:
    queue = SchedulingQueue(QueueSettings())
    two, one, none = facts("a", gates=("x", "y")), facts("a", gates=("x",)), facts("a")
    queue.add(two, now=0.0)
    assert queue.pop(1.0) is None
    queue.update(two, one, now=2.0)
    queue.happened(ClusterEvent(Happening.NODE_ADDED, node=node("n")), now=2.5)
    assert queue.pop(3.0) is None
    assert queue.pop(1000.0) is None
    queue.update(one, none, now=1001.0)
    assert popped(queue, 1001.0).uid == "a"


def test_a_pod_the_extender_rejected_rests_while_nothing_happens() -> None:
    queue = queue_of("a")
    queue.failed(popped(queue, 100.0), BY_EXTENDER, now=100.0)
    assert queue.place_of("a") == "unschedulable"
    assert queue.pop(399.0) is None


@pytest.mark.parametrize("happening", [each for each in Happening if each.name[:3] != "OWN"])
def test_any_event_brings_back_a_pod_the_extender_rejected(happening: Happening) -> None:
    queue = queue_of("a")
    queue.failed(popped(queue, 100.0), BY_EXTENDER, now=100.0)
    queue.happened(ClusterEvent(happening), now=100.1)
    assert queue.place_of("a") == "backoff"


def test_an_annotation_on_the_pod_itself_brings_it_back() -> None:
    queue = queue_of("a")
    queue.failed(popped(queue, 100.0), BY_EXTENDER, now=100.0)
    queue.update(facts("a"), facts("a"), now=100.1)
    assert queue.place_of("a") == "backoff"


def test_an_annotation_does_not_bring_back_a_pod_that_only_did_not_fit() -> None:
    queue = queue_of("a")
    queue.failed(popped(queue, 100.0), BY_FIT, now=100.0)
    queue.update(facts("a"), facts("a"), now=100.1)
    assert queue.place_of("a") == "unschedulable"


def test_an_event_during_the_cycle_is_not_lost() -> None:
    queue = queue_of("a")
    pod_in_flight = popped(queue, 100.0)
    queue.happened(ClusterEvent(Happening.POD_BOUND), now=100.1)
    queue.failed(pod_in_flight, BY_EXTENDER, now=100.2)
    assert queue.place_of("a") == "backoff"


@pytest.mark.parametrize(
    ("event", "comes_back"),
    [
        pytest.param(ClusterEvent(Happening.POD_BOUND), False, id="a_pod_came"),
        pytest.param(
            ClusterEvent(Happening.POD_REMOVED, pod=facts("b")), True, id="a_pod_with_cpu_went"
        ),
        pytest.param(
            ClusterEvent(Happening.NODE_ADDED, node=node("n")), True, id="a_node_it_fits_on"
        ),
        pytest.param(
            ClusterEvent(Happening.NODE_ADDED, node=node("n", cpu="1m")), False, id="a_small_node"
        ),
        pytest.param(
            ClusterEvent(Happening.NODE_LABELS, node=node("n")), False, id="a_label_changed"
        ),
    ],
)
def test_a_pod_that_did_not_fit_waits_for_room(event: ClusterEvent, comes_back: bool) -> None:
    queue = queue_of("a")
    queue.failed(popped(queue, 100.0), BY_FIT, now=100.0)
    queue.happened(event, now=100.1)
    assert (queue.place_of("a") == "backoff") is comes_back


def test_back_off_is_cut_short_only_while_nothing_else_is_active() -> None:
    queue = queue_of("a")
    queue.failed(popped(queue, 100.0), BY_EXTENDER, now=100.0)
    queue.happened(ClusterEvent(Happening.POD_BOUND), now=100.0)
    queue.add(facts("b"), now=100.1)
    assert [popped(queue, 100.2).uid, popped(queue, 100.2).uid] == ["b", "a"]


def test_the_error_back_off_is_never_cut_short() -> None:
    queue = queue_of("a")
    queue.failed(popped(queue, 100.0), BY_ERROR, now=100.0)
    queue.happened(ClusterEvent(Happening.POD_BOUND), now=100.1)
    assert queue.place_of("a") == "error"
    assert queue.pop(100.9) is None
    assert popped(queue, 102.0).uid == "a"


@pytest.mark.parametrize(
    ("errors", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (80, 10)]
)
def test_errors_in_a_row_double_the_back_off_up_to_the_maximum(errors: int, seconds: int) -> None:
    queue, now = queue_of("a"), 100.0
    for _ in range(errors):
        queue.failed(popped(queue, now), BY_ERROR, now)
        failed_at, now = now, now + 20.0
    # Back-offs end at the end of the window they run into, one second at most later.
    assert queue.pop(failed_at + seconds - 0.5) is None
    assert popped(queue, failed_at + seconds + 1.0).uid == "a"


def test_a_rejection_ends_a_row_of_errors() -> None:
    queue, now = queue_of("a"), 100.0
    for rejectors in (BY_ERROR, BY_ERROR, BY_ERROR, BY_EXTENDER):
        queue.failed(popped(queue, now), rejectors, now)
        queue.happened(ClusterEvent(Happening.POD_BOUND), now)
        now += 20.0
    queue.failed(popped(queue, now), BY_ERROR, now)
    assert popped(queue, now + 2.0).uid == "a"


def test_a_pod_rests_five_minutes_at_most() -> None:
    queue = queue_of("a")
    queue.failed(popped(queue, 100.0), BY_FIT, now=100.0)
    assert queue.pop(399.0) is None
    assert popped(queue, 431.0).uid == "a"


def test_a_removed_pod_is_not_tried() -> None:
    queue = queue_of("a", "b")
    queue.remove("a")
    assert popped(queue, 101.0).uid == "b"
    assert queue.pop(101.0) is None


def test_without_back_off_a_pod_is_active_at_once() -> None:
    queue = SchedulingQueue(QueueSettings(max_backoff=0))
    queue.add(facts("a"), now=100.0)
    queue.failed(popped(queue, 100.0), BY_ERROR, now=100.0)
    assert queue.place_of("a") == "active"
