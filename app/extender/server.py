"""One port: a listening socket, uvicorn inside our own event loop, and the guard before it."""

from __future__ import annotations

import contextlib
import math
import socket
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI

from app.errors import SettingsError
from app.extender.guard import Bounds, guarded
from app.settings import Address

BACKLOG = 2048  # connections not yet accepted: all /bind requests of a large gang come at once


class Server(uvicorn.Server):
    """uvicorn without its signal handlers: signals belong to `app.main`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave every signal as it is."""
        yield


def listen(setting: str, address: Address) -> socket.socket:
    """A listening socket. `setting` names the knob the address came from.

    Raises: SettingsError where the address cannot be had.
    """
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server(
            (address.host, address.port), family=family, backlog=BACKLOG
        )
    except OSError as error:
        raise SettingsError(f"{setting}: {address}: {error.strerror or error}") from error
    except UnicodeError as error:
        raise SettingsError(f"{setting}: {address}: no host can be called that") from error
    # Inherited by every connection. Without it each answer waits 40 ms for the client's ACK,
    # since headers and body are two writes; asyncio sets it only where it made the socket itself.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def url_of(listener: socket.socket) -> str:
    """Where the socket can be reached from this machine."""
    host, port = listener.getsockname()[:2]
    return f"http://{Address(host, port)}"


def server_of(
    app: FastAPI, bounds: Bounds, *, keep_alive_seconds: int, finish_seconds: float
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
    return Server(config)
