"""GET /v1/dump: the whole journal where one is written, else the beginning of one."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI

from app.api import dump
from app.api.routes import people
from app.api.standing import Standing
from app.process.records.journal_file import JournalFile
from app.state.engine import Engine
from app.state.journal.replay import replay
from tests.app.state.recorded import with_a_gang_that_runs
from tests.app.state.world import World, four_racks


def client(engine, journal=None, *, unready=lambda: "", at="127.0.0.1"):
    app = FastAPI()
    app.include_router(people(engine, Standing(unready, journal=journal)))
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app, client=(at, 4711)),
        base_url="http://127.0.0.1:8888/v1",
    )


@pytest.fixture
def recorded(tmp_path):
    """A world with a journal, and the journal."""
    file = JournalFile(tmp_path / "journal", 2**24)

    world = with_a_gang_that_runs(file.write)
    yield world, file
    file.close()


async def test_with_a_journal_it_is_that_journal_up_to_now(recorded):
    world, file = recorded
    async with client(world.engine, file) as people:
        answer = await people.get("/dump")
    assert (answer.status_code, answer.headers["x-corral-dump"]) == (200, "journal")
    lines = answer.content.splitlines(keepends=True)
    assert len(answer.content) == file.size
    assert any(b'"call":"bind_arrived"' in line for line in lines)
    assert list(replay(lines)) == []


@pytest.mark.parametrize("query", ["", "?form=records"])
async def test_without_one_or_when_asked_it_is_what_is_known_now(recorded, query):
    world, file = recorded
    async with client(world.engine, file if query else None) as people:
        answer = await people.get(f"/dump{query}")
    assert answer.headers["x-corral-dump"] == "records"
    said: list[str] = []
    made = []

    def build(settings):
        made.append(Engine(settings))
        return made[0]

    assert (
        list(replay(answer.content.splitlines(keepends=True), note=said.append, build=build)) == []
    )
    assert made[0].books.bound == world.engine.books.bound
    assert len(made[0].books.bound) == 3


async def test_a_journal_that_has_reached_its_limit_is_not_given_as_whole(tmp_path):
    file = JournalFile(tmp_path / "journal", 10)
    file.write(b"a longer line than that\n")
    async with client(World(four_racks()).engine, file) as people:
        assert (await people.get("/dump")).headers["x-corral-dump"] == "records"
        refused = await people.get("/dump?form=journal")
    assert refused.status_code == 409
    assert "form=journal: the setting journal has reached its limit" in refused.text


async def test_it_is_compressed_for_who_asks_for_that(recorded):
    world, _ = recorded
    async with client(world.engine) as people:
        plain = await people.get("/dump", headers={"accept-encoding": "identity"})
        async with people.stream("GET", "/dump", headers={"accept-encoding": "gzip"}) as answer:
            raw = b"".join([piece async for piece in answer.aiter_raw()])
    assert "content-encoding" not in plain.headers
    without_time = [line.split(b'"call"')[-1] for line in gzip.decompress(raw).splitlines()]
    assert without_time == [line.split(b'"call"')[-1] for line in plain.content.splitlines()]


class Slow:
    """A journal whose first piece comes when it is let."""

    is_whole = True

    def __init__(self) -> None:
        self.loop, self.let = asyncio.get_running_loop(), asyncio.Event()

    def pieces(self) -> Iterator[bytes]:
        asyncio.run_coroutine_threadsafe(self.let.wait(), self.loop).result(timeout=10)
        yield b"{}\n"


async def test_two_are_not_read_at_once_and_the_next_may_be():
    slow = Slow()
    async with client(World(four_racks()).engine, slow) as people:
        first = asyncio.create_task(people.get("/dump"))
        await asyncio.sleep(0.05)
        second = await people.get("/dump")
        slow.let.set()
        assert (await first).status_code == 200
        third = await people.get("/dump")
    assert (second.status_code, third.status_code) == (503, 200)
    assert "another dump" in second.text


async def test_it_is_refused_before_the_cluster_has_been_read_and_to_others():
    engine = World(four_racks()).engine
    async with client(engine, unready=lambda: "nothing is read") as people:
        assert (await people.get("/dump")).status_code == 503
    async with client(engine, at="10.0.0.7") as stranger:
        assert (await stranger.get("/dump")).status_code == 403


async def test_of_many_that_ask_together_one_is_answered():
    """What is known is copied in steps: the others come while the first is copied."""
    async with client(World(four_racks()).engine) as people:
        answers = await asyncio.gather(*(people.get("/dump") for _ in range(5)))
    assert sorted(each.status_code for each in answers) == [200, 503, 503, 503, 503]


async def test_one_that_is_not_read_gives_way_after_a_while(monkeypatch):
    monkeypatch.setattr(dump, "MOST_SECONDS", 0.1)
    app, aborted = FastAPI(), asyncio.Event()
    app.include_router(people(World(four_racks()).engine, Standing(lambda: "")))

    async def send(_message):
        await asyncio.Event().wait()

    async def receive():
        await aborted.wait()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": "/v1/dump", "raw_path": b"/v1/dump", "root_path": "", "query_string": b"",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 4711),
        "extensions": {"corral.abort": aborted.set},
    }  # fmt: skip
    async with asyncio.timeout(5):
        await app(scope, receive, send)
    assert aborted.is_set()
    monkeypatch.undo()
    transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 4711))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost/v1") as next_one:
        assert (await next_one.get("/dump")).status_code == 200
