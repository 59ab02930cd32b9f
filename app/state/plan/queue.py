"""Whose turn it is to be planned: the order of gangs, passes over them, and back-offs.

    capacity grew, a back-off is over ──▶ a pass is wanted ──tick──▶ every waiting gang, in order

A gang that loses its plan is not planned again before its back-off is over; each further loss
doubles it, until the gang runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.state.gang.gang import Gang
from app.state.settings import EngineSettings

MOST_LOSSES = 16  # counted for the back-off, which has reached its limit long before

Rank = tuple[bool, int, float, str]


@dataclass(slots=True)
class Queue:
    """The pass that is wanted or under way, and when the next back-off is over."""

    settings: EngineSettings
    _is_pass_wanted: bool = False
    _left: list[GangKey] = field(default_factory=list)  # of the pass under way, the next one last
    _retry_at: float = math.inf  # when the first gang's back-off is over

    # -- passes --------------------------------------------------------------------------------

    def want_pass(self) -> None:
        """Have the waiting gangs tried again."""
        self._is_pass_wanted = True

    def is_busy(self) -> bool:
        """Whether gangs are waiting for their turn: another one must not be planned before them."""
        return self._is_pass_wanted or bool(self._left)

    def begin_pass(self, gangs: Iterable[Gang], others: Iterable[GangKey]) -> None:
        """Begin the pass that is wanted, if none is under way: these gangs in order, then others.

        Both are read only if a pass begins.
        """
        if self._left or not self._is_pass_wanted:
            return
        self._is_pass_wanted = False
        self._left = [*(gang.key for gang in in_order(gangs)), *others]
        self._left.reverse()

    def turns(self, most: int) -> Iterable[GangKey]:
        """The next gangs of the pass, at most so many; the others wait for the next tick."""
        for _ in range(min(len(self._left), most)):
            yield self._left.pop()

    # -- back-offs -----------------------------------------------------------------------------

    def is_due(self, gang: Gang, now: float) -> bool:
        """Whether the gang's back-off is over."""
        return now >= gang.back_off.not_before

    def back_off(self, gang: Gang, now: float, losses: int = 1) -> None:
        """Put the gang off; `losses`: how many lost plans this one counts for."""
        gang.back_off.plans_lost = min(gang.back_off.plans_lost + losses, MOST_LOSSES)
        backoff = self.settings.retry_seconds * 2.0 ** (gang.back_off.plans_lost - 1)
        gang.back_off.not_before = now + min(backoff, self.settings.retry_seconds_most)
        self._retry_at = min(self._retry_at, gang.back_off.not_before)

    def put_off(self, gang: Gang, until: float) -> None:
        """Put the gang off until then, unless `resume` comes before."""
        gang.back_off.not_before = until

    def resume(self, gang: Gang, now: float) -> None:
        """End the gang's back-off."""
        gang.back_off.not_before = now
        self.want_pass()

    def reset(self, gang: Gang) -> None:
        """Forget the plans that a gang has lost, as it runs now."""
        gang.back_off.plans_lost = 0

    def retry(self, waiting: Iterable[Gang], now: float) -> None:
        """Want a pass if some back-off has ended; `waiting`: every gang that may have one."""
        if now >= self._retry_at:
            later = (gang.back_off.not_before for gang in waiting)
            self._retry_at = min((at for at in later if at > now), default=math.inf)
            self.want_pass()


def in_order(gangs: Iterable[Gang]) -> list[Gang]:
    """The gangs in the order in which they are planned."""
    return sorted(gangs, key=rank_in_queue)


def rank_in_queue(gang: Gang) -> Rank:
    """Gangs that run in part come first, then by priority, then by when they became complete."""
    return (not gang.has_started, -gang.priority, gang.complete_at, str(gang.key))
