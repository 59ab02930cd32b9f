"""What is large is read beside the event loop, which has its turns meanwhile."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from app.kube.core import aside
from app.kube.core.turns import give_way, turn

TRIES = 1_000_000


@contextmanager
def threads_that_only_change_by_themselves() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1_000.0)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize(("too_many", "is_beside"), [(0, False), (1, True)])
async def test_what_is_larger_than_the_bound_is_read_in_a_thread(too_many, is_beside):
    for most in (aside.LARGE_BYTES, 10):
        where = await aside.read(lambda _: threading.get_ident(), b"x" * (most + too_many), most)
        assert (where != threading.get_ident()) is is_beside


async def test_what_is_small_has_no_turns_and_what_was_large_leaves_none_behind():
    before = give_way.get()
    assert await aside.read(lambda _: give_way.get(), b"") is before
    assert await aside.read(lambda _: give_way.get(), b"x", 0) is not before
    assert give_way.get() is before


async def test_the_loop_goes_on_at_a_turn_of_what_is_read_beside_it():
    """Python itself would not change threads here before the reading has ended."""
    went_on = asyncio.Event()

    def read(_: bytes) -> bool:
        loop.call_soon_threadsafe(went_on.set)
        for _try in range(TRIES):
            turn()
            if went_on.is_set():
                return True
        return False

    loop = asyncio.get_running_loop()
    with threads_that_only_change_by_themselves():
        assert await aside.read(read, b"x", 0)


async def test_what_is_read_beside_the_loop_ends_when_it_is_cancelled():
    began, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def read(_: bytes) -> None:
        loop.call_soon_threadsafe(began.set)
        try:
            while True:
                turn()
        finally:
            ended.set()

    reading = asyncio.create_task(aside.read(read, b"x", 0))
    await began.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await asyncio.to_thread(ended.wait, 10.0)
