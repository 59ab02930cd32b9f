"""Waiting for something to become true, never longer than agreed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def until(is_true: Callable[[], object], seconds: float = 5.0) -> None:
    """Return as soon as `is_true()`; fail when the time is over."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"not true within {seconds} s"
        await asyncio.sleep(0.002)
