"""Reads what is large beside the event loop.

A pod of 15,000 containers, which its creator alone pays for otherwise, takes more than ten
milliseconds to read. In a thread that takes turns with the loop, which goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sized
from typing import TypeVar

LARGE_BYTES = 2**18  # read in a few milliseconds at most; real pods have a tenth of it

_R = TypeVar("_R")
_T = TypeVar("_T", bound=Sized)


async def read(decode: Callable[[_T], _R], raw: _T) -> _R:
    """What `decode`, a pure function, makes of this. Raises: what it raises."""
    return decode(raw) if len(raw) <= LARGE_BYTES else await asyncio.to_thread(decode, raw)
