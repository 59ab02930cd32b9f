"""GET /v1/map and /v1/nodes: every node once, its gangs, and no name that is not the client's."""

from __future__ import annotations

import gzip
from random import Random
from typing import Any

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from app import fresh
from app.api.routes import people
from app.api.standing import Standing
from app.explain.topology.map import GANGS_A_STEP, Known, copied, drawn
from app.explain.topology.map_view import MapPage
from app.explain.topology.usage import Books, Part, usage
from app.kube.core.objects import PodRecord, Taint
from app.kube.watch.events import Applied
from app.state.engine import Engine
from tests.app.api.access.test_callers import AFAR, RIGHTS
from tests.app.api.reviewer import Reviewer, callers_of
from tests.app.simulate.clusters import NOW, engine_of
from tests.app.simulate.clusters import drawn as any_cluster
from tests.records import BLOCK, GPU, RACK, group, node, pod

GANG, ELSEWHERE = {"namespace": "default", "name": "g", "source": "group"}, "secret"


def cluster() -> Engine:
    """Two racks: in one a gang is planned beside a pod, in the other one node is cordoned."""
    nodes = [
        node("b0/r0/a0"), node("b0/r0/a1"), node("b1/r1/b0", is_cordoned=True), node("b1/r1/b1"),
        node("loose"),
    ]  # fmt: skip
    engine = engine_of(nodes, [pod("p", gpus=3, on="a0", phase="Running")])
    for at in range(2):
        engine.apply(Applied(pod(f"g{at}", gpus=2, annotations=group("g", 2, RACK))), NOW)
    engine.tick(NOW)
    return engine


def with_hidden() -> Engine:
    """A gang of each of two namespaces on one node."""
    pods: list[PodRecord] = []
    for name, namespace in (("seen", "default"), ("hidden", ELSEWHERE)):
        made = pod(f"{name}-0", gpus=1, on="a0", phase="Running", annotations=group(name, 1, RACK))
        pods.append(msgspec.structs.replace(made, namespace=namespace))
    return engine_of([node("b0/r0/a0")], pods)


def client(engine: Engine, user: str = "") -> httpx.AsyncClient:
    app = FastAPI()
    if user:
        standing = Standing(lambda: "", callers=callers_of(Reviewer(RIGHTS)))
        at, url = AFAR, "https://corral.corral-system.svc/v1"
    else:
        standing, at, url = Standing(lambda: ""), ("127.0.0.1", 4711), "http://127.0.0.1/v1"
    app.include_router(people(engine, standing))
    headers = {"Authorization": f"Bearer token-of-{user}"} if user else {}
    transport = httpx.ASGITransport(app=app, client=at)
    return httpx.AsyncClient(transport=transport, base_url=url, headers=headers)


async def got(engine: Engine, path: str, user: str = "") -> tuple[int, Any]:
    async with client(engine, user) as asking:
        answer = await asking.get(path)
        return answer.status_code, answer.json()


async def test_each_node_has_a_place_in_every_column() -> None:
    status, body = await got(cluster(), "/map")
    assert status == 200
    assert body["nodes"] == ["a0", "a1", "b0", "b1"]
    assert [(each["level"], each["names"], each["starts"]) for each in body["domains"]] == [
        (BLOCK, ["b0", "b1"], [0, 2]),
        (RACK, ["r0", "r1"], [0, 2]),
    ]
    assert body["allocatable"] == [8, 8, 8, 8]
    assert (body["used"], sum(body["reserved"])) == ([3, 0, 0, 0], 4)
    assert [body["states"][each] for each in body["state"]] == ["", "", "cordoned", ""]
    assert body["unlabelled"] == 1


async def test_accelerators_are_looked_at_first_and_others_when_named() -> None:
    engine = cluster()
    assert (await got(engine, "/map"))[1]["resource"] == GPU
    _, body = await got(engine, "/map?resource=cpu")
    assert (body["resource"], body["allocatable"][0], body["used"][0]) == ("cpu", 64, 1)  # in cores


async def test_a_cluster_without_nodes_is_an_empty_map() -> None:
    """Every node group is scaled to zero: nothing has any resource, and that is no mistake."""
    status, body = await got(engine_of([]), "/map")
    assert (status, body.get("nodes"), body.get("resources")) == (200, [], [])
    assert body["resource"] == "cpu"
    status, body = await got(engine_of([]), f"/map?resource={GPU}")
    assert (status, "nodes have none" in body["detail"]) == (422, True)


async def test_a_node_that_is_about_to_be_removed_is_said_to_be() -> None:
    """It is ready, and a node autoscaler has tainted it."""
    taint = Taint("ToBeDeletedByClusterAutoscaler", "1", "NoSchedule")
    engine = engine_of([node("b0/r0/a0", taints=(taint,)), node("b0/r0/a1", is_ready=False)])
    _, body = await got(engine, "/map")
    assert [body["states"][each] for each in body["state"]] == ["about to be removed", "not ready"]
    assert (await got(engine, "/nodes/a0"))[1]["state"] == "about to be removed"


