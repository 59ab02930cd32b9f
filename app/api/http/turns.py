"""What takes long is answered a few at a time; some more wait, and the next one is refused.

What only the event loop may read, and there is much of, is read in steps (`last_of`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from fastapi import HTTPException

_R = TypeVar("_R")


async def last_of(steps: Iterator[_R | None]) -> _R:
    """What the last of the steps yields; others have the event loop between two of them.

    Nothing of the cluster changes between the last step and the return.
    """
    for step in steps:
        if step is not None:
            return step
        await asyncio.sleep(0)
    raise AssertionError("the last step is the result")


class Turns:
    """The questions of one kind.

    most: how many may wait or be answered at one time, `at_once` of them answered. busy: what the
        next one is told.
    """

    def __init__(
        self,
        most: int,
        busy: str,
        *,
        at_once: int = 1,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._most, self._busy, self._headers = most, busy, dict(headers or {})
        self._waiting = 0
        self.turn = asyncio.Semaphore(at_once)
        """Held while a question is answered."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Be one of those that wait. Raises: HTTPException, 503, where there are as many as may."""
        if self._waiting >= self._most:
            raise HTTPException(503, self._busy, self._headers or None)
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
