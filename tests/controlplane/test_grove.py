"""Grove's PodGangs on the real control plane: its pods lose their gates before all are there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.dialects.grove.crds import CLUSTER_TOPOLOGY
from tests.app.dialects.grove.crds import POD_GANG as POD_GANG_KIND
from tests.app.dialects.grove.objects import (
    CREATED,
    GATE,
    POD_CLIQUE,
    POD_GANG,
    cluster_topology,
    pod_gang,
    pod_group,
    within,
)
from tests.cluster import BLOCK, GPU, MERGE, RACK, Cluster, Object, collection, grid, pod
from tests.controlplane.kinds import defined
from tests.controlplane.plane import ControlPlane, profiles
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.webhook import installed
from tests.workloads import gates_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("grove")]

KIND = "PodGang"
SCHEDULER = "default-scheduler"  # which Grove's own backend of that name writes on its pods
QUIET_SECONDS = 2.0  # in which a gang that could start would have
SOON = 15.0


@pytest.fixture
def grove(cluster: Cluster) -> Iterator[None]:
    """The API server knows Grove's kinds; afterwards neither them nor objects of theirs."""
    with defined(cluster, (POD_GANG_KIND, CLUSTER_TOPOLOGY)):
        yield


def create(cluster: Cluster, made: Object) -> None:
    """As Grove's operator writes it: the API server makes uids and versions, status comes last."""
    kept = ("name", "namespace", "annotations")
    metadata = {key: made["metadata"][key] for key in kept if key in made["metadata"]}
    cluster.create({**made, "metadata": metadata})
    if "status" in made:
        path = f"{collection(KIND, 'default')}/{made['metadata']['name']}/status"
        status = {"status": made["status"]}
        cluster.request("PATCH", path, body=status, content_type=MERGE)


def member(name: str) -> Object:
    """A pod behind Grove's gate, in the pod group that its name begins with."""
    labels = {POD_GANG: "g", POD_CLIQUE: name.partition("-")[0]}
    return pod(name, scheduler=SCHEDULER, requests={GPU: 8}, labels=labels, gates=[GATE])


def lift(cluster: Cluster, *names: str) -> None:
    """Takes the gates off as Grove does: all of them, with its own."""
    for name in names:
        path = f"{collection('Pod', 'default')}/{name}"
        cluster.request("PATCH", path, body={"spec": {"schedulingGates": None}}, content_type=MERGE)


def conditions(cluster: Cluster) -> dict[str, Any]:
    """Those of the PodGang, by type."""
    status = (cluster.get(KIND, "g") or {}).get("status", {})
    return {each["type"]: each for each in status.get("conditions", ())}


def is_scheduled(cluster: Cluster, said: str) -> bool:
    return bool(conditions(cluster).get("Scheduled", {}).get("status") == said)


def test_a_pod_gang_starts_whole_in_its_racks_though_its_pods_are_let_go_one_by_one(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(blocks=2, racks=2, nodes=2, gpus=8))
    create(cluster, cluster_topology("grove-topology", BLOCK, RACK))
    named = f"corral,{SCHEDULER}"
    with installed(plane, tmp_path, levels=(), scheduler_name=named) as webhook:
        plane.start_scheduler(extender=webhook.corral.url, profiles=profiles(SCHEDULER))
        cluster.create_all(map(member, ("router-0", "worker-0", "worker-1")))
        assert {tuple(gates_of(each)) for each in cluster.list("Pod", "default")} == {(GATE,)}
        groups = (pod_group("router", 1), pod_group("worker", 2, within(RACK)))
        create(cluster, pod_gang("g", *groups, on=within(BLOCK)))
        lift(cluster, "router-0", "worker-0")
        time.sleep(QUIET_SECONDS)
        assert cluster.bound() == {}

        lift(cluster, "worker-1")
        cluster.wait(lambda: len(cluster.bound()) == 3, START_SECONDS, "the gang's start")
        on = cluster.bound()
        assert len({on[f"worker-{at}"].rpartition("-")[0] for at in range(2)}) == 1
        assert len({node.partition("-")[0] for node in on.values()}) == 1
        cluster.wait(lambda: is_scheduled(cluster, "True"), SOON, "the PodGang says so")
        assert conditions(cluster)["Initialized"] == CREATED
        assert webhook.corral.bugs() == {}


def test_a_pod_gang_without_room_says_why_and_none_of_its_pods_starts(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(blocks=2, racks=2, nodes=2, gpus=8))
    create(cluster, cluster_topology("grove-topology", BLOCK, RACK))
    named = f"corral,{SCHEDULER}"
    with installed(plane, tmp_path, levels=(), scheduler_name=named) as webhook:
        plane.start_scheduler(extender=webhook.corral.url, profiles=profiles(SCHEDULER))
        names = [f"worker-{at}" for at in range(3)]
        cluster.create_all(map(member, names))
        create(cluster, pod_gang("g", pod_group("worker", 3), on=within(RACK)))
        lift(cluster, *names)
        cluster.wait(lambda: is_scheduled(cluster, "False"), SOON, "the PodGang says why")
        assert "2 of 3 pods fit" in conditions(cluster)["Scheduled"]["message"]
        assert cluster.bound() == {}
