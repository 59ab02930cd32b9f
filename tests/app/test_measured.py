"""What the whole program measures of a gang, as Prometheus and a collector of traces get it."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from app.errors import SettingsError
from app.main import build
from tests.app.test_main import NODES, Plane, member, running, settings_for
from tests.cluster import GPU, HOSTNAME, RACK, grid, pod

pytestmark = pytest.mark.slow


async def bound(plane: Plane, gang: str = "train") -> None:
    """A gang of two, brought to its binding as kube-scheduler would."""
    pods = [await plane.create(member(rank, gang=gang)) for rank in range(2)]
    nodes = [await plane.pinned(each) for each in pods]
    assert await asyncio.gather(*map(plane.bind, pods, nodes)) == ["", ""]


async def metrics(plane: Plane) -> dict[str, float]:
    """Every sample of /metrics, by its name with its labels."""
    text = (await plane.port.get("/metrics")).text
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def metrics_with(plane: Plane, name: str, least: float) -> dict[str, float]:
    """The samples once this one has grown so far."""
    for _ in range(500):
        found = await metrics(plane)
        if found[name] >= least:
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"{name} is {found[name]} after 10 s, not {least}")


async def started_gangs(plane: Plane, gangs: int) -> dict[str, float]:
    """The samples once so many starts are counted, which is one tick after the last binding."""
    return await metrics_with(plane, "corral_gang_start_seconds_count", gangs)


async def test_a_gang_that_starts_moves_the_metrics_of_starts(tmp_path):
    async with running(tmp_path) as plane:
        before = await metrics(plane)
        assert before["corral_gang_start_seconds_count"] == 0
        await bound(plane)
        after = await started_gangs(plane, 1)
        assert after["corral_gang_decision_seconds_count"] == 1
        assert after["corral_gang_plans_total"] == 1
        assert after["corral_bind_seconds_count"] == 2
        assert after["corral_watch_lag_seconds_count"] == 2
        assert after["corral_watch_awaited_seconds"] == 0
        assert after['corral_watch_silent_seconds{kind="Pod"}'] < 5


async def test_a_gang_that_waits_is_counted_by_the_word_for_it(tmp_path):
    async with running(tmp_path) as plane:
        await plane.create(member(0, of=2, gang="half"))
        for rank in range(2):
            await plane.create(member(rank, of=2, gpus=64, gang="large"))
        waits = 'corral_gangs_waiting{reason="Incomplete"}'
        found = await metrics_with(plane, waits, 1)
        assert found[waits] == 1
        waits = 'corral_gangs_waiting{reason="DoesNotFit"}'
        found = await metrics_with(plane, waits, 1)
        assert found[waits] == 1
        assert found['corral_gangs_waiting{reason="Quota"}'] == 0


async def test_places_for_pods_that_are_not_there_move_the_share_of_their_namespace(tmp_path):
    """One pod of a gang of four that starts early: three places of the 32 that it may hold."""
    async with running(tmp_path) as plane:
        share = "corral_absent_pods_most_used_ratio"
        assert (await metrics(plane))[share] == 0
        first = member(0, of=4, gpus=1)
        first["metadata"]["annotations"] |= {"kueue.x-k8s.io/pod-group-fast-admission": "true"}
        await plane.create(first)
        found = await metrics_with(plane, "corral_absent_pods", 3)
        assert found["corral_absent_pods"] == 3
        assert found[share] >= 3 / 32


async def test_a_node_that_comes_while_a_gang_asks_for_some_is_counted_as_kept(tmp_path):
    async with running(tmp_path, needs_nodes="busy", needs_nodes_seconds=0.01) as plane:
        for rank in range(4):  # of a rack of two nodes
            await plane.create(member(rank, of=4, gang="large"))
        await metrics_with(plane, "corral_needs_nodes_pods", 4)
        (first, *_) = grid(racks=1, nodes=1, gpus=8)
        first["metadata"]["name"] = first["metadata"]["labels"][HOSTNAME] = "new"
        await plane.create(first)
        found = await metrics_with(plane, "corral_new_nodes_kept", 1)
        assert found["corral_new_nodes_kept"] == 1


async def test_a_look_at_the_books_is_timed(tmp_path):
    async with running(tmp_path, audit_seconds=0.2) as plane:
        found = await metrics_with(plane, "corral_audit_seconds", 1e-9)
        assert found["corral_audit_seconds"] < 10
        assert found["corral_audit_differences_total"] == 0


async def test_the_room_of_named_shapes_is_told_by_level(tmp_path):
    shapes = "node:nvidia.com/gpu=8; half:nvidia.com/gpu=4,cpu=1"
    async with running(tmp_path, metric_shapes=shapes) as plane:
        await bound(plane)
        found = await metrics(plane)
        assert found['corral_shape_free_pods{shape="node"}'] == 2
        assert found['corral_shape_free_pods{shape="half"}'] == 4
        assert found['corral_shape_reserved_pods{shape="node"}'] == 0
        assert found[f'corral_shape_largest_pods{{level="{RACK}",shape="node"}}'] == 2
        assert found[f'corral_shape_fragmentation_ratio{{level="{RACK}",shape="node"}}'] == 0


async def test_a_pod_in_a_free_rack_moves_the_fragmentation_of_its_level(tmp_path):
    """Of two racks of two nodes, one has half a node taken: what else it has is in no whole one."""
    half = pod("half", requests={GPU: 4}, nodeName=NODES[0])
    async with running(tmp_path, metric_shapes="half:nvidia.com/gpu=4") as plane:
        fragmentation = f'corral_shape_fragmentation_ratio{{level="{RACK}",shape="half"}}'
        assert (await metrics(plane))[fragmentation] == 0
        await plane.create(half)
        found = await metrics_with(plane, fragmentation, 3 / 7)
        assert found[fragmentation] == pytest.approx(3 / 7)
        assert found['corral_shape_free_pods{shape="half"}'] == 7


async def test_a_shape_that_cannot_be_read_ends_the_start_by_name(tmp_path):
    (tmp_path / "kubeconfig").write_text("{}", encoding="utf-8")
    async with running(tmp_path) as plane:
        settings = settings_for(tmp_path / "kubeconfig", metric_shapes="node:nvidia.com/gpu=many")
        with pytest.raises(SettingsError, match=r"metric_shapes: node:nvidia\.com/gpu=many: "):
            await build(settings)
        assert not plane.corral.unready()


async def test_a_gang_that_starts_is_one_span_at_the_collector(tmp_path):
    got: list[ExportTraceServiceRequest] = []

    async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        assert b"content-encoding" not in head
        got.append(ExportTraceServiceRequest.FromString(body))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(collect, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        endpoint = f"http://127.0.0.1:{port}/v1/traces"
        async with running(tmp_path, otlp_endpoint=endpoint, pod_name="corral-0") as plane:
            await bound(plane)
            await started_gangs(plane, 1)
        (resource,) = got[0].resource_spans
        (span,) = resource.scope_spans[0].spans
        said = {each.key: each.value.string_value for each in span.attributes}
        assert span.name == "gang"
        assert (said["k8s.namespace.name"], said["corral.gang.name"]) == ("default", "train")
        assert span.start_time_unix_nano < span.end_time_unix_nano
