"""Ordinary pods that had no node but held ones: woken when a hold ends without a binding.

kube-scheduler sees bindings and deletions, and tries waiting pods again by itself. Of a hold that
just ends it sees nothing, and would let such a pod sit for five minutes.
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
    """Who was turned away, and of those who is to be woken. Keys are pod uids."""

    books: Books
    _pods: OrderedDict[str, tuple[Requeue, Vector]] = field(default_factory=OrderedDict)
    _due: dict[str, None] = field(default_factory=dict)

    def add(self, pod: PodRecord, request: Vector) -> None:
        """Remember that /filter left this pod no node because of what is held."""
        self._pods[pod.uid] = (Requeue(pod.namespace, pod.name, pod.uid), request)
        if len(self._pods) > MOST_REJECTED:
            self.forget(next(iter(self._pods)))

    def forget(self, uid: str) -> None:
        """The pod has asked again, is bound or gone."""
        self._pods.pop(uid, None)
        self._due.pop(uid, None)

    def woken(self, nodes: Collection[str]) -> list[Requeue]:
        """Whom to wake now, after holds ended on these nodes: the next few that fit on one."""
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
