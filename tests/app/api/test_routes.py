"""/v1 reads what the engine knows, for clients on loopback, and refuses by name."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from app.admission.scope import Scope
from app.api import others as of_others
from app.api.explanation import MOST_WAITING
from app.api.gangs import MOST_LISTED
from app.api.http.leader import LEADER
from app.api.others import Others
from app.api.routes import people
from app.api.standing import Standing
from app.dialects.registry import DIALECTS
from app.dialects.spec import GangKey
from app.errors import NotFound, Unreachable
from app.explain.finding import GANGS_A_STEP
from app.kube.core import aside
from app.simulate.simulating import Rules
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, REQUIRED, group, pod

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
    whose: Callable[[], str] = lambda: "",
    others: Others | None = None,
    at: tuple[str, int] = LOCAL,
    host: str = "127.0.0.1:8888",
) -> httpx.AsyncClient:
    app = FastAPI()
    app.include_router(people(world.engine, Standing(unready, whose, others)))
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
    "path",
    [
        "/gangs", "/gangs/default/runs", "/gangs/default/runs/explanation", "/topology", "/map",
        "/nodes/n", "/decisions", "/dump",
    ],
)  # fmt: skip
async def test_before_the_cluster_is_read_nothing_is_answered(path: str) -> None:
    status, body = await got(world_of_three(), path, unready=lambda: "not read yet")
    assert status == 503
    assert body["detail"]["reason"] == "NotReady"
    assert body["detail"]["message"] == "Corral is not ready: not read yet"
    assert body["detail"]["advice"]


async def test_a_corral_that_does_not_lead_says_who_does() -> None:
    whose = "pod corral-1 holds Lease corral-system/corral"
    world = world_of_three()
    status, body = await got(world, "/gangs", whose=lambda: whose)
    assert status == 200
    assert [(each["name"], each["reason"]) for each in body["gangs"]] == [
        ("large", "NotLeading"),
        ("placed", "NotLeading"),
        ("runs", "Running"),  # of pods that have nodes it knows as much
    ]
    _, body = await got(world, "/gangs?reason=NotLeading", whose=lambda: whose)
    assert [each["name"] for each in body["gangs"]] == ["large", "placed"]
    _, body = await got(world, "/gangs/default/large/explanation", whose=lambda: whose)
    assert (body["gang"]["reason"], body["best"], body["relaxations"]) == ("NotLeading", None, [])
    assert body["gang"]["message"].endswith(whose)
    assert body["advice"]


class Pods:
    """An API server that has these pods and no others."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.by_name = {each["metadata"]["name"]: each for each in objects}
        self.asked: list[str] = []

    async def request(self, method: str, path: str, **more: Any) -> bytes:
        assert method == "GET"
        self.asked.append(path)
        _, _, name = path.partition("/api/v1/namespaces/default/pods")[2].rpartition("/")
        if name not in self.by_name and not path.endswith("/pods"):
            raise NotFound(f"pods {name} not found", 404)
        found = list(self.by_name.values())
        return msgspec.json.encode(self.by_name[name] if name else {"items": found})


def stranger(name: str, scheduler: str, **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "annotations": annotations,
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j",
                                 "controller": True}],
        },
        "spec": {"schedulerName": scheduler, "containers": [{"name": "c"}]},
    }  # fmt: skip


