"""An extender that answers as the test says: it stands where Corral will stand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web

from app.sandbox import ExtenderConfig

Script = Callable[[dict[str, Any]], Any]


class ScriptedExtender:
    """Records every body; `on_*` give the answer, a (status, body) pair, or wait."""

    def __init__(self) -> None:
        self.url = ""
        self.raw: list[tuple[str, bytes]] = []
        self.on_filter: Script = lambda args: {"NodeNames": args["NodeNames"]}
        self.on_prioritize: Script = lambda args: [
            {"Host": name, "Score": 0} for name in args["NodeNames"]
        ]
        self.on_bind: Script = lambda args: {"Error": ""}
        self.on_preempt: Script = lambda args: {
            "NodeNameToMetaVictims": args["NodeNameToMetaVictims"]
        }

    def calls(self, verb: str) -> list[dict[str, Any]]:
        return [orjson.loads(body) for called, body in self.raw if called == verb]

    def pods_filtered(self) -> list[str]:
        return [args["Pod"]["metadata"]["name"] for args in self.calls("filter")]

    def config(self, *verbs: str, **fields: Any) -> ExtenderConfig:
        """A configuration with these verbs."""
        defaults = {"weight": 1, "node_cache_capable": True, "http_timeout": 2.0}
        chosen = {f"{verb}_verb": verb for verb in verbs}
        return ExtenderConfig(url=self.url, **(defaults | chosen | fields))

    async def serve(self, request: web.Request) -> web.Response:
        verb = request.match_info["verb"]
        body = await request.read()
        self.raw.append((verb, body))
        answer = getattr(self, f"on_{verb}")(orjson.loads(body))
        if isinstance(answer, Awaitable):
            answer = await answer
        status = 200
        if isinstance(answer, tuple):
            status, answer = answer
        raw = answer if isinstance(answer, bytes) else orjson.dumps(answer)
        return web.Response(body=raw, status=status, content_type="application/json")


@asynccontextmanager
async def scripted_extender() -> AsyncIterator[ScriptedExtender]:
    extender = ScriptedExtender()
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/{verb}", extender.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    extender.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield extender
    finally:
        await runner.cleanup()


def pin(name: str) -> Script:
    return lambda args: {"NodeNames": [name]}


def reject(reason: str) -> Script:
    """Every node is out for good, for the same reason."""
    return lambda args: {
        "NodeNames": [],
        "FailedAndUnresolvableNodes": dict.fromkeys(args["NodeNames"], reason),
    }


def held_until(gate: asyncio.Event, answer: Any) -> Script:
    async def wait() -> Any:
        await asyncio.wait_for(gate.wait(), 5)
        return answer

    return lambda args: wait()
