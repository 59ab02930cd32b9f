"""Wakes pods that were rejected and fit now, by patching one annotation of ours.

kube-scheduler retries a rejected pod on an update of that pod; without one it may sit for five
minutes. Wakes are paced by a token bucket, one per pod at a time; a wake that fails is not
repeated here: the engine wakes again as long as the pod has a plan and is not asked for.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from app.controllers.pace import TokenBucket
from app.dialects.corral import WAKE
from app.errors import ApiError, Conflict, NotFound
from app.state.effects import Requeue

log = structlog.get_logger(__name__)

MOST_QUEUED = 65_536  # pods waiting for their turn; beyond it the oldest is forgotten
WAKE_WORKERS = 16  # patches under way at once
PATCH_SECONDS = 5.0  # one patch; a wake that takes longer has missed its moment


class WakeClient(Protocol):
    """What this controller needs of `app.kube.client.Client`."""

    async def annotate_pod(
        self, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]
    ) -> None: ...


class WakeController:
    """Patches pods in the order their wakes came, at most `per_second` of them.

    `on_outcome` is told "woken", "gone", "failed" or "dropped", once per wake taken.
    """

    def __init__(
        self,
        client: WakeClient,
        on_outcome: Callable[[str], None],
        *,
        per_second: float,
        burst: int,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._bucket = TokenBucket(per_second, burst, time.monotonic())
        self._most_queued = most_queued
        self._queued: OrderedDict[str, Requeue] = OrderedDict()
        self._arrived = asyncio.Event()
        # Any value that differs from the last one wakes; time keeps it so across restarts.
        self._values = itertools.count(time.time_ns() // 1_000_000)

    def take(self, wake: Requeue) -> None:
        """Queue one wake; a pod already queued keeps its place."""
        if wake.uid in self._queued:
            return
        if len(self._queued) >= self._most_queued:
            self._queued.popitem(last=False)
            self._on_outcome("dropped")
        self._queued[wake.uid] = wake
        self._arrived.set()

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        async with asyncio.TaskGroup() as workers:
            for _ in range(WAKE_WORKERS):
                workers.create_task(self._work())

    async def _work(self) -> None:
        while True:
            if not self._queued:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            await asyncio.sleep(self._bucket.reserve(time.monotonic()))
            if not self._queued:
                continue  # another worker took it meanwhile; one token is lost
            _, wake = self._queued.popitem(last=False)
            self._on_outcome(await self._patch(wake))

    async def _patch(self, wake: Requeue) -> str:
        value = {WAKE: str(next(self._values))}
        try:
            async with asyncio.timeout(PATCH_SECONDS):
                await self._client.annotate_pod(wake.namespace, wake.name, wake.uid, value)
        except (NotFound, Conflict):
            return "gone"  # deleted, or recreated under the same name
        except (ApiError, TimeoutError) as error:
            log.warning("wake", pod=f"{wake.namespace}/{wake.name}", problem=repr(error))
            return "failed"
        except Exception:
            log.exception("wake", pod=f"{wake.namespace}/{wake.name}")
            return "failed"
        return "woken"
