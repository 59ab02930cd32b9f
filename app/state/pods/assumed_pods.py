"""Ordinary pods being bound: booked from /bind until the watch shows them bound.

Capacity for members is held by their gang's plan. An ordinary pod that passed /filter is bound by
Corral a moment later; until the watch shows it bound its capacity must be counted too, else the
next plan would take it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from app.state.cache import room
from app.state.cache.books import KEPT, Books
from app.state.pods.arrivals import WaitingPod
from app.state.pods.nominations import Nominations

IN_FLIGHT_SECONDS = 60.0  # longer than a binding with its read-back; the watch ends it earlier


@dataclass(slots=True)
class AssumedPods:
    """Capacity held for ordinary pods whose binding is under way."""

    books: Books
    nominations: Nominations
    _expires_at: dict[str, float] = field(default_factory=dict)
    _taken_over: dict[str, WaitingPod] = field(default_factory=dict)  # node: who took it

    @property
    def uids(self) -> Collection[str]:
        """The pods that capacity is held for."""
        return self._expires_at.keys()

    def begin(self, pod: WaitingPod, uid: str, node: str, now: float) -> bool:
        """Hold the node for a pod at /bind; False if that would take capacity held for others.

        What is held for pods of a lower priority it may take.
        """
        if uid in self._expires_at:
            return True  # the same /bind again
        # On a node that the watch has not shown yet nothing is held but for pods like this one.
        if node in self.books.nodes and not self._may_take(pod, node):
            return False
        self.books.hold(uid, node, pod.request, KEPT)
        self._expires_at[uid] = now + IN_FLIGHT_SECONDS
        return True

    def _may_take(self, pod: WaitingPod, node: str) -> bool:
        """Whether the pod takes nothing there that is held for others, or kept for a gang."""
        self.books.refresh()  # the node may be newer than the trees
        if node in self.books.held_on and not room.fits(self.books, node, pod.request):
            lower = room.held_below(self.books, node, pod.priority)
            if not (lower and room.fits(self.books, node, pod.request, without=lower)):
                return False
            self._taken_over[node] = pod
        kept = self.nominations.kept(pod.priority, self.nominations.booked(self.books)).get(node)
        # What others were evicted for stays a gang's.
        return not kept or room.fits(self.books, node, pod.request, beside=kept)

    def nodes_taken_over(self) -> dict[str, WaitingPod]:
        """Remove and return the nodes that were taken from pods of a lower priority: by which."""
        taken, self._taken_over = self._taken_over, {}
        return taken

    def end(self, uid: str) -> bool:
        """End the hold for a pod that is bound, gone or refused; True if there was one."""
        if self._expires_at.pop(uid, None) is None:
            return False
        return self.books.release(uid) is not None

    def expire(self, now: float) -> bool:
        """End holds whose time is up; True if there were any."""
        over = [uid for uid, until in self._expires_at.items() if until <= now]
        return any([self.end(uid) for uid in over])
