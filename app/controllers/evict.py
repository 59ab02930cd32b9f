"""Removes pods where a policy says so: evictions, which budgets may refuse, and plain deletions.

    Evict, Delete ──queue──▶ token ──▶ POST eviction, DELETE ──▶ done
                      ▲                   ├ 404, 409 (another uid) ──▶ gone
                      └──── pause ◀── 429 ┤
                                          └ anything else, or 429 for too long ──▶ failed

429 means that a disruption budget says no for now, or that the API server is busy. The pod is
asked for again a few times, later each time; then the engine, which still sees the pod, decides.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import structlog

from app.controllers.pace import TokenBucket, jittered
from app.errors import ApiError, Conflict, NotFound, TooManyRequests
from app.state.effects import Delete, Evict

log = structlog.get_logger(__name__)

MOST_QUEUED = 16_384  # pods waiting for their turn
WRITE_SECONDS = 10.0  # one eviction; the API server retries conflicts for that long itself
RETRY_SECONDS = 5.0  # pause after the first 429 that names none, doubled each time …
LONGEST_PAUSE = 60.0  # … up to this
MOST_TRIES = 5

Removal = Evict | Delete


class EvictClient(Protocol):
    """What this controller needs of `app.kube.client.Client`."""

    async def evict_pod(self, namespace: str, name: str, uid: str) -> None: ...

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None: ...


class EvictController:
    """Removes one pod after the other, at most `per_second` of them.

    `on_outcome(removal, outcome)` is told "done", "gone", "failed" or "dropped", once per removal
    taken. A pod that waits for its turn or for its next try is not taken again.
    """

    def __init__(
        self,
        client: EvictClient,
        on_outcome: Callable[[Removal, str], None],
        *,
        per_second: float,
        retry_seconds: float = RETRY_SECONDS,
        most_tries: int = MOST_TRIES,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._bucket = TokenBucket(per_second, max(1.0, per_second), time.monotonic())
        self._retry_seconds = retry_seconds
        self._most_tries = most_tries
        self._most_queued = most_queued
        self._tries: dict[str, int] = {}  # uid -> how often it was asked for; who is here at all
        self._queued: deque[Removal] = deque()
        self._arrived = asyncio.Event()

    def take(self, removal: Removal) -> None:
        """Queue one removal; a pod that is here already is not queued again."""
        if removal.uid in self._tries:
            return
        if len(self._tries) >= self._most_queued:
            self._on_outcome(removal, "dropped")
            return
        self._tries[removal.uid] = 0
        self._queue(removal)

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        async with asyncio.TaskGroup() as pauses:
            while True:
                if not self._queued:
                    self._arrived.clear()
                    await self._arrived.wait()
                await asyncio.sleep(self._bucket.reserve(time.monotonic()))
                removal = self._queued.popleft()
                outcome = await self._removed(removal)
                if isinstance(outcome, str):
                    del self._tries[removal.uid]
                    self._on_outcome(removal, outcome)
                else:
                    pauses.create_task(self._later(removal, outcome))

    def _queue(self, removal: Removal) -> None:
        self._queued.append(removal)
        self._arrived.set()

    async def _later(self, removal: Removal, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._queue(removal)

    async def _removed(self, removal: Removal) -> str | float:
        """What became of the pod, or in how many seconds to ask for it again."""
        where = f"{removal.namespace}/{removal.name}"
        self._tries[removal.uid] += 1
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._ask(removal)
        except (NotFound, Conflict):
            return "gone"  # deleted, or recreated under the same name
        except TooManyRequests as error:
            if self._tries[removal.uid] < self._most_tries:
                return self._pause(error, self._tries[removal.uid])
            log.warning("remove", pod=where, tries=self._most_tries, problem=repr(error))
            return "failed"
        except (ApiError, TimeoutError) as error:
            log.warning("remove", pod=where, problem=repr(error))
            return "failed"
        except Exception:
            log.exception("remove", pod=where)
            return "failed"
        log.info("removed", pod=where, by=type(removal).__name__.lower(), why=removal.sentence)
        return "done"

    async def _ask(self, removal: Removal) -> None:
        write = self._client.evict_pod if isinstance(removal, Evict) else self._client.delete_pod
        await write(removal.namespace, removal.name, removal.uid)

    def _pause(self, error: TooManyRequests, tries: int) -> float:
        own = min(self._retry_seconds * 2.0 ** (tries - 1), LONGEST_PAUSE)
        return min(error.retry_after or 0.0, LONGEST_PAUSE) + jittered(own)
