"""`corral explain` says what a pod's condition says, and what it advises gets the gang bound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import main
from tests.cluster import BLOCK, GPU, RACK, Cluster, Object, grid
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def explained(corral: CorralProcess, name: str) -> Object:
    ran = CliRunner().invoke(main, ["explain", name, "-o", "json", "--server", corral.url])
    assert ran.exit_code == 0, ran.output
    found: Object = json.loads(ran.stdout)
    return found


def condition(cluster: Cluster, name: str) -> str:
    """What kube-scheduler says of why a pod has no node; "" if nothing."""
    found = cluster.get("Pod", name)
    conditions = (found or {}).get("status", {}).get("conditions", ())
    return next((each.get("message", "") for each in conditions if each["status"] == "False"), "")


def test_a_relaxation_that_explain_names_gets_the_gang_bound(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    with scheduled(plane, tmp_path) as corral:
        cluster.create_all(members("wide", 5, requests={GPU: 8}, annotations=asking(required=RACK)))
        waits = "cannot be placed"
        cluster.wait(lambda: waits in condition(cluster, "wide-0"), START_SECONDS, "the verdict")
        said = explained(corral, "wide-0")
        assert (said["gang"]["name"], said["gang"]["reason"]) == ("wide", "DoesNotFit")
        assert said["gang"]["message"] in condition(cluster, "wide-0")
        wider = next(each for each in said["relaxations"] if each["kind"] == "WiderLevel")
        assert wider["level"] == BLOCK
        assert any(each["kind"] == "Never" for each in said["relaxations"])
        for at in range(5):
            cluster.delete("Pod", f"wide-{at}")
        cluster.create_all(
            members("wider", 5, requests={GPU: 8}, annotations=asking(required=wider["level"]))
        )
        cluster.wait(lambda: len(cluster.bound()) == 5, START_SECONDS, "the gang")
        cluster.wait(
            lambda: explained(corral, "wider")["gang"]["reason"] == "Running",
            START_SECONDS,
            "Corral to see it run",
        )


def test_a_cordoned_node_that_should_come_back_is_named(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    closed = cluster.list("Node")[0]["metadata"]["name"]
    cluster.patch("Node", closed, {"spec": {"unschedulable": True}})
    with scheduled(plane, tmp_path) as corral:
        cluster.create_all(members("full", 4, requests={GPU: 8}, annotations=asking(required=RACK)))
        cluster.wait(
            lambda: "cannot be placed" in condition(cluster, "full-0"), START_SECONDS, "the verdict"
        )
        said = explained(corral, "full")
        (back,) = [each for each in said["relaxations"] if each["kind"] == "NodesBack"]
        assert back["nodes"] == [closed]
        assert {"reason": "cordoned", "nodes": 1, "examples": [closed]} in said["excluded"]
        cluster.patch("Node", closed, {"spec": {"unschedulable": False}})
        cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the gang")
