"""Says in the condition of pods behind our gate that they need a node, or takes it back.

A newer mark for the same pod takes the place of one that still waits. One that fails is not tried
again here: the engine sends it again for as long as the watch does not show it. Where the API
server forbids them (a ClusterRole of before), none is sent for some minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Literal, Protocol

import structlog

from app.errors import ApiError, Conflict, NotFound
from app.kube.client.deadline import answered_within
from app.kube.client.work_queue import WorkQueue
from app.kube.core.decode import GATED, UNSCHEDULABLE
from app.state.effects import Mark

log = structlog.get_logger(__name__)

MOST_QUEUED = 16_384  # pods; the engine asks again for those that are left out
WORKERS = 4  # patches under way at once
PATCH_SECONDS = 5.0  # one patch
REFUSED_SECONDS = 300.0  # without marks once one was forbidden
# What the API server itself writes where a pod is made with a gate.
# Source: kubernetes v1.36 pkg/registry/core/pod/strategy.go, applySchedulingGatedCondition.
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"

How = Literal["mark", "unmark"]


class MarkClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def mark_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        version: str,
        *,
        reason: str,
        message: str,
        at: datetime,
    ) -> None: ...


class MarkController:
    """Patches the status of pods, namespaces taking turns.

    `on_outcome` gets "mark" or "unmark", and "written", "gone", "conflict", "refused", "failed" or
    "dropped", once per mark.
    """

    def __init__(
        self,
        client: MarkClient,
        on_outcome: Callable[[How, str], None],
        *,
        patch_seconds: float = PATCH_SECONDS,
        refused_seconds: float = REFUSED_SECONDS,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._patch_seconds = patch_seconds
        self._refused_seconds = refused_seconds
        self._not_before = 0.0
        self._queue = WorkQueue(
            "mark",
            self._mark,
            namespace=lambda mark: mark.namespace,
            key=lambda mark: mark.uid,
            workers=WORKERS,
            most=MOST_QUEUED,
        )

    def take(self, mark: Mark) -> None:
        """Queue the mark of one pod."""
        left_out = self._queue.put(mark)
        if left_out is not None:
            self._on_outcome(_how(left_out), "dropped")

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _mark(self, mark: Mark, _tries: int) -> None:
        outcome = "refused" if time.monotonic() < self._not_before else await self._patch(mark)
        self._on_outcome(_how(mark), outcome)

    async def _patch(self, mark: Mark) -> str:
        pod = f"{mark.namespace}/{mark.name}"
        try:
            async with answered_within(self._patch_seconds):
                await self._client.mark_pod(
                    mark.namespace,
                    mark.name,
                    mark.uid,
                    mark.version,
                    reason=UNSCHEDULABLE if mark.sentence else GATED,
                    message=mark.sentence or GATED_MESSAGE,
                    at=datetime.now(UTC),
                )
        except NotFound:
            return "gone"
        except Conflict:
            return "conflict"  # it has changed: the watch shows that, and the engine looks again
        except ApiError as error:
            log.warning("mark", pod=pod, problem=repr(error))
            if error.status != HTTPStatus.FORBIDDEN:
                return "failed"
            self._not_before = time.monotonic() + self._refused_seconds
            return "refused"
        except Exception:
            log.exception("mark", pod=pod)
            return "failed"
        return "written"


def _how(mark: Mark) -> How:
    return "mark" if mark.sentence else "unmark"
