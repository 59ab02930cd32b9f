"""How long the API server may take to answer: an answer that comes later is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.errors import Unreachable


@asynccontextmanager
async def answered_within(seconds: float) -> AsyncIterator[None]:
    """Limit how long the requests inside may take, with all they wait for before they are sent.

    A cancellation and a time limit around it pass through, and so does a TimeoutError that was
    raised inside.
    Raises: Unreachable when the time is over; whether the requests took effect is unknown.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise Unreachable(f"no answer within {seconds:g} s") from error
