"""/v1 reads what the engine knows, for clients on loopback, and refuses by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.api import routes
from app.api.routes import MOST_WAITING, people
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, group, pod

LOCAL = ("127.0.0.1", 4711)


def world_of_three() -> World:
    """One gang runs, one is placed, one does not fit."""
    world = World(four_racks())
    runs = members("runs", 2)
    world.put(*runs)
    assert len(world.schedule(*runs)) == 2
    world.put(*members("placed", 2))
    world.put(*[pod(f"large{at}", annotations=group("large", 5, RACK)) for at in range(5)])
    world.tick()
    return world


def client(
    world: World,
    unready: Callable[[], str] = lambda: "",
    *,
    at: tuple[str, int] = LOCAL,
    host: str = "127.0.0.1:8888",
) -> httpx.AsyncClient:
    app = FastAPI()
    app.include_router(people(world.engine, unready))
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app, client=at), base_url=f"http://{host}/v1"
    )


async def got(world: World, path: str, **more: Any) -> tuple[int, Any]:
    async with client(world, **more) as people:
        answer = await people.get(path)
        return answer.status_code, answer.json()


async def test_the_gangs_are_listed() -> None:
    status, body = await got(world_of_three(), "/gangs")
    assert status == 200
    found = [(each["name"], each["phase"], each["reason"]) for each in body["gangs"]]
    assert found == [
        ("large", "waiting", "DoesNotFit"),
        ("placed", "placed", "AwaitingScheduler"),
        ("runs", "running", "Running"),
    ]
    assert body["next"] == ""


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("phase=waiting", ["large"]),
        ("reason=Running", ["runs"]),
        ("namespace=other", []),
        ("limit=1", ["large"]),
    ],
)
async def test_a_list_is_narrowed_by_its_query(query: str, names: list[str]) -> None:
    status, body = await got(world_of_three(), f"/gangs?{query}")
    assert (status, [each["name"] for each in body["gangs"]]) == (200, names)


async def test_one_gang_is_found_by_the_name_of_its_pod() -> None:
    status, body = await got(world_of_three(), "/gangs/default/large3")
    assert (status, body["name"], body["reason"]) == (200, "large", "DoesNotFit")


async def test_an_explanation_says_what_is_short_and_what_fits() -> None:
    status, body = await got(world_of_three(), "/gangs/default/large/explanation")
    assert status == 200
    assert body["best"]["needed"] == 5
    assert body["best"]["pods"] == 4
    assert "Never" in [each["kind"] for each in body["relaxations"]]


@pytest.mark.parametrize(
    ("path", "status", "named"),
    [
        ("/gangs/default/none", 404, "default/none"),
        ("/gangs/default/none/explanation", 404, "default/none"),
        ("/gangs/other/large", 404, "other/large"),
        ("/gangs?phase=sleeping", 422, "phase"),
        ("/gangs?limit=100000", 422, "limit"),
        ("/gangs?limit=0", 422, "limit"),
    ],
)
async def test_what_is_not_there_or_not_valid_is_refused_by_name(
    path: str, status: int, named: str
) -> None:
    found, body = await got(world_of_three(), path)
    assert found == status
    assert named in str(body["detail"])


@pytest.mark.parametrize("after", ["x", "a/b/c/d/e", "///", "%00", "\u00e4/\u00f6"])
async def test_no_place_to_go_on_from_breaks_a_list(after: str) -> None:
    status, _ = await got(world_of_three(), f"/gangs?after={after}")
    assert status == 200


async def test_a_name_in_two_vocabularies_needs_its_source() -> None:
    world = world_of_three()
    both = pod("x", annotations={"scheduling.k8s.io/group-name": "large"})
    world.put(both)
    world.tick()
    sources = {each.key.source for each in world.engine.gangs.by_key.values()}
    assert len(sources) > 1
    status, body = await got(world, "/gangs/default/large")
    assert status == 409
    assert all(source in body["detail"] for source in sources)
    status, body = await got(world, "/gangs/default/large?source=group")
    assert (status, body["source"]) == (200, "group")


# -- who is answered -------------------------------------------------------------------------------


@pytest.mark.parametrize("peer", ["10.0.0.7", "192.168.1.1", "::ffff:10.0.0.7", "fe80::1", "unix"])
async def test_a_client_that_is_not_on_loopback_is_refused(peer: str) -> None:
    status, body = await got(world_of_three(), "/gangs", at=(peer, 1))
    assert (status, "loopback" in body["detail"]) == (403, True)
    assert peer in body["detail"]


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
async def test_a_client_on_loopback_is_answered(peer: str) -> None:
    status, _ = await got(world_of_three(), "/gangs", at=(peer, 1))
    assert status == 200


@pytest.mark.parametrize("host", ["evil.example:8888", "127.0.0.1.evil.example", "corral.svc"])
async def test_a_page_whose_own_name_resolves_to_loopback_reads_nothing(host: str) -> None:
    status, body = await got(world_of_three(), "/gangs", host=host)
    assert status == 403
    assert "gangs" not in body


@pytest.mark.parametrize("host", ["localhost:8888", "127.0.0.1:1", "[::1]:8888"])
async def test_the_names_of_loopback_are_answered(host: str) -> None:
    status, _ = await got(world_of_three(), "/gangs", host=host)
    assert status == 200


@pytest.mark.parametrize(
    "path", ["/gangs", "/gangs/default/runs", "/gangs/default/runs/explanation"]
)
async def test_before_the_cluster_is_read_nothing_is_answered(path: str) -> None:
    status, body = await got(world_of_three(), path, unready=lambda: "not read yet")
    assert status == 503
    assert "not read yet" in body["detail"]


async def test_more_explanations_than_may_wait_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first search takes as long as the test wants."""
    may_end = asyncio.Event()
    real = asyncio.to_thread

    async def slow(*call: Any) -> Any:
        await may_end.wait()
        return await real(*call)

    monkeypatch.setattr(routes.asyncio, "to_thread", slow)
    async with client(world_of_three()) as people:
        path = "/gangs/default/large/explanation"
        asked = [asyncio.create_task(people.get(path)) for _ in range(MOST_WAITING)]
        for _ in range(100):
            await asyncio.sleep(0)  # until each of them waits
        refused = await people.get(path)
        assert (refused.status_code, "wait" in refused.json()["detail"]) == (503, True)
        may_end.set()
        answers = await asyncio.gather(*asked)
        assert [each.status_code for each in answers] == [200] * MOST_WAITING
        assert (await people.get(path)).status_code == 200
