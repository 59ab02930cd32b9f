"""Something that runs until it is cancelled, while a block lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol


class Runs(Protocol):
    """A queue or a controller."""

    def run(self) -> Coroutine[Any, Any, None]: ...


@asynccontextmanager
async def running(queue: Runs) -> AsyncIterator[None]:
    """Run it beside the block; it is cancelled, and has ended, when the block is left."""
    task = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
