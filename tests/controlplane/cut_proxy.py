"""A TCP proxy on loopback whose connections can be cut: what a broken network does to watches.

with CutProxy("https://127.0.0.1:6443") as proxy:
    proxy.kubeconfig(direct)            # TLS goes through untouched
    proxy.cut()                         # every connection ends without a word
    proxy.refuse(2.0)                   # and for that long every new one is ended at once
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.controlplane.proxy import Proxy


class CutProxy(Proxy):
    """Passes bytes between its clients and one server."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.connections_made = 0
        self.connections_cut = 0
        self._scheme, host, port = target.split(":")
        self._address = (host.strip("/"), int(port))
        self._pairs: set[_Side] = set()
        self._refuses_until = 0.0

    def cut(self) -> None:
        """Ends every connection, both sides, now."""
        self._loop.call_soon_threadsafe(self._cut)

    def refuse(self, seconds: float) -> None:
        """Cuts, and ends every new connection at once, for that long."""
        self._refuses_until = self._loop.time() + seconds
        self.cut()

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[str]:
        server = await self._loop.create_server(lambda: _Side(self), "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        yield f"{self._scheme}://{host}:{port}"
        server.close()
        self._cut()
        await asyncio.sleep(0)  # the cut connections close their sockets

    def _cut(self) -> None:
        for side in list(self._pairs):
            self.connections_cut += 1
            side.abort()

    async def pair(self, client: _Side) -> None:
        """Connects a client's other side, unless connections are refused now."""
        if self._loop.time() < self._refuses_until:
            client.abort()
            return
        try:
            _, server = await self._loop.create_connection(lambda: _Side(self), *self._address)
        except OSError:
            client.abort()
            return
        client.peer, server.peer = server, client
        self.connections_made += 1
        self._pairs.add(client)
        client.transport.resume_reading()

    def ended(self, side: _Side) -> None:
        """One side is gone, and so is the pair."""
        self._pairs.discard(side)


class _Side(asyncio.Protocol):
    """One end: what comes in goes out at the other."""

    transport: asyncio.Transport

    def __init__(self, proxy: CutProxy) -> None:
        self.peer: _Side | None = None
        self._proxy = proxy
        self._pairing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        is_client = transport.get_extra_info("sockname")[1] == int(
            self._proxy.url.rpartition(":")[2]
        )
        if is_client:
            transport.pause_reading()  # until there is somebody to pass it on to
            self._pairing = asyncio.ensure_future(self._proxy.pair(self))

    def data_received(self, data: bytes) -> None:
        if self.peer is not None:
            self.peer.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._proxy.ended(self)
        if self.peer is not None:
            self.peer.transport.close()

    def abort(self) -> None:
        """Both ends are gone, whatever was still to be passed on."""
        self.transport.abort()
        if self.peer is not None:
            self.peer.transport.abort()
