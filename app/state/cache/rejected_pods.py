"""Ordinary pods rejected because of held capacity: requeued when it is freed without a binding.

kube-scheduler tries waiting pods again after bindings and deletions. It does not see that a hold
of Corral ends, and would try such a pod again only after five minutes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice

from app.kube.core.objects import PodRecord
from app.state.cache.books import Books, Vector
from app.state.effects import Requeue

MOST_REJECTED = 2_000  # remembered; beyond it the oldest is left to kube-scheduler
MOST_WOKEN_PER_TICK = 16


@dataclass(slots=True)
class RejectedPods:
    """Pods that /filter rejected, and those of them to requeue. Keys are pod uids."""

    books: Books
    _pods: OrderedDict[str, tuple[Requeue, Vector]] = field(default_factory=OrderedDict)
    _due: dict[str, None] = field(default_factory=dict)

    def add(self, pod: PodRecord, request: Vector) -> None:
        """Remember that /filter left this pod no node because of what is held."""
        self._pods[pod.uid] = (Requeue(pod.namespace, pod.name, pod.uid), request)
        if len(self._pods) > MOST_REJECTED:
            self.forget(next(iter(self._pods)))

    def forget(self, uid: str) -> None:
        """Forget a pod that came to /filter again, is bound or is gone."""
        self._pods.pop(uid, None)
        self._due.pop(uid, None)

    def woken(self, nodes: Collection[str]) -> list[Requeue]:
        """The next few pods to requeue now that holds ended on these nodes, if they fit on one."""
        fits: dict[Vector, bool] = {}
        for uid, (_, request) in self._pods.items() if nodes else ():
            if request not in fits:
                fits[request] = any(self.books.fits(node, request) for node in nodes)
            if fits[request]:
                self._due[uid] = None
        chosen = list(islice(self._due, MOST_WOKEN_PER_TICK))
        wakes = [self._pods[uid][0] for uid in chosen]
        for uid in chosen:
            self.forget(uid)
        return wakes
