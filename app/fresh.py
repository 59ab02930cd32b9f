"""Answers that are dear to make: the last one is given to all who ask in the same moment.

However many clients ask for one thing, and however often, it is made once in FRESH_SECONDS.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

FRESH_SECONDS = 1.0

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


class Fresh(Generic[Key, Answer]):
    """The last answers, each for FRESH_SECONDS; `most` of them at one time."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._made: OrderedDict[Key, tuple[float, Answer]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._made)

    def get(self, key: Key) -> Answer | None:
        """The answer, if it is fresh."""
        made = self._made.get(key)
        return made[1] if made is not None and self._clock() < made[0] + FRESH_SECONDS else None

    def put(self, key: Key, answer: Answer) -> None:
        """Keep it; those that are no longer fresh go."""
        now = self._clock()
        for stale in [key for key, (at, _) in self._made.items() if now >= at + FRESH_SECONDS]:
            del self._made[stale]
        self._made[key] = now, answer
        self._made.move_to_end(key)
        if len(self._made) > self._most:
            self._made.popitem(last=False)
