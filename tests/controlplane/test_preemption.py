"""A pod of higher priority on the real kube-scheduler: it has one node, and one gang loses one pod.

Nodes of 8 GPUs and pods of 8, so that each node has one pod. No kubelet runs here: pods without a
grace period are gone at once; where they take their time, the test ends them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.cluster import GPU, RACK, Cluster, Object, grid, node, pod
from tests.controlplane import kubelet
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.workloads import asking, behind_gate, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("corral", "classes")]

IN_RACK = asking(required=RACK)
URGENT = "urgent"
ROUNDS = int(os.environ.get("CORRAL_FAULT_ROUNDS", "5"))  # 20 prove it
QUIET_ROUNDS = int(os.environ.get("CORRAL_FAULT_ROUNDS", "2"))  # where each waits for a while
SECONDS = 20.0  # until the pod that preempts is bound
QUIET_SECONDS = 3.0  # in which kube-scheduler without Corral would have killed all the others

Gates = Callable[[Object], Object]


@pytest.fixture
def classes(cluster: Cluster) -> Iterator[None]:
    """The priority class of those that preempt; what terminates is gone afterwards."""
    cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": URGENT},
            "value": 1000,
        }
    )
    yield
    cluster.delete_all("Pod")
    kubelet.end_deleted_pods(cluster)
    cluster.delete("PriorityClass", URGENT)


def urgent(name: str) -> Object:
    return pod(name, requests={GPU: 8}, priorityClassName=URGENT, terminationGracePeriodSeconds=0)


def start(
    cluster: Cluster,
    name: str,
    pods: int,
    gates: Gates = lambda one: one,
    grace: int = 0,
    **said: str,
) -> set[str]:
    """A gang that runs; the names of its pods."""
    annotations = IN_RACK | {f"corral.dev/{key}": text for key, text in said.items()}
    spec: dict[str, Any] = {"annotations": annotations, "terminationGracePeriodSeconds": grace}
    made = cluster.create_all(gates(one) for one in members(name, pods, **spec))
    names = {one["metadata"]["name"] for one in made}
    cluster.wait(lambda: names <= cluster.bound().keys(), START_SECONDS, f"the start of {name}")
    return names


def live(cluster: Cluster, prefix: str) -> set[str]:
    """The pods of this prefix that are there and do not terminate."""
    return {
        one["metadata"]["name"]
        for one in cluster.list("Pod", "default")
        if one["metadata"]["name"].startswith(prefix) and "deletionTimestamp" not in one["metadata"]
    }


def is_bound(cluster: Cluster, name: str) -> bool:
    return name in cluster.bound()


@pytest.mark.timeout(600)
def test_a_gang_of_eight_loses_one_pod_to_a_pod_that_needs_one_node(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes(grid(racks=1, nodes=8, gpus=8))
    for number in range(QUIET_ROUNDS):
        gang = start(cluster, f"gang{number}", 8, behind_gate if number % 2 else lambda one: one)
        cluster.create(urgent(f"hp{number}"))
        cluster.wait(partial(is_bound, cluster, f"hp{number}"), SECONDS, "the pod that preempts")
        (lost,) = gang - live(cluster, f"gang{number}-")
        again = int(lost.partition("-")[2])
        fields = {"annotations": IN_RACK, "terminationGracePeriodSeconds": 0}
        cluster.create_all(members(f"gang{number}", 8, numbers=[again], **fields))
        time.sleep(QUIET_SECONDS)
        assert live(cluster, f"gang{number}-") == gang
        assert not is_bound(cluster, lost), "its node is another's now"
        cluster.delete("Pod", f"hp{number}")
        cluster.wait(partial(is_bound, cluster, lost), SECONDS, "the replacement, with room again")
        cluster.delete_all("Pod")
        cluster.wait(lambda: not cluster.list("Pod", "default"), 10, "no pod left")


@pytest.mark.timeout(600)
def test_a_pod_that_is_in_no_gang_goes_before_one_that_is(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes([*grid(racks=1, nodes=8, gpus=8), node("ninth", gpus=8)])
    for number in range(ROUNDS):
        single = pod(f"single{number}", requests={GPU: 8}, terminationGracePeriodSeconds=0)
        single["spec"]["nodeName"] = "ninth"
        cluster.create(single)
        gang = start(cluster, f"gang{number}", 8)
        cluster.create(urgent(f"hp{number}"))
        cluster.wait(partial(is_bound, cluster, f"hp{number}"), SECONDS, "the pod that preempts")
        assert cluster.bound()[f"hp{number}"] == "ninth"
        assert live(cluster, f"gang{number}-") == gang
        cluster.delete_all("Pod")
        cluster.wait(lambda: not cluster.list("Pod", "default"), 10, "no pod left")


def test_while_its_victim_ends_the_pod_that_preempts_gets_no_other(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    gang = start(cluster, "gang", 4, grace=30)
    cluster.create(urgent("hp"))
    cluster.wait(lambda: len(live(cluster, "gang-")) == 3, SECONDS, "the victim")
    time.sleep(QUIET_SECONDS)
    assert len(live(cluster, "gang-")) == 3
    (lost,) = gang - live(cluster, "gang-")
    kubelet.end_deleted_pods(cluster)
    cluster.wait(partial(is_bound, cluster, "hp"), SECONDS, "the pod that preempts")
    time.sleep(QUIET_SECONDS)
    assert live(cluster, "gang-") == gang - {lost}


@pytest.mark.parametrize("gates", [lambda one: one, behind_gate], ids=["gateless", "gated"])
def test_a_gang_that_ends_together_waits_as_a_whole(
    plane: ControlPlane, cluster: Cluster, gates: Gates
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    with plane.granted("corral-evict"):
        gang = start(cluster, "gang", 4, gates, disruption="all")
        cluster.create(urgent("hp"))
        cluster.wait(partial(is_bound, cluster, "hp"), SECONDS, "the pod that preempts")
        cluster.wait(lambda: not live(cluster, "gang-"), SECONDS, "the eviction of the others")
    fields: dict[str, Any] = {"annotations": IN_RACK, "terminationGracePeriodSeconds": 0}
    cluster.create_all(gates(one) for one in members("gang", 4, **fields))
    time.sleep(QUIET_SECONDS)
    assert not gang & cluster.bound().keys(), "three nodes are left for four pods"
    cluster.delete("Pod", "hp")
    cluster.wait(lambda: gang <= cluster.bound().keys(), SECONDS, "the gang as a whole")


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param((("hp0",), ("hp1",)), id="one_after_the_other"),
        pytest.param((("hp0", "hp1"),), id="together"),
    ],
)
def test_two_pods_that_preempt_break_one_gang_of_two(
    plane: ControlPlane, cluster: Cluster, moments: tuple[tuple[str, ...], ...]
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    gangs = [start(cluster, name, 4) for name in ("a", "b")]
    for names in moments:
        cluster.create_all(urgent(name) for name in names)
        for name in names:
            cluster.wait(partial(is_bound, cluster, name), SECONDS, "the pod that preempts")
    time.sleep(QUIET_SECONDS)
    lost = sorted(len(gang - live(cluster, "")) for gang in gangs)
    assert lost == [0, 2]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("racks", "nodes", "preemptors"),
    [
        pytest.param(3, 4, 16, id="three_gangs"),
        pytest.param(10, 8, 100, id="ten_gangs", marks=pytest.mark.thorough),
    ],
)
def test_more_pods_that_preempt_than_nodes_kill_each_pod_once(
    plane: ControlPlane, cluster: Cluster, racks: int, nodes: int, preemptors: int
) -> None:
    plane.nodes(grid(racks=racks, nodes=nodes, gpus=8))
    for number in range(racks):
        start(cluster, f"gang{number}", nodes)
    cluster.create_all(urgent(f"hp{number}") for number in range(preemptors))

    def all_are_theirs() -> bool:
        return not live(cluster, "gang") and len(cluster.bound()) == racks * nodes

    cluster.wait(all_are_theirs, racks * SECONDS, "all to go")
    time.sleep(QUIET_SECONDS)
    assert len([name for name in cluster.bound() if name.startswith("hp")]) == racks * nodes
    assert len(live(cluster, "hp")) == preemptors, "none of those that wait has killed another"
