"""Which pod is next: kube-scheduler's three queues.

           add ─▶ active ──pop──▶ (in flight) ──failed──▶ unschedulable ──event, 5 min──▶ active
                    ▲                              └─error──▶ error back-off     or back-off
                    └──── back-off over; back-off also at once while nothing else is active ──┘

Gated pods stay among the unschedulable ones until their last gate is removed, and so do pods that
preempt others until the calls about their victims are made. The error back-off is never cut short;
the other one is, as soon as the active queue is empty (SchedulerPopFromBackoffQ).
Pure: the caller passes the time. Source: backend/queue of kubernetes 1.36.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from app.sandbox.scheduler.cluster_events import (
    ClusterEvent,
    Happening,
    is_worth_a_try,
    own_events,
)
from app.sandbox.scheduler.facts.pod_facts import PodFacts

Place = Literal["active", "backoff", "error", "unschedulable", "in flight"]
GATES = "SchedulingGates"
_BACKOFFS: tuple[Place, ...] = ("backoff", "error")
_WINDOW = 1.0  # seconds; back-offs end at whole windows


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Units: seconds. max_backoff 0 switches back-off off."""

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    unschedulable_limit: float = 300.0  # --pod-max-in-unschedulable-pods-duration
    flush_interval: float = 30.0  # how often that limit is looked at


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod on its way. stamp: when it last entered a queue, its turn among equals."""

    facts: PodFacts
    stamp: float
    place: Place = "active"
    attempts: int = 0
    rejections: int = 0
    errors_in_a_row: int = 0
    rejectors: frozenset[str] = frozenset()
    ticket: int = 0  # number of its one valid heap entry
    backoff_ends: float | None = None  # computed on first use after each failure
    events_in_flight: list[ClusterEvent] = field(default_factory=list)

    @property
    def uid(self) -> str:
        return self.facts.uid


# (end of back-off, -priority, stamp, ticket, pod): the order of a heap
_Entry = tuple[float, int, float, int, QueuedPod]


class SchedulingQueue:
    """Invariant: every pod is in exactly one place; a heap entry counts only while its ticket is
    the pod's own. No call walks over pods that are not resting."""

    def __init__(
        self, settings: QueueSettings, *, is_held: Callable[[str], bool] = lambda uid: False
    ) -> None:
        """`is_held`: whether a pod, by its uid, may not be tried (a PreEnqueue plugin)."""
        self._settings = settings
        self._is_held = is_held
        self._pods: dict[str, QueuedPod] = {}
        self._resting: dict[str, QueuedPod] = {}
        self._in_flight: dict[str, QueuedPod] = {}
        self._heaps: dict[Place, list[_Entry]] = {"active": [], "backoff": [], "error": []}
        self._tickets = 0
        self._next_flush = -math.inf

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def place_of(self, uid: str) -> Place | None:
        pod = self._pods.get(uid)
        return pod.place if pod else None

    def pods(self, place: Place) -> list[QueuedPod]:
        return [pod for pod in self._pods.values() if pod.place == place]

    def add(self, facts: PodFacts, now: float) -> None:
        """A new pod: active, or resting if it is gated."""
        pod = QueuedPod(facts, stamp=now)
        self._pods[facts.uid] = pod
        if facts.gates:
            pod.rejectors = frozenset({GATES})
            self._move(pod, "unschedulable")
        else:
            self._move(pod, "active")

    def update(self, before: PodFacts, after: PodFacts, now: float) -> None:
        """Update a pod; the change may requeue one that is unschedulable."""
        pod = self._pods.get(after.uid)
        if pod is None:
            self.add(after, now)
            return
        pod.facts = after
        if pod.place == "in flight":
            pod.events_in_flight += own_events(before, after)
        elif pod.place == "active":
            self._move(pod, "active")  # its priority may be another one
        elif pod.place == "unschedulable":
            for event in own_events(before, after):
                if is_worth_a_try(after, pod.rejectors, event):
                    self._requeue(pod, now)
                    break

    def remove(self, uid: str) -> None:
        """The pod is gone, or bound."""
        if (pod := self._pods.pop(uid, None)) is not None:
            self._leave(pod)

    def happened(self, event: ClusterEvent, now: float, *, up_to: float = math.inf) -> None:
        """Requeue every unschedulable pod that the event may help, after its back-off.

        `up_to`: the highest priority of a pod that it may help.
        """
        for pod in self._in_flight.values():
            pod.events_in_flight.append(event)
        for pod in list(self._resting.values()):
            if pod.facts.gates or pod.facts.priority > up_to:
                continue
            if is_worth_a_try(pod.facts, pod.rejectors, event):
                self._requeue(pod, now)

    def activate(self, uid: str, now: float) -> None:
        """Have a pod tried at once, whatever its back-off."""
        pod = self._pods.get(uid)
        if pod is not None and pod.place == "in flight":
            pod.events_in_flight.append(ClusterEvent(Happening.TIMEOUT))
        elif pod is not None and not pod.facts.gates and not self._is_held(uid):
            pod.stamp = now if pod.place != "active" else pod.stamp
            self._move(pod, "active")

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try, or None: highest priority first, then the longest in its queue."""
        self.flush(now)
        pod = self._take("active") or self._take("backoff")
        if pod is not None:
            self._move(pod, "in flight")
            pod.attempts += 1
            pod.backoff_ends = None
            pod.events_in_flight.clear()
        return pod

    def settled(self, pod: QueuedPod) -> None:
        """Forget the pod: it has a node, or is gone."""
        if self._pods.get(pod.uid) is pod:
            self.remove(pod.uid)

    def failed(self, pod: QueuedPod, rejectors: frozenset[str], now: float) -> None:
        """Requeue a pod without a node. rejectors: the plugins that rejected it; none: an error."""
        if pod.uid in self._pods and self._pods[pod.uid] is not pod:
            return  # it was added again meanwhile
        self._pods[pod.uid] = pod
        events, pod.events_in_flight = pod.events_in_flight, []
        pod.rejectors, pod.stamp, pod.backoff_ends = rejectors, now, None
        if not rejectors:
            pod.errors_in_a_row += 1
            self._requeue(pod, now)
            return
        pod.rejections += 1
        pod.errors_in_a_row = 0
        self._move(pod, "unschedulable")
        if any(is_worth_a_try(pod.facts, rejectors, event) for event in events):
            self._requeue(pod, now)

    def flush(self, now: float) -> None:
        """Activate pods whose back-off is over or who were unschedulable for too long."""
        for place in _BACKOFFS:
            while (pod := self._first(place)) and not self._is_backing_off(pod, now):
                self._move(pod, "active")
        if now < self._next_flush:
            return
        self._next_flush = now + self._settings.flush_interval
        for pod in list(self._resting.values()):
            rested = now - pod.stamp > self._settings.unschedulable_limit
            if rested and not pod.facts.gates:
                self._requeue(pod, now)

    def seconds_to_next_flush(self, now: float) -> float:
        """How long an idle loop may sleep without missing the end of a back-off."""
        waiting = [pod for place in _BACKOFFS if (pod := self._first(place))]
        ends = [self._backoff_end(pod) + _WINDOW for pod in waiting]
        return max(min([self._next_flush, *ends]) - now, 0.001)

    def _requeue(self, pod: QueuedPod, now: float) -> None:
        if pod.facts.gates:
            pod.rejectors |= {GATES}
            self._move(pod, "unschedulable")
        elif self._is_held(pod.uid):
            self._move(pod, "unschedulable")
        elif not self._is_backing_off(pod, now):
            self._move(pod, "active")
        else:
            self._move(pod, "backoff" if pod.rejectors else "error")

    def _move(self, pod: QueuedPod, place: Place) -> None:
        self._leave(pod)
        pod.place = place
        if place == "unschedulable":
            self._resting[pod.uid] = pod
        elif place == "in flight":
            self._in_flight[pod.uid] = pod
        else:
            end = 0.0 if place == "active" else self._backoff_end(pod)
            entry = (end, -pod.facts.priority, pod.stamp, pod.ticket, pod)
            heapq.heappush(self._heaps[place], entry)

    def _leave(self, pod: QueuedPod) -> None:
        """Take the pod out of its queue; its entry in a heap becomes void."""
        self._resting.pop(pod.uid, None)
        self._in_flight.pop(pod.uid, None)
        self._tickets += 1
        pod.ticket = self._tickets

    def _first(self, place: Place) -> QueuedPod | None:
        heap = self._heaps[place]
        while heap and heap[0][3] != heap[0][4].ticket:
            heapq.heappop(heap)
        return heap[0][4] if heap else None

    def _take(self, place: Place) -> QueuedPod | None:
        pod = self._first(place)
        if pod is not None:
            heapq.heappop(self._heaps[place])
        return pod

    def _is_backing_off(self, pod: QueuedPod, now: float) -> bool:
        # A back-off that ends within the present window still counts as one.
        return self._backoff_end(pod) >= _window(now)

    def _backoff_end(self, pod: QueuedPod) -> float:
        failures = pod.errors_in_a_row or pod.rejections
        if self._settings.max_backoff == 0 or failures == 0:
            return -math.inf
        if pod.backoff_ends is None:
            doubled = self._settings.initial_backoff * 2 ** min(failures - 1, 62)
            pod.backoff_ends = _window(pod.stamp + min(doubled, self._settings.max_backoff))
        return pod.backoff_ends


def _window(time: float) -> float:
    return math.floor(time / _WINDOW) * _WINDOW
