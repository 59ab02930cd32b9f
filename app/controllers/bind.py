"""Binds pods: POSTs the Binding, reads back whatever is in doubt, and reports one outcome each.

    Bind ──queue──▶ workers ──POST──▶ 201 ─────────────────────────────────▶ Bound
                               ├ 404, 403, 422 … ──────────────────────────▶ BindFailed
                               ├ 429, 5xx, no answer ──pause──▶ POST again, then as 409
                               └ 409 ──GET──▶ on our node ─────────────────▶ Bound
                                         └──▶ gone, on another node, unbound ▶ BindFailed

A success is only ever reported after the API server confirmed it: kube-scheduler never forgets
an assumed pod. The second POST needs no look beforehand: its precondition is the pod's uid, and
if the first one did take effect the answer is a 409 that the GET explains. A failing bind costs
at most three calls and always ends in knowledge, unless the API server stops answering.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol

import structlog

from app.errors import (
    ApiError,
    Conflict,
    CorralError,
    NotFound,
    NotLeading,
    TooManyRequests,
    Unreachable,
)
from app.kube.client.backoff import Backoff
from app.kube.client.work_queue import WorkQueue
from app.kube.core.objects import PodRecord
from app.state.effects import Bind, BindFailed, BindOutcome, Bound

log = structlog.get_logger(__name__)

MOST_QUEUED = 16_384  # as many as there can be held /bind requests
RETRY_SECONDS = 0.5  # pause before the second POST where the server names none


class BindClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def bind(
        self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]
    ) -> None: ...

    async def get_pod(self, namespace: str, name: str) -> PodRecord | None: ...


class BindController:
    """Runs binds side by side and calls `on_outcome(bind, outcome, seconds)` once for each."""

    def __init__(
        self,
        client: BindClient,
        on_outcome: Callable[[Bind, BindOutcome, float], None],
        *,
        concurrency: int,
        bind_seconds: float,
        retry_seconds: float = RETRY_SECONDS,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._bind_seconds = bind_seconds
        self._retry_seconds = retry_seconds
        self._call_seconds = bind_seconds / 3  # a bind is at most three calls
        self._rng = Random()
        # One that is asked for again while it waits, since kube-scheduler gave up on its first
        # request, has one outcome for both.
        self._queue = WorkQueue(
            "bind",
            self._carry_out,
            namespace=lambda bind: bind.namespace,
            key=lambda bind: bind,
            workers=concurrency,
            most=most_queued,
        )

    async def wait_idle(self) -> None:
        """Return once every bind taken so far has its outcome. Needs `run` to be running."""
        await self._queue.wait_idle()

    def take(self, bind: Bind) -> None:
        """Queue one bind; its outcome always comes later, never from inside this call."""
        left_out = self._queue.put(bind)
        if left_out is not None:
            failed = BindFailed("too many bindings are under way")
            asyncio.get_running_loop().call_soon(self._on_outcome, left_out, failed, 0.0)

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _carry_out(self, bind: Bind, _tries: int) -> None:
        began = time.monotonic()
        try:
            outcome = await self._bound_in_time(bind)
        except Exception as error:
            log.exception("bind", pod=f"{bind.namespace}/{bind.name}")
            outcome = BindFailed(f"binding failed: {type(error).__name__}")
        self._on_outcome(bind, outcome, time.monotonic() - began)

    async def _bound_in_time(self, bind: Bind) -> BindOutcome:
        try:
            async with asyncio.timeout(self._bind_seconds):
                return await self._bind(bind)
        except TimeoutError:
            return BindFailed("the API server did not confirm the binding in time")

    async def _bind(self, bind: Bind) -> BindOutcome:
        """One bind with its one retry and its one look back. See the picture above."""
        failure = await self._post(bind)
        if failure is not None and failure.may_pass:
            await asyncio.sleep(self._pause(failure))
            failure = await self._post(bind)
        if failure is None:
            return Bound()
        if isinstance(failure, NotFound):
            return BindFailed("the pod is gone", is_gone=True)
        if isinstance(failure, Conflict | NotLeading) or (
            failure.may_pass and not isinstance(failure, TooManyRequests)
        ):  # NotLeading: a POST before it may have taken effect
            return await self._seen(bind, failure)
        return BindFailed(_refused(failure))

    def _pause(self, failure: ApiError) -> float:
        """Seconds until the second POST: what the server asks for, as far as there is time."""
        asked = min(failure.retry_after or 0.0, self._call_seconds)
        return asked + Backoff(self._rng, self._retry_seconds).pause()

    async def _post(self, bind: Bind) -> ApiError | None:
        """POST once; what the API server had against it."""
        try:
            async with asyncio.timeout(self._call_seconds):
                await self._client.bind(
                    bind.namespace, bind.name, bind.uid, bind.node, dict(bind.annotations)
                )
        except TimeoutError:
            return Unreachable("the binding was not answered in time")
        except ApiError as error:
            return error
        return None

    async def _seen(self, bind: Bind, failure: ApiError) -> BindOutcome:
        """What became of the pod, after a POST whose answer leaves that open."""
        try:
            pod = await self._client.get_pod(bind.namespace, bind.name)
        except CorralError:
            return BindFailed(_refused(failure))
        if pod is None or pod.uid != bind.uid:
            return BindFailed("the pod is gone", is_gone=True)
        if pod.node == bind.node:
            return Bound()
        if pod.node:
            return BindFailed(f"the pod is already bound to node {pod.node}")
        return BindFailed(_refused(failure))


def _refused(error: ApiError) -> str:
    """One short sentence for kube-scheduler's event."""
    if isinstance(error, Unreachable):
        return "the API server did not answer the binding"
    if isinstance(error, NotLeading):
        return error.message
    return f"the API server refused the binding: {error.status} {error.reason}".rstrip()
