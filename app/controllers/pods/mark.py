"""Says in the condition of pods behind our gate that they need a node, or takes it back.

Each is tried once (`app/kube/client/queue/one_try.py`): the engine sends it again for as long as
the watch does not show it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, Protocol

from app.kube.client.queue.one_try import REFUSED_SECONDS, WRITE_SECONDS, OneTry
from app.kube.decoding.decode import GATED, UNSCHEDULABLE
from app.state.effects import Mark

MOST_QUEUED = 16_384  # pods; the engine asks again for those that are left out
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

    `on_outcome` gets "mark" or "unmark", and what became of it, once per mark.
    """

    def __init__(
        self,
        client: MarkClient,
        on_outcome: Callable[[How, str], None],
        *,
        patch_seconds: float = WRITE_SECONDS,
        refused_seconds: float = REFUSED_SECONDS,
    ) -> None:
        self._client = client
        self._queue = OneTry(
            "mark",
            self._patch,
            lambda mark, outcome: on_outcome(_how(mark), outcome),
            namespace=lambda mark: mark.namespace,
            key=lambda mark: mark.uid,
            about=lambda mark: f"{mark.namespace}/{mark.name}",
            most=MOST_QUEUED,
            write_seconds=patch_seconds,
            refused_seconds=refused_seconds,
        )

    def take(self, mark: Mark) -> None:
        """Queue the mark of one pod."""
        self._queue.put(mark)

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _patch(self, mark: Mark) -> None:
        await self._client.mark_pod(
            mark.namespace,
            mark.name,
            mark.uid,
            mark.version,
            reason=UNSCHEDULABLE if mark.sentence else GATED,
            message=mark.sentence or GATED_MESSAGE,
            at=datetime.now(UTC),
        )


def _how(mark: Mark) -> How:
    return "mark" if mark.sentence else "unmark"
