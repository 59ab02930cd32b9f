"""Events and statuses that were not written: each has its turn to be repeated.

    write_lost ──▶ one line per namespace ──tick──▶ is it still true? ──▶ the same effect again

What is true is decided when its turn comes, by `reports.py`. A write that is lost again goes to the
end of its namespace's line.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.fair_queue import FairQueue

MOST_LOST = 16_384  # remembered; beyond it one of the namespace with the most is not repeated


@dataclass(frozen=True, slots=True)
class LostWrite:
    """An event, named by its reason, or STATUS or DELETE of `effects.py`; `uid`: of its object."""

    gang: GangKey
    what: str
    uid: str


@dataclass(slots=True)
class LostWrites:
    """What waits to be repeated."""

    most: int = MOST_LOST
    _lost: FairQueue[LostWrite, None] = field(default_factory=FairQueue)

    def __len__(self) -> int:
        return len(self._lost)

    def add(self, lost: LostWrite) -> None:
        """Note one, unless it is noted already."""
        namespace = lost.gang.namespace
        if self._lost.contains(namespace, lost):
            return
        if len(self._lost) >= self.most and self._lost.make_room(namespace) is None:
            return
        self._lost.put(namespace, lost, None)

    def take(self) -> LostWrite | None:
        """Remove the one whose turn it is; None if there is none."""
        return self._lost.take()[1] if self._lost else None
