"""What `guard.py` and `server.py` override is what uvicorn still has, and still calls.

An override that uvicorn no longer calls is a bound that silently does not hold, so each one has a
case of its own. Whoever raises the ceiling of uvicorn in pyproject.toml runs these first.
"""

from __future__ import annotations

import asyncio
import inspect
import signal
import ssl
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.extender.guard import Bounds, GuardedProtocol, guarded
from app.extender.server import Server, TlsServer, listen, server_of
from tests.app.extender.port import LOOPBACK, running_port

BOUNDS = Bounds(5.0, 1024, 16, 1024 * 1024, lambda reason: None)

PROTOCOL = (
    "__init__",
    "connection_made",
    "connection_lost",
    "data_received",
    "on_message_begin",
    "on_url",
    "on_header",
    "on_headers_complete",
    "on_body",
    "on_message_complete",
    "on_response_complete",
    "timeout_keep_alive_handler",
)
OWN_STATE = {
    "_is_receiving",
    "_has_headers",
    "_bytes_since_part",
    "_named_bytes",
    "_body_bytes",
    "_under_way",
    "_unanswered",
    "_is_over_budget",
    "_deadline",
}


def parameters(method: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults; annotations may change."""
    found = inspect.signature(method).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


def noting(kind: type, names: tuple[str, ...], called: set[str]) -> Any:
    """A subclass that notes which of these methods are called."""

    def noted(name: str) -> Any:
        def method(self: Any, *args: Any, **more: Any) -> Any:
            called.add(name)
            return getattr(kind, name)(self, *args, **more)

        return method

    return type("Noting", (kind,), {name: noted(name) for name in names})


def test_every_method_of_uvicorn_that_the_guard_overrides_is_listed_here():
    of_uvicorn = {name for name in vars(GuardedProtocol) if hasattr(HttpToolsProtocol, name)}
    python = {name for name in of_uvicorn if name.startswith("__")} - {"__init__"}
    assert of_uvicorn - python == set(PROTOCOL)


@pytest.mark.parametrize("name", PROTOCOL)
def test_an_overridden_method_is_uvicorns_own_with_the_same_parameters(name):
    assert name in vars(HttpToolsProtocol)
    assert parameters(getattr(GuardedProtocol, name)) == parameters(
        getattr(HttpToolsProtocol, name)
    )


@pytest.mark.parametrize("name", PROTOCOL)
async def test_an_overridden_method_is_called_in_the_course_of_a_connection(name):
    called: set[str] = set()
    async with running_port(keep_alive_seconds=0.05) as port:  # type: ignore[arg-type]
        config = port.server.config
        config.http_protocol_class = noting(config.http_protocol_class, PROTOCOL, called)
        async with httpx.AsyncClient(base_url=port.url) as client:
            assert (await client.post("/bind", content=b"{}")).status_code == 200
            async with asyncio.timeout(5):
                while name not in called:  # noqa: ASYNC110  # an idle connection is closed
                    await asyncio.sleep(0.005)


async def test_the_state_the_guard_adds_is_not_uvicorns():
    config = uvicorn.Config(lambda: None, ws="none", lifespan="off")
    config.load()
    plain = HttpToolsProtocol(config, ServerState(), {})
    ours = guarded(BOUNDS)(config, ServerState(), {})
    assert vars(ours).keys() - vars(plain).keys() == OWN_STATE
    methods = {name for name in vars(GuardedProtocol) if not name.startswith("__")}
    assert {name for name in methods if hasattr(HttpToolsProtocol, name)} <= set(PROTOCOL)


SERVER = [(Server, "capture_signals"), (TlsServer, "capture_signals"), (TlsServer, "startup")]


@pytest.mark.parametrize("kind", [Server, TlsServer])
def test_every_method_of_uvicorns_server_that_is_overridden_is_listed_here(kind):
    of_uvicorn = {name for name in vars(kind) if hasattr(uvicorn.Server, name)}
    listed = {name for each, name in SERVER if each is kind}
    assert {name for name in of_uvicorn if not name.startswith("__")} <= listed


@pytest.mark.parametrize(("kind", "name"), SERVER)
def test_an_overridden_method_of_the_server_has_uvicorns_parameters(kind, name):
    assert parameters(getattr(kind, name)) == parameters(getattr(uvicorn.Server, name))


@pytest.mark.parametrize(("kind", "name"), SERVER)
async def test_an_overridden_method_of_the_server_is_called_when_it_serves(kind, name):
    called: set[str] = set()
    noted = noting(kind, (name,), called)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if kind is TlsServer else None
    config = server_of(FastAPI(), BOUNDS, keep_alive_seconds=1, finish_seconds=1, tls=tls).config
    server = noted(config) if tls is None else noted(config, handshake_seconds=1.0)
    server.should_exit = True
    before = signal.getsignal(signal.SIGTERM)
    with listen("extender_listen", LOOPBACK) as listener:
        async with asyncio.timeout(5):
            await server.serve(sockets=[listener])
    assert called == {name}
    assert server.started
    assert signal.getsignal(signal.SIGTERM) is before
