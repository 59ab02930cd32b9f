"""Loading recorded and synthetic clusters."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from app.sandbox import ClusterPlan, LoadOptions, Sandbox, synthetic_snapshot
from app.sandbox.apiserver.storage.kinds import NODE, POD, Object
from app.sandbox.cluster import snapshot as snapshots
from app.sandbox.cluster.snapshot import BLOCK, RACK, InvalidSnapshot
from app.sandbox.cluster.synthetic import GPU, GPUS

RECORDED = Path(__file__).parents[5] / "shared" / "data"


def small_snapshot() -> Object:
    def one_pod(name: str, cpu: str) -> Object:
        container = {"name": "m", "resources": {"requests": {"cpu": cpu, "gpu/whole": "1"}}}
        metadata = {"name": name, "namespace": "rec"}
        status = {"phase": "Failed"}
        return {"metadata": metadata, "spec": {"containers": [container]}, "status": status}

    allocatable = {"cpu": "4", "gpu/whole": "4"}
    nodes = [
        {"metadata": {"name": name, "labels": {}}, "status": {"allocatable": allocatable}}
        for name in ("n0", "n1")
    ]
    pods = [one_pod("p0", "1"), one_pod("p1", "4"), one_pod("p2", "2"), one_pod("p3", "1")]
    return {"schema": "cluster-snapshot/v1", "nodes": nodes, "pods": pods}


def where(sandbox: Sandbox) -> dict[str, str]:
    return {
        stored.body["metadata"]["name"]: stored.body["spec"].get("nodeName", "")
        for stored in sandbox.store.values(POD)
    }


async def test_the_first_pods_are_packed_until_the_load_is_reached(sandbox: Sandbox) -> None:
    loaded = sandbox.load(small_snapshot(), LoadOptions(load=0.8))
    # 1 + 4 + 2 of 8 cores is more than 80 %: the last pod stays out; p2 joins p0's node.
    assert where(sandbox) == {"p0": "n0", "p1": "n1", "p2": "n0"}
    assert (loaded.nodes, loaded.pods_bound, loaded.pods_waiting) == (2, 3, 0)
    assert all(stored.body["status"]["phase"] == "Running" for stored in sandbox.store.values(POD))


async def test_no_load_leaves_the_nodes_empty_and_none_creates_the_pods(sandbox: Sandbox) -> None:
    sandbox.load(small_snapshot(), LoadOptions(load=0.0))
    assert where(sandbox) == {}
    async with Sandbox() as other:
        other.load(small_snapshot())
        assert set(where(other).values()) == {""}
        assert other.store.values(POD)[0].body["status"] == {"phase": "Pending"}


async def test_missing_pod_slots_levels_and_resources_counted_twice(sandbox: Sandbox) -> None:
    recorded = small_snapshot()
    recorded["nodes"][0]["status"]["allocatable"] = {"cpu": "4", "alibabacloud.com/gpu-milli": "9"}
    sandbox.load(recorded, LoadOptions(overlay={"n0": ["b1", "r1"]}, load=0.0))
    first, second = (stored.body for stored in sandbox.store.values(NODE))
    assert first["status"]["allocatable"] == {"pods": "110", "cpu": "4"}
    assert (first["metadata"]["labels"][BLOCK], first["metadata"]["labels"][RACK]) == ("b1", "r1")
    assert BLOCK not in second["metadata"]["labels"]
    assert second["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"


async def test_a_file_that_is_no_snapshot_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(InvalidSnapshot, match="schema 'other'"):
        sandbox.load({"schema": "other"})
    with pytest.raises(InvalidSnapshot, match="not one of"):
        snapshots.overlay_named({"overlays": {"a": {}}}, "b")
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(InvalidSnapshot, match="not JSON"):
        snapshots.read(tmp_path / "x.json")
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(orjson.dumps({"a": 1})))
    assert snapshots.read(tmp_path / "x.json.gz") == {"a": 1}


def test_a_plan_gives_racks_and_blocks() -> None:
    nodes = synthetic_snapshot(ClusterPlan(nodes=16 * 8 + 1))["nodes"]
    labels = [each["metadata"]["labels"] for each in nodes]
    assert len({each[RACK] for each in labels}) == 9
    assert len({each[BLOCK] for each in labels}) == 2
    assert all(each[RACK].startswith(each[BLOCK]) for each in labels)


def test_the_same_plan_gives_the_same_cluster_and_another_seed_another() -> None:
    plan = ClusterPlan(nodes=8, load=0.5, seed=1)
    assert synthetic_snapshot(plan) == synthetic_snapshot(plan)
    assert synthetic_snapshot(plan) != synthetic_snapshot(ClusterPlan(nodes=8, load=0.5, seed=2))


async def test_a_full_load_uses_every_device(sandbox: Sandbox) -> None:
    loaded = sandbox.load(synthetic_snapshot(ClusterPlan(nodes=3, load=1.0)))
    assert loaded.pods_bound == 3 * GPUS


@pytest.mark.slow
@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded clusters are not here")
async def test_the_recorded_cluster_fills_to_the_load_without_overcommitting(
    sandbox: Sandbox,
) -> None:
    overlays = snapshots.read(RECORDED / "openb-2023.topology-overlay.json.gz")
    overlay = snapshots.overlay_named(overlays, "homogeneous")
    snapshot = snapshots.read(RECORDED / "openb-2023.json.gz")
    loaded = sandbox.load(snapshot, LoadOptions(overlay=overlay, load=0.7))
    gpus: dict[str, int] = {}
    for stored in sandbox.store.values(POD):
        spec = stored.body["spec"]
        asked = spec["containers"][0]["resources"]["requests"].get(GPU, "0")
        gpus[spec["nodeName"]] = gpus.get(spec["nodeName"], 0) + int(asked)
    room = {
        stored.body["metadata"]["name"]: int(stored.body["status"]["allocatable"].get(GPU, "0"))
        for stored in sandbox.store.values(NODE)
    }
    assert loaded.nodes == 1523
    assert all(gpus[name] <= room[name] for name in gpus)
    assert sum(gpus.values()) / sum(room.values()) == pytest.approx(0.7, abs=0.01)


NAMED = {"metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"\x1f\x8b\x08", "gzip: ", id="torn"),
        pytest.param(gzip.compress(b"{}")[:-8] + bytes(8), "gzip: ", id="spoilt"),
        pytest.param(b"[1]", "not a JSON object", id="list"),
        pytest.param(b"{}", "schema None is not", id="another_file"),
        pytest.param({}, "nodes: not a list", id="no_nodes"),
        pytest.param({"nodes": 5}, "nodes: not a list", id="nodes"),
        pytest.param({"nodes": [NAMED, {}]}, "nodes[1]: metadata.name: not a text", id="node"),
        pytest.param({"nodes": [], "pods": None}, "pods: not a list", id="pods"),
        pytest.param({"nodes": [], "pods": [NAMED]}, "pods[0]: spec: not an object", id="pod"),
        pytest.param(
            {"nodes": [NAMED | {"status": {"allocatable": {"cpu": "x"}}}]},
            "nodes[0]: 'x' is not a quantity",
            id="amount_of_a_node",
        ),
        pytest.param({"nodes": [NAMED | {"status": "x"}]}, "nodes[0]: not as the API", id="status"),
        pytest.param(
            {"nodes": [], "pods": [NAMED | {"spec": {"overhead": {"cpu": "x"}}}]},
            "pods[0]: 'x' is not a quantity",
            id="amount_of_a_pod",
        ),
    ],
)
def test_a_file_that_is_no_recorded_cluster_is_named_with_the_field(tmp_path, content, said):
    path = tmp_path / "x.json"
    if isinstance(content, dict):
        content = orjson.dumps({"schema": "cluster-snapshot/v1", **content})
    path.write_bytes(content)
    with pytest.raises(InvalidSnapshot) as told:
        snapshots.read_cluster(path)
    assert str(told.value).startswith(f"{path}: {said}")
