"""A port of our own: uvicorn inside the running event loop, on loopback, stopped by its handle."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

_START_SECONDS = 10.0
_STOP_SECONDS = 5.0
_BACKLOG = 4096  # a gang's members bind at the same instant, each on its own connection


class _QuietServer(uvicorn.Server):
    """uvicorn without its signal handlers, and with a stop that takes effect at once."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.leave = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        seconds = 0
        while not self.leave.is_set():
            await self.on_tick(seconds * 10)  # refreshes the Date header
            seconds = (seconds + 1) % 86_400
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.leave.wait(), 1.0)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the port, break what is still open, and wait for the requests to notice."""
        for server in self.servers:
            server.close()
        for connection in tuple(self.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        if tasks := tuple(self.server_state.tasks):
            _, late = await asyncio.wait(tasks, timeout=_STOP_SECONDS)
            for task in late:
                task.cancel()


class Server:
    """Serves one application between `start` and `stop`.

    Raises: OSError naming the address if the port cannot be taken.
    """

    def __init__(self, *, port: int = 0) -> None:
        # With the protocol left open asyncio does not set TCP_NODELAY, and answers wait 40 ms.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError as error:
            self._socket.close()
            raise OSError(error.errno, error.strerror, f"127.0.0.1:{port}") from error
        self._server: _QuietServer | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    async def start(self, app: ASGIApp) -> None:
        """Raises: TimeoutError if the port does not open."""
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            backlog=_BACKLOG,
            timeout_keep_alive=120,
        )
        self._server = _QuietServer(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        async with asyncio.timeout(_START_SECONDS):
            while not self._server.started:
                if self._serving.done():
                    self._serving.result()
                await asyncio.sleep(0.005)

    def abort(self, client: Any) -> None:
        """Close the connection of this client address without a further byte."""
        assert self._server is not None
        for connection in tuple(self._server.server_state.connections):
            if getattr(connection, "client", None) == client:
                transport = getattr(connection, "transport", None)
                if transport is not None:
                    transport.abort()

    async def stop(self) -> None:
        """Close the port and every connection; returns when the last one is gone."""
        if self._server is None or self._serving is None:
            self._socket.close()
            return
        self._server.leave.set()
        try:
            await self._serving
        finally:
            self._socket.close()
