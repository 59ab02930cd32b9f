"""The queue in front of every kind of write: what waits for its turn, and the workers that take it.

    put ──▶ waiting, one item per key ──token──▶ worker ──▶ handle ──▶ None: done
                         ▲                                    │
                         └──── pause, longer each time ◀──────┘ seconds: try again, no sooner

Namespaces take turns. Those of one namespace are taken in the order they came; one that is tried
again goes to the end of its line. When the queue is full, the namespace with the most items gives
one up: a tenant that floods a queue delays others by one item each, and crowds none out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from random import Random
from typing import Generic, Literal, TypeVar

import structlog

from app.fair_queue import FairQueue, Shares
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

    def stop_pausing(self) -> None:
        """Do not bring it back."""
        if self.timer is not None:
            self.timer.cancel()


class WorkQueue(Generic[_Item]):
    """At most `most` items wait or pause; at most `workers` are handled side by side.

    namespace: whose item it is; namespaces take turns.
    key: an item takes the place of one with the same key that still waits. One that is being
        handled has left the queue, so the next with its key is queued behind it, and may be
        handled beside it: from then on the older one is not tried again. None: every item has a
        key of its own.
    drops: which item of a namespace is left out when the queue is full.
    bucket: paces the tries; none: they are not paced.
    backoff: the pauses between the tries of one item.
    """

    def __init__(
        self,
        name: str,
        handle: Handle[_Item],
        *,
        namespace: Callable[[_Item], str],
        workers: int,
        most: int,
        key: Callable[[_Item], Hashable] | None = None,
        drops: Literal["newest", "oldest"] = "newest",
        bucket: TokenBucket | None = None,
        backoff: Callable[[], Backoff] = lambda: Backoff(Random()),
    ) -> None:
        self._name = name
        self._handle = handle
        self._namespace = namespace
        self._key = key
        self._workers = workers
        self._most = most
        self._drops_oldest = drops == "oldest"
        self._bucket = bucket
        self._backoff = backoff
        self._shares = Shares()  # of both
        self._waiting: FairQueue[Hashable, _Entry[_Item]] = FairQueue(self._shares)
        self._pausing: FairQueue[Hashable, _Entry[_Item]] = FairQueue(self._shares)
        self._ready = asyncio.Semaphore(0)  # one permit per waiting item that no worker is after
        self._under_way: dict[tuple[str, Hashable], _Entry[_Item]] = {}  # the newest of each key
        self._handled = 0  # now, of all keys
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        """How many items wait or pause."""
        return len(self._waiting) + len(self._pausing)

    def put(self, item: _Item) -> _Item | None:
        """Queue an item; which one is dropped for it, or itself, where the queue is full."""
        namespace, key = self._place_of(item)
        known = self._known(namespace, key)
        if known is not None:
            known.item = item
            return None
        if len(self) < self._most:
            self._append(namespace, key, _Entry(item))
            return None
        giving = self._shares.to_leave_out(namespace)
        if giving == namespace and not (self._drops_oldest and self._waiting.has(namespace)):
            return item
        has_permit = self._waiting.has(giving)  # which the new one inherits
        left_out = self._leave_out(giving)
        self._append(namespace, key, _Entry(item), has_permit=has_permit)
        return left_out

    def awaits(self, item: _Item) -> bool:
        """Whether an item with the key of this one waits or pauses."""
        return self._known(*self._place_of(item)) is not None

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self._workers):
                    workers.create_task(self._work())
        finally:
            while self._pausing:
                _, _, entry = self._pausing.take()
                entry.stop_pausing()

    async def wait_idle(self) -> None:
        """Return once nothing waits, pauses or is being handled. Needs `run` to be running."""
        await self._idle.wait()

    async def _work(self) -> None:
        while True:
            await self._ready.acquire()
            if self._bucket is not None:
                await asyncio.sleep(self._bucket.reserve(time.monotonic()))
            namespace, key, entry = self._waiting.take()
            self._under_way[namespace, key] = entry
            self._handled += 1
            entry.tries += 1
            try:
                at_least = await self._handle(entry.item, entry.tries)
            except Exception:  # one item that trips a bug of ours must not stop the others
                log.exception("work", queue=self._name)
                at_least = None
            self._handled -= 1
            is_newest = self._under_way.get((namespace, key)) is entry
            if is_newest:
                del self._under_way[namespace, key]
            if at_least is not None and is_newest and self._known(namespace, key) is None:
                self._pause(namespace, key, entry, at_least)
            elif not self._handled and not len(self):
                self._idle.set()

    def _place_of(self, item: _Item) -> tuple[str, Hashable]:
        return self._namespace(item), self._key(item) if self._key is not None else object()

    def _known(self, namespace: str, key: Hashable) -> _Entry[_Item] | None:
        return self._waiting.get(namespace, key) or self._pausing.get(namespace, key)

    def _append(
        self, namespace: str, key: Hashable, entry: _Entry[_Item], *, has_permit: bool = False
    ) -> None:
        self._waiting.put(namespace, key, entry)
        self._idle.clear()
        if not has_permit:
            self._ready.release()

    def _leave_out(self, namespace: str) -> _Item:
        """Drop an item of the namespace: one that waits if there is any."""
        queue = self._waiting if self._waiting.has(namespace) else self._pausing
        _, entry = queue.drop(namespace, is_oldest=self._drops_oldest)
        entry.stop_pausing()
        return entry.item

    def _pause(self, namespace: str, key: Hashable, entry: _Entry[_Item], at_least: float) -> None:
        entry.backoff = entry.backoff or self._backoff()
        seconds = at_least + entry.backoff.pause()
        self._pausing.put(namespace, key, entry)
        loop = asyncio.get_running_loop()
        entry.timer = loop.call_later(seconds, self._resume, namespace, key)

    def _resume(self, namespace: str, key: Hashable) -> None:
        entry = self._pausing.remove(namespace, key)
        assert entry is not None
        self._append(namespace, key, entry)
