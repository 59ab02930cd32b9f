"""Ordinary pods on their way: remembered from /filter, held from /bind until the watch shows them.

A gang's holds belong to its plan (`gang/gang.py`). An ordinary pod that passed /filter is bound
by us a moment later; between that and the watch event its capacity must be counted too, else the
next plan would take it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from app.state.cache.books import Books, Vector

MOST_PASSING = 20_000  # pods remembered between their /filter and their /bind
IN_FLIGHT_SECONDS = 60.0  # longer than a binding with its read-back; the watch ends it earlier


@dataclass(slots=True)
class AssumedPods:
    """Holds of ordinary pods whose binding is under way."""

    books: Books
    _passing: OrderedDict[str, Vector] = field(default_factory=OrderedDict)
    _expires_at: dict[str, float] = field(default_factory=dict)

    @property
    def uids(self) -> Collection[str]:
        """Pods that are held for now."""
        return self._expires_at.keys()

    def passed(self, uid: str, request: Vector) -> bool:
        """Remember what a pod asks for.

        A pod that asks again has lost its earlier attempt: True if that ended a hold.
        """
        has_ended = self.end(uid)
        self._passing[uid] = request
        if len(self._passing) > MOST_PASSING:
            self._passing.popitem(last=False)
        return has_ended

    def begin(self, uid: str, node: str, now: float) -> bool:
        """Hold the node for a pod at /bind; False if that would eat capacity held for others."""
        if uid in self._expires_at or uid in self.books.bound:
            return True  # the same /bind again
        request = self._passing.pop(uid, None)
        if request is None:
            # Passed before our restart, or never asked: what it takes is not known before the
            # watch shows it bound, so it may not go where capacity is reserved.
            return node not in self.books.held_on
        if node in self.books.held_on and not self.books.fits(node, request):
            return False
        self.books.hold(uid, node, request)
        self._expires_at[uid] = now + IN_FLIGHT_SECONDS
        return True

    def end(self, uid: str) -> bool:
        """Stop holding for this pod: it is bound, gone or refused. True if it was held."""
        self._passing.pop(uid, None)
        if self._expires_at.pop(uid, None) is None:
            return False
        return self.books.release(uid) is not None

    def expire(self, now: float) -> bool:
        """End holds that outlived their time; True if there were any."""
        over = [uid for uid, until in self._expires_at.items() if until <= now]
        return any([self.end(uid) for uid in over])
