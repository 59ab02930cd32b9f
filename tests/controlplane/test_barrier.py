"""What may happen while a gang's members wait at /bind for those that have not arrived yet.

The last one is kept away by an in-tree condition that Corral does not know: kube-scheduler finds
no node for it and does not ask Corral, until an anchor runs somewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import BLOCK, GPU, RACK, Cluster, grid, pod
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, unschedulable
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, behind_gate, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
LATE = "waits for its other pods to reach their binding"
LARGE = 300  # pods; kube-scheduler takes about a second for them
LARGE_SECONDS = 90.0
NEAR_ANCHOR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "anchor"}}, "topologyKey": BLOCK}
        ]
    }
}


Mishap = Callable[[ControlPlane, Cluster, CorralProcess], None]


def kube_scheduler_restarts(plane: ControlPlane, cluster: Cluster, corral: CorralProcess) -> None:
    plane.stop_scheduler()
    plane.start_scheduler(extender=corral.url)


def a_planned_node_goes(plane: ControlPlane, cluster: Cluster, corral: CorralProcess) -> None:
    cluster.delete("Node", "b0-r0-n0")


def a_planned_node_is_cordoned(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    cluster.patch("Node", "b0-r0-n0", {"spec": {"unschedulable": True}})


def another_scheduler_takes_a_planned_node(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    cluster.create(pod("thief", scheduler="another", requests={GPU: 8}))
    cluster.bind("thief", "b0-r0-n0")


def a_member_is_deleted_and_comes_again(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    cluster.delete("Pod", "gang-1")
    cluster.wait(lambda: corral.metric("corral_held_binds") == 0, 5, "no bind is held")
    assert cluster.bound() == {}
    cluster.create_all(members("gang", 4, numbers=[1], annotations=IN_RACK))


@pytest.mark.parametrize(
    ("mishap", "rack"),
    [
        pytest.param(kube_scheduler_restarts, "b0-r0", id="kube_scheduler_restarts"),
        pytest.param(a_planned_node_goes, "b0-r1", id="a_planned_node_goes"),
        pytest.param(a_planned_node_is_cordoned, "b0-r1", id="a_planned_node_is_cordoned"),
        pytest.param(another_scheduler_takes_a_planned_node, "b0-r1", id="a_node_is_taken"),
        pytest.param(a_member_is_deleted_and_comes_again, "b0-r0", id="a_member_comes_again"),
    ],
)
def test_a_gang_at_the_barrier_starts_whole_after_a_mishap(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, mishap: Mishap, rack: str
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    hold_three_of_four(cluster, corral)
    mishap(plane, cluster, corral)
    let_the_last_one_come(cluster)

    cluster.wait(lambda: len(gang(cluster)) == 4, 2 * START_SECONDS, "the gang's start")
    assert {node.rpartition("-")[0] for node in gang(cluster).values()} == {rack}


def test_a_bind_held_for_long_enough_fails_and_the_gang_starts_when_the_last_member_arrives(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    with scheduled(plane, tmp_path, gang_bind_seconds=1.0) as impatient:
        hold_three_of_four(cluster, impatient)
        three = {"gang-0", "gang-1", "gang-2"}
        cluster.wait(lambda: told_in_events(cluster, LATE) == three, 5, "their answers")
        assert cluster.bound() == {}

        let_the_last_one_come(cluster)
        cluster.wait(lambda: len(gang(cluster)) == 4, 2 * START_SECONDS, "the gang's start")


@pytest.mark.parametrize("is_gated", [True, False], ids=["gated", "gateless"])
def test_a_gang_that_passes_kube_scheduler_slower_than_a_bind_is_held_starts_whole(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, is_gated: bool
) -> None:
    plane.nodes(grid(racks=4, nodes=16, gpus=8))
    pods = members("gang", LARGE, requests={GPU: 1}, annotations=asking(unconstrained=True))
    with scheduled(plane, tmp_path, gang_bind_seconds=0.05) as impatient:
        cluster.create_all([behind_gate(one) for one in pods] if is_gated else pods)
        cluster.wait(lambda: len(gang(cluster)) == LARGE, LARGE_SECONDS, "the gang's start")

        cluster.wait(lambda: told_in_events(cluster, LATE), 10, "the event of a bind held too long")
        assert impatient.metric('corral_binds_total{outcome="bound"}') == LARGE


def test_an_ordinary_pod_does_not_get_what_a_gang_at_the_barrier_holds(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    hold_three_of_four(cluster, corral)
    cluster.create(pod("plain", requests={GPU: 8}))
    told = cluster.wait(lambda: unschedulable(cluster).get("plain"), START_SECONDS, "its verdict")
    assert "held for gangs" in told

    let_the_last_one_come(cluster)
    cluster.wait(lambda: len(gang(cluster)) == 4, START_SECONDS, "the gang's start")
    assert "plain" not in cluster.bound()


def test_an_ordinary_pod_gets_what_a_gang_no_longer_holds(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    cluster.create_all(members("gang", 4, annotations=IN_RACK, affinity=NEAR_ANCHOR))
    placed = 'corral_gangs{phase="placed"}'
    cluster.wait(lambda: corral.metric(placed) == 1, START_SECONDS, "the gang's plan")
    cluster.create(pod("plain", requests={GPU: 8}))
    told = cluster.wait(lambda: unschedulable(cluster).get("plain"), START_SECONDS, "its verdict")
    assert "held for gangs" in told

    cluster.delete("Pod", "gang-0")
    cluster.wait(lambda: "plain" in cluster.bound(), 5, "the ordinary pod's binding")


def test_sigterm_fails_held_binds_cleanly_and_after_a_restart_the_gang_starts(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    hold_three_of_four(cluster, corral)

    began = time.monotonic()
    code = corral.terminate()
    assert code == 0
    assert time.monotonic() - began < 5
    three = {"gang-0", "gang-1", "gang-2"}
    stopping = "Corral is stopping"
    cluster.wait(lambda: told_in_events(cluster, stopping) == three, 5, "their answers")
    assert cluster.bound() == {}

    corral.start()
    let_the_last_one_come(cluster)
    cluster.wait(lambda: len(gang(cluster)) == 4, 2 * START_SECONDS, "the gang's start")


def hold_three_of_four(cluster: Cluster, corral: CorralProcess) -> None:
    """Returns when kube-scheduler waits for three bindings; the fourth member has no node there."""
    cluster.create_all(members("gang", 4, numbers=range(3), annotations=IN_RACK))
    cluster.create_all(members("gang", 4, numbers=[3], annotations=IN_RACK, affinity=NEAR_ANCHOR))
    cluster.wait(lambda: corral.metric("corral_held_binds") == 3, START_SECONDS, "three held binds")
    assert cluster.bound() == {}


def let_the_last_one_come(cluster: Cluster) -> None:
    cluster.create(pod("anchor", scheduler="none", labels={"app": "anchor"}))
    cluster.bind("anchor", "b0-r0-n3")


def gang(cluster: Cluster) -> dict[str, str]:
    return {name: node for name, node in cluster.bound().items() if name.startswith("gang-")}


def told_in_events(cluster: Cluster, text: str) -> set[str]:
    """The names of the pods about which an event says this."""
    return {
        event["involvedObject"]["name"]
        for event in cluster.list("Event", "default")
        if text in event["message"]
    }
