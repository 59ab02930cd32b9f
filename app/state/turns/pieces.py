"""A long list, a piece at a time, between which others have their turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def pieces(every: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    """All of them in order, so many at a time."""
    for first in range(0, len(every), most):
        yield every[first : first + most]
