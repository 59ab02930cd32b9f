"""GET /v1/topology adds up what is there, and counts places node by node."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from fastapi import FastAPI

from app.api.routes import people
from app.api.standing import Standing
from app.explain.topology.usage import Books, Part, usage
from app.kube.core.objects import NodeRecord, Taint
from app.kube.core.turns import give_way
from app.kube.watch.events import Applied
from app.state.engine import Engine
from tests.app.simulate import clusters
from tests.app.simulate.clusters import NOW, digest, engine_of
from tests.records import BLOCK, GPU, RACK, group, node, pod


async def got(engine: Engine, standing: Standing | None = None, **query: Any) -> tuple[int, Any]:
    standing = standing or Standing(lambda: "")
    router = people(engine, standing)
    app = FastAPI()
    app.include_router(router)
    transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 4711))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1/v1") as people_:
        answer = await people_.get(f"/topology?{urlencode(query, doseq=True)}")
        return answer.status_code, answer.json()


def cluster() -> Engine:
    """Two racks of two nodes: in the first one node runs a pod, in the second one is cordoned."""
    nodes = [
        node("b0/r0/a0"), node("b0/r0/a1"),
        node("b1/r1/b0", is_cordoned=True),
        node("b1/r1/b1", taints=(Taint("x", "", "NoSchedule"),)), node("loose"),
    ]  # fmt: skip
    engine = engine_of(nodes, [pod("p", gpus=3, on="a0", phase="Running")])
    for at in range(2):  # a gang that is planned and not bound
        held = pod(f"g{at}", gpus=2, annotations=group("g", 2, RACK))
        engine.apply(Applied(held), NOW)
    engine.tick(NOW)
    return engine


def of(body: Any, domain: str) -> Any:
    return next(each for each in body["domains"] if each["domain"] == domain)


def amounts(domain: Any, resource: str) -> tuple[float, ...]:
    (found,) = [each for each in domain["resources"] if each["resource"] == resource]
    return tuple(found[key] for key in ("capacity", "used", "reserved", "free"))


async def test_a_domain_comes_before_those_inside_it_down_to_the_level_above_nodes() -> None:
    status, body = await got(cluster())
    assert status == 200
    assert [each["domain"] for each in body["domains"]] == ["b0", "b0/r0", "b1", "b1/r1"]
    assert [each["level"] for each in body["domains"]] == [BLOCK, RACK, BLOCK, RACK]
    assert body["levels"] == [BLOCK, RACK, "kubernetes.io/hostname"]
    assert body["name"] in [each["name"] for each in body["topologies"]]


async def test_capacity_used_reserved_and_free_add_up() -> None:
    _, body = await got(cluster())
    assert amounts(of(body, "b0/r0"), GPU) == (16, 3, 4, 9)
    assert amounts(of(body, "b1/r1"), GPU) == (16, 0, 0, 8)  # that of a cordoned node is not free
    assert amounts(body["total"], GPU) == (32, 3, 4, 17)
    assert amounts(of(body, "b0/r0"), "cpu")[:2] == (128, 1)  # in cores


async def test_nodes_that_take_none_are_excluded_by_reason() -> None:
    _, body = await got(cluster(), free_for=f"{GPU}=1")
    (excluded,) = of(body, "b1/r1")["excluded"]
    assert (excluded["reason"], excluded["nodes"], excluded["examples"]) == ("cordoned", 1, ["b0"])
    (barred,) = of(body, "b1/r1")["free_for"][0]["excluded"]
    assert ("taint" in barred["reason"], barred["nodes"]) == (True, 1)
    reasons = {each["reason"]: each["examples"] for each in body["total"]["excluded"]}
    assert reasons["without a label of every level"] == ["loose"]


async def test_places_for_a_shape_are_counted_node_by_node() -> None:
    _, body = await got(cluster(), free_for=[f"{GPU}=4", f"cpu=4,{GPU}=1", "example.com/x=1"])
    # a0 has 8 - 3 - 2 - 2 or 8 - 3, a1 the other: 9 are free and make two places for four.
    assert [each["pods"] for each in of(body, "b0/r0")["free_for"]] == [2, 9, 0]
    assert [each["pods"] for each in of(body, "b1/r1")["free_for"]] == [0, 0, 0]


async def test_places_for_a_gang_are_those_of_each_kind_of_its_pods() -> None:
    _, body = await got(cluster(), free_for="default/g")
    (free,) = of(body, "b0/r0")["free_for"]
    assert (free["shape"], free["pods"]) == ("g", 4)


@pytest.mark.parametrize("name", ["default/g1", "g1"])
async def test_a_gang_is_named_by_one_of_its_pods_as_well(name: str) -> None:
    _, body = await got(cluster(), free_for=name)
    (free,) = of(body, "b0/r0")["free_for"]
    assert (free["shape"], free["pods"]) == ("g", 4)


@pytest.mark.parametrize("amount", ["-8", "abc", "1e400"])
async def test_an_amount_that_is_none_is_named_and_no_pod_that_the_reader_never_wrote(
    amount: str,
) -> None:
    status, body = await got(cluster(), free_for=f"cpu=1,{GPU}={amount}")
    said = f"free_for: cpu=1,{GPU}={amount}: {GPU}: '{amount}' is not a quantity of zero or more"
    assert (status, body["detail"]) == (422, said)


@pytest.mark.parametrize("name", ["default/h", "other/g", "/", "a/b/c", ""])
async def test_a_gang_that_is_not_known_is_named(name: str) -> None:
    status, body = await got(cluster(), free_for=name)
    namespace, _, rest = name.rpartition("/")
    said = f"free_for: no gang {namespace or 'default'}/{rest} is known"
    assert (status, body["detail"]) == (422, said)


async def test_among_many_gangs_one_is_looked_for_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """18,000 gangs take 4 ms to look at."""
    monkeypatch.setattr("app.explain.finding.KEYS_A_STEP", 1)
    engine = cluster()
    for at in range(50):
        engine.apply(Applied(pod(f"o{at}", annotations=group(f"o{at}", 2))), NOW)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    status, _ = await got(engine, free_for="default/g")
    beside.cancel()
    assert (status, turns > 50) == (200, True)


@pytest.mark.parametrize("seed", range(20))
async def test_random_clusters_are_what_their_nodes_and_pods_say(seed: int) -> None:
    engine = clusters.drawn(Random(seed))
    _, body = await got(engine, level="kubernetes.io/hostname", name="default", free_for=f"{GPU}=2")
    books = engine.books
    for each in body["domains"]:
        inside = [one for one in _labelled(books.nodes.values()) if _is_inside(one, each["domain"])]
        names = {one.name for one in inside}
        used = sum(_gpus(its.request) for its in books.bound.values() if its.node in names)
        held = sum(_gpus(its.request) for its in books.held.values() if its.node in names)
        capacity = sum(_gpus(one.allocatable) for one in inside)
        assert each["nodes"] == len(inside)
        assert amounts(each, GPU)[:3] == (capacity, used, held)
        assert each["free_for"][0]["pods"] == sum(_fits(engine, one, 2) for one in inside)


def _labelled(nodes: Any) -> list[NodeRecord]:
    return [each for each in nodes if BLOCK in each.labels]


def _is_inside(one: NodeRecord, domain: str) -> bool:
    path = (one.labels[BLOCK], one.labels[RACK], one.name)
    return path[: domain.count("/") + 1] == tuple(domain.split("/"))


def _gpus(amounts: Any) -> int:
    return dict(amounts).get(GPU, 0)


def _fits(engine: Engine, one: NodeRecord, gpus: int) -> int:
    if one.is_unschedulable or not one.is_ready or one.taints:
        return 0
    booked = [*engine.books.bound.values(), *engine.books.held.values()]
    here = [each for each in booked if each.node == one.name]
    free = _gpus(one.allocatable) - sum(_gpus(each.request) for each in here)
    return max(0, min(free // gpus, dict(one.allocatable)["pods"] - len(here)))


async def test_a_part_of_the_tree_is_cut_by_level_and_domain_and_paged() -> None:
    engine = cluster()
    _, body = await got(engine, level=BLOCK)
    assert [each["domain"] for each in body["domains"]] == ["b0", "b1"]
    _, body = await got(engine, under="b1", level="kubernetes.io/hostname")
    assert [each["domain"] for each in body["domains"]] == ["b1", "b1/r1", "b1/r1/b0", "b1/r1/b1"]
    assert amounts(body["total"], GPU)[0] == 16
    _, whole = await got(engine, level="kubernetes.io/hostname")
    found, after = [], ""
    for _ in range(20):
        _, body = await got(engine, level="kubernetes.io/hostname", limit=3, after=after)
        found += body["domains"]
        after = body["next"]
        if not after:
            break
    assert found == whole["domains"]


async def test_hyper_nodes_are_a_topology_as_well() -> None:
    engine = clusters.drawn(Random(3))
    _, body = await got(engine)
    names = {each["name"]: each["levels"] for each in body["topologies"]}
    hyper = next(name for name, levels in names.items() if levels[0].startswith("topology.volcano"))
    _, body = await got(engine, name=hyper)
    assert "block0/rack0" in [each["domain"] for each in body["domains"]]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"name": "none"}, "none"),
        ({"level": "example.com/row"}, "example.com/row"),
        ({"under": "b7"}, "b7"),
        ({"after": "b7"}, "b7"),
        ({"free_for": "cpu"}, "default/cpu"),
        ({"free_for": "cpu="}, "cpu="),
        ({"free_for": "cpu=x"}, "cpu=x"),
        ({"free_for": "=1"}, "=1"),
        ({"free_for": "team/none"}, "team/none"),
        ({"free_for": "x" * 600 + "=1"}, "characters"),
        ({"free_for": ["cpu=1"] * 9}, "free_for"),
        ({"limit": 0}, "limit"),
        ({"limit": 501}, "limit"),
    ],
)
async def test_what_is_not_there_or_not_valid_is_named(query: dict[str, Any], named: str) -> None:
    status, body = await got(cluster(), **query)
    assert status == 422
    assert named in str(body["detail"])


async def test_reading_changes_nothing_and_needs_a_synced_corral() -> None:
    engine = cluster()
    before = digest(engine)
    await got(engine, free_for=["default/g", f"{GPU}=1"])
    assert digest(engine) == before
    status, body = await got(engine, Standing(lambda: "no list yet"))
    assert (status, "no list yet" in body["detail"]["message"]) == (503, True)


def test_a_page_of_many_domains_is_made_in_turns_with_the_loop() -> None:
    turns: list[bool] = []
    engine = engine_of([node(f"b0/r{at}/n{at}") for at in range(20)], [])
    books = Books.of(engine, "", ())
    token = give_way.set(lambda: turns.append(True))
    try:
        page = usage(books, Part())
    finally:
        give_way.reset(token)
    assert len(turns) >= len(page.domains) == 21
