"""The whole program against an API server on the loopback: from the first list to the last signal.

The tests play kube-scheduler by hand, so that each step is visible.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from app.dialects.corral import GATE
from app.dialects.kueue.pod_groups import FAST
from app.errors import SettingsError
from app.main import ANSWER_MARGIN_SECONDS, build, started
from app.process.collector import PACE
from app.process.engine_settings import engine_settings
from app.process.outside import OTHER_CONNECTIONS
from app.process.parts import SHUTTING_DOWN, Parts, run
from app.sandbox import Sandbox
from app.sandbox.scheduler.facts.scheduler_config import ExtenderConfig
from app.setting_values import Address
from app.settings import Settings
from app.state.effects import ReadAgain
from app.state.gang.gang import Phase
from app.state.journal.replay import replay
from app.state.plan.planner import Planner
from tests.app.admission.port import patch_of, patched, review
from tests.app.polling import until
from tests.certificates import pair
from tests.cluster import BLOCK, GPU, RACK, grid, pod
from tests.workloads import behind_gate, gates_of

RACKS = 2
NODES = [node["metadata"]["name"] for node in grid(racks=RACKS, nodes=2)]
GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL = "kueue.x-k8s.io/pod-group-total-count"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"


def member(rank: int, of: int = 2, gpus: int = 8, gang: str = "train") -> dict[str, Any]:
    """One pod of a gang that wants one rack."""
    return pod(
        f"{gang}-{rank}",
        requests={GPU: gpus},
        labels={GROUP: gang},
        annotations={TOTAL: str(of), REQUIRED: RACK},
    )


@dataclass
class Plane:
    """A cluster with RACKS racks of two nodes of 8 GPUs, and a Corral beside it."""

    corral: Parts
    api: httpx.AsyncClient
    port: httpx.AsyncClient
    sandbox: Sandbox
    life: AsyncExitStack

    async def stop(self) -> None:
        """Stop Corral as SIGTERM would; everything else stays up."""
        await self.life.aclose()

    async def create(self, thing: dict[str, Any]) -> dict[str, Any]:
        kind = f"{thing['kind'].lower()}s"
        space = "" if kind == "nodes" else "/namespaces/default"
        answer = await self.api.post(f"/api/v1{space}/{kind}", json=thing)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def pod(self, name: str) -> dict[str, Any]:
        answer = await self.api.get(f"/api/v1/namespaces/default/pods/{name}")
        assert answer.status_code == 200
        return answer.json()

    async def filter(self, a_pod: dict[str, Any], names: list[str] | None = None) -> dict[str, Any]:
        body = {"Pod": a_pod, "Nodes": None, "NodeNames": NODES if names is None else names}
        return (await self.port.post("/filter", json=body)).json()

    async def pinned(self, a_pod: dict[str, Any]) -> str:
        """The one node /filter gives this member, as soon as it does."""
        deadline = time.monotonic() + 5
        while True:
            answer = await self.filter(a_pod)
            if names := answer["NodeNames"]:
                assert len(names) == 1
                return names[0]
            assert time.monotonic() < deadline, answer
            await asyncio.sleep(0.005)

    async def bind(self, a_pod: dict[str, Any], node: str) -> str:
        metadata = a_pod["metadata"]
        body = {
            "PodName": metadata["name"],
            "PodNamespace": metadata["namespace"],
            "PodUID": metadata["uid"],
            "Node": node,
        }
        return (await self.port.post("/bind", json=body)).json()["Error"]


def settings_for(kubeconfig: Path, **knobs: Any) -> Settings:
    fixed = {"extender_listen": Address("127.0.0.1", 0), "levels": (BLOCK, RACK)}
    return Settings(kubeconfig=kubeconfig, **{**fixed, "tick_seconds": 0.01, **knobs})


@asynccontextmanager
async def running(folder: Path, **knobs: Any) -> AsyncIterator[Plane]:
    async with Sandbox() as sandbox, AsyncExitStack() as life:
        sandbox.write_kubeconfig(folder / "kubeconfig")
        corral = await life.enter_async_context(
            started(settings_for(folder / "kubeconfig", **knobs))
        )
        headers = {"Authorization": f"Bearer {sandbox.token}"}
        async with (
            httpx.AsyncClient(base_url=sandbox.url, headers=headers) as api,
            httpx.AsyncClient(base_url=corral.extender_url, timeout=30) as port,
        ):
            plane = Plane(corral, api, port, sandbox, life)
            for node in grid(racks=RACKS, nodes=2, gpus=8):
                await plane.create(node)
            await until(lambda: len(corral.engine.books.nodes) == len(NODES))
            await until(lambda: not corral.unready())
            yield plane


@pytest.mark.slow
async def test_a_gang_is_held_at_bind_until_its_last_member_and_then_bound_in_one_rack(tmp_path):
    async with running(tmp_path) as plane:
        first = await plane.create(member(0))
        waiting = await plane.filter(first)
        assert waiting["NodeNames"] == []
        assert set(waiting["FailedAndUnresolvableNodes"]) == set(NODES)
        second = await plane.create(member(1))
        node = await plane.pinned(first)
        other = await plane.pinned(second)
        assert node != other
        assert node.rsplit("-", 1)[0] == other.rsplit("-", 1)[0]  # the rack's name

        held = asyncio.create_task(plane.bind(first, node))
        await until(lambda: plane.corral.metrics.registry.get_sample_value("corral_held_binds"))
        assert "nodeName" not in (await plane.pod("train-0"))["spec"]
        assert await plane.bind(second, other) == ""
        assert await held == ""
        bound = await plane.pod("train-0")
        assert bound["spec"]["nodeName"] == node
        assert bound["metadata"]["annotations"]["corral.dev/gang"]
        # kube-scheduler may have missed the answer and asks once more.
        assert await plane.bind(first, node) == ""


@pytest.mark.slow
@pytest.mark.parametrize("nominates", [True, False])
async def test_a_member_that_was_rejected_is_woken_by_one_write(tmp_path, nominates):
    async with running(tmp_path, nominate_planned=nominates) as plane:
        first = await plane.create(member(0))
        assert (await plane.filter(first))["NodeNames"] == []
        await plane.create(member(1))
        woken = plane.corral.metrics.registry.get_sample_value
        await until(lambda: woken("corral_wakes_total", {"outcome": "woken"}))
        pod = await plane.pod("train-0")
    planned = plane.corral.engine.books.held[pod["metadata"]["uid"]].node
    assert pod["status"].get("nominatedNodeName") == (planned if nominates else None)
    assert ("corral.dev/wake" in pod["metadata"]["annotations"]) is not nominates


@pytest.mark.slow
async def test_gated_members_are_ungated_once_all_are_there_and_narrowed_to_their_rack(tmp_path):
    async with running(tmp_path) as plane:
        sample = plane.corral.metrics.registry.get_sample_value
        first, second = (behind_gate(member(rank)) for rank in range(2))
        await plane.create(first)
        await until(lambda: plane.corral.engine.gangs_by_phase()[Phase.GATHERING.value])
        await plane.create(second)
        await until(lambda: sample("corral_pods_ungated_total", {"outcome": "ungated"}) == 2)
        pods = [await plane.pod(f"train-{rank}") for rank in range(2)]
        nodes = [await plane.pinned(each) for each in pods]
        binds = [plane.bind(*each) for each in zip(pods, nodes, strict=True)]
        assert await asyncio.gather(*binds) == ["", ""]
        assert sample("corral_gate_to_bound_seconds_count") == 2
    assert [gates_of(each) for each in pods] == [[], []]
    required = pods[0]["spec"]["affinity"]["nodeAffinity"]
    terms = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    allowed = {name for term in terms for name in term["matchFields"][0]["values"]}
    assert allowed == set(nodes)


@pytest.mark.slow
async def test_an_ordinary_pod_is_bound_at_once_where_kube_scheduler_says(tmp_path):
    async with running(tmp_path) as plane:
        web = await plane.create(pod("web", requests={"cpu": "1"}))
        assert (await plane.filter(web))["NodeNames"] == NODES
        assert await plane.bind(web, NODES[3]) == ""
        assert (await plane.pod("web"))["spec"]["nodeName"] == NODES[3]


@pytest.mark.slow
async def test_a_binding_the_api_server_refuses_is_an_error(tmp_path):
    async with running(tmp_path) as plane:
        web = await plane.create(pod("web", requests={"cpu": "1"}))
        plane.sandbox.faults.fail_next(1, resource="pods/binding", status=403, reason="Forbidden")
        assert "403" in await plane.bind(web, NODES[0])
        assert "nodeName" not in (await plane.pod("web"))["spec"]


@pytest.mark.slow
async def test_stopping_answers_a_held_bind_and_takes_no_longer_than_agreed(tmp_path):
    held: list[asyncio.Task[str]] = []
    async with running(tmp_path) as plane:
        first, second = await plane.create(member(0)), await plane.create(member(1))
        node = await plane.pinned(first)
        await plane.pinned(second)
        held.append(asyncio.create_task(plane.bind(first, node)))
        await until(lambda: plane.corral.metrics.registry.get_sample_value("corral_held_binds"))
        began = time.monotonic()
        await plane.stop()
        assert time.monotonic() - began < 3
        assert "stopping" in await held[0]
        with pytest.raises(httpx.TransportError):
            await plane.filter(first)
        assert "nodeName" not in (await plane.pod("train-0"))["spec"]


@pytest.mark.slow
async def test_stopping_lets_a_binding_under_way_finish(tmp_path):
    async with running(tmp_path) as plane:
        web = await plane.create(pod("web", requests={"cpu": "1"}))
        plane.sandbox.faults.delay(0.5, resource="pods/binding")
        held = asyncio.create_task(plane.bind(web, NODES[0]))
        await until(lambda: plane.corral.metrics.registry.get_sample_value("corral_held_binds"))
        await plane.stop()
        assert await held == ""
        assert (await plane.pod("web"))["spec"]["nodeName"] == NODES[0]


@pytest.mark.slow
async def test_stopping_does_not_wait_for_an_api_server_that_is_stuck(tmp_path):
    async with running(tmp_path, bind_seconds=0.3) as plane:
        web = await plane.create(pod("web", requests={"cpu": "1"}))
        plane.sandbox.faults.delay(1.5, resource="pods/binding")
        held = asyncio.create_task(plane.bind(web, NODES[0]))
        await until(lambda: plane.corral.metrics.registry.get_sample_value("corral_held_binds"))
        began = time.monotonic()
        await plane.stop()
        assert await held != ""
        assert time.monotonic() - began < 3
        plane.sandbox.faults.clear()


@pytest.mark.slow
async def test_a_binding_whose_answer_is_lost_is_still_a_success(tmp_path):
    async with running(tmp_path) as plane:
        web = await plane.create(pod("web", requests={"cpu": "1"}))
        plane.sandbox.faults.drop_answers(1)
        assert await plane.bind(web, NODES[0]) == ""
        assert (await plane.pod("web"))["spec"]["nodeName"] == NODES[0]


@pytest.mark.slow
async def test_a_busy_api_server_is_asked_again(tmp_path):
    async with running(tmp_path) as plane:
        web = await plane.create(pod("web", requests={"cpu": "1"}))
        plane.sandbox.faults.fail_next(
            1, resource="pods/binding", status=429, reason="TooManyRequests"
        )
        assert await plane.bind(web, NODES[0]) == ""


@pytest.mark.slow
async def test_a_search_that_fails_is_counted_and_costs_only_its_own_gang(tmp_path, monkeypatch):
    search = Planner._searched

    def trips(planner, gang, *more, **named):
        if gang.key.name == "bad":
            raise RuntimeError("bug")
        return search(planner, gang, *more, **named)

    monkeypatch.setattr(Planner, "_searched", trips)
    async with running(tmp_path) as plane:
        errors = plane.corral.metrics.registry.get_sample_value
        for name in ("bad", "good"):
            for rank in range(2):
                await plane.create(member(rank, gang=name))
        await until(lambda: errors("corral_engine_errors_total", {"input": "part"}))
        await until(lambda: len(plane.corral.engine.books.held) == 2)


@pytest.mark.slow
async def test_a_journal_of_all_that_happened_is_kept_and_plays_again(tmp_path):
    path = tmp_path / "journal"
    async with running(tmp_path, journal=path) as plane:
        pods = [await plane.create(member(rank)) for rank in range(2)]
        nodes = [await plane.pinned(each) for each in pods]
        bound = (plane.bind(each, node) for each, node in zip(pods, nodes, strict=True))
        assert await asyncio.gather(*bound) == ["", ""]
        size = plane.corral.metrics.registry.get_sample_value("corral_journal_bytes")
    lines = path.read_bytes().splitlines(keepends=True)
    assert list(replay(lines)) == []
    assert {json.loads(line).get("call") for line in lines} >= {
        "apply", "tick", "filter", "bind_arrived", "bind_finished", "drain",
    }  # fmt: skip
    assert 0 < size <= path.stat().st_size


@pytest.mark.slow
async def test_books_that_differ_are_counted_and_healed(tmp_path):
    async with running(tmp_path, audit_seconds=0.05) as plane:
        sample = plane.corral.metrics.registry.get_sample_value
        cluster = plane.corral.engine.books
        await until(lambda: not cluster.is_stale)  # its trees are built on the first tick
        (topology, *_) = cluster.topologies.values()
        topology.capacity.used[0, 0] += 1
        await until(lambda: sample("corral_audit_differences_total"))
        await until(lambda: not plane.corral.engine.differences())
        web = await plane.create(pod("web", requests={"cpu": "1"}))
        assert await plane.bind(web, NODES[0]) == ""


@pytest.mark.slow
async def test_a_second_start_sees_what_the_first_one_did(tmp_path):
    async with running(tmp_path) as plane:
        first, second = await plane.create(member(0)), await plane.create(member(1))
        nodes = [await plane.pinned(each) for each in (first, second)]
        binds = [plane.bind(*each) for each in zip((first, second), nodes, strict=True)]
        assert await asyncio.gather(*binds) == ["", ""]
        async with started(settings_for(tmp_path / "kubeconfig")) as again:
            await until(lambda: not again.unready())
            await until(lambda: again.engine.gangs_by_phase()[Phase.RUNNING.value])


@pytest.mark.slow
async def test_a_tenant_does_not_hide_gpus_behind_resources_that_no_node_has(tmp_path):
    """The pods are read after nodes offer GPUs, and before one offers a NIC."""
    made_up = {f"a.com/r{at:04}": 1 for at in range(300)}
    async with running(tmp_path) as plane:
        books = plane.corral.engine.books
        for at, node in enumerate(NODES):
            greedy = pod(
                f"greedy-{at}", requests={**made_up, GPU: 8, "z.com/nic": 1}, nodeName=node
            )
            await plane.create(greedy)
        await until(lambda: len(books.bound) == len(NODES))
        assert {dict(each.request).get(GPU) for each in books.bound.values()} == {8}
        for rank in range(2):
            await plane.create(member(rank))
        with_nics = grid(racks=RACKS + 1, nodes=1)[-1]
        for amounts in (with_nics["status"]["capacity"], with_nics["status"]["allocatable"]):
            amounts["z.com/nic"] = "8"
        await plane.create(with_nics)
        await until(lambda: all("z.com/nic" in dict(each.request) for each in books.bound.values()))
        assert books.held == {}


@pytest.mark.slow
async def test_an_extra_port_answers_people(tmp_path):
    async with (
        running(tmp_path, api_listen=Address("127.0.0.1", 0)) as plane,
        httpx.AsyncClient(base_url=plane.corral.api_url) as people,
    ):
        ready = await people.get("/readyz")
        metrics = await people.get("/metrics")
        verb = await people.post("/filter", json={})
    assert ready.status_code == 200
    assert re.search(r'^corral_gangs\{phase="\w+"\} 0\.0$', metrics.text, re.MULTILINE)
    assert "\ncorral_absent_pods 0.0\n" in metrics.text
    assert verb.status_code == 404


@pytest.mark.slow
async def test_who_follows_sees_a_gang_placed_and_holds_up_no_end(tmp_path):
    async with running(tmp_path) as plane, httpx.AsyncClient(timeout=10) as client:
        url = f"{plane.corral.extender_url}/v1/events?namespace=default"
        async with client.stream("GET", url) as answer:
            lines = answer.aiter_lines()
            while "synced" not in await anext(lines):
                pass
            for rank in range(2):
                await plane.create(member(rank))
            line = ""
            while '"phase":"placed"' not in line:
                line = await anext(lines)
            assert plane.corral.metrics.registry.get_sample_value("corral_followers") == 1
            began = time.monotonic()
            ending = asyncio.create_task(plane.life.aclose())
            rest = [line async for line in lines]
            await ending
            assert time.monotonic() - began < 3.0
    assert "event: end" in rest
    assert 'data: {"reason":"Corral is shutting down"}' in rest


@pytest.mark.slow
async def test_a_stock_scheduler_starts_gangs_through_us(tmp_path):
    async with running(tmp_path) as plane:
        extender = ExtenderConfig(
            url=plane.corral.extender_url,
            filter_verb="filter",
            prioritize_verb="prioritize",
            bind_verb="bind",
            weight=1,
            node_cache_capable=True,
            http_timeout=30.0,
        )
        await plane.sandbox.schedule_with(
            extender, profiles={"corral": 100}, percentage_of_nodes_to_score=100, speed=10.0
        )
        for rank in range(4):
            await plane.create(member(rank, of=4, gpus=4))
        binds = plane.corral.metrics.registry.get_sample_value
        await until(lambda: binds("corral_binds_total", {"outcome": "bound"}) == 4, seconds=20)
        pods = [await plane.pod(f"train-{rank}") for rank in range(4)]
    assert len({each["spec"]["nodeName"].rsplit("-", 1)[0] for each in pods}) == 1


async def test_without_an_api_server_we_are_alive_but_not_ready(tmp_path):
    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
    async with (
        started(settings_for(tmp_path / "kubeconfig")) as corral,
        httpx.AsyncClient(base_url=corral.extender_url) as port,
    ):
        assert (await port.get("/healthz")).status_code == 200
        assert (await port.get("/readyz")).status_code == 503
        body = {"Pod": pod("web"), "Nodes": None, "NodeNames": ["n1"]}
        assert (await port.post("/filter", json=body)).json()["NodeNames"] == ["n1"]


@pytest.mark.slow
async def test_watches_that_fail_and_what_waits_are_told_to_prometheus(tmp_path):
    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
    settings = settings_for(tmp_path / "kubeconfig", journal=tmp_path / "journal")
    async with (
        started(settings) as corral,
        httpx.AsyncClient(base_url=corral.extender_url, timeout=30) as port,
    ):
        value = corral.metrics.registry.get_sample_value
        for kind in ("Pod", "Node", "Job"):
            sample = ("corral_watch_problems_total", {"kind": kind})
            await until(lambda sample=sample: value(*sample) >= 1)
        body = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "n1"}
        held = asyncio.create_task(port.post("/bind", json=body))
        await until(lambda: len(corral.desk) == 1 or held.done())
        shown = (await port.get("/metrics")).text
        assert f"corral_held_binds {float(len(corral.desk))}" in shown
        assert re.search(r"^corral_journal_bytes [1-9]", shown, re.MULTILINE)
        for name in ("corral_lost_writes", "corral_absent_pods", "corral_earmarked_nodes"):
            assert f"\n{name} 0.0\n" in shown
    assert (await held).status_code == 200


async def test_a_kubeconfig_that_is_not_there_frees_the_port_again(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = Address(*probe.getsockname())
    with pytest.raises(SettingsError, match="absent"):
        await build(settings_for(tmp_path / "absent", extender_listen=address))
    socket.create_server((address.host, address.port)).close()


@pytest.mark.slow
async def test_a_part_that_ends_by_itself_ends_the_others_and_is_named(tmp_path):
    class Ending:
        async def run(self) -> None:
            return

    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        parts = await build(settings_for(tmp_path / "kubeconfig"))
        with pytest.raises(RuntimeError, match="audit ended by itself"):
            await run(replace(parts, audits=Ending()), asyncio.Event())
        async with httpx.AsyncClient(base_url=parts.extender_url) as port:
            with pytest.raises(httpx.ConnectError):
                await port.get("/healthz")
    assert parts.unready() == SHUTTING_DOWN


@pytest.mark.slow
async def test_the_error_of_a_part_that_fails_is_what_ends_the_whole(tmp_path):
    class Failing:
        async def run(self) -> None:
            raise OSError("no such thing")

    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        parts = await build(settings_for(tmp_path / "kubeconfig"))
        with capture_logs() as logged, pytest.raises(OSError, match="no such thing"):
            await run(replace(parts, audits=Failing()), asyncio.Event())
    (line,) = (each for each in logged if each["event"] == "part ended")
    assert (line["part"], line["log_level"]) == ("audit", "error")
    assert "no such thing" in line["problem"]


@asynccontextmanager
async def built(folder: Path, **knobs: Any) -> AsyncIterator[Parts]:
    """A Corral that does not run."""
    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(folder / "kubeconfig")
        parts = await build(settings_for(folder / "kubeconfig", **knobs))
        async with parts.closing:
            yield parts


async def test_a_service_that_leads_here_needs_an_address_of_the_pod(tmp_path):
    knobs = {"own_lease": "default/corral", "leader_service": "corral-extender"}
    with pytest.raises(SettingsError, match="corral-extender: needs pod_ip"):
        async with built(tmp_path, **knobs):
            pass
    async with built(tmp_path, **knobs, pod_ip="10.0.0.1") as parts:
        assert parts.lease is not None


async def test_held_requests_leave_connections_to_others_and_outlast_the_engines_deadline(tmp_path):
    knobs = {"max_connections": 64, "gang_bind_seconds": 20.0, "bind_seconds": 5.0}
    async with built(tmp_path, **knobs) as parts:
        assert parts.desk._most_held == 56
        assert parts.desk._answer_seconds == 20.0 + 5.0 + ANSWER_MARGIN_SECONDS


async def test_there_is_a_connection_to_the_api_server_for_each_write_under_way(tmp_path):
    async with built(tmp_path, bind_concurrency=7, ungate_concurrency=5) as parts:
        assert parts.transport._session.connector.limit == 7 + 5 + OTHER_CONNECTIONS


async def test_what_is_to_be_read_again_is_read_again_and_nothing_else(tmp_path):
    async with built(tmp_path) as parts:
        parts.writers.feed([ReadAgain("Pod")])
        due = [watch.kind for watch in parts.reflectors if watch._is_relist_due]
    assert due == ["Pod"]
    assert len(parts.reflectors) > 2


@pytest.mark.slow
async def test_every_part_has_ended_when_all_has_stopped(tmp_path):
    class Lingering:
        has_ended = False

        async def run(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.1)  # such as an answer of the API server
                self.has_ended = True

    lingering, stop = Lingering(), asyncio.Event()
    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        parts = await build(settings_for(tmp_path / "kubeconfig"))
        stop.set()
        await run(replace(parts, audits=lingering), stop)
    assert lingering.has_ended


@pytest.mark.slow
async def test_the_garbage_collector_of_the_process_is_as_before_when_all_has_stopped(tmp_path):
    before = gc.get_threshold()
    async with running(tmp_path):
        await until(lambda: gc.get_threshold() == PACE)
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_kube_scheduler_lives_on_where_corral_has_a_lease_of_its_own():
    assert engine_settings(Settings(own_lease="corral-system/corral")).scheduler_lives_on
    assert not engine_settings(Settings()).scheduler_lives_on


def test_a_preset_becomes_its_labels():
    levels = engine_settings(Settings(levels=("gke",))).levels
    assert levels[0] == "cloud.google.com/gce-topology-block"
    with pytest.raises(SettingsError, match=r"levels: .*did you mean 'gke'"):
        engine_settings(Settings(levels=("gkee",)))


def test_what_hyper_nodes_are_made_from_is_levels_a_preset_or_topograph():
    def taken(*names):
        return engine_settings(Settings(hyper_nodes_from=names)).hyper_nodes_from

    assert taken() == ()
    assert taken("topograph") == ("topograph",)
    assert taken("gke")[0] == "cloud.google.com/gce-topology-block"
    assert taken("a.b/block", "a.b/rack", "kubernetes.io/hostname") == ("a.b/block", "a.b/rack")
    for wrong in (("gkee",), ("a b/c",), ("rack", "rack"), ("kubernetes.io/hostname",)):
        with pytest.raises(SettingsError, match="hyper_nodes_from: "):
            taken(*wrong)


def test_a_vocabulary_that_there_is_not_is_named():
    chosen = (("default-scheduler", "groove"),)
    with pytest.raises(SettingsError, match="scheduler_vocabularies: default-scheduler=groove"):
        engine_settings(Settings(scheduler_vocabularies=chosen))


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        (("rack", "rack"), "rack is named twice"),
        (("kubernetes.io/hostname", "rack"), "kubernetes.io/hostname is one node"),
        (("a b",), "'a b' is no label key"),
        (("a.b/rack", "a.b/ra/ck"), "'a.b/ra/ck' is no label key"),
    ],
)
def test_levels_that_are_invalid_are_named(levels, said):
    with pytest.raises(SettingsError, match=f"^levels: {said}"):
        engine_settings(Settings(levels=levels))


def test_nodes_alone_may_be_the_levels():
    levels = ("kubernetes.io/hostname",)
    assert engine_settings(Settings(levels=levels)).levels == levels


LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def have_lease(plane: Plane, holder: str) -> None:
    """Have the neighbour's Lease held by this pod, and Corral read it."""
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lock", "namespace": "default"},
        "spec": {"holderIdentity": holder},
    }
    if (await plane.api.get(f"{LEASES}/lock")).status_code == 200:
        assert (await plane.api.delete(f"{LEASES}/lock")).status_code == 200
    assert (await plane.api.post(LEASES, json=lease)).status_code == 201
    assert plane.corral.lease is not None
    await plane.corral.lease.read()
    if plane.corral.lease.names_us:
        engine = plane.corral.engine
        await until(lambda: engine.planner.leads and not engine.queue.is_busy())


