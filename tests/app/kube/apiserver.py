"""A server on loopback that answers requests from a script, in order, and remembers them.

After the last line of the script every request is held open, as a quiet watch is.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Server:
    """The running server: its address, and what it was asked."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    script: list[Answer] = field(default_factory=list)
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        self.asked.append(
            Asked(
                request.method,
                request.raw_path.partition("?")[0],
                dict(request.query),
                dict(request.headers),
                json.loads(text) if text else None,
            )
        )
        if not self.script:
            return await watch([], then="hold", closing=self.closing)(request)
        return await self.script.pop(0)(request)

    def watch(self, lines: Sequence[object], then: str = "end") -> Answer:
        """Answer with a stream of lines, then end it, cut the connection, or hold it open."""
        return watch(lines, then=then, closing=self.closing)


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Run a server on a free port until the block ends."""
    server = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    scheme = "https" if tls else "http"
    server.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        server.closing.set()
        await runner.cleanup()


def page(objects: Sequence[object], version: str, more: str = "") -> Answer:
    """Answer with one page of a list."""
    metadata = {"resourceVersion": version} | ({"continue": more} if more else {})
    return reply(200, {"kind": "List", "metadata": metadata, "items": list(objects)})


def refusal(status: int, reason: str = "", **headers: str) -> Answer:
    """Answer with a Status object, as the API server does when it says no."""
    body = {"kind": "Status", "code": status, "reason": reason, "message": f"because {reason}"}
    return reply(status, body, **headers)


def reply(status: int, body: object, **headers: str) -> Answer:
    """Answer with one JSON document, or with a text as it is."""
    text = body if isinstance(body, str) else json.dumps(body)

    async def answer(_request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=text, headers=named)

    return answer


def watch(lines: Sequence[object], *, then: str, closing: asyncio.Event) -> Answer:
    """Answer with a stream of lines; a `bytes` line is sent as it is, without a newline."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for line in lines:
            raw = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            await response.write(raw)
        if then == "cut":
            assert request.transport is not None
            request.transport.close()
        if then == "hold":
            await closing.wait()
        return response

    return answer
