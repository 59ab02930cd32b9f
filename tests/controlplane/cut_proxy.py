"""A TCP proxy on loopback whose connections can be cut: what a broken network does to watches.

with CutProxy("127.0.0.1", 6443) as proxy:
    kubeconfig_through(proxy, …)        # TLS goes through untouched
    proxy.cut()                         # every connection ends without a word
    proxy.refuse(2.0)                   # and for that long nobody gets a new one
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

START_SECONDS = 10.0


class CutProxy:
    """Passes bytes between its clients and one address; `url` is where it listens."""

    def __init__(self, host: str, port: int) -> None:
        self.connections_made = 0
        self.connections_cut = 0
        self.url = ""
        self._target = (host, port)
        self._pairs: set[_Side] = set()
        self._refuses_until = 0.0
        self._is_up = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._is_up.wait(START_SECONDS):
            raise TimeoutError("the proxy does not listen")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_SECONDS)

    def kubeconfig(self, direct: Path, url: str) -> Path:
        """A copy of a kubeconfig that names this proxy where the original names the URL."""
        path = direct.with_suffix(".through-proxy")
        text = direct.read_text(encoding="utf-8").replace(url, f"https://{self.url}")
        path.write_text(text, encoding="utf-8")
        return path

    def cut(self) -> None:
        """Ends every connection, both sides, now."""
        self._loop.call_soon_threadsafe(self._cut)

    def refuse(self, seconds: float) -> None:
        """Cuts, and ends every new connection at once, for that long."""
        self._refuses_until = self._loop.time() + seconds
        self.cut()

    def _run(self) -> None:
        server = self._loop.run_until_complete(
            self._loop.create_server(self._accepted, "127.0.0.1", 0)
        )
        host, port = server.sockets[0].getsockname()
        self.url = f"{host}:{port}"
        self._is_up.set()
        self._loop.run_forever()
        server.close()
        self._cut()
        self._loop.run_until_complete(asyncio.sleep(0))  # the cut connections close their sockets
        self._loop.close()

    def _cut(self) -> None:
        for side in list(self._pairs):
            self.connections_cut += 1
            side.abort()

    def _accepted(self) -> _Side:
        return _Side(self)

    async def pair(self, client: _Side) -> None:
        """Connects a client's other side, unless connections are refused now."""
        if self._loop.time() < self._refuses_until:
            client.abort()
            return
        try:
            _, server = await self._loop.create_connection(lambda: _Side(self), *self._target)
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
