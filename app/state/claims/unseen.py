"""Pods that are members by what a request says of them, before the watch shows them.

kube-scheduler has a watch of its own, and may be some milliseconds ahead of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field

UNSEEN_SECONDS = 5.0  # for which the watch may be late
MOST_UNSEEN = 20_000


@dataclass(slots=True)
class UnseenPods:
    """Until when each of them is believed in, the first first; by uid."""

    _until: dict[str, float] = field(default_factory=dict)

    def __contains__(self, uid: str) -> bool:
        return uid in self._until

    @property
    def is_full(self) -> bool:
        """Whether no more are believed in."""
        return len(self._until) >= MOST_UNSEEN

    def put(self, uid: str, now: float) -> None:
        """Believe in a pod for a while."""
        self._until[uid] = now + UNSEEN_SECONDS

    def drop(self, uid: str) -> None:
        """Note that the watch has shown the pod, or that it is gone."""
        self._until.pop(uid, None)

    def expired(self, now: float) -> list[str]:
        """Remove and return those that the watch should have shown by now."""
        over = [uid for uid, until in self._until.items() if until <= now]
        for uid in over:
            del self._until[uid]
        return over
