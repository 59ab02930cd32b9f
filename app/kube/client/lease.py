"""Whether the kube-scheduler beside us leads: read from its Lease, never elected ourselves.

Two replicas of {kube-scheduler, Corral} run; kube-scheduler elects one. A Corral whose neighbour
does not lead is asked nothing, and must not wake or report either: owners would get every event
twice. There is no second election, so the two can never disagree for longer than one poll.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol
from urllib.parse import quote

import msgspec

from app.errors import CorralError, NotFound

POLL_SECONDS = 2.0  # kube-scheduler's own retry period; a lease lasts 15
READ_SECONDS = 5.0


class Requests(Protocol):
    """The part of `transport.Transport` used here."""

    async def request(self, method: str, path: str, *, timeout: float = ...) -> bytes: ...


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    spec: _Spec | None = None


class NeighbourLease:
    """Follows one Lease; `is_ours` while a process of the pod `pod_name` holds it.

    client-go names holders `<host name>_<random>`, and a pod's host name is its name. While the
    API server cannot be read the last answer stands: nothing can be written then either.
    """

    def __init__(
        self,
        transport: Requests,
        *,
        namespace: str,
        name: str,
        pod_name: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.is_ours = False
        self._transport = transport
        self._path = (
            f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace)}/leases/{quote(name)}"
        )
        self._prefix = f"{pod_name}_"
        self._sleep = sleep

    async def run(self) -> None:
        """Read the Lease again and again until cancelled."""
        while True:
            await self.read()
            await self._sleep(POLL_SECONDS)

    async def read(self) -> None:
        """Bring `is_ours` up to date, if the API server answers."""
        try:
            raw = await self._transport.request("GET", self._path, timeout=READ_SECONDS)
            holder = (msgspec.json.decode(raw, type=_Lease).spec or _Spec()).holder_identity
        except NotFound:
            holder = None  # no kube-scheduler leads yet
        except (CorralError, msgspec.DecodeError):
            return
        self.is_ours = (holder or "").startswith(self._prefix)