@pytest.mark.slow
@pytest.mark.parametrize(("holder", "is_born"), [("corral-a_1", True), ("corral-b_1", False)])
async def test_only_the_corral_whose_neighbour_leads_has_pods_born_in_place(
    tmp_path, holder, is_born
):
    certificate, key = pair("first").write(tmp_path)
    knobs = {"neighbour_lease": "default/lock", "pod_name": "corral-a", "born_seconds": 10.0}
    knobs |= {"admission_listen": Address("127.0.0.1", 0), "admission_cert": certificate}
    async with running(tmp_path, **knobs, admission_key=key) as plane:
        await have_lease(plane, holder)
        thing = member(0)
        thing["metadata"]["annotations"][FAST] = "true"
        async with httpx.AsyncClient(
            base_url=plane.corral.admission_url, verify=pair("first").client(), trust_env=False
        ) as client:
            answer = await client.post("/mutate", json=review(thing))
        stored = patched(thing, patch_of(answer.json()["response"]))
        assert gates_of(stored) == ([] if is_born else [GATE])
        assert bool(plane.corral.engine.books.held) is is_born


@pytest.mark.slow
async def test_of_two_corrals_with_a_lease_of_their_own_the_one_that_holds_it_acts(tmp_path):
    knobs = {"own_lease": "default/corral", "rewake_seconds": 0.05}
    async with running(tmp_path, **knobs, pod_name="corral-a") as plane:
        await until(lambda: plane.corral.lease.names_us)
        other = settings_for(tmp_path / "kubeconfig", **knobs, pod_name="corral-b")
        async with (
            started(other) as second,
            httpx.AsyncClient(base_url=second.extender_url) as port,
        ):
            await until(lambda: not second.unready())
            first = await plane.create(member(0))
            body = {"Pod": first, "Nodes": None, "NodeNames": NODES}
            said = (await port.post("/filter", json=body)).json()["Error"]
            assert said == "this Corral does not lead: pod corral-a holds Lease default/corral"
            rest = await plane.create(member(1))
            on = {pod["metadata"]["name"]: await plane.pinned(pod) for pod in (first, rest)}
            await plane.stop()

            await second.lease.read()  # at the next poll, two seconds later
            assert second.lease.is_ours
            plane.port = port
            again = {pod["metadata"]["name"]: await plane.pinned(pod) for pod in (first, rest)}
            held = asyncio.create_task(plane.bind(first, again["train-0"]))
            assert await plane.bind(rest, again["train-1"]) == ""
            assert await held == ""
        assert again.keys() == on.keys()
        bound = [(await plane.pod(name))["spec"]["nodeName"] for name in ("train-0", "train-1")]
        assert len({node.rpartition("-")[0] for node in bound}) == 1


