"""What is wrong with the watches: every problem is counted, and each is logged once a minute.

While the API server is down every watch tries again a few times a second, and each try fails with
the same words.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from app.errors import CorralError
from app.kube.watch.events import Kind

AGAIN_SECONDS = 60.0  # between two lines about the same problem
MOST_REMEMBERED = 256  # problems; an object that cannot be read may word one as it likes

_log = structlog.get_logger(__name__)


class Counter(Protocol):
    """One counter of the metrics."""

    def inc(self) -> object: ...


@dataclass(slots=True)
class _Told:
    """When a problem was logged, and how often it has come up since."""

    at: float  # by the clock
    since: int = 0


class WatchProblems:
    """Takes the problems of all watches.

    counters: by kind, of all problems.
    """

    def __init__(
        self, counters: Mapping[Kind, Counter], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._counters = counters
        self._clock = clock
        self._told = OrderedDict[tuple[Kind, str], _Told]()  # the one that came up last is last

    def __len__(self) -> int:
        return len(self._told)

    def note(self, kind: Kind, error: CorralError) -> None:
        """A round of this kind's watch failed, or an object of it cannot be read."""
        self._counters[kind].inc()
        now, problem = self._clock(), str(error)
        told = self._told.pop((kind, problem), None)
        if told is not None and now - told.at < AGAIN_SECONDS:
            told.since += 1
        else:
            times = 1 if told is None else told.since + 1
            _log.warning("watch", kind=kind, problem=problem, times=times)
            told = _Told(now)
        self._told[kind, problem] = told
        if len(self._told) > MOST_REMEMBERED:
            self._told.popitem(last=False)
