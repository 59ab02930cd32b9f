"""Wakes pods that were rejected and fit now, by one patch: of their nominated node, or of an
annotation of ours.

kube-scheduler retries a rejected pod on an update of that pod; without one it may sit for five
minutes. Wakes are paced by a token bucket, one per pod at a time. One that the API server does not
take now is tried again a few times, later each time: of a pod without a plan the engine has
forgotten by then that it is to be woken.

Where the API server forbids nominating a pod, the annotation wakes all pods of its namespace for a
while (`app/kube/client/queue/refusals.py`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from random import Random
from typing import Protocol

import structlog

from app.dialects.corral import NOMINATED, WAKE
from app.errors import ApiError, Conflict, Forbidden, NotFound
from app.kube.client.backoff import Backoff, asked_pause
from app.kube.client.deadline import answered_within
from app.kube.client.queue.problems import Problems
from app.kube.client.queue.refusals import Refusals
from app.kube.client.queue.work_queue import TokenBucket, WorkQueue
from app.state.effects import Requeue

log = structlog.get_logger(__name__)

MOST_QUEUED = 65_536  # pods waiting for their turn; beyond it the oldest of a namespace is dropped
WAKE_WORKERS = 16  # patches under way at once
PATCH_SECONDS = 5.0  # one patch
RETRY_SECONDS = 1.0  # pause after the first try, doubled each time
MOST_TRIES = 5
FORBIDDEN_SECONDS = 600.0  # at most without a nomination in a namespace, once one was forbidden
MISSING = "patch on pods/status in ClusterRole corral, or nominatedNodeName in policy.yaml"


class WakeClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def annotate_pod(
        self, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]
    ) -> None: ...

    async def nominate_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str | None,
        annotations: Mapping[str, str | None],
    ) -> None: ...


class WakeController:
    """Patches pods, namespaces taking turns, at most `per_second` of them.

    `on_outcome` gets "woken", "not_nominated" (woken by the annotation, since it is forbidden to
    nominate the pod), "gone", "failed" or "dropped", once per wake taken. `on_forbidden` gets the
    namespace in which nominating has just been forbidden, and for how many seconds none is tried.
    """

    def __init__(
        self,
        client: WakeClient,
        on_outcome: Callable[[str], None],
        on_forbidden: Callable[[str, float], None] = lambda namespace, seconds: None,
        *,
        per_second: float,
        burst: int,
        forbidden_seconds: float = FORBIDDEN_SECONDS,
        patch_seconds: float = PATCH_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._on_forbidden = on_forbidden
        self._patch_seconds = patch_seconds
        self._forbidden_seconds = forbidden_seconds
        self._forbidden = Refusals(forbidden_seconds)
        self._said_at = -forbidden_seconds  # when the log was last told
        self._problems = Problems("wake")
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
        if not isinstance(outcome, str):
            if tries < MOST_TRIES:
                return outcome
            outcome = "failed"
        self._on_outcome(outcome)
        return None

    async def _patch(self, wake: Requeue) -> str | float:
        """What became of the wake, or how many seconds to wait at least before the next try."""
        is_nominated = wake.nominated is not None and not self._forbidden.holds(wake.namespace)
        try:
            async with answered_within(self._patch_seconds):
                await self._change(wake, is_nominated=is_nominated)
        except (NotFound, Conflict):
            return "gone"  # deleted, or recreated under the same name
        except Forbidden as error:
            if not is_nominated:
                return self._failed(wake, error)
            self._forbid(wake.namespace, error)
            return 0.0  # by the annotation
        except ApiError as error:
            if error.status == HTTPStatus.UNPROCESSABLE_ENTITY and is_nominated and wake.nominated:
                return "gone"  # it is bound meanwhile, and needs none
            return self._failed(wake, error)
        except Exception:
            log.exception("wake", pod=f"{wake.namespace}/{wake.name}")
            return "failed"
        return "woken" if is_nominated or wake.nominated is None else "not_nominated"

    def _failed(self, wake: Requeue, error: ApiError) -> str | float:
        self._problems.note(error, pod=f"{wake.namespace}/{wake.name}")
        return asked_pause(error) if error.may_pass else "failed"

    async def _change(self, wake: Requeue, *, is_nominated: bool) -> None:
        """One write, of one or the other."""
        pod = wake.namespace, wake.name, wake.uid
        if is_nominated:
            node = wake.nominated or None
            await self._client.nominate_pod(*pod, node, {NOMINATED: node})
        else:
            await self._client.annotate_pod(*pod, {WAKE: str(next(self._values))})

    def _forbid(self, namespace: str, error: Forbidden) -> None:
        """Nominate no pods of a namespace for a while; the log is told now and then."""
        seconds = self._forbidden.note(namespace)
        if not seconds:
            return
        now = time.monotonic()
        if now >= self._said_at + self._forbidden_seconds:
            self._said_at = now
            log.warning(
                "pods are not nominated",
                namespace=namespace,
                missing=MISSING,
                seconds=seconds,
                problem=repr(error),
            )
        self._on_forbidden(namespace, seconds)
