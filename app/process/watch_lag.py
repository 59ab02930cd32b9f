"""How far the watch of pods is behind, measured by our own bindings.

the API server has bound a pod ──answer──▶ ┐
                                           ├─▶ seconds from the answer to the event
the watch shows it on its node ──event───▶ ┘   0 where the event was first
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

MOST_AWAITED = 10_000  # bindings; beyond that the oldest are forgotten
LONGEST_SECONDS = 600.0  # the event of a pod that was deleted meanwhile may never come


class WatchLag:
    """Bindings that the watch has not shown yet. `observe` is told the lag of each, in seconds."""

    def __init__(self, observe: Callable[[float], object]) -> None:
        self._observe = observe
        self._awaited = OrderedDict[str, float]()  # by uid: when the answer came

    def bound(self, uid: str, now: float, *, is_shown: bool) -> None:
        """The API server has answered that a pod is bound; `is_shown`: so has the watch."""
        if is_shown:
            self._observe(0.0)
            return
        self._awaited[uid] = now
        if len(self._awaited) > MOST_AWAITED:
            self._awaited.popitem(last=False)

    def shown(self, uid: str, now: float) -> None:
        """The watch shows a pod on a node."""
        answered_at = self._awaited.pop(uid, None)
        if answered_at is not None:
            self._observe(now - answered_at)

    def longest(self, now: float) -> float:
        """For how many seconds the oldest of them has been awaited; 0.0: none is."""
        while self._awaited:
            uid, answered_at = next(iter(self._awaited.items()))
            if now - answered_at <= LONGEST_SECONDS:
                return now - answered_at
            del self._awaited[uid]
        return 0.0
