"""Numbers that no pod of a pod set has: it counts from elsewhere, or some of them have ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gaps:
    """Spans of numbers, in order and apart from each other."""

    firsts: tuple[int, ...] = ()
    lasts: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    """How many numbers the spans before each have."""

    @classmethod
    def of(cls, spans: Iterable[tuple[int, int]]) -> Gaps:
        """The gaps at these spans, first and last number of each, in any order."""
        firsts: list[int] = []
        lasts: list[int] = []
        before: list[int] = []
        for first, last in sorted(spans):
            if lasts and first <= lasts[-1] + 1:
                lasts[-1] = max(lasts[-1], last)
            else:
                before.append(before[-1] + lasts[-1] - firsts[-1] + 1 if before else 0)
                firsts.append(first)
                lasts.append(last)
        return cls(tuple(firsts), tuple(lasts), tuple(before))

    def below(self, number: int) -> int:
        """How many of the numbers below this one no pod has."""
        at = bisect_right(self.firsts, number - 1) - 1
        return (
            0 if at < 0 else self.before[at] + min(number - 1, self.lasts[at]) - self.firsts[at] + 1
        )

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.firsts, number) - 1
        return at >= 0 and number <= self.lasts[at]

    def numbers(self, first: int) -> Iterator[int]:
        """Those that pods have, from this one on, without end."""
        for begin, end in zip(self.firsts, self.lasts, strict=True):
            yield from range(first, begin)
            first = max(first, end + 1)
        while True:
            yield first
            first += 1


NO_GAPS = Gaps()
