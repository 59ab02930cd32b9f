"""A scripted API server and a transport that talks to it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from app.kube.client.transport import Transport
from tests.app.kube.apiserver import Server, serving


@dataclass
class LocalAccess:
    """An identity for a server on loopback; counts how often it was refused."""

    url: str
    proxy: str | None = None
    server_name: str | None = None
    tls: ssl.SSLContext | None = None
    refusals: list[str] = field(default_factory=list)

    async def headers(self) -> dict[str, str]:
        return {"Authorization": "Bearer local"}

    def expire(self) -> None:
        self.refusals.append("expired")


class Clock:
    """A clock that is set, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as running:
        yield running


@pytest.fixture
def access(server: Server) -> LocalAccess:
    return LocalAccess(server.url)


@pytest.fixture
async def transport(access: LocalAccess) -> AsyncIterator[Transport]:
    connected = Transport(access)
    yield connected
    await connected.close()
