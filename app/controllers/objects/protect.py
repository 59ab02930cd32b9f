"""Annotates nodes that gangs have places on, so that node autoscalers keep them, or undoes that.

Each change is tried once (`app/kube/client/queue/one_try.py`): the engine sends it again for as
long as the watch does not show it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from app.kube.client.queue.one_try import REFUSED_SECONDS, WRITE_SECONDS, OneTry
from app.state.effects import ProtectNode

NODES = "/api/v1/nodes"
MOST_QUEUED = 16_384  # nodes; the engine asks again for those that are left out

How = Literal["protect", "unprotect"]


class ProtectClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def change(
        self, path: str, name: str, uid: str, version: str, patch: Mapping[str, Any]
    ) -> None: ...


class ProtectController:
    """Patches annotations of nodes.

    `on_outcome` gets "protect" or "unprotect", and what became of it, once per change.
    """

    def __init__(
        self,
        client: ProtectClient,
        on_outcome: Callable[[How, str], None],
        *,
        patch_seconds: float = WRITE_SECONDS,
        refused_seconds: float = REFUSED_SECONDS,
    ) -> None:
        self._client = client
        self._queue = OneTry(
            "protect",
            self._patch,
            lambda change, outcome: on_outcome(_how(change), outcome),
            namespace=lambda _: "",  # the engine sends them in turns, and few at a time
            key=lambda change: change.node,
            about=lambda change: change.node,
            most=MOST_QUEUED,
            write_seconds=patch_seconds,
            refused_seconds=refused_seconds,
        )

    def take(self, change: ProtectNode) -> None:
        """Queue the change of one node."""
        self._queue.put(change)

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _patch(self, change: ProtectNode) -> None:
        patch = {"metadata": {"annotations": dict(change.annotations)}}
        await self._client.change(NODES, change.node, change.uid, change.version, patch)


def _how(change: ProtectNode) -> How:
    return "protect" if change.is_held else "unprotect"
