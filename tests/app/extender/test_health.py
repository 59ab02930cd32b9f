"""Probes and scrapes: what a client that asks all the time costs."""

from __future__ import annotations

from dataclasses import asdict

import httpx
from fastapi import FastAPI

from app.extender.health import health
from app.fresh import FRESH_SECONDS
from app.version import this_build


class Exposed:
    """Series that are counted each time they are made, and the time."""

    def __init__(self) -> None:
        self.made = 0
        self.now = 100.0

    def __call__(self) -> bytes:
        self.made += 1
        return f"made {self.made}\n".encode()

    def port(self) -> httpx.AsyncClient:
        app = FastAPI()
        app.include_router(health(lambda: "", self, clock=lambda: self.now))
        transport = httpx.ASGITransport(app=app)
        return httpx.AsyncClient(transport=transport, base_url="http://corral")


async def test_a_client_that_scrapes_in_a_loop_has_one_answer_made_a_second():
    exposed = Exposed()
    async with exposed.port() as client:
        seen = {(await client.get("/metrics")).text for _ in range(50)}
        assert (exposed.made, seen) == (1, {"made 1\n"})
        exposed.now += FRESH_SECONDS
        seen = {(await client.get("/metrics")).text for _ in range(50)}
        assert (exposed.made, seen) == (2, {"made 2\n"})


async def test_two_ports_of_one_corral_have_one_answer():
    exposed = Exposed()
    router = health(lambda: "", exposed, clock=lambda: exposed.now)
    texts = []
    for _ in range(2):
        app = FastAPI()
        app.include_router(router)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://corral") as client:
            texts.append((await client.get("/metrics")).text)
    assert texts == ["made 1\n", "made 1\n"]


async def test_whether_it_is_ready_is_never_what_it_was():
    why = ["not yet"]
    app = FastAPI()
    app.include_router(health(lambda: why[0], Exposed()))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://corral") as client:
        assert (await client.get("/readyz")).text == "not yet"
        why[0] = ""
        assert (await client.get("/readyz")).status_code == 200


async def test_the_version_is_told_to_who_asks_as_kube_apiserver_tells_its_own():
    async with Exposed().port() as client:
        answer = await client.get("/version")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == asdict(this_build())
