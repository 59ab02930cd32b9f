"""Virtual time: one heap of things to come, and the history of what happened.

Everything in a simulated world happens in an action of this heap, one at a time. Equal times keep
the order in which they were planned, so a history depends on the seed alone.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import deque
from collections.abc import Callable

Action = Callable[[], None]

LINES_KEPT = 40  # of the history, for the report of a violation


class Clock:
    """Virtual seconds; `steps` counts the actions done."""

    def __init__(self) -> None:
        self.now = 0.0
        self.wall_went_back = False
        self._wall_offset = 0.0
        self.steps = 0
        self._heap: list[tuple[float, int, Action]] = []
        self._planned = 0

    def at(self, when: float, action: Action) -> None:
        """Do this then, or now if that is over."""
        self._planned += 1
        heapq.heappush(self._heap, (max(when, self.now), self._planned, action))

    def after(self, seconds: float, action: Action) -> None:
        """Do this so many seconds from now."""
        self.at(self.now + seconds, action)

    def set_wall(self, offset: float) -> None:
        """Step the clock on the wall, which API servers and schedulers date things by."""
        self.wall_went_back |= offset < self._wall_offset
        self._wall_offset = offset

    def wall_time(self) -> str:
        """What the clock on the wall says, in whole seconds as the API server writes them."""
        seconds = int(self.now + self._wall_offset) + 7200
        hours, rest = divmod(seconds, 3600)
        return f"2026-01-01T{hours % 24:02}:{rest // 60:02}:{rest % 60:02}Z"

    def run_until(self, when: float) -> None:
        """Let everything happen that is due by then."""
        heap = self._heap
        while heap and heap[0][0] <= when:
            self.now, _, action = heapq.heappop(heap)
            self.steps += 1
            action()
        self.now = when


class History:
    """What happened, line by line: hashed whole, the end of it kept, all of it on demand."""

    def __init__(self, clock: Clock, *, on_line: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._on_line = on_line
        self._hash = hashlib.sha256()
        self.last: deque[str] = deque(maxlen=LINES_KEPT)

    def say(self, text: str) -> None:
        """Add one line."""
        line = f"{self._clock.steps:6} {self._clock.now:9.3f}  {text}"
        self._hash.update(line.encode() + b"\n")
        self.last.append(line)
        if self._on_line is not None:
            self._on_line(line)

    def digest(self) -> str:
        """One hash over every line so far."""
        return self._hash.hexdigest()
