"""Namespaces in which the API server forbids one kind of write: none is tried there for a while.

    forbidden ──10 s──▶ tried ──forbidden──20 s──▶ tried … ──▶ every few minutes

By namespace: a quota, an admission policy or the end of one namespace changes nothing for the
others, and where a ClusterRole is missing each namespace costs few refused writes. The first pauses
are short, since a right may be missing for a moment: an API server that starts has not read yet who
may do what.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

MOST_REMEMBERED = 10_000  # namespaces
FIRST_SECONDS = 10.0  # then twice as long each time


@dataclass(frozen=True, slots=True)
class _Pause:
    """Until when none is tried, and for how long that is."""

    until: float
    seconds: float


class Refusals:
    """Until when no write is tried in which namespace: for `seconds` at most."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._pauses: OrderedDict[str, _Pause] = OrderedDict()

    def holds(self, namespace: str) -> bool:
        """Whether none is to be tried there now."""
        pause = self._pauses.get(namespace)
        return pause is not None and self._clock() < pause.until

    def note(self, namespace: str) -> float:
        """Take that one was forbidden there; for how long none is tried from now on.

        0.0: it was under way beside another one.
        """
        if self.holds(namespace):
            return 0.0
        now, before, seconds = self._clock(), self._pauses.get(namespace), FIRST_SECONDS
        if before is not None and now < before.until + self._seconds:
            seconds = 2 * before.seconds
        seconds = min(seconds, self._seconds)
        self._pauses[namespace] = _Pause(now + seconds, seconds)
        self._pauses.move_to_end(namespace)
        if len(self._pauses) > MOST_REMEMBERED:
            self._pauses.popitem(last=False)
        return seconds