@pytest.mark.parametrize("name", ["j-0", "j"])
async def test_a_gang_of_another_scheduler_says_so_by_the_name_of_pod_or_owner(name: str) -> None:
    pods = Pods(stranger("j-0", "default-scheduler", **{REQUIRED: RACK}))
    others = Others(pods, DIALECTS.keeps)
    status, body = await got(world_of_three(), f"/gangs/default/{name}/explanation", others=others)
    assert status == 200
    assert body["gang"]["reason"] == "OtherScheduler"
    assert body["gang"]["message"] == (
        "gang default/j is not placed by Corral: pod default/j-0 has the schedulerName"
        " default-scheduler, and Corral serves corral"
    )
    _, gang = await got(world_of_three(), f"/gangs/default/{name}", others=others)
    assert gang == body["gang"]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(stranger("j-0", "default-scheduler"), id="an_ordinary_pod"),
        pytest.param(stranger("j-0", "corral", **{REQUIRED: RACK}), id="not_seen_by_the_watch_yet"),
        pytest.param(stranger("k-0", "default-scheduler", **{REQUIRED: RACK}), id="another_name"),
    ],
)
async def test_what_is_not_another_schedulers_gang_is_not_said_to_be_one(made: Any) -> None:
    path = "/gangs/default/j-0/explanation"
    pods = Pods(made)
    status, _ = await got(world_of_three(), path, others=Others(pods, DIALECTS.keeps))
    assert status == 404
    assert pods.asked


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        pytest.param("..%252f..%252fsecrets", "..%252f..%252fsecrets", id="escaped"),
        pytest.param("j%3fwatch=1", "j%3Fwatch%3D1", id="query"),
        pytest.param("j%23x", "j%23x", id="fragment"),
    ],
)
async def test_a_name_is_no_way_to_another_path_of_the_api_server(name: str, asked: str) -> None:
    pods, others = "/api/v1/namespaces/default/pods", Pods()
    path = f"/gangs/default/{name}/explanation"
    await got(world_of_three(), path, others=Others(others, DIALECTS.keeps))
    assert others.asked == [f"{pods}/{asked}", pods]


@pytest.mark.parametrize("name", ["..%2f..%2fsecrets", "%2e%2e", "%2e"])
async def test_a_name_that_would_lead_elsewhere_is_not_asked_for(name: str) -> None:
    pods = Pods()
    path = f"/gangs/default/{name}/explanation"
    assert (await got(world_of_three(), path, others=Others(pods, DIALECTS.keeps)))[0] == 404
    assert pods.asked == []


async def test_an_api_server_that_does_not_answer_is_no_error_of_ours() -> None:
    class Silent:
        async def request(self, method: str, path: str, **more: Any) -> bytes:
            raise Unreachable("GET: no answer")

    others = Others(Silent(), DIALECTS.keeps)
    status, _ = await got(world_of_three(), "/gangs/default/j/explanation", others=others)
    assert status == 404


async def test_of_many_names_that_nobody_knows_few_are_asked_for_at_a_time() -> None:
    """It is Corral that asks, for whoever sees one namespace."""
    may_end, under_way, most = asyncio.Event(), 0, 0

    class Slow:
        async def request(self, method: str, path: str, **more: Any) -> bytes:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await may_end.wait()
            under_way -= 1
            raise NotFound("none", 404)

    path = "/gangs/default/unknown"
    async with client(world_of_three(), others=Others(Slow(), DIALECTS.keeps)) as people:
        asked = [asyncio.create_task(people.get(path)) for _ in range(of_others.MOST_WAITING)]
        for _ in range(1_000):
            await asyncio.sleep(0)  # until each of them waits
        refused = await people.get(path)
        assert (refused.status_code, refused.json()["detail"]) == (503, of_others.BUSY)
        may_end.set()
        answers = await asyncio.gather(*asked)
    assert {each.status_code for each in answers} == {404}
    assert most == of_others.AT_ONCE


async def test_an_api_server_that_is_slow_holds_up_no_explanation_of_a_known_gang() -> None:
    may_end = asyncio.Event()

    class Slow:
        async def request(self, method: str, path: str, **more: Any) -> bytes:
            await may_end.wait()
            raise NotFound("none", 404)

    async with client(world_of_three(), others=Others(Slow(), DIALECTS.keeps)) as people:
        unknown = "/gangs/default/unknown/explanation"
        asked = [asyncio.create_task(people.get(unknown)) for _ in range(of_others.MOST_WAITING)]
        await asyncio.sleep(0.05)
        known = await asyncio.wait_for(people.get("/gangs/default/large/explanation"), 5.0)
        assert known.status_code == 200
        may_end.set()
        answers = await asyncio.gather(*asked)
    assert {each.status_code for each in answers} == {404}


