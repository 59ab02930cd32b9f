"""Reads what is large beside the event loop, in turns with it.

    loop ──▶ read ── small ──▶ decode
               └──── large ──▶ thread: slice, turn, slice, turn … ──▶ what decode returns

A pod of 15,000 containers, which its creator alone pays for otherwise, takes more than ten
milliseconds to read. In a thread that is cut into slices (`turns.py`), between which the loop goes
on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from app.kube.core.turns import give_way

LARGE_BYTES = 2**16  # read in two milliseconds at most; few real pods have as much
# A thread that waits for the interpreter needs some 50 microseconds to wake up. A sleep of nothing
# would take the interpreter back before that.
SLEEP_SECONDS = 50e-6
FEWEST_SECONDS = 0.0005  # between two turns of the loop; a slice may be much shorter

_R = TypeVar("_R")
_T = TypeVar("_T", bound=Sized)


async def read(decode: Callable[[_T], _R], raw: _T, most_bytes: int = LARGE_BYTES) -> _R:
    """What `decode`, a pure function, makes of this. Raises: what it raises.

    `most_bytes`: of what is read at once, on the loop.
    """
    return decode(raw) if len(raw) <= most_bytes else await run(partial(decode, raw))


async def run(made: Callable[[], _R]) -> _R:
    """What a pure function makes that takes long. Raises: what it raises.

    Where this is cancelled the function ends at its next turn: the process does not wait for it.
    """
    turns = _Turns()
    try:
        return await asyncio.to_thread(_in_turns, made, turns)
    finally:
        turns.is_over = True


def _in_turns(made: Callable[[], _R], turns: _Turns) -> _R:
    give_way.set(turns.take)  # in the context of this call, which `to_thread` has copied
    return made()


class _NotAwaited(Exception):
    """What is made would be of no use."""


@dataclass(slots=True)
class _Turns:
    """Lets the loop go on, as often as it is worth it."""

    last: float = field(default_factory=time.perf_counter)
    is_over: bool = False
    """What is made is not awaited any more."""

    def take(self) -> None:
        if self.is_over:
            raise _NotAwaited
        if time.perf_counter() - self.last >= FEWEST_SECONDS:
            time.sleep(SLEEP_SECONDS)
            self.last = time.perf_counter()
