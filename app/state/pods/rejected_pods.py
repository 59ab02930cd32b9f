"""Ordinary pods rejected because of held capacity: requeued when it is freed without a binding.

kube-scheduler tries waiting pods again after bindings and deletions. It does not see that a hold
of Corral ends, and would try such a pod again only after five minutes. Namespaces take turns.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from app.fair_queue import FairQueue
from app.kube.core.objects import Amounts, PodRecord
from app.state.cache import room
from app.state.cache.books import Books
from app.state.effects import Requeue
from app.state.pods.arrivals import WaitingPod
from app.state.pods.samples import Samples

MOST_REJECTED = 2_000  # remembered; beyond it a namespace's oldest is left to kube-scheduler
MOST_WOKEN_PER_TICK = 16


@dataclass(slots=True)
class RejectedPods:
    """Pods that /filter rejected, and those of them to requeue. Keys are pod uids.

    Invariant: `_lines` has the uids of `_pods` by namespace, `_due` and `_later` some of them.
    """

    books: Books
    most: int = MOST_REJECTED
    samples: Samples = field(default_factory=Samples)
    _pods: dict[str, tuple[Requeue, Amounts]] = field(default_factory=dict)
    _lines: FairQueue[str, None] = field(default_factory=FairQueue)  # in the order they came
    _due: FairQueue[str, None] = field(default_factory=FairQueue)
    _later: dict[str, float] = field(default_factory=dict)  # when they are due

    def add(self, pod: PodRecord, request: Amounts) -> None:
        """Remember that this pod was left no node because of what is held."""
        self._add(Requeue(pod.namespace, pod.name, pod.uid), request)

    def suppose(self, uid: str, pod: WaitingPod) -> None:
        """Remember a pod of which another Corral may have said so, as far as there is room."""
        if uid not in self._pods and len(self._pods) < self.most:
            self._add(Requeue(pod.namespace, pod.name, uid), pod.request)

    def _add(self, requeue: Requeue, request: Amounts) -> None:
        namespace, uid = requeue.namespace, requeue.uid
        is_new = uid not in self._pods
        if is_new and len(self._pods) >= self.most:
            gone = self._lines.make_room(namespace)
            if gone is None:
                return
            self.take_back(gone[0])
        self._pods[uid] = requeue, request
        if is_new:
            self._lines.put(namespace, uid, None)

    def try_again(self, pod: PodRecord, now: float) -> None:
        """Have a pod requeued for another sample, though nothing has been freed since."""
        if pod.uid not in self._pods:
            return
        at = self.samples.next_at(pod.namespace, pod.uid, now)
        if at is not None:
            self._later[pod.uid] = at

    def take_back(self, uid: str) -> None:
        """Forget that a pod waits: it came to /filter again."""
        if uid not in self._pods:
            return
        namespace = self._pods.pop(uid)[0].namespace
        self._lines.remove(namespace, uid)
        self._due.remove(namespace, uid)
        self._later.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Forget a pod that is bound or gone."""
        self.take_back(uid)
        self.samples.forget(uid)

    def woken(self, nodes: Collection[str], now: float) -> list[Requeue]:
        """The next few pods to requeue: those that are due for another sample, and those that fit
        on one of these nodes, now that holds ended there.
        """
        for uid in [uid for uid, at in self._later.items() if at <= now]:
            self._due.put(self._pods[uid][0].namespace, uid, None)
            del self._later[uid]
        fits: dict[Amounts, bool] = {}
        slots = room.slots_of(self.books, nodes)
        for uid, (requeue, request) in self._pods.items() if len(slots) else ():
            if request not in fits:
                fits[request] = room.fits_on_any(self.books, slots, request)
            if fits[request]:
                self._due.put(requeue.namespace, uid, None)
        wakes = []
        for _ in range(min(len(self._due), MOST_WOKEN_PER_TICK)):
            _, uid, _ = self._due.take()
            wakes.append(self._pods[uid][0])
            self.take_back(uid)
        return wakes