@pytest.mark.parametrize("query", ["resource=none", "name=none"])
async def test_what_is_not_there_is_named(query: str) -> None:
    status, body = await got(cluster(), f"/map?{query}")
    assert (status, "none" in body["detail"]) == (422, True)


async def test_a_gang_has_what_its_pods_request() -> None:
    _, body = await got(cluster(), "/map")
    assert body["gangs"] == [GANG]
    shares = body["shares"]
    assert set(shares["gang"]) == {0}
    assert (sum(shares["used"]), sum(shares["reserved"])) == (0, 4)
    for at, of_node in enumerate(shares["node"]):
        assert shares["reserved"][at] == body["reserved"][of_node]


async def test_what_is_kept_for_a_gang_is_shown() -> None:
    engine = cluster()
    key = next(iter(engine.gangs.by_key))
    engine.planner.earmark({key: (frozenset({"b1", "loose"}), (0, 0.0, 0))}, {})
    _, body = await got(engine, "/map")
    assert body["earmarks"] == {"node": [body["nodes"].index("b1")], "gang": [0]}
    _, found = await got(engine, "/nodes/b1")
    assert found["kept_for"] == [GANG]


@pytest.mark.parametrize("seed", range(12))
def test_a_map_adds_up_to_the_topology_of_any_cluster(seed: int) -> None:
    engine = any_cluster(Random(seed))
    found = whole(engine)
    total = usage(Books.of(engine, "", ()), Part()).total
    (of_gpu,) = [each for each in total.resources if each.resource == found.resource]
    assert sum(found.allocatable) == of_gpu.capacity
    assert (sum(found.used), sum(found.reserved)) == (of_gpu.used, of_gpu.reserved)
    away = sum(each.nodes for each in total.excluded) - found.unlabelled
    assert sum(map(bool, found.state)) == away
    shares = found.shares
    for slot in range(len(found.nodes)):
        its = [at for at, each in enumerate(shares.node) if each == slot]
        assert sum(shares.used[at] for at in its) <= found.used[slot]
        assert sum(shares.reserved[at] for at in its) <= found.reserved[slot]
    assert list(shares.node) == sorted(shares.node)


def whole(engine: Engine) -> MapPage:
    (known,) = [each for each in copied(engine, "") if each is not None]
    return drawn(known, "", lambda _: True)


def test_gangs_are_copied_some_at_a_time() -> None:
    pods = [
        pod(f"g{at}", gpus=0, on="a0", phase="Running", annotations=group(f"g{at}", 1, RACK))
        for at in range(2 * GANGS_A_STEP)
    ]
    engine = engine_of([node("b0/r0/a0", pods=1000)], pods)
    steps = list(copied(engine, ""))
    assert len(steps) >= 4
    assert isinstance(steps[-1], Known)
    assert len(steps[-1].gangs) == 2 * GANGS_A_STEP


def test_of_ordinary_pods_nothing_is_copied() -> None:
    pods = [pod(f"p{at}", gpus=0, on="a0", phase="Running") for at in range(50)]
    pods.append(pod("g0", gpus=0, on="a0", phase="Running", annotations=group("g", 1, RACK)))
    engine = engine_of([node("b0/r0/a0", pods=1000)], pods)
    (known,) = [each for each in copied(engine, "") if each is not None]
    assert len(engine.books.bound) == 51
    assert list(known.bound) == ["uid-g0"]


# -- what is sent again


async def test_a_map_that_a_client_has_is_not_sent_again() -> None:
    engine = cluster()
    async with client(engine) as asking:
        first = await asking.get("/map")
        again = await asking.get("/map", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        engine.apply(Applied(node("b1/r1/b1", is_cordoned=True)), NOW)
        kept = await asking.get("/map")
        assert kept.content == first.content  # of the same second


async def test_a_map_is_made_anew_when_it_is_no_longer_fresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fresh, "FRESH_SECONDS", 0.0)
    engine = cluster()
    async with client(engine) as asking:
        first = await asking.get("/map")
        engine.apply(Applied(node("b1/r1/b1", is_cordoned=True)), NOW)
        later = await asking.get("/map", headers={"If-None-Match": first.headers["ETag"]})
        assert later.status_code == 200
        assert sum(map(bool, later.json()["state"])) == 2


async def test_a_map_is_compressed_for_who_takes_that() -> None:
    async with client(cluster()) as asking, asking.stream("GET", "/map") as answer:
        raw = b"".join([each async for each in answer.aiter_raw()])
        assert answer.headers["Content-Encoding"] == "gzip"
    plain = {"Accept-Encoding": "identity"}
    async with client(cluster()) as asking:
        assert gzip.decompress(raw) == (await asking.get("/map", headers=plain)).content


