"""Why writes of one kind fail: a few lines of each reason a minute. The metrics count each."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from app.errors import ApiError
from app.kube.log_limit import LogLimit

MOST_LINES = 5  # of one reason a minute, each about another write

_log = structlog.get_logger(__name__)


class Problems:
    """Takes what the API server has against writes; `name` is that of the lines."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._due = name, LogLimit(MOST_LINES, clock)

    def note(self, error: ApiError, **about: str) -> None:
        """A write has failed; `about`: which one."""
        if times := self._due.times((type(error), error.status, error.reason)):
            _log.warning(self._name, problem=repr(error), times=times, **about)