@pytest.mark.slow
async def test_what_became_true_while_another_one_led_is_said_if_that_has_ended(tmp_path):
    knobs = {"neighbour_lease": "default/lock", "pod_name": "corral-a", "gather_seconds": 0.2}
    async with running(tmp_path, **knobs) as plane:
        await have_lease(plane, "corral-b_1")
        await plane.create(member(0))
        gangs = plane.corral.engine.gangs.by_key
        await until(lambda: any(gang.reporting.problem for gang in gangs.values()))

        async def said() -> list[str]:
            events = (await plane.api.get("/api/v1/namespaces/default/events")).json()["items"]
            return [each["reason"] for each in events]

        assert await said() == []
        await have_lease(plane, "corral-a_1")
        sample = plane.corral.metrics.registry.get_sample_value
        await until(lambda: sample("corral_reports_total", {"outcome": "written"}))
        assert await said() == ["GangIncomplete"]


@pytest.mark.slow
@pytest.mark.parametrize(("holder", "wakes"), [("corral-a_1", True), ("corral-b_1", False)])
async def test_only_the_corral_whose_neighbour_leads_wakes_pods(tmp_path, holder, wakes):
    knobs = {"neighbour_lease": "default/lock", "pod_name": "corral-a", "rewake_seconds": 0.05}
    knobs["nominate_planned"] = False
    async with running(tmp_path, **knobs) as plane:
        await have_lease(plane, holder)
        first = await plane.create(member(0))
        assert (await plane.filter(first))["NodeNames"] == []
        await plane.create(member(1))
        phase = Phase.PLACED if wakes else Phase.WAITING
        await until(lambda: plane.corral.engine.gangs_by_phase()[phase.value])
        sample = plane.corral.metrics.registry.get_sample_value
        if wakes:
            await until(lambda: sample("corral_wakes_total", {"outcome": "woken"}))
        else:
            await asyncio.sleep(0.3)  # several times rewake_seconds: nothing is to come
        assert ("corral.dev/wake" in str(await plane.pod("train-0"))) is wakes
