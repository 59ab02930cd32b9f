"""Annotates nodes that gangs have places on, so that node autoscalers keep them, or undoes that.

A newer change of the same node takes the place of one that still waits. One that fails is not tried
again here: the engine sends it again for as long as the watch does not show it. Where the API
server forbids them (the ClusterRole corral-protect-nodes is not bound), none is sent for some
minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Literal, Protocol

import structlog

from app.errors import ApiError, Conflict, NotFound
from app.kube.client.deadline import answered_within
from app.kube.client.work_queue import WorkQueue
from app.state.effects import ProtectNode

log = structlog.get_logger(__name__)

NODES = "/api/v1/nodes"
MOST_QUEUED = 16_384  # nodes; the engine asks again for those that are left out
WORKERS = 4  # patches under way at once
PATCH_SECONDS = 5.0  # one patch
REFUSED_SECONDS = 300.0  # without changes once one was forbidden

How = Literal["protect", "unprotect"]


class ProtectClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def change(
        self, path: str, name: str, uid: str, version: str, patch: Mapping[str, Any]
    ) -> None: ...


class ProtectController:
    """Patches annotations of nodes.

    `on_outcome` gets "protect" or "unprotect", and "written", "gone", "conflict", "refused",
    "failed" or "dropped", once per change.
    """

    def __init__(
        self,
        client: ProtectClient,
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
            "protect",
            self._protect,
            namespace=lambda _: "",  # the engine sends them in turns, and few at a time
            key=lambda change: change.node,
            workers=WORKERS,
            most=MOST_QUEUED,
        )

    def take(self, change: ProtectNode) -> None:
        """Queue the change of one node."""
        left_out = self._queue.put(change)
        if left_out is not None:
            self._on_outcome(_how(left_out), "dropped")

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _protect(self, change: ProtectNode, _tries: int) -> None:
        outcome = "refused" if time.monotonic() < self._not_before else await self._patch(change)
        self._on_outcome(_how(change), outcome)

    async def _patch(self, change: ProtectNode) -> str:
        patch = {"metadata": {"annotations": dict(change.annotations)}}
        try:
            async with answered_within(self._patch_seconds):
                await self._client.change(NODES, change.node, change.uid, change.version, patch)
        except NotFound:
            return "gone"
        except Conflict:
            return "conflict"  # it has changed: the watch shows that, and the engine looks again
        except ApiError as error:
            log.warning("protect", node=change.node, problem=repr(error))
            if error.status != HTTPStatus.FORBIDDEN:
                return "failed"
            self._not_before = time.monotonic() + self._refused_seconds
            return "refused"
        except Exception:
            log.exception("protect", node=change.node)
            return "failed"
        return "written"


def _how(change: ProtectNode) -> How:
    return "protect" if change.is_held else "unprotect"
