"""Virtual time for a whole program on one event loop: where all of it waits, no real time passes.

The shipped program reads `time.monotonic` and takes no clock, so that function is exchanged while
a coroutine runs. Time stands still while there is work: a callback that is due, bytes on a socket,
a search in a thread. Else it jumps to the next timer.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

Answer = TypeVar("Answer")
Ready = list[tuple[selectors.SelectorKey, int]]

LOOKS = 3  # at all sockets; what is sent on the loopback is there at once
THREAD_SECONDS = 0.05  # real ones, between two looks whether a thread is done


class _Threads(ThreadPoolExecutor):
    """The loop's threads, and how many of them work."""

    busy = 0

    def submit(self, call: Callable[..., Answer], /, *args: Any, **named: Any) -> Future[Answer]:
        self.busy += 1
        future = super().submit(call, *args, **named)
        future.add_done_callback(self._done)
        return future

    def _done(self, future: Future[Any]) -> None:
        self.busy -= 1


class _Selector(selectors.DefaultSelector):
    """Tells the loop what is ready; where nothing is, the time of its next timer has come."""

    def __init__(self, threads: _Threads) -> None:
        super().__init__()
        self.threads = threads
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> Ready:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        while self.threads.busy and not ready:
            ready = super().select(THREAD_SECONDS)
        for _ in range(LOOKS):
            ready = ready or super().select(0)
        if not ready and timeout is not None:
            self.now += timeout
        return ready


def run(main: Coroutine[Any, Any, Answer]) -> Answer:
    """What the coroutine returns."""
    threads = _Threads()
    selector = _Selector(threads)

    def made() -> asyncio.AbstractEventLoop:
        loop = asyncio.SelectorEventLoop(selector)
        loop.set_default_executor(threads)
        return loop

    with _clock(lambda: selector.now), asyncio.Runner(loop_factory=made) as runner:
        return runner.run(main)


@contextmanager
def _clock(now: Callable[[], float]) -> Iterator[None]:
    real, time.monotonic = time.monotonic, now
    try:
        yield
    finally:
        time.monotonic = real
