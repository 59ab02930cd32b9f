"""What is wrong with the watches: every problem is counted, and each is logged once a minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from app.errors import CorralError
from app.kube.log_limit import LogLimit
from app.kube.watch.events import Kind

_log = structlog.get_logger(__name__)


class Counter(Protocol):
    """One counter of the metrics."""

    def inc(self) -> object: ...


class WatchProblems:
    """Takes the problems of all watches.

    counters: by kind, of all problems.
    """

    def __init__(
        self, counters: Mapping[Kind, Counter], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._counters = counters
        self._due = LogLimit(clock=clock)

    def note(self, kind: Kind, error: CorralError) -> None:
        """A round of this kind's watch failed, or an object of it cannot be read."""
        self._counters[kind].inc()
        problem = str(error)
        if times := self._due.times((kind, problem)):
            _log.warning("watch", kind=kind, problem=problem, times=times)
