"""One port: a listening socket, uvicorn inside our own event loop, and the guard before it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
import socket
import ssl
from collections.abc import Iterator
from typing import Literal

import uvicorn
from fastapi import FastAPI

from app.errors import SettingsError
from app.extender.guard import Bounds, guarded
from app.setting_values import Address

BACKLOG = 2048  # connections not yet accepted: all /bind requests of a large gang come at once


class Server(uvicorn.Server):
    """uvicorn without its signal handlers: signals belong to `app.main`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave every signal as it is."""
        yield


class TlsServer(Server):
    """The same behind TLS, with a bound on the handshake: left alone, it may take a minute."""

    def __init__(self, config: uvicorn.Config, handshake_seconds: float) -> None:
        super().__init__(config)
        self._handshake_seconds = handshake_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept on sockets that listen already."""
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(
                self._protocol,
                sock=listener,
                ssl=self.config.ssl,
                backlog=self.config.backlog,
                ssl_handshake_timeout=self._handshake_seconds,
                ssl_shutdown_timeout=self._handshake_seconds,
            )
            for listener in sockets or ()
        ]
        self.started = True

    def _protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol


def listen(setting: str, address: Address, *, needed_beyond_loopback: str = "") -> socket.socket:
    """A listening socket. `setting` is the name of the setting that has the address.

    `needed_beyond_loopback`: the settings that this port lacks for clients of other machines.
    Raises: SettingsError where the address is not available, or is not to be used.
    """
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, _, _, _, resolved = found[0]
        # What was resolved is checked and used: asked twice, a name may have two answers.
        if needed_beyond_loopback and not ipaddress.ip_address(resolved[0]).is_loopback:
            raise SettingsError(
                f"{setting}: {address}: not a loopback address: needs {needed_beyond_loopback}"
            )
        listener = socket.create_server(resolved, family=family, backlog=BACKLOG)
    except OSError as error:
        raise SettingsError(f"{setting}: {address}: {error.strerror or error}") from error
    except UnicodeError as error:
        raise SettingsError(f"{setting}: {address}: not a valid host name") from error
    # Inherited by every connection. Without it each answer waits 40 ms for the client's ACK,
    # since headers and body are two writes; asyncio sets it only where it made the socket itself.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def url_of(listener: socket.socket, scheme: Literal["http", "https"] = "http") -> str:
    """Where the socket can be reached from this machine."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://{Address(host, port)}"


def server_of(
    app: FastAPI,
    bounds: Bounds,
    *,
    keep_alive_seconds: int,
    finish_seconds: float,
    tls: ssl.SSLContext | None = None,
) -> Server:
    """A server for `app`; run it with `serve(sockets=[…])`, end it with `should_exit = True`.

    Units: `finish_seconds` is how long requests under way may still take after that.
    """
    config = uvicorn.Config(
        app,
        http=guarded(bounds),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=keep_alive_seconds,
        timeout_graceful_shutdown=math.ceil(finish_seconds),
    )
    if tls is None:
        return Server(config)
    config.ssl_context_factory = lambda _config, _default: tls
    return TlsServer(config, handshake_seconds=bounds.receive_seconds)
