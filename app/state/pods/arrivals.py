"""Which pods /bind may be about: those that the watch shows waiting for our scheduler.

    the watch shows the pod, without gates        it may be bound
    it shows no such pod, or one with gates       early: bound as soon as it does, else refused
    it shows another pod under this uid           refused

kube-scheduler has a watch of its own, and may be some milliseconds ahead of ours: a request of it
that is early is no mistake. It waits here no longer than it would in kube-scheduler's back-off.
Where our watch is behind for longer, it has been cut: then /filter rejects the pod until the watch
shows it without gates, and it is requeued. Refused at /bind each time, it would wait in
kube-scheduler's back-off for errors, which nothing cuts short, when the watch is back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from app.kube.core.objects import Amounts, PodRecord

EARLY_SECONDS = 1.0  # kube-scheduler's first back-off; the watch is late by milliseconds
MOST_EARLY = 4_096  # as many pods may be bound in the milliseconds that the watch is late


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request at /bind."""

    namespace: str
    name: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """What the watch shows of a pod without a node: a tenth of its record."""

    namespace: str
    name: str
    is_gated: bool
    request: Amounts
    priority: int
    nominated_node: str


@dataclass(slots=True)
class Arrivals:
    """Pods that wait for a node, and requests to bind pods that the watch does not show yet.

    Units: a request is kept for `early_seconds`.
    """

    early_seconds: float = EARLY_SECONDS
    _waiting: dict[str, WaitingPod] = field(default_factory=dict)  # by uid
    _early: dict[str, tuple[Arrival, float]] = field(default_factory=dict)  # and until when
    _due: dict[str, Arrival] = field(default_factory=dict)
    _behind: set[str] = field(default_factory=set)  # gated, and refused at /bind for it

    @property
    def uids(self) -> Collection[str]:
        """The pods that wait for a node."""
        return self._waiting.keys()

    def put(self, pod: PodRecord) -> bool:
        """Learn that a pod waits; it may be bound now if a request for it is early.

        Returns whether the watch has caught up with a pod that it was behind with.
        """
        self._waiting[pod.uid] = WaitingPod(
            pod.namespace, pod.name, bool(pod.gates), pod.request, pod.priority, pod.nominated_node
        )
        if pod.gates:
            return False
        self._hasten(pod.uid)
        was_behind = pod.uid in self._behind
        self._behind.discard(pod.uid)
        return was_behind

    def drop(self, uid: str) -> None:
        """Forget a pod that has a node, is gone or another scheduler's."""
        self._waiting.pop(uid, None)
        self._behind.discard(uid)
        self._hasten(uid)

    def known(self, namespace: str, name: str, uid: str) -> WaitingPod | None:
        """What the watch shows of a pod; None: no pod of these three waits."""
        pod = self._waiting.get(uid)
        return pod if pod is not None and (pod.namespace, pod.name) == (namespace, name) else None

    def of(self, uid: str) -> WaitingPod | None:
        """What the watch shows of a pod that waits; None: it does not wait."""
        return self._waiting.get(uid)

    # -- requests that are early ---------------------------------------------------------------

    def is_early(self, arrival: Arrival) -> bool:
        """Whether the watch may show in a moment that this pod can be bound."""
        pod = self._waiting.get(arrival.uid)
        return pod is None or pod.is_gated

    def hold(self, arrival: Arrival, now: float) -> bool:
        """Keep a request that is early; False if too many are kept already."""
        self._early.pop(arrival.uid, None)  # the same pod, sent to another node meanwhile
        if len(self._early) >= MOST_EARLY:
            return False
        self._early[arrival.uid] = (arrival, now + self.early_seconds)
        return True

    def taken_due(self) -> Iterator[Arrival]:
        """Remove and return the requests of which the watch has told since."""
        due, self._due = self._due, {}
        return iter(due.values())

    def expired(self, now: float) -> list[Arrival]:
        """Remove and return the requests that the watch does not bear out."""
        over = [arrival for arrival, until in self._early.values() if until <= now]
        for arrival in over:
            del self._early[arrival.uid]
            if arrival.uid in self._waiting:
                self._behind.add(arrival.uid)
        return over

    def is_behind(self, uid: str) -> bool:
        """Whether the watch still shows gates that kube-scheduler saw removed a while ago."""
        return uid in self._behind

    def _hasten(self, uid: str) -> None:
        early = self._early.pop(uid, None)
        if early is not None:
            self._due[uid] = early[0]
