"""Caches of what is read from texts of users: each bounded in bytes, and so all of them together.

    arguments ──▶ kept? ──▶ the result that stands for all equal ones
                    └─ no ──▶ read ──▶ light ──▶ kept
                                  └──▶ heavy ──▶ read anew each time

`functools.lru_cache` bounds entries alone: 4,096 affinities of 1 MB are 4 GB. Here a result that
weighs more than the bound is handed out and forgotten, so that a cache keeps at most `entries`
times `most_bytes`. What is kept is found as fast as by `lru_cache`: only a new result is weighed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, wraps
from sys import getsizeof
from typing import Any, ParamSpec, TypeVar

import msgspec

KIB = 1024

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Bound:
    """What one cache may keep; `now` counts its entries."""

    name: str
    entries: int
    most_bytes: int
    now: Callable[[], int]


BOUNDS: list[Bound] = []
"""Of every cache there is; a test adds them up."""


class _Heavy(Exception):
    """Carries a result past the cache, which keeps none where an exception is raised."""

    def __init__(self, result: object) -> None:
        self.result = result


def cached(entries: int, most_bytes: int) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Keep the results of a pure function that weigh, with its arguments, at most so much.

    Raises, when called: what the function raises.
    """

    def decorate(read: Callable[_P, _T]) -> Callable[_P, _T]:
        @lru_cache(maxsize=entries)
        def light(*args: Any, **named: Any) -> _T:
            result = read(*args, **named)
            if weight((args, named, result), most_bytes) > most_bytes:
                raise _Heavy(result)
            return result

        @wraps(read)
        def found(*args: _P.args, **named: _P.kwargs) -> _T:
            try:
                return light(*args, **named)  # type: ignore[arg-type] # hashable, as of lru_cache
            except _Heavy as heavy:
                return heavy.result  # type: ignore[return-value]

        name = f"{read.__module__}.{read.__qualname__}"
        BOUNDS.append(Bound(name, entries, most_bytes, lambda: light.cache_info().currsize))
        return found

    return decorate


def weight(thing: object, most_bytes: int) -> int:
    """The bytes of a value with all that it is made of; not counted further than past the most."""
    total = 0
    left = [thing]
    seen: set[int] = set()
    while left and total <= most_bytes:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        total += getsizeof(each)
        if isinstance(each, str):
            continue  # as most are
        if isinstance(each, (tuple, list, frozenset, set)):
            left.extend(each)
        elif isinstance(each, dict):
            left.extend(each.keys())
            left.extend(each.values())
        elif isinstance(each, msgspec.Struct):
            left.extend(msgspec.structs.astuple(each))
        elif is_dataclass(each):
            left.extend(getattr(each, one.name) for one in fields(each))
    return total
