"""How fast we may write: a token bucket, and jittered pauses between tries."""

from __future__ import annotations

import random


class TokenBucket:
    """Grants `per_second` tokens on average, `burst` at once.

    Units: tokens, seconds; `now` is monotonic.
    """

    def __init__(self, per_second: float, burst: float, now: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._since = now

    def reserve(self, now: float) -> float:
        """Take the next token; how long to wait until it may be used, 0.0 for at once."""
        grown = self._tokens + (now - self._since) * self._per_second
        self._tokens = min(self._burst, grown) - 1
        self._since = now
        return max(0.0, -self._tokens / self._per_second)


def jittered(seconds: float) -> float:
    """Between half of a pause and the whole: many writers must not come back in step."""
    return seconds * random.uniform(0.5, 1.0)
