"""Asks the API server for pods that Corral keeps no record of: those of other schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol
from urllib.parse import quote

import msgspec

from app.errors import CorralError, DecodeError, NotFound
from app.kube.core.decode import Keep, decode_pod
from app.kube.core.objects import PodRecord

MOST_LOOKED_AT = 50  # pods of a namespace, for one that an owner has made
MOST_BYTES = 4 * 1024 * 1024  # of an answer: it is read in one go
SECONDS = 5.0


class Reads(Protocol):
    """The part of `transport.Transport` used here."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = ...,
        timeout: float = ...,
        most_bytes: int = ...,
    ) -> bytes: ...


class _List(msgspec.Struct):
    items: list[msgspec.Raw] = []


class Others:
    """Pods as the API server has them now."""

    def __init__(self, server: Reads, keep: Keep) -> None:
        self._server, self._keep = server, keep

    async def pods(self, namespace: str, name: str) -> list[PodRecord]:
        """The pod of this name; without one, some pods of the namespace that have no node.

        None of them where the API server does not answer in time.
        """
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        try:
            try:
                raw = await self._get(f"{path}/{quote(name, safe='')}")
                return [decode_pod(raw, self._keep)]
            except NotFound:
                params = {"fieldSelector": "spec.nodeName=", "limit": str(MOST_LOOKED_AT)}
                raw = await self._get(path, params)
                return list(self._read(msgspec.json.decode(raw, type=_List)))
        except (CorralError, msgspec.DecodeError):
            return []

    async def _get(self, path: str, params: dict[str, str] | None = None) -> bytes:
        return await self._server.request(
            "GET", path, params=params, timeout=SECONDS, most_bytes=MOST_BYTES
        )

    def _read(self, found: _List) -> Iterator[PodRecord]:
        for raw in found.items:
            try:
                yield decode_pod(raw, self._keep)
            except DecodeError:  # one that is not understood hides no other
                continue
