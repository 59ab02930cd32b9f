"""Keeps a token of another service account in a file, renewed long before it ends.

The two containers of Corral's pod are two identities, and kubelet projects tokens of the pod's own
service account only. So the pod has the one of kube-scheduler, which takes no requests, and gets
Corral's with it. `Credentials.in_cluster` reads the folder as if kubelet had filled it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Protocol
from urllib.parse import quote

import msgspec
import structlog

from app.errors import CorralError
from app.kube.client.backoff import Backoff

log = structlog.get_logger(__name__)

LIFE_SECONDS = 3_600  # as tokens that kubelet projects; the API server takes no less than 600
RENEW_SECONDS = 600.0  # five renewals may fail before a token ends
REQUEST_SECONDS = 10.0


class Requests(Protocol):
    """The part of `transport.Transport` used here."""

    async def request(
        self, method: str, path: str, *, body: object = None, timeout: float = ...
    ) -> bytes: ...


class _Status(msgspec.Struct):
    token: str


class _TokenRequest(msgspec.Struct):
    status: _Status


class TokenFile:
    """`token` and `ca.crt` in a folder: of the service account `namespace`/`name`.

    `ca`: the authority's certificate, which kubelet renews too.
    """

    def __init__(
        self,
        transport: Requests,
        *,
        namespace: str,
        name: str,
        folder: Path,
        ca: Path,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._path = (
            f"/api/v1/namespaces/{quote(namespace, safe='')}"
            f"/serviceaccounts/{quote(name, safe='')}/token"
        )
        self._folder = folder
        self._ca = ca
        self._sleep = sleep

    async def run(self) -> None:
        """Renew the token again and again until cancelled; while it fails, what is there stays."""
        backoff = Backoff(Random())
        while True:
            try:
                await self.renew()
            except (CorralError, msgspec.MsgspecError, OSError) as error:
                log.warning("token", path=self._path, problem=str(error))
                await self._sleep(backoff.pause())
            else:
                backoff.reset()
                await self._sleep(RENEW_SECONDS)

    async def renew(self) -> None:
        """Write a new token, and the authority before it.

        Raises: ApiError; MsgspecError for an answer without a token; OSError.
        """
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFE_SECONDS},
        }
        raw = await self._transport.request("POST", self._path, body=body, timeout=REQUEST_SECONDS)
        token = msgspec.json.decode(raw, type=_TokenRequest).status.token
        self._write("ca.crt", self._ca.read_bytes())
        self._write("token", token.encode())

    def _write(self, name: str, content: bytes) -> None:
        """Replace a file: who reads it finds the old content or the new one, whole."""
        new = self._folder / f".{name}"
        new.unlink(missing_ok=True)  # of a run that ended just here
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        new.replace(self._folder / name)
