"""Binds pods: POSTs the Binding, reads back whatever is in doubt, and reports one outcome each.

    Bind ──queue──▶ workers ──POST──▶ 201 ─────────────────────────────────▶ Bound
                               ├ 404, 403, 422 … ──────────────────────────▶ BindFailed
                               ├ 429, 5xx, no answer ──pause──▶ POST again, while there is time
                               └ 409, or one POST left in doubt
                                   └──GET──▶ on our node ──────────────────▶ Bound
                                        └──▶ gone, on another node, unbound ▶ BindFailed

A success is only ever reported after the API server confirmed it: kube-scheduler never forgets
an assumed pod. Another POST needs no look beforehand: its precondition is the pod's uid, and
if one before it did take effect the answer is a 409 that the GET explains. While the API server
restarts kube-scheduler's request is held rather than refused: for each refusal it would leave the
pod alone for twice as long as before, 10 s at last.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

import structlog

from app.errors import (
    ApiError,
    Conflict,
    CorralError,
    Forbidden,
    NotFound,
    NotLeading,
    TooManyRequests,
)
from app.kube.client.backoff import Backoff
from app.kube.client.deadline import answered_within
from app.kube.client.queue.work_queue import WorkQueue
from app.kube.core.objects import PodRecord
from app.state.effects import Bind, BindFailed, BindOutcome, Bound

log = structlog.get_logger(__name__)

MOST_QUEUED = 16_384  # as many as there can be held /bind requests
RETRY_SECONDS = 0.5  # pause before the second POST where the server names none; then doubled …
LONGEST_RETRY_SECONDS = 2.0  # … up to this
MOST_POSTS = 16  # of one binding, however fast the API server refuses them


class BindClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def bind(
        self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]
    ) -> None: ...

    async def get_pod(self, namespace: str, name: str) -> PodRecord | None: ...


@dataclass(slots=True)
class _Attempt:
    """One binding that has been begun. Units: monotonic seconds."""

    began: float
    is_in_doubt: bool = False  # some POST may have taken effect unseen
    failure: ApiError | None = None  # of the last one


class BindController:
    """Runs binds side by side and calls `on_outcome(bind, outcome, seconds)` once for each.

    One that is to be posted again leaves its worker to others meanwhile.
    """

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
        self._call_seconds = bind_seconds / 6
        self._attempts: dict[Bind, _Attempt] = {}
        rng = Random()
        # One that is asked for again while it waits, since kube-scheduler gave up on its first
        # request, has one outcome for both.
        self._queue = WorkQueue(
            "bind",
            self._carry_out,
            namespace=lambda bind: bind.namespace,
            key=lambda bind: bind,
            workers=concurrency,
            most=most_queued,
            backoff=lambda: Backoff(rng, retry_seconds, LONGEST_RETRY_SECONDS),
        )

    async def wait_idle(self) -> None:
        """Return once every bind taken so far has its outcome. Needs `run` to be running."""
        await self._queue.wait_idle()

    def take(self, bind: Bind) -> None:
        """Queue one bind; its outcome always comes later, never from inside this call."""
        left_out = self._queue.put(bind)
        if left_out is not None:
            self._attempts.pop(left_out, None)
            failed = BindFailed("too many bindings are under way")
            asyncio.get_running_loop().call_soon(self._on_outcome, left_out, failed, 0.0)

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _carry_out(self, bind: Bind, tries: int) -> float | None:
        """One try of a bind; how long it pauses at least before the next one, None: it is over."""
        now = time.monotonic()
        attempt = self._attempts.setdefault(bind, _Attempt(now))
        try:
            left = attempt.began + self._bind_seconds - now
            async with asyncio.timeout(max(left, self._call_seconds)):  # for the look back
                found = await self._try(bind, attempt, tries)
        except TimeoutError:
            found = BindFailed("the API server did not confirm the binding in time")
        except Exception as error:
            log.exception("bind", pod=f"{bind.namespace}/{bind.name}")
            found = BindFailed(f"binding failed: {type(error).__name__}")
        if isinstance(found, float):
            return found
        self._attempts.pop(bind, None)
        self._on_outcome(bind, found, time.monotonic() - attempt.began)
        return None

    async def _try(self, bind: Bind, attempt: _Attempt, tries: int) -> BindOutcome | float:
        """POST, and look back where that was the last time. See the picture above."""
        # Time for one more POST that hangs, for the GET, and for the pause before them.
        last_start = attempt.began + self._bind_seconds - 2 * self._call_seconds
        if attempt.failure is None or time.monotonic() <= last_start:  # its turn came in time
            failure = attempt.failure = await self._post(bind)
            if failure is None:
                return Bound()
            # An API server that has just started has not read yet who may do what.
            may_pass = failure.may_pass or (attempt.is_in_doubt and isinstance(failure, Forbidden))
            attempt.is_in_doubt = attempt.is_in_doubt or _leaves_doubt(failure)
            pause = min(failure.retry_after or 0.0, self._call_seconds)
            next_start = time.monotonic() + pause + LONGEST_RETRY_SECONDS
            if may_pass and tries < MOST_POSTS and next_start <= last_start:
                return pause
        else:
            failure = attempt.failure
        if isinstance(failure, NotFound):
            return BindFailed("the pod is gone", is_gone=True)
        if attempt.is_in_doubt:
            return await self._seen(bind, failure)
        return BindFailed(failure.in_words("binding"))

    async def _post(self, bind: Bind) -> ApiError | None:
        """POST once; what the API server had against it."""
        try:
            async with answered_within(self._call_seconds):
                await self._client.bind(
                    bind.namespace, bind.name, bind.uid, bind.node, dict(bind.annotations)
                )
        except ApiError as error:
            return error
        return None

    async def _seen(self, bind: Bind, failure: ApiError) -> BindOutcome:
        """What became of the pod, after a POST whose answer leaves that open."""
        try:
            pod = await self._client.get_pod(bind.namespace, bind.name)
        except CorralError:
            return BindFailed(failure.in_words("binding"))
        if pod is None or pod.uid != bind.uid:
            return BindFailed("the pod is gone", is_gone=True)
        if pod.node == bind.node:
            return Bound()
        if pod.node:
            return BindFailed(f"the pod is already bound to node {pod.node}")
        return BindFailed(failure.in_words("binding"))


def _leaves_doubt(failure: ApiError) -> bool:
    """Whether the pod may be bound all the same."""
    return isinstance(failure, Conflict) or (
        failure.may_pass and not isinstance(failure, TooManyRequests | NotLeading)
    )
