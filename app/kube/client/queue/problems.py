"""Why writes of one kind fail: a few lines of each reason a minute, and how many more there were.

While the API server is away, or another Corral has come to lead, every write that waits fails in
the same way: thousands in some seconds for one large gang. The metrics count each.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from app.errors import ApiError

AGAIN_SECONDS = 60.0  # until a reason is logged anew
MOST_LINES = 5  # about one reason in that time
MOST_REASONS = 64  # remembered

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Told:
    """Since when a reason has been told, in how many lines, and how often not."""

    since: float
    lines: int = 0
    left_out: int = 0


class Problems:
    """Takes what the API server has against writes; `name` is that of the lines."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._told = OrderedDict[tuple[type[ApiError], int, str], _Told]()

    def __len__(self) -> int:
        return len(self._told)

    def note(self, error: ApiError, **about: str) -> None:
        """A write has failed; `about`: which one."""
        now, reason = self._clock(), (type(error), error.status, error.reason)
        told = self._told.get(reason)
        if told is None or now >= told.since + AGAIN_SECONDS:
            left_out = 0 if told is None else told.left_out
            told = self._told[reason] = _Told(now)
            self._told.move_to_end(reason)
            if len(self._told) > MOST_REASONS:
                self._told.popitem(last=False)
            if left_out:
                _log.warning(self._name, problem=f"{left_out} more like the next one")
        if told.lines >= MOST_LINES:
            told.left_out += 1
            return
        told.lines += 1
        _log.warning(self._name, problem=repr(error), **about)
