"""How long to wait before asking again, so that trouble at the API server is never made worse."""

from __future__ import annotations

from random import Random

from app.errors import ApiError

FIRST_SECONDS = 1.0  # ceiling of the first pause; a pause is between half its ceiling and all of it
LONGEST_SECONDS = 8.0  # gangs have to be whole within 10 s of the API server's return
LONGEST_ASKED_SECONDS = 60.0  # of a pause that the API server asks for before a write


def asked_pause(error: ApiError) -> float:
    """How many seconds the API server asks to wait before the same write; 0.0: it does not say."""
    return min(error.retry_after or 0.0, LONGEST_ASKED_SECONDS)


class Backoff:
    """Pauses that double: within 0.5-1 s, 1-2 s, 2-4 s, then 4-8 s.

    The lower half is certain, which full jitter does not give: at most five attempts fall into
    the first ten seconds, whatever the draws. The upper half keeps replicas apart.
    """

    def __init__(self, rng: Random, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS):
        self._rng = rng
        self._first = first
        self._longest = longest
        self._ceiling = first

    def reset(self) -> None:
        """Start again from the shortest pause."""
        self._ceiling = self._first

    def pause(self) -> float:
        """Return the next pause in seconds and make the one after it longer."""
        ceiling = self._ceiling
        self._ceiling = min(2 * ceiling, self._longest)
        return self._rng.uniform(ceiling / 2, ceiling)
