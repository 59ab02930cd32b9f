"""When things are to be looked at again: each once, by the first of the times asked for."""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(slots=True)
class Later(Generic[_Key]):
    """Times by what is to be looked at.

    `_entries` is a heap: when, in which order it was asked for, what. `_at` has those that count.
    """

    _entries: list[tuple[float, int, _Key]] = field(default_factory=list)
    _at: dict[_Key, float] = field(default_factory=dict)
    _asked: int = 0

    def __len__(self) -> int:
        """How many entries it has, those included that count no more."""
        return len(self._entries)

    def look(self, key: _Key, at: float) -> None:
        """Have something looked at by then; what is due later is found then."""
        if at < self._at.get(key, math.inf):
            self._at[key] = at
            self._asked += 1
            heapq.heappush(self._entries, (at, self._asked, key))

    def drop(self, key: _Key) -> None:
        """Have something looked at no more."""
        self._at.pop(key, None)

    def taken(self, now: float) -> Iterator[_Key]:
        """Remove and return what is due by now, the earliest first."""
        while self._entries and self._entries[0][0] <= now:
            at, _, key = heapq.heappop(self._entries)
            if self._at.get(key) == at:
                del self._at[key]
                yield key
