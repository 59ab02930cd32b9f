"""kube-scheduler's queue, as far as an extender can feel it.

    add ─▶ active ─pop─▶ (in flight) ─rejected─▶ resting ─any event, 5 min─▶ back-off ─▶ active
                                     └─error──────────────────────────────▶ back-off ─▶ active

A pod rejected by the extender comes back on any event; one that no filter lets through comes back
on events of nodes, and of pods that end. What happens while a pod is in flight is not missed.
Source: kubernetes pkg/scheduler/backend/queue/scheduling_queue.go (v1.36).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Literal

from app.kube.core.objects import PodRecord

Place = Literal["active", "backoff", "resting", "in flight"]
INITIAL_BACKOFF, MOST_BACKOFF = 1.0, 10.0
FLUSH_EVERY = 30.0


@dataclass(slots=True, eq=False)
class Queued:
    """A pod on its way to a node."""

    pod: PodRecord
    since: float
    place: Place = "active"
    failures: int = 0
    ready_at: float = 0.0  # when its back-off is over
    is_error: bool = False
    by_extender: bool = False  # what rejected it last: then any event brings it back
    was_touched: bool = False  # an event came while it was in flight
    ticket: int = 0


class Queue:
    """Pods without a node. `rest_seconds`: how long one may rest before it is tried anyway."""

    def __init__(self, rest_seconds: float, *, pops_from_backoff: bool) -> None:
        self.pods: dict[str, Queued] = {}
        self.preempting: dict[str, str] = {}
        # ^ uids of pods that are not tried while their victims are deleted; of each its last
        # victim once only that one is left, "" before
        self._rest_seconds = rest_seconds
        self._pops_from_backoff = pops_from_backoff
        self._heap: list[tuple[float, int, float, int, Queued]] = []
        self._tickets = 0
        self._flushed_at = 0.0

    def put(self, pod: PodRecord, now: float) -> None:
        """A pod is there or has changed; a change of its own wakes it, if its gates are gone."""
        queued = self.pods.get(pod.uid)
        if queued is None:
            queued = self.pods[pod.uid] = Queued(pod, now)
            self._move(queued, "resting" if pod.gates else "active")
            return
        queued.pod = pod
        if queued.place == "in flight":
            queued.was_touched = True
        elif queued.place == "resting" and not pod.gates:
            self._requeue(queued, now)

    def remove(self, uid: str) -> None:
        """The pod is bound or gone."""
        self.preempting.pop(uid, None)
        queued = self.pods.pop(uid, None)
        if queued is not None:
            queued.ticket = -1

    def victim_ends(self, uid: str) -> None:
        """The watch shows that a pod ends or is gone: nobody waits for its deletion any more.

        Source: kubernetes v1.36 pkg/scheduler/framework/preemption/executor.go,
        isRunningPreemption.
        """
        for preemptor in [key for key, last in self.preempting.items() if last == uid]:
            del self.preempting[preemptor]

    def happened(self, now: float, *, helps_filters: bool) -> None:
        """Something changed in the cluster."""
        for queued in self.pods.values():
            if not (queued.by_extender or helps_filters):
                continue
            if queued.place == "in flight":
                queued.was_touched = True
            elif queued.place == "resting" and not queued.pod.gates:
                self._requeue(queued, now)

    def pop(self, now: float) -> Queued | None:
        """The next pod to try, if there is one."""
        self._flush(now)
        ready = self._first(now)
        if ready is not None:
            self._move(ready, "in flight")
            ready.was_touched = False
        return ready

    def failed(self, queued: Queued, now: float, *, is_error: bool, by_extender: bool) -> None:
        """Put back a pod that got no node."""
        if self.pods.get(queued.pod.uid) is not queued:
            return
        queued.failures += 1
        queued.is_error, queued.by_extender, queued.since = is_error, by_extender, now
        pause = min(INITIAL_BACKOFF * 2.0 ** min(queued.failures - 1, 5), MOST_BACKOFF)
        queued.ready_at = now + pause
        if is_error:
            self._move(queued, "backoff")
        else:
            self._move(queued, "resting")
            if queued.was_touched:
                self._requeue(queued, now)

    def next_at(self, now: float) -> float:
        """When `pop` may give something that it does not give now."""
        self._drop_stale()
        ends = [entry[0] for entry in self._heap[:1]]
        is_resting = any(queued.place == "resting" for queued in self.pods.values())
        if is_resting and self._rest_seconds < math.inf:
            ends.append(self._flushed_at + FLUSH_EVERY)
        return max(min(ends, default=math.inf), now)

    def _flush(self, now: float) -> None:
        if now < self._flushed_at + FLUSH_EVERY:
            return
        self._flushed_at = now
        for queued in self.pods.values():
            is_over = now - queued.since > self._rest_seconds
            if queued.place == "resting" and is_over and not queued.pod.gates:
                self._requeue(queued, now)

    def activate(self, uid: str, now: float) -> None:
        """Have a pod tried again that waits for an event."""
        queued = self.pods.get(uid)
        if queued is not None and queued.place == "resting":
            self._requeue(queued, now)

    def _requeue(self, queued: Queued, now: float) -> None:
        if queued.pod.uid not in self.preempting:
            self._move(queued, "active" if queued.ready_at <= now else "backoff")

    def _move(self, queued: Queued, place: Place) -> None:
        self._tickets += 1
        queued.place, queued.ticket = place, self._tickets
        if place in ("active", "backoff"):
            ready_at = 0.0 if place == "active" else queued.ready_at
            entry = (ready_at, -queued.pod.priority, queued.since, queued.ticket, queued)
            heapq.heappush(self._heap, entry)

    def _drop_stale(self) -> None:
        while self._heap and self._heap[0][3] != self._heap[0][4].ticket:
            heapq.heappop(self._heap)

    def _first(self, now: float) -> Queued | None:
        """Take the first one that is active, whose back-off is over or may be cut short."""
        self._drop_stale()
        if not self._heap:
            return None
        ready_at, *_, queued = self._heap[0]
        if ready_at > now and (queued.is_error or not self._pops_from_backoff):
            return None
        heapq.heappop(self._heap)
        return queued
