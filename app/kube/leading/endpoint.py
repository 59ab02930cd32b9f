"""The one endpoint of a Service without a selector: where the Corral that leads is reached.

Every replica is ready, so that a rollout goes on and a standby knows the cluster; which of them
kube-scheduler reaches is said by this EndpointSlice, and written by who takes the Lease.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

import msgspec
import structlog

from app.errors import CorralError, NotFound

log = structlog.get_logger(__name__)

API_VERSION = "discovery.k8s.io/v1"
OF_SERVICE = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
US = "corral.dev"
PORT_NAME = "https"  # of the Service's port: endpoints go by its name
SHOWN_SECONDS = 30.0  # until it is looked at whether the endpoint is still ours
SECONDS = 5.0


class Requests(Protocol):
    """The part of `transport.Transport` used here."""

    async def request(
        self, method: str, path: str, *, body: object = ..., timeout: float = ...
    ) -> bytes: ...


class OnlyEndpoint:
    """The EndpointSlice of the name of its Service."""

    def __init__(
        self,
        transport: Requests,
        *,
        namespace: str,
        service: str,
        address: str,
        port: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport, self._clock = transport, clock
        self._path = f"/apis/{API_VERSION}/namespaces/{quote(namespace)}/endpointslices"
        self._service = service
        self._metadata = {
            "namespace": namespace,
            "name": service,
            "labels": {OF_SERVICE: service, MANAGED_BY: US},
        }
        self._wanted: Mapping[str, Any] = {
            "addressType": "IPv6" if ":" in address else "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": [{"name": PORT_NAME, "port": port, "protocol": "TCP"}],
        }
        self._shown_at = -math.inf

    async def show(self, is_new: bool) -> None:
        """Have the Service lead here. `is_new`: it has led elsewhere until now."""
        if not is_new and self._clock() < self._shown_at + SHOWN_SECONDS:
            return
        self._shown_at = -math.inf
        try:
            await self._write()
        except (CorralError, msgspec.DecodeError) as error:
            log.warning("endpoint", service=self._service, problem=str(error))
        else:
            self._shown_at = self._clock()

    async def _write(self) -> None:
        """Raises: CorralError, DecodeError."""
        own = f"{self._path}/{quote(self._service)}"
        body = {"apiVersion": API_VERSION, "kind": "EndpointSlice", **self._wanted}
        try:
            raw = await self._transport.request("GET", own, timeout=SECONDS)
        except NotFound:
            body["metadata"] = self._metadata
            await self._transport.request("POST", self._path, body=body, timeout=SECONDS)
            return
        known = msgspec.json.decode(raw, type=dict[str, Any])
        if any(known.get(name) != value for name, value in self._wanted.items()):
            body["metadata"] = known["metadata"]
            await self._transport.request("PUT", own, body=body, timeout=SECONDS)
