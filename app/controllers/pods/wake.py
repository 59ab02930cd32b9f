"""Wakes pods that were rejected and fit now, by one patch: of their nominated node, or of an
annotation of ours.

kube-scheduler retries a rejected pod on an update of that pod; without one it may sit for five
minutes. Where the API server does not let us nominate pods, the annotation wakes them. Wakes are
paced by a token bucket, one per pod at a time. One that the API server does not take now is tried
again a few times, later each time: of a pod without a plan the engine has forgotten by then that it
is to be woken.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from random import Random
from typing import Protocol

import structlog

from app.dialects.corral import WAKE
from app.errors import ApiError, Conflict, Forbidden, NotFound
from app.kube.client.backoff import Backoff
from app.kube.client.deadline import answered_within
from app.kube.client.work_queue import TokenBucket, WorkQueue
from app.state.effects import Requeue

log = structlog.get_logger(__name__)

MOST_QUEUED = 65_536  # pods waiting for their turn; beyond it the oldest of a namespace is dropped
WAKE_WORKERS = 16  # patches under way at once
PATCH_SECONDS = 5.0  # one patch
RETRY_SECONDS = 1.0  # pause after the first try, doubled each time
MOST_TRIES = 5


class WakeClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def annotate_pod(
        self, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]
    ) -> None: ...

    async def nominate_pod(self, namespace: str, name: str, uid: str, node: str | None) -> None: ...


class WakeController:
    """Patches pods, namespaces taking turns, at most `per_second` of them.

    `on_outcome` gets "woken", "gone", "failed" or "dropped", once per wake taken.
    """

    def __init__(
        self,
        client: WakeClient,
        on_outcome: Callable[[str], None],
        *,
        per_second: float,
        burst: int,
        patch_seconds: float = PATCH_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._patch_seconds = patch_seconds
        rng = Random()
        self._queue = WorkQueue(
            "wake",
            self._wake,
            namespace=lambda wake: wake.namespace,
            key=lambda wake: wake.uid,
            workers=WAKE_WORKERS,
            most=most_queued,
            drops="oldest",
            bucket=TokenBucket(per_second, burst, time.monotonic()),
            backoff=lambda: Backoff(rng, retry_seconds),
        )
        # Any value that differs from the last one wakes; time keeps it so across restarts.
        self._values = itertools.count(time.time_ns() // 1_000_000)

    def take(self, wake: Requeue) -> None:
        """Queue one wake; a pod already queued keeps its place."""
        if self._queue.put(wake) is not None:
            self._on_outcome("dropped")

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _wake(self, wake: Requeue, tries: int) -> float | None:
        outcome = await self._patch(wake)
        if outcome == "again" and tries < MOST_TRIES:
            return 0.0
        self._on_outcome("failed" if outcome == "again" else outcome)
        return None

    async def _patch(self, wake: Requeue) -> str:
        """What became of the wake; "again": it may succeed later."""
        try:
            async with answered_within(self._patch_seconds):
                await self._change(wake)
        except (NotFound, Conflict):
            return "gone"  # deleted, or recreated under the same name
        except ApiError as error:
            if error.status == HTTPStatus.UNPROCESSABLE_ENTITY and wake.nominated:
                return "gone"  # it is bound meanwhile, and needs none
            log.warning("wake", pod=f"{wake.namespace}/{wake.name}", problem=repr(error))
            return "again" if error.may_pass else "failed"
        except Exception:
            log.exception("wake", pod=f"{wake.namespace}/{wake.name}")
            return "failed"
        return "woken"

    async def _change(self, wake: Requeue) -> None:
        pod = wake.namespace, wake.name, wake.uid
        if wake.nominated is not None:
            try:
                await self._client.nominate_pod(*pod, wake.nominated or None)
                return
            except Forbidden as error:  # rbac.yaml or policy.yaml is of an earlier version
                log.warning("nominate", pod=f"{wake.namespace}/{wake.name}", problem=repr(error))
        await self._client.annotate_pod(*pod, {WAKE: str(next(self._values))})
