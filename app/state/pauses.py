"""How long to wait until the same is tried again."""

from __future__ import annotations

MOST_DOUBLED = 32  # times: a power of a thousand is no number any more


def doubled(first: float, times: int, longest: float) -> float:
    """The pause after so many times: the first one, then twice as long each time, to the longest.

    Units: seconds.
    """
    return min(first * 2.0 ** min(max(times - 1, 0), MOST_DOUBLED), longest)
