"""/v1/events: every gang as it is, then each that changes; nobody who follows holds up anything."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.api.access.callers import Callers
from app.api.following import events, stream
from app.api.following.stream import MOST_FOLLOWERS, MOST_OF_USER, MOST_QUEUED, Follower, Stream
from app.api.routes import people
from app.api.standing import Standing
from app.dialects.spec import GangKey
from app.errors import Unreachable
from app.explain.changes import Changes
from app.extender.guard import ABORT, Bounds
from app.extender.server import Server, listen, server_of, url_of
from app.setting_values import Address
from tests.app.api.access.test_callers import RIGHTS
from tests.app.api.reviewer import Reviewer, callers_of
from tests.app.api.test_routes import world_of_three
from tests.app.polling import until
from tests.app.state.world import World, four_racks, members

TICK_SECONDS = 0.005
Said = tuple[str, Any]


class Corral:
    """One whose port others reach, with an engine whose time stands still between ticks."""

    def __init__(self, world: World, callers: Callers | None = None) -> None:
        self.world = world
        self.unready = self.leader = ""
        self.stream = Stream(Changes(world.engine), seconds=TICK_SECONDS, clock=lambda: world.now)
        standing = Standing(
            lambda: self.unready,
            callers=callers or Callers(),
            stream=self.stream,
            leader=lambda: self.leader,
        )
        self.app = FastAPI()
        self.app.include_router(people(world.engine, standing))
        self.server: Server | None = None
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Corral]:
        """Behind the guard, as it is served."""
        bounds = Bounds(
            receive_seconds=5.0, most_body_bytes=2**20, max_connections=500,
            most_bytes_under_way=2**22, on_breach=lambda _reason: None,
        )  # fmt: skip
        self.server = server_of(self.app, bounds, keep_alive_seconds=100, finish_seconds=20.0)
        with listen("api_listen", Address("127.0.0.1", 0)) as listener:
            self.url = url_of(listener)
            tasks = [
                asyncio.create_task(self.server.serve(sockets=[listener])),
                asyncio.create_task(self.stream.run()),
            ]
            try:
                yield self
            finally:
                self.stream.close("the test is over")
                self.server.should_exit = True
                await asyncio.wait_for(tasks[0], 10.0)
                tasks[1].cancel()
                await asyncio.gather(tasks[1], return_exceptions=True)

    @asynccontextmanager
    async def followed(self, path: str = "/events") -> AsyncIterator[AsyncIterator[Said]]:
        """The events of a client that reads them as they come; comments have the kind ""."""
        async with (
            httpx.AsyncClient(trust_env=False, timeout=10.0) as client,
            client.stream("GET", f"{self.url}/v1{path}") as answer,
        ):
            assert answer.status_code == 200, await answer.aread()
            assert answer.headers["content-type"].startswith("text/event-stream")
            said = parsed(answer.aiter_lines())
            try:
                yield said
            finally:
                await said.aclose()  # type: ignore[attr-defined]


async def parsed(lines: AsyncIterator[str]) -> AsyncIterator[Said]:
    kind = ""
    async for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))
        elif line.startswith(":"):
            yield "", line


async def until_synced(said: AsyncIterator[Said]) -> list[str]:
    """The gangs that come first."""
    names = []
    async for kind, data in said:
        if kind == "synced":
            assert data == {"gangs": len(names)}
            return names
        if kind == "gang":
            names.append(data["name"])
    raise AssertionError("it ended")


async def test_every_gang_comes_first_and_then_what_changes() -> None:
    world = World(four_racks())
    world.put(*members("a", 2), *members("large", 5))
    world.tick()
    async with Corral(world).serving() as corral, corral.followed() as said:
        assert sorted(await until_synced(said)) == ["a", "large"]
        pods = members("b", 2)
        world.put(*pods)
        kind, data = await anext(said)
        assert (kind, data["name"]) == ("gang", "b")
        world.tick()
        while data["phase"] != "placed":
            kind, data = await anext(said)
        for each in pods:
            world.delete(each)
        while kind != "gone":
            world.tick()
            kind, data = await anext(said)
        assert data == {"namespace": "default", "name": "b", "source": "group"}


async def test_a_namespace_is_followed_alone() -> None:
    world = World(four_racks())
    for namespace in ("own", "other"):
        world.engine.gangs.add(GangKey(namespace, f"of-{namespace}", "group"))
    async with Corral(world).serving() as corral:
        async with corral.followed("/events?namespace=own") as said:
            assert await until_synced(said) == ["of-own"]
            world.engine.gangs.add(GangKey("other", "hidden", "group"))
            world.engine.gangs.add(GangKey("own", "second", "group"))
            assert (await anext(said))[1]["name"] == "second"
        async with corral.followed("/events?namespace=none") as said:
            assert await until_synced(said) == []


async def test_nothing_is_looked_at_while_nobody_follows() -> None:
    async with Corral(world_of_three()).serving() as corral:
        changes = corral.stream.changes
        await asyncio.sleep(10 * TICK_SECONDS)
        assert changes.looked_at == 0
        async with corral.followed() as said:
            await until_synced(said)
        await until(lambda: not len(corral.stream))
        before = changes.looked_at
        await asyncio.sleep(10 * TICK_SECONDS)
        assert changes.looked_at == before > 0
        assert changes.shown == {}


async def test_who_comes_again_gets_every_gang_again() -> None:
    async with Corral(world_of_three()).serving() as corral:
        for _ in range(3):
            async with corral.followed() as said:
                assert sorted(await until_synced(said)) == ["large", "placed", "runs"]


@pytest.mark.slow
async def test_ten_thousand_gangs_come_whole() -> None:
    world = World(four_racks())
    for at in range(10_000):
        world.engine.gangs.add(GangKey("default", f"g{at}", "group"))
    async with Corral(world).serving() as corral, corral.followed() as said:
        assert len(set(await until_synced(said))) == 10_000


async def test_a_tick_is_one_look_for_all_who_follow() -> None:
    world = world_of_three()
    corral = Corral(world)
    followers = [corral.stream.follow("", "") for _ in range(MOST_FOLLOWERS)]
    for each in followers:
        corral.stream.first(each)
    corral.stream.step()
    assert corral.stream.changes.looked_at == 3
    assert [len(each) for each in followers] == [3] * MOST_FOLLOWERS
    lines = {id(line) for each in followers for line in each.taken()}
    assert len(lines) == 3  # each was written once


async def test_silence_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE_SECONDS", 0.02)
    async with Corral(world_of_three()).serving() as corral, corral.followed() as said:
        await until_synced(said)
        assert [(await anext(said))[0] for _ in range(3)] == ["", "", ""]


# -- those who do not read -------------------------------------------------------------------------


async def test_who_reads_too_slowly_is_told_so_and_dropped() -> None:
    follower = Follower("", "")
    follower.put([b"before what comes first"])
    assert len(follower) == 0
    follower.has_begun = True
    for at in range(MOST_QUEUED):
        follower.put([b"%d" % at])
    assert (len(follower), follower.why_ended) == (MOST_QUEUED, "")
    follower.put([b"one more"])
    assert (len(follower), follower.why_ended) == (0, stream.TOO_SLOW)
    follower.put([b"another"])
    assert len(follower) == 0


@asynccontextmanager
async def stuck(corral: Corral) -> AsyncIterator[None]:
    """One client that asks and never reads, of more gangs than any buffer holds."""
    for at in range(20_000):
        corral.world.engine.gangs.add(GangKey("default", f"g{at}{'x' * 200}", "group"))
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        raw.connect(("127.0.0.1", int(corral.url.rpartition(":")[2])))
        raw.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: len(corral.stream) == 1)
        (follower,) = corral.stream._followers
        since = time.monotonic()  # until one write is under way for long
        while time.monotonic() < since + 0.3:
            if follower.writing is None:
                since = time.monotonic()
            await asyncio.sleep(0.01)
        yield


def connections(corral: Corral) -> int:
    assert corral.server is not None
    return len(corral.server.server_state.connections)


@pytest.mark.slow
async def test_who_does_not_read_at_all_loses_his_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "WRITE_SECONDS", 1.0)
    async with Corral(World(four_racks())).serving() as corral, stuck(corral):
        assert (len(corral.stream), connections(corral)) == (1, 1)
        await until(lambda: connections(corral) == 0)
        await until(lambda: len(corral.stream) == 0)


@pytest.mark.slow
async def test_one_who_does_not_read_is_dropped_and_the_other_gets_every_change() -> None:
    world = World(four_racks())
    async with (
        Corral(world).serving() as corral,
        stuck(corral),
        corral.followed("/events?namespace=own") as said,
    ):
        assert await until_synced(said) == []
        for at in range(MOST_QUEUED + 10):
            for namespace in ("default", "own"):
                world.engine.gangs.add(GangKey(namespace, f"more-{at}", "group"))
        told = {(await anext(said))[1]["name"] for _ in range(MOST_QUEUED + 10)}
        assert len(told) == MOST_QUEUED + 10
        await until(lambda: connections(corral) == 1)  # long before WRITE_SECONDS
        await until(lambda: len(corral.stream) == 1)


@pytest.mark.slow
async def test_the_end_waits_for_nobody_who_does_not_read() -> None:
    corral = Corral(World(four_racks()))
    async with corral.serving(), stuck(corral):
        ends = time.monotonic()
    assert time.monotonic() - ends < stream.END_SECONDS + 2.0


# -- how it ends -----------------------------------------------------------------------------------


async def test_at_shutdown_the_last_event_says_so_and_the_port_closes_at_once() -> None:
    corral = Corral(world_of_three())
    async with corral.serving(), corral.followed() as said:
        await until_synced(said)
        began = time.monotonic()
        corral.stream.close("Corral is shutting down")
        assert await anext(said) == ("end", {"reason": "Corral is shutting down"})
        with pytest.raises(StopAsyncIteration):
            await anext(said)
        assert time.monotonic() - began < 1.0
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"{corral.url}/v1/events")
        assert (answer.status_code, "shutting down" in answer.text) == (503, True)


async def test_an_error_of_our_own_ends_the_streams_and_nothing_else() -> None:
    told = list[str]()
    corral = Corral(world_of_three())
    corral.stream._on_fault = lambda part, error: told.append(f"{part}: {error}")
    async with corral.serving(), corral.followed() as said:
        await until_synced(said)
        real, corral.stream.changes.look = corral.stream.changes.look, _raise  # type: ignore[method-assign]
        kind, data = await anext(said)
        assert (kind, "log" in data["reason"]) == ("end", True)
        corral.stream.changes.look = real  # type: ignore[method-assign]
        assert set(told) == {"stream: planted"}
        async with corral.followed() as again:
            assert len(await until_synced(again)) == 3


def _raise(_now: float) -> Any:
    raise RuntimeError("planted")


async def test_a_corral_that_is_not_ready_begins_no_stream() -> None:
    async with Corral(world_of_three()).serving() as corral:
        corral.unready = "the watch is silent"
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"{corral.url}/v1/events")
        assert (answer.status_code, "silent" in answer.text) == (503, True)
        assert len(corral.stream) == 0


async def test_more_than_so_many_do_not_follow() -> None:
    corral = Corral(world_of_three())
    for _ in range(MOST_OF_USER):
        corral.stream.follow("", "tenant")
    with pytest.raises(stream.TooManyFollow, match=f"tenant follows {MOST_OF_USER} times"):
        corral.stream.follow("", "tenant")
    others = [corral.stream.follow("", "") for _ in range(MOST_FOLLOWERS - MOST_OF_USER)]
    async with corral.serving(), httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"{corral.url}/v1/events")
        assert (answer.status_code, str(MOST_FOLLOWERS) in answer.text) == (503, True)
        corral.stream.leave(others[0])
        corral.stream.leave(others[0])  # who has left has
        async with corral.followed() as said:
            assert len(await until_synced(said)) == 3


@pytest.mark.parametrize("follows", [0, 1, 2])
async def test_who_goes_follows_no_longer_whatever_else_he_asked(
    monkeypatch: pytest.MonkeyPatch, follows: int
) -> None:
    """Requests that wait for their turn on a connection end with it, and so does the one before."""
    monkeypatch.setattr(stream, "KEEP_ALIVE_SECONDS", 0.02)
    async with Corral(world_of_three()).serving() as corral:
        host, _, port = corral.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        writer.write(b"GET /v1/gangs HTTP/1.1\r\nHost: localhost\r\n\r\n" * follows)
        await reader.readuntil(b"event: synced")
        assert len(corral.stream) == 1
        writer.transport.abort()
        await until(lambda: len(corral.stream) == 0)


# -- who may follow --------------------------------------------------------------------------------


class Followed:
    """An answer of the application itself, for a client beyond loopback."""

    def __init__(self, corral: Corral, path: str, user: str) -> None:
        self.status, self.text, self._body = 0, "", asyncio.Event()
        named, _, query = path.partition("?")
        headers = [(b"host", b"corral"), (b"authorization", f"Bearer token-of-{user}".encode())]
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "method": "GET",
            "http_version": "1.1", "scheme": "https", "path": f"/v1{named}", "root_path": "",
            "query_string": query.encode(), "headers": headers, "client": ("10.0.0.7", 1),
            "server": ("corral", 443),
        }  # fmt: skip
        self.task = asyncio.create_task(corral.app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def _send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.text += message.get("body", b"").decode()


async def test_who_may_not_list_pods_follows_nothing() -> None:
    api = Reviewer(RIGHTS)
    corral = Corral(world_of_three(), callers_of(api))
    for user, path, status in (
        ("stranger", "/events?namespace=default", 403),
        ("tenant", "/events", 403),
        ("tenant", "/events?namespace=other", 403),
        ("nobody", "/events?namespace=default", 401),
    ):
        answer = Followed(corral, path, user)
        await answer.task
        assert answer.status == status
        assert "event:" not in answer.text
    assert len(corral.stream) == 0


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        pytest.param(lambda api: api.rights["tenant"].clear(), "tenant may not", id="a_right"),
        pytest.param(lambda api: api.rights.pop("tenant"), "token", id="an_account"),
        pytest.param(
            lambda api: setattr(api, "failure", Unreachable("down")), "down", id="the_api_server"
        ),
    ],
)
async def test_the_right_to_follow_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, ends: Callable[[Reviewer], object], why: str
) -> None:
    monkeypatch.setattr(events, "RECHECK_SECONDS", 0.02)
    api, now = Reviewer(RIGHTS), [0.0]
    corral = Corral(world_of_three(), callers_of(api, clock=lambda: now[0]))
    corral.stream.clock = time.monotonic
    running = asyncio.create_task(corral.stream.run())
    answer = Followed(corral, "/events?namespace=default", "tenant")
    await until(lambda: "event: synced" in answer.text)
    asked = len(api.asked)
    await asyncio.sleep(0.1)
    assert len(api.asked) == asked  # the answers of before count for their seconds
    assert not answer.task.done()
    now[0] += 60.0
    await until(lambda: len(api.asked) == asked + 3)
    assert not answer.task.done()  # he still may
    ends(api)
    now[0] += 60.0
    await asyncio.wait_for(answer.task, 5.0)
    last = answer.text.strip().rpartition("event: ")[2]
    assert last.startswith("end")
    assert why in last
    assert len(corral.stream) == 0
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_stream_ends_when_another_corral_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "RECHECK_SECONDS", 0.02)
    corral = Corral(world_of_three())
    corral.stream.clock = time.monotonic  # of both looks: it may be behind the world's
    async with corral.serving(), corral.followed() as said:
        await until_synced(said)
        corral.leader = "corral-1"
        kind, data = await anext(said)
        while not kind:
            kind, data = await anext(said)
        assert (kind, data) == ("end", {"reason": "another Corral leads now"})


def test_the_guard_and_the_stream_mean_the_same_extension() -> None:
    assert stream.ABORT == ABORT
