"""How far the watch of pods is behind, measured by our own bindings.

the API server has bound a pod ──answer──▶ ┐
                                           ├─▶ seconds from the answer to the event
the watch shows it on its node ──event───▶ ┘   0 where the event was first

A pod that the watch shows to be gone is not awaited: its binding has no event any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

MOST_AWAITED = 10_000  # bindings; beyond that the oldest are forgotten
MOST_GONE = 1_000  # pods whose end may come before the answer to their binding
LONGEST_SECONDS = 600.0  # an event that has not come by then is counted no more


class WatchLag:
    """Bindings that the watch has not shown yet. `observe` is told the lag of each, in seconds."""

    def __init__(self, observe: Callable[[float], object]) -> None:
        self._observe = observe
        self._awaited = OrderedDict[str, float]()  # by uid: when the answer came
        self._gone = OrderedDict[str, None]()  # uids of the last pods that ended

    @property
    def is_waiting(self) -> bool:
        """Whether any binding has not been shown yet."""
        return bool(self._awaited)

    def bound(self, uid: str, now: float, *, is_shown: bool) -> None:
        """The API server has answered that a pod is bound; `is_shown`: so has the watch."""
        if is_shown:
            self._observe(0.0)
            return
        if uid in self._gone:
            return
        self._awaited[uid] = now
        if len(self._awaited) > MOST_AWAITED:
            self._awaited.popitem(last=False)

    def shown(self, uid: str, now: float) -> None:
        """The watch shows a pod on a node."""
        answered_at = self._awaited.pop(uid, None)
        if answered_at is not None:
            self._observe(now - answered_at)

    def gone(self, uid: str) -> None:
        """The watch shows that a pod is gone."""
        self._awaited.pop(uid, None)
        self._gone[uid] = None
        if len(self._gone) > MOST_GONE:
            self._gone.popitem(last=False)

    def listed(self, node_by_uid: Mapping[str, str], now: float) -> None:
        """A list has all pods there are, with their nodes; "": it shows none yet."""
        for uid in tuple(self._awaited):
            if uid not in node_by_uid:
                self.gone(uid)
            elif node_by_uid[uid]:
                self.shown(uid, now)

    def longest(self, now: float) -> float:
        """For how many seconds the oldest of them has been awaited; 0.0: none is."""
        while self._awaited:
            uid, answered_at = next(iter(self._awaited.items()))
            if now - answered_at <= LONGEST_SECONDS:
                return now - answered_at
            del self._awaited[uid]
        return 0.0
