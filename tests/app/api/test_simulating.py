"""POST /v1/simulate answers with what would happen, refuses by name, and lets the loop go on."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.admission.scope import Scope
from app.api import simulating as module
from app.api.routes import people
from app.api.simulating import MOST_WAITING
from app.api.standing import Standing
from app.kube.core.objects import Owner
from app.kube.watch.events import Applied
from app.simulate.body import MOST_BYTES
from app.simulate.copying import Copy
from app.simulate.simulating import MOST_EXPLAINED, Rules
from app.state.engine import Engine
from tests.app.simulate.clusters import NOW, digest, engine_of, read
from tests.app.state.world import four_racks
from tests.records import GPU, RACK, REQUIRED, group, node, pod


def job(name: str, pods: int, gpus: int = 8, **annotations: str) -> dict[str, Any]:
    resources = {"requests": {GPU: gpus}}
    spec = {"schedulerName": "corral", "containers": [{"name": "m", "resources": resources}]}
    template = {"metadata": {"annotations": annotations or {REQUIRED: RACK}}, "spec": spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": pods, "template": template},
    }


def client(engine: Engine, standing: Standing | None = None) -> httpx.AsyncClient:
    standing = standing or Standing(lambda: "")
    router = people(engine, replace(standing, rules=Rules(Scope("corral"))))
    app = FastAPI()
    app.include_router(router)
    transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 4711))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8888/v1")


async def posted(
    engine: Engine, body: Any, query: str = "", standing: Standing | None = None, **more: Any
) -> tuple[int, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client(engine, standing) as people:
        answer = await people.post(f"/simulate{query}", content=content, **more)
        return answer.status_code, answer.json()


async def test_a_job_that_fits_has_a_node_for_each_pod_in_one_domain() -> None:
    status, body = await posted(engine_of(four_racks()), job("t", 4))
    (found,) = body["gangs"]
    assert (status, found["verdict"], found["objects"]) == (200, "Fits", ["Job default/t"])
    assert [each["node"] for each in found["places"]] == ["n00", "n01", "n02", "n03"]
    assert {each["domain"]: each["pods"] for each in found["domains"]} == {"b0": 4, "b0/r0": 4}


async def test_gangs_of_one_body_see_the_places_of_those_before() -> None:
    nodes = [node(f"b0/r0/n{at}") for at in range(4)]
    status, body = await posted(engine_of(nodes), [job("a", 3), job("b", 2)])
    assert status == 200
    assert [(each["gang"]["name"], each["verdict"]) for each in body["gangs"]] == [
        ("a", "Fits"),
        ("b", "DoesNotFit"),
    ]
    (blocker,) = body["gangs"][1]["explanation"]["blockers"]
    assert (blocker["who"], blocker["pods"]) == ("gang default/a", 3)


async def test_priority_comes_first_whatever_the_order_of_the_body() -> None:
    nodes = [node(f"b0/r0/n{at}") for at in range(4)]
    high = job("z", 3)
    high["spec"]["template"]["spec"]["priorityClassName"] = "high"
    named = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    named |= {"metadata": {"name": "high"}, "value": 100}
    _, body = await posted(engine_of(nodes), [job("a", 3), high, named])
    found = {each["gang"]["name"]: each["verdict"] for each in body["gangs"]}
    assert found == {"z": "Fits", "a": "DoesNotFit"}
    _, body = await posted(engine_of(nodes), [job("a", 3), high])
    assert any("PriorityClass high" in note for each in body["gangs"] for note in each["notes"])


def priority_class(name: str, value: int, **said: Any) -> dict[str, Any]:
    api = "scheduling.k8s.io/v1"
    metadata = {"name": name, "uid": f"uid-{name}"}
    return {
        "apiVersion": api,
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
        **said,
    }


async def test_the_priority_classes_of_the_cluster_count_unless_the_body_has_others() -> None:
    engine = engine_of([node(f"b0/r0/n{at}") for at in range(4)])
    for each in (priority_class("high", 100), priority_class("low", -5, globalDefault=True)):
        engine.apply(Applied(read(engine, "PriorityClass", each)), NOW)
    high, low = job("z", 3), job("a", 3)
    high["spec"]["template"]["spec"]["priorityClassName"] = "high"
    _, body = await posted(engine, [low, high])
    found = [(each["gang"]["name"], each["gang"]["priority"]) for each in body["gangs"]]
    assert found == [("z", 100), ("a", -5)]
    assert not any(each["notes"] for each in body["gangs"])
    _, body = await posted(engine, [low, high, priority_class("high", -100)])
    found = [(each["gang"]["name"], each["gang"]["priority"]) for each in body["gangs"]]
    assert found == [("a", -5), ("z", -100)]


async def test_a_pod_clique_set_goes_by_the_priority_class_of_the_body_or_of_the_cluster() -> None:
    engine = engine_of([node(f"b0/r0/n{at}") for at in range(4)])
    clique = {"name": "w", "spec": {"replicas": 2, "podSpec": {"schedulerName": "corral"}}}
    thing = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "p"},
        "spec": {"replicas": 1, "template": {"cliques": [clique], "priorityClassName": "high"}},
    }

    async def priority(*more: dict[str, Any]) -> tuple[int, tuple[str, ...]]:
        _, body = await posted(engine, [thing, *more])
        (found,) = body["gangs"]
        return found["gang"]["priority"], found["notes"]

    said, notes = await priority()
    assert (said, any("PriorityClass high" in each for each in notes)) == (0, True)
    assert await priority(priority_class("high", 7)) == (7, [])
    engine.apply(Applied(read(engine, "PriorityClass", priority_class("high", 100))), NOW)
    assert await priority() == (100, [])
    assert await priority(priority_class("high", 7)) == (7, [])


async def test_yaml_of_several_documents_and_a_namespace_of_its_own() -> None:
    body = "\n---\n".join(json.dumps(job(name, 1)) for name in ("a", "b")).encode()
    status, found = await posted(engine_of(four_racks()), b"# two\n" + body, "?namespace=team")
    assert status == 200
    assert [each["gang"]["namespace"] for each in found["gangs"]] == ["team", "team"]


async def test_every_flaw_of_an_invalid_object_is_named_with_field_and_value() -> None:
    wrong = job("w", 4, **{REQUIRED: RACK, "kueue.x-k8s.io/podset-slice-size": "x"})
    _, body = await posted(engine_of(four_racks()), [wrong, job("t", 1)])
    invalid = next(each for each in body["gangs"] if each["verdict"] == "Invalid")
    assert invalid["objects"] == ["Job default/w"]
    fields = [(each["field"], each["value"]) for each in invalid["errors"]]
    where = "spec.template.metadata.annotations"
    assert (f"{where}[kueue.x-k8s.io/podset-slice-size]", "x") in fields
    assert [each["verdict"] for each in body["gangs"]] == ["Fits", "Invalid"]


async def test_who_would_have_to_go_is_a_gang_that_runs() -> None:
    nodes = [node("b0/r0/a"), node("b0/r0/b")]
    runs = pod(
        "low-0", on="a", phase="Running", priority=-10, annotations=group("low", 1, RACK),
        owner=Owner("apps/v1", "ReplicaSet", "low", "uid-low"),
    )  # fmt: skip
    _, body = await posted(engine_of(nodes, [runs]), job("t", 2))
    (found,) = body["gangs"]
    (gone,) = [e for e in found["explanation"]["relaxations"] if e["kind"] == "PodsGone"]
    assert "gang default/low" in gone["text"]
    assert found["explanation"]["blockers"][0]["who"] == "gang default/low"


async def test_ordinary_pods_and_what_kube_scheduler_decides_are_told() -> None:
    thing = job("t", 1, **{"example.com/x": "y"})
    status, body = await posted(engine_of(four_racks()), thing)
    assert (status, body["gangs"][0]["verdict"]) == (200, "NoGang")
    claims = job("c", 1)
    claims["spec"]["template"]["spec"]["volumes"] = [{"persistentVolumeClaim": {"claimName": "x"}}]
    _, body = await posted(engine_of(four_racks()), claims)
    assert any("volumes" in each for each in body["gangs"][0]["notes"])
    of_class = job("r", 1)
    of_class["spec"]["template"]["spec"]["runtimeClassName"] = "kata"
    _, body = await posted(engine_of(four_racks()), of_class)
    assert any("RuntimeClass kata" in each for each in body["gangs"][0]["notes"])


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        (b"", 422, "no object"),
        (b"{", 422, "JSON"),
        (b"a: [", 422, "YAML"),
        (b"- a\n- b", 422, "object 1"),
        (b"a: &x 1\nb: *x", 422, "aliases"),
        (b"kind: Job", 422, "apiVersion"),
        (b'{"kind": "Job", "apiVersion": "batch/v1"}', 422, "metadata"),
        (
            b'{"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}}',
            422,
            "Deployment web",
        ),
        (b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: c}", 422, "ConfigMap c"),
        (b" " * (MOST_BYTES + 1), 413, "bytes"),
        (json.dumps(job("Träin_1", 1)).encode(), 422, "metadata.name: 'Träin_1'"),
        (json.dumps(job("a/b", 1)).encode(), 422, "metadata.name: 'a/b'"),
        (b'{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"A-"}}', 422, "'A-'"),
        (b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b.c"}}', 422,
         "metadata.namespace: 'b.c'"),
        (json.dumps(job("large", 20_000)).encode(), 422, "10000 pods"),
        (json.dumps([job(f"j{at}", 1) for at in range(257)]).encode(), 422, "256 objects"),
    ],
)  # fmt: skip
async def test_what_cannot_be_simulated_is_refused_by_name(
    body: bytes, status: int, named: str
) -> None:
    found, answer = await posted(engine_of(four_racks()), body)
    assert found == status
    assert named in str(answer["detail"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("parallelism",), "four"),
        (("parallelism",), -1),
        (("parallelism",), True),
        (("template",), []),
        (("template", "metadata", "annotations"), "x"),
        (("template", "metadata", "labels"), {"a": 1}),
        (("template", "spec"), "x"),
        (("template", "spec", "containers"), "x"),
        (("completionMode",), 7),
    ],
)
async def test_a_field_of_another_type_is_named(path: tuple[str, ...], value: object) -> None:
    thing = job("t", 2)
    holder = thing["spec"]
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = value
    status, body = await posted(engine_of(four_racks()), thing)
    (found,) = body["gangs"]
    assert (status, found["verdict"]) == (200, "Invalid")
    (error,) = found["errors"]
    assert error["object"] == "Job default/t"
    assert path[-1] in error["field"] + error["message"]


@pytest.mark.parametrize("spec", ["x", True, 7, ["x"]])
async def test_a_pod_whose_spec_is_no_object_is_not_valid(spec: object) -> None:
    thing = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    status, body = await posted(engine_of(four_racks()), thing)
    (found,) = body["gangs"]
    assert (status, found["verdict"]) == (200, "Invalid")
    (error,) = found["errors"]
    assert "spec" in error["field"] + error["message"]


async def test_nothing_changes_and_an_existing_name_is_told() -> None:
    engine = engine_of(four_racks())
    before = digest(engine)
    await posted(engine, [job("a", 3), job("b", 9)])
    assert digest(engine) == before


async def test_it_waits_until_corral_knows_the_cluster_and_asks_the_one_that_leads() -> None:
    engine = engine_of(four_racks())
    status, body = await posted(engine, job("t", 1), standing=Standing(lambda: "no list yet"))
    assert (status, body["detail"]["reason"]) == (503, "NotReady")
    assert "no list yet" in body["detail"]["message"]
    other = Standing(lambda: "", lambda: "pod corral-1 leads")
    status, body = await posted(engine, job("t", 1), standing=other)
    assert (status, body["detail"]["reason"]) == (503, "NotLeading")
    assert "corral-1" in body["detail"]["message"]
    assert body["detail"]["advice"]


async def test_a_compressed_body_is_refused() -> None:
    headers = {"content-encoding": "gzip"}
    status, _ = await posted(engine_of(four_racks()), job("t", 1), headers=headers)
    assert status == 415


async def test_only_so_many_gangs_are_explained_and_each_is_told() -> None:
    things = [job(f"j{at}", 9) for at in range(MOST_EXPLAINED + 3)]
    _, body = await posted(engine_of(four_racks()), things)
    found = body["gangs"]
    assert [each["verdict"] for each in found] == ["DoesNotFit"] * len(things)
    assert sum(each["explanation"] is not None for each in found) == MOST_EXPLAINED
    left_out = [each for each in found if each["explanation"] is None]
    assert all("9" in each["message"] for each in left_out)
    assert all(any("at a time" in note for note in each["notes"]) for each in left_out)


async def test_only_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, go = engine_of(four_racks()), threading.Event()
    monkeypatch.setattr(module, "_answered", lambda *_, **__: (go.wait(10), b"{}")[1])
    async with client(engine) as people:
        body = json.dumps(job("t", 1)).encode()
        asked = [
            asyncio.create_task(people.post("/simulate", content=body))
            for _ in range(MOST_WAITING + 2)
        ]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        go.set()
        statuses = [answer.status_code for answer in await asyncio.gather(*asked)]
    assert sorted(statuses) == [200] * MOST_WAITING + [503, 503]


async def test_bodies_that_come_slowly_keep_no_one_waiting() -> None:
    may_end = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await may_end.wait()

    async with client(engine_of(four_racks())) as people:
        asked = [
            asyncio.create_task(people.post("/simulate", content=slowly()))
            for _ in range(MOST_WAITING)
        ]
        await asyncio.sleep(0.05)
        answer = await people.post("/simulate", content=json.dumps(job("t", 1)).encode())
        assert answer.status_code == 200
        may_end.set()
        assert {each.status_code for each in await asyncio.gather(*asked)} == {422}


async def test_nothing_is_simulated_for_a_client_that_has_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulated: list[object] = []
    monkeypatch.setattr(module, "_answered", lambda *_, **__: (simulated.append(1), b"{}")[1])
    app = FastAPI()
    rules = replace(Standing(lambda: ""), rules=Rules(Scope("corral")))
    app.include_router(people(engine_of(four_racks()), rules))
    body = json.dumps(job("t", 1)).encode()
    scope = {
        "type": "http", "method": "POST", "path": "/v1/simulate", "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1), "http_version": "1.1",
        "scheme": "http", "server": ("127.0.0.1", 8888), "root_path": "",
    }  # fmt: skip
    for has_gone in (False, True):
        simulated.clear()
        coming = [{"type": "http.request", "body": body, "more_body": False}]
        coming += [{"type": "http.disconnect"}] * has_gone

        async def receive(coming: list[Any] = coming) -> Any:
            return coming.pop(0) if coming else await asyncio.Event().wait()

        async def send(_message: object) -> None:
            pass

        await app(scope, receive, send)
        assert bool(simulated) is not has_gone


@pytest.mark.alone
async def test_the_loop_waits_for_a_copy_of_a_large_cluster_for_less_than_five_milliseconds() -> (
    None
):
    nodes = [node(f"b{r // 16}/r{r}/n{r}x{at}") for r in range(320) for at in range(16)]
    pods = [
        pod(f"p{at}", gpus=1, on=nodes[at % 5120].name, phase="Running") for at in range(20_480)
    ]
    engine = engine_of(nodes, pods)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        Copy.of(engine, 1.0)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.005
