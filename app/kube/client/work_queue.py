"""The queue in front of every kind of write: what waits for its turn, and the workers that take it.

    put ──▶ waiting, one item per key ──token──▶ worker ──▶ handle ──▶ None: done
                         ▲                                    │
                         └──── pause, longer each time ◀──────┘ seconds: try again, no sooner

Items are taken in the order they came; one that is tried again goes to the end.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from random import Random
from typing import Generic, Literal, TypeVar

import structlog

from app.kube.client.backoff import Backoff

log = structlog.get_logger(__name__)

_Item = TypeVar("_Item")

Handle = Callable[[_Item, int], Awaitable[float | None]]
"""Carries out one item. The number counts the tries of it, from 1. Returns None once there is
nothing left to do, or how many seconds to wait at least before the next try."""


class TokenBucket:
    """Grants `per_second` tokens on average, `burst` at once.

    Units: tokens, seconds; `now` is monotonic.
    """

    def __init__(self, per_second: float, burst: float, now: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._since = now

    def reserve(self, now: float) -> float:
        """Take the next token; how long to wait until it may be used, 0.0 for at once."""
        grown = self._tokens + (now - self._since) * self._per_second
        self._tokens = min(self._burst, grown) - 1
        self._since = now
        return max(0.0, -self._tokens / self._per_second)


@dataclass(slots=True, eq=False)
class _Entry(Generic[_Item]):
    """An item on its way; while it pauses, `timer` brings it back."""

    item: _Item
    tries: int = 0
    backoff: Backoff | None = None
    timer: asyncio.TimerHandle | None = None


class WorkQueue(Generic[_Item]):
    """At most `most` items wait or pause; at most `workers` are handled side by side.

    key: an item takes the place of one with the same key that still waits. One that is being
        handled has left the queue, so the next with its key is queued behind it. None: every
        item has a key of its own.
    drops: which item is left out when the queue is full.
    bucket: paces the tries; none: they are not paced.
    backoff: the pauses between the tries of one item.
    """

    def __init__(
        self,
        name: str,
        handle: Handle[_Item],
        *,
        workers: int,
        most: int,
        key: Callable[[_Item], Hashable] | None = None,
        drops: Literal["newest", "oldest"] = "newest",
        bucket: TokenBucket | None = None,
        backoff: Callable[[], Backoff] = lambda: Backoff(Random()),
    ) -> None:
        self._name = name
        self._handle = handle
        self._key = key
        self._workers = workers
        self._most = most
        self._drops = drops
        self._bucket = bucket
        self._backoff = backoff
        self._waiting: OrderedDict[Hashable, _Entry[_Item]] = OrderedDict()
        self._pausing: dict[Hashable, _Entry[_Item]] = {}
        self._ready = asyncio.Semaphore(0)  # one permit per waiting item that no worker is after
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        """How many items wait or pause."""
        return len(self._waiting) + len(self._pausing)

    def put(self, item: _Item) -> _Item | None:
        """Queue an item; which one is dropped for it, or itself, where the queue is full."""
        key = self._key(item) if self._key is not None else object()
        known = self._waiting.get(key) or self._pausing.get(key)
        if known is not None:
            known.item = item
            return None
        if len(self) < self._most:
            self._append(key, _Entry(item))
            return None
        if self._drops == "newest" or not self._waiting:
            return item
        _, oldest = self._waiting.popitem(last=False)
        self._waiting[key] = _Entry(item)  # with the permit of the oldest
        return oldest.item

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self._workers):
                    workers.create_task(self._work())
        finally:
            for entry in self._pausing.values():
                if entry.timer is not None:
                    entry.timer.cancel()

    async def wait_idle(self) -> None:
        """Return once nothing waits, pauses or is being handled. Needs `run` to be running."""
        await self._idle.wait()

    async def _work(self) -> None:
        while True:
            await self._ready.acquire()
            if self._bucket is not None:
                await asyncio.sleep(self._bucket.reserve(time.monotonic()))
            key, entry = self._waiting.popitem(last=False)
            self._under_way += 1
            entry.tries += 1
            try:
                at_least = await self._handle(entry.item, entry.tries)
            except Exception:  # one item that trips a bug of ours must not stop the others
                log.exception("work", queue=self._name)
                at_least = None
            self._under_way -= 1
            if at_least is not None and key not in self._waiting:
                self._pause(key, entry, at_least)
            elif not self._under_way and not len(self):
                self._idle.set()

    def _append(self, key: Hashable, entry: _Entry[_Item]) -> None:
        self._waiting[key] = entry
        self._idle.clear()
        self._ready.release()

    def _pause(self, key: Hashable, entry: _Entry[_Item], at_least: float) -> None:
        entry.backoff = entry.backoff or self._backoff()
        seconds = at_least + entry.backoff.pause()
        self._pausing[key] = entry
        entry.timer = asyncio.get_running_loop().call_later(seconds, self._resume, key)

    def _resume(self, key: Hashable) -> None:
        entry = self._pausing.pop(key)
        self._append(key, entry)
