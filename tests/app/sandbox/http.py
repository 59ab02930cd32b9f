"""A small client of the sandbox's API, and waiting with a deadline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from app.sandbox import Sandbox

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"


class Answer:
    def __init__(self, status: int, body: Any) -> None:
        self.status = status
        self.body = body

    @property
    def reason(self) -> str:
        return str(self.body["reason"])

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])


class Client:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Answer:
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type}
        async with self._session.request(
            method, self._url + path, data=data, headers=headers
        ) as answer:
            text = await answer.text()
            return Answer(answer.status, json.loads(text) if text.startswith("{") else text)

    async def get(self, path: str) -> Answer:
        return await self.call("GET", path)

    async def create(self, path: str, body: Any) -> Answer:
        return await self.call("POST", path, body)

    async def patch(self, path: str, change: Any, content_type: str = STRATEGIC) -> Answer:
        return await self.call("PATCH", path, change, content_type)

    async def delete(self, path: str, body: Any = None) -> Answer:
        return await self.call("DELETE", path, body)

    async def watch(self, path: str, query: str) -> list[dict[str, Any]]:
        """Every event until the server ends the watch."""
        async with self._session.get(f"{self._url}{path}?watch=1&{query}") as answer:
            assert answer.status == 200
            return [json.loads(line) async for line in answer.content]


@asynccontextmanager
async def client_of(sandbox: Sandbox, *, token: str | None = None) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {sandbox.token if token is None else token}"}
    timeout = aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
        yield Client(session, sandbox.url)


async def until(claim: Callable[[], Any], *, seconds: float = 5.0) -> None:
    """Return once the claim holds; fail when it does not in time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not claim():
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError("it did not come true in time")
        await asyncio.sleep(0.002)
