"""Asks the API server for pods that Corral keeps no record of: those of other schedulers.

It is Corral that asks, over the connections that gangs start by, for any user who may ask Corral:
so a few questions are under way at one time, and what is large is read beside the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Protocol
from urllib.parse import quote

import msgspec

from app.api.access.callers import RETRY_SECONDS
from app.api.http.turns import Turns
from app.errors import CorralError, DecodeError, NotFound
from app.kube.core import aside
from app.kube.core.objects import PodRecord
from app.kube.core.turns import turn
from app.kube.decoding.decode import Keep, decode_pod

MOST_LOOKED_AT = 50  # pods of a namespace, for one that an owner has made
MOST_BYTES = 4 * 1024 * 1024  # of an answer: it is read in one go
SECONDS = 5.0
AT_ONCE = 2  # of the connections to the API server
MOST_WAITING = 16
NO_NAMES = frozenset((".", ".."))  # in a path they lead elsewhere, however they are escaped
BUSY = f"{MOST_WAITING} questions about pods that Corral does not know wait already"


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
        retry = {"Retry-After": RETRY_SECONDS}
        self._turns = Turns(MOST_WAITING, BUSY, at_once=AT_ONCE, headers=retry)

    async def pods(self, namespace: str, name: str) -> list[PodRecord]:
        """The pod of this name; without one, some pods of the namespace that have no node.

        None of them where the API server does not answer in time. Raises: as `Turns.waiting`.
        """
        with self._turns.waiting():
            async with self._turns.turn:
                return await self._found(namespace, name)

    async def _found(self, namespace: str, name: str) -> list[PodRecord]:
        if {namespace, name} & NO_NAMES:
            return []
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        try:
            try:
                raw = await self._get(f"{path}/{quote(name, safe='')}")
                return [await aside.read(partial(decode_pod, keep=self._keep), raw)]
            except NotFound:
                params = {"fieldSelector": "spec.nodeName=", "limit": str(MOST_LOOKED_AT)}
                raw = await self._get(path, params)
                return await aside.read(self._read, raw)
        except (CorralError, msgspec.DecodeError):
            return []

    async def _get(self, path: str, params: dict[str, str] | None = None) -> bytes:
        return await self._server.request(
            "GET", path, params=params, timeout=SECONDS, most_bytes=MOST_BYTES
        )

    def _read(self, raw: bytes) -> list[PodRecord]:
        return list(self._each(msgspec.json.decode(raw, type=_List)))

    def _each(self, found: _List) -> Iterator[PodRecord]:
        for raw in found.items:
            turn()
            try:
                yield decode_pod(raw, self._keep)
            except DecodeError:  # one that is not understood hides no other
                continue
