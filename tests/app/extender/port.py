"""A running extender port whose engine says what a test tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI

from app.dialects.registry import DIALECTS
from app.extender.guard import Bounds, GuardedProtocol, Taken
from app.extender.health import health
from app.extender.routes import Limits, Port, verbs
from app.extender.server import Server, listen, server_of, url_of
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import Keep
from app.metrics import Metrics
from app.setting_values import Address
from app.state.answers.hypothetical import Hypothetical
from app.state.effects import Effect
from app.state.filter_result import Candidates, FilterAnswer, Passed, Victims
from app.verbs.bind import BindDesk

LOOPBACK = Address("127.0.0.1", 0)


@dataclass
class ScriptedEngine:
    """Answers as scripted and remembers what it was asked."""

    answer: FilterAnswer | Exception = field(default_factory=Passed)
    effects: list[Effect] = field(default_factory=list)
    scores: list[int] = field(default_factory=list)
    asked: list[PodRecord] = field(default_factory=list)
    arrived: list[tuple[str, str, str, str]] = field(default_factory=list)

    def filter(
        self, pod: PodRecord, candidates: Candidates, now: float
    ) -> tuple[FilterAnswer, list[Effect]]:
        self.asked.append(pod)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer, self.effects

    def prioritize(self, pod: PodRecord, candidates: Candidates, now: float) -> list[int]:
        return self.scores or [0] * len(candidates.names())

    def preempt(
        self, pod: PodRecord, offered: Mapping[str, Victims], now: float
    ) -> tuple[Mapping[str, Victims], list[Effect]]:
        self.asked.append(pod)
        return offered, self.effects

    def bind_arrived(
        self, namespace: str, name: str, uid: str, node: str, now: float
    ) -> list[Effect]:
        self.arrived.append((namespace, name, uid, node))
        return self.effects

    def gangs_by_phase(self) -> dict[str, int]:
        return {"WAITING": 2}


@dataclass
class Running:
    """The port under test, and everything behind it."""

    url: str
    engine: ScriptedEngine
    desk: BindDesk
    metrics: Metrics
    fed: list[Effect]
    server: Server

    @property
    def taken(self) -> Taken:
        """What all connections have of the port."""
        protocol: type[GuardedProtocol] = self.server.config.http_protocol_class
        return protocol.taken

    def connections(self) -> int:
        """How many clients are connected."""
        return len(self.server.server_state.connections)

    def requests(self) -> int:
        """How many requests are without an answer."""
        return len(self.server.server_state.tasks)

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port


@asynccontextmanager
async def running_port(
    engine: ScriptedEngine | None = None,
    *,
    unready: str = "",
    receive_seconds: float = 5.0,
    keep_alive_seconds: int = 120,
    max_connections: int = 1000,
    under_way_bytes: int = 128 * 1024 * 1024,
    answer_seconds: float = 5.0,
    filter_body_bytes: int = 8 * 1024 * 1024,
    preempt_body_bytes: int = 32 * 1024 * 1024,
    bind_body_bytes: int = 64 * 1024,
    full_nodes: bool = True,
    keep: Keep = DIALECTS.keeps,
    hypothetical: Hypothetical | None = None,
    whose: Callable[[], str] | None = None,
) -> AsyncIterator[Running]:
    """Serve on a free port of the loopback until the block ends."""
    engine = engine or ScriptedEngine()
    metrics = Metrics()
    fed: list[Effect] = []
    desk = BindDesk(engine, fed.extend, answer_seconds=answer_seconds, most_held=1_000)
    limits = Limits(filter_body_bytes, preempt_body_bytes, bind_body_bytes, full_nodes)
    app = FastAPI(redirect_slashes=False, openapi_url=None, docs_url=None, redoc_url=None)
    others = {"hypothetical": hypothetical, "whose": whose}
    port = Port(engine, keep, fed.extend, desk, metrics, limits, **others)
    app.include_router(verbs(port))
    app.include_router(health(lambda: unready, metrics.exposition))
    bounds = Bounds(
        receive_seconds,
        max(filter_body_bytes, preempt_body_bytes),
        max_connections,
        under_way_bytes,
        lambda reason: metrics.broken_requests[reason].inc(),
    )
    listener = listen("extender_listen", LOOPBACK)
    server = server_of(app, bounds, keep_alive_seconds=keep_alive_seconds, finish_seconds=1)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listener])
    try:
        yield Running(url_of(listener), engine, desk, metrics, fed, server)
    finally:
        # Not `serve`, whose orderly end takes a fifth of a second; test_main.py has that.
        desk.refuse_all("the test is over")
        for each in server.servers:
            each.close()
        for connection in tuple(server.server_state.connections):
            connection.transport.abort()
        if server.server_state.tasks:
            await asyncio.wait(server.server_state.tasks, timeout=5)


def pod(name: str = "trainer-0", **metadata: Any) -> dict[str, Any]:
    """A pod as kube-scheduler sends it."""
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", **metadata},
        "spec": {"schedulerName": "corral", "containers": [{"name": "main"}]},
        "status": {"phase": "Pending"},
    }


def args(names: Sequence[str] | None, **more: Any) -> bytes:
    """An ExtenderArgs body, written as Go writes it."""
    return dumped({"Pod": pod(), "Nodes": None, "NodeNames": names, **more})


def dumped(value: object) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def http(path: str, body: bytes, *headers: str) -> bytes:
    """A whole POST as bytes."""
    lines = [f"POST {path} HTTP/1.1", "Host: corral", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def answer_of(reader: asyncio.StreamReader, seconds: float = 5.0) -> tuple[int, bytes]:
    """Status and body of one answer; (0, b"") if the connection ends without one."""
    async with asyncio.timeout(seconds):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, b""
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        try:
            return int(head.split(b" ")[1]), await reader.readexactly(length)
        except ConnectionError:
            return int(head.split(b" ")[1]), b""
