"""How often ordinary pods are requeued for another sample of the nodes, and when.

kube-scheduler begins the next sample at another node, but tries a pod again only after an event. As
it comes a sample is a twentieth of the nodes at least, so that MOST_SAMPLES have seen all of them:
a pod that had no node in so many may use none of those with room, because of taints, affinity or
volumes. It is left to kube-scheduler then, and requeued when something is freed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from app.fair_queue import FairQueue
from app.state.pauses import doubled

MOST_SAMPLES = 20
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 30.0  # between two of them; before the first there is none
MOST_COUNTED = 2_000  # pods; beyond it those of the namespace with the most get no further sample


@dataclass(slots=True)
class Samples:
    """Counts by pod uid. Invariant: `_namespaces` has the uids of `_tried`."""

    most: int = MOST_COUNTED
    _tried: FairQueue[str, int] = field(default_factory=FairQueue)
    _namespaces: dict[str, str] = field(default_factory=dict)

    def next_at(self, namespace: str, uid: str, now: float) -> float | None:
        """When the pod is to have another sample, which counts; None: it has had enough."""
        tried = self._tried.get(namespace, uid) or 0
        if tried >= MOST_SAMPLES or not (tried or self._has_place(namespace)):
            return None
        self._tried.put(namespace, uid, tried + 1)
        self._namespaces[uid] = namespace
        return now + doubled(FIRST_SECONDS, tried, LONGEST_SECONDS) if tried else now

    def forget(self, uid: str) -> None:
        """Forget a pod that is bound or gone."""
        namespace = self._namespaces.pop(uid, None)
        if namespace is not None:
            self._tried.remove(namespace, uid)

    def _has_place(self, namespace: str) -> bool:
        """Whether one more pod of the namespace may be counted; room is made for it."""
        if len(self._tried) < self.most:
            return True
        giving = self._tried.shares.to_leave_out(namespace)
        if giving == namespace:
            return False
        uid, _ = self._tried.drop(giving, is_oldest=True)
        del self._namespaces[uid]
        return True