async def test_pods_that_are_large_are_read_beside_the_loop() -> None:
    """A tenant's fifty pods may have four megabytes: 70 ms on the loop."""
    threads: set[int] = set()

    def keep(key: str) -> bool:
        threads.add(threading.get_ident())
        return DIALECTS.keeps(key)

    large = stranger("j-0", "default-scheduler", **{REQUIRED: RACK})
    large["spec"]["containers"] = [{"name": "c", "image": "x" * 1000}] * 100
    path = "/gangs/default/j/explanation"
    status, _ = await got(world_of_three(), path, others=Others(Pods(large), keep))
    assert status == 200
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize(
    ("leader", "named"),
    [("", None), ("corral-7", "corral-7"), ("Not_A-Pod", None), ("a\r\nb", None), ("-x", None)],
)
async def test_a_corral_that_does_not_lead_names_the_pod_that_does(
    leader: str, named: str | None
) -> None:
    answers = await of_a_follower(leader, LOCAL)
    assert {path: answer.status_code for path, answer in answers.items()} == {
        "/gangs": 200, "/gangs/default/runs": 200, "/gangs/default/large/explanation": 200,
        "/topology": 200, "/map": 200, "/nodes/n00": 200, "/decisions": 200, "/simulate": 503,
        "/gangs/default/none": 404, "/topology?name=none": 422,
    }  # fmt: skip
    assert {answer.headers.get(LEADER) for answer in answers.values()} == {named}


async def test_who_is_not_answered_hears_of_no_pod() -> None:
    answers = await of_a_follower("corral-7", ("10.0.0.7", 4711))
    assert {answer.status_code for answer in answers.values()} == {403}
    assert not any(LEADER in answer.headers for answer in answers.values())


async def of_a_follower(leader: str, client: tuple[str, int]) -> dict[str, httpx.Response]:
    """What a Corral answers that another pod leads, by path."""
    standing = Standing(
        lambda: "", lambda: "another pod leads", leader=lambda: leader, rules=Rules(Scope("corral"))
    )
    app = FastAPI()
    app.include_router(people(world_of_three().engine, standing))
    transport = httpx.ASGITransport(app=app, client=client)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost/v1") as asks:
        answers = {
            path: await asks.get(path)
            for path in (
                "/gangs", "/gangs/default/runs", "/gangs/default/large/explanation", "/topology",
                "/map", "/nodes/n00", "/decisions", "/gangs/default/none", "/topology?name=none",
            )
        }  # fmt: skip
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
        answers["/simulate"] = await asks.post("/simulate", json=job)
    return answers


async def test_more_explanations_than_may_wait_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first search takes as long as the test wants."""
    may_end = asyncio.Event()
    real = aside.run

    async def slow(*call: Any) -> Any:
        await may_end.wait()
        return await real(*call)

    monkeypatch.setattr(aside, "run", slow)
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


async def test_the_loop_goes_on_while_many_gangs_are_listed_or_looked_through() -> None:
    world, turns = world_of_three(), 0
    for at in range(4 * GANGS_A_STEP):
        world.engine.gangs.add(GangKey("default", f"g{at}", "group"))

    async def go_on() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with client(world) as people:
        other = asyncio.create_task(go_on())
        for path in ("/gangs?limit=1", "/gangs/default/nothing", "/gangs/default/no/explanation"):
            before = turns
            await people.get(path)
            assert turns - before > 4, path
        other.cancel()


async def test_only_so_many_lists_wait() -> None:
    world = world_of_three()
    async with client(world) as people:
        asked = [people.get("/gangs") for _ in range(MOST_LISTED + 2)]
        statuses = [answer.status_code for answer in await asyncio.gather(*asked)]
    assert sorted(statuses) == [200] * MOST_LISTED + [503, 503]
