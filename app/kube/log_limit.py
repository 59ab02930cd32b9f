"""Bounds what the log says of one thing that comes up again and again.

While the API server is away every watch tries again a few times a second, and every write that
waits fails: thousands of lines in some seconds that say the same.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

AGAIN_SECONDS = 60.0  # after a line about a thing, until there may be as many again
MOST_REMEMBERED = 256  # things; an object that cannot be read may word a new one each time


@dataclass(slots=True)
class _Told:
    """Since when a thing has been told, in how many lines, and how often it came up untold."""

    since: float  # by the clock
    lines: int = 0
    untold: int = 0


class LogLimit:
    """Says of each thing whether a line about it is due: `lines` of them in AGAIN_SECONDS."""

    def __init__(self, lines: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._lines, self._clock = lines, clock
        self._told = OrderedDict[Hashable, _Told]()  # what came up last is last

    def __len__(self) -> int:
        return len(self._told)

    def times(self, thing: Hashable) -> int:
        """It has come up. How often it did since the last line about it; 0: no line is due."""
        now, told = self._clock(), self._told.pop(thing, None)
        if told is None:
            told = _Told(now)
        elif now >= told.since + AGAIN_SECONDS:
            told.since, told.lines = now, 0
        self._told[thing] = told
        if len(self._told) > MOST_REMEMBERED:
            self._told.popitem(last=False)
        told.untold += 1
        if told.lines >= self._lines:
            return 0
        told.lines += 1
        times, told.untold = told.untold, 0
        return times