# -- one node


async def test_a_node_says_what_is_on_it() -> None:
    status, body = await got(cluster(), "/nodes/a0")
    assert (status, body["state"]) == (200, "")
    (gpus,) = [each for each in body["resources"] if each["resource"] == GPU]
    assert (gpus["capacity"], gpus["used"]) == (8, 3)
    bound = [each for each in body["pods"] if not each["is_reserved"]]
    assert [(each["name"], each["gang"], each["amounts"][GPU]) for each in bound] == [("p", "", 3)]
    assert gpus["reserved"] == 0


async def test_a_node_says_which_pods_it_is_kept_for() -> None:
    body = (await got(cluster(), "/nodes/b1"))[1]
    (gpus,) = [each for each in body["resources"] if each["resource"] == GPU]
    assert (gpus["used"], gpus["reserved"], gpus["free"]) == (0, 4, 4)
    assert [(each["name"], each["gang"], each["amounts"][GPU]) for each in body["pods"]] == [
        ("g0", "g", 2), ("g1", "g", 2),
    ]  # fmt: skip
    assert all(each["is_reserved"] for each in body["pods"])


async def test_a_closed_node_says_why_and_has_nothing_free() -> None:
    _, body = await got(cluster(), "/nodes/b0")
    assert body["state"] == "cordoned"
    assert {each["free"] for each in body["resources"]} == {0}


async def test_a_node_that_is_not_known_is_named() -> None:
    status, body = await got(cluster(), "/nodes/nowhere")
    assert (status, "nowhere" in body["detail"]) == (404, True)


# -- whose names are told


@pytest.mark.parametrize("path", ["/map", "/nodes/a0"])
@pytest.mark.parametrize(("user", "status"), [("", 200), ("admin", 200), ("machinist", 200),
    ("auditor", 403), ("tenant", 403), ("stranger", 403)])  # fmt: skip
async def test_who_may_list_nodes_sees_them(path: str, user: str, status: int) -> None:
    assert (await got(with_hidden(), path, user))[0] == status


async def test_gangs_of_namespaces_that_he_does_not_see_have_no_names() -> None:
    engine = with_hidden()
    _, admin = await got(engine, "/map", "admin")
    assert {each["name"] for each in admin["gangs"]} == {"seen", "hidden"}
    for query in ("", "?namespace="):
        _, machinist = await got(engine, f"/map{query}", "machinist")
        assert machinist["gangs"] == [{"namespace": "", "name": "", "source": ""}]
        assert machinist["shares"]["used"] == [2]  # both of them, together
        assert machinist["used"] == admin["used"]


async def test_pods_of_namespaces_that_he_does_not_see_are_counted() -> None:
    _, body = await got(with_hidden(), "/nodes/a0", "machinist")
    assert (body["pods"], body["more_pods"]) == ([], 2)
    assert "hidden" not in str(body)


async def test_a_namespace_that_is_not_his_is_refused() -> None:
    status, body = await got(with_hidden(), f"/map?namespace={ELSEWHERE}", "machinist")
    assert (status, ELSEWHERE in body["detail"]) == (403, True)


async def test_one_namespace_of_several_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RIGHTS, "planner", {("nodes", ""), ("pods", "default")})
    _, body = await got(with_hidden(), "/map?namespace=default", "planner")
    assert [each["name"] for each in body["gangs"]] == ["", "seen"] or [
        each["name"] for each in body["gangs"]
    ] == ["seen", ""]
    _, found = await got(with_hidden(), "/nodes/a0?namespace=default", "planner")
    assert ([each["name"] for each in found["pods"]], found["more_pods"]) == (["seen-0"], 1)


async def test_maps_of_one_client_are_not_given_to_another() -> None:
    engine = with_hidden()
    app = FastAPI()
    app.include_router(people(engine, Standing(lambda: "", callers=callers_of(Reviewer(RIGHTS)))))
    transport = httpx.ASGITransport(app=app, client=AFAR)
    async with httpx.AsyncClient(
        transport=transport, base_url="https://corral.corral-system.svc/v1"
    ) as asking:
        admin, machinist = [
            await asking.get("/map", headers={"Authorization": f"Bearer token-of-{user}"})
            for user in ("admin", "machinist")
        ]
    assert "hidden" in admin.text
    assert "hidden" not in machinist.text


async def test_nothing_is_told_before_the_cluster_is_known() -> None:
    app = FastAPI()
    app.include_router(people(cluster(), Standing(lambda: "no list yet")))
    transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 4711))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1/v1") as asking:
        for path in ("/map", "/nodes/a0", "/decisions"):
            answer = await asking.get(path)
            assert (answer.status_code, "no list yet" in answer.text) == (503, True)
