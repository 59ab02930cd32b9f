"""What goes wrong under Volcano's gangs, and who else wants their nodes.

On the cluster of `volcano_cluster`: four HyperNodes of tier 1 with two nodes each.
"""

from __future__ import annotations

import time

import pytest

from tests.app.dialects.volcano.objects import exact
from tests.app.dialects.volcano.workloads import network_topology, task, vcjob
from tests.cluster import GPU, RACK, Cluster, Object, job, pod
from tests.controlplane.kubelet import start_bound_pods
from tests.controlplane.process import Process
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.volcano_cluster import (
    LEAF_OF,
    LEAVES,
    SOON,
    bound,
    group_of,
    phase_of,
    written_phase,
)
from tests.corral_process import CorralProcess
from tests.workloads import asking

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

QUIET_SECONDS = 3.0
RACE_SECONDS = 10.0  # for which it is looked at again and again how much of each gang is bound
BINDING_SECONDS = 5.0  # between the first binding of a gang and the last


def pair(name: str, pods: int = 2) -> Object:
    """A vcjob of so many whole nodes, two of them one HyperNode of tier 1."""
    workers = task("worker", pods, requests={GPU: 8})
    return vcjob(name, workers, networkTopology=network_topology(1))


def members_of(cluster: Cluster, leaf: str, *nodes: str) -> None:
    """Give a HyperNode these nodes instead of its own."""
    cluster.patch("HyperNode", leaf, {"spec": {"members": exact("Node", *nodes)}})


def running(cluster: Cluster, name: str) -> dict[str, str]:
    """A pair that runs: the node of each pod, and in which HyperNode all of them are."""
    cluster.create(pair(name))
    cluster.wait(lambda: len(bound(cluster, name)) == 2, START_SECONDS, f"{name} starts")
    start_bound_pods(cluster)
    cluster.wait(lambda: phase_of(cluster, name) == "Running", SOON, f"{name} runs")
    on = bound(cluster, name)
    assert len({LEAF_OF[each] for each in on.values()}) == 1
    return on


@pytest.mark.usefixtures("volcano_corral")
def test_a_gang_whose_hyper_node_changes_stays_and_is_repaired_where_it_is_now(
    cluster: Cluster,
) -> None:
    on = running(cluster, "train")
    stays, goes = sorted(on)
    home = LEAF_OF[on[stays]]
    other = next(leaf for leaf in LEAVES if leaf != home)
    with_it, alone = LEAVES[other]
    members_of(cluster, other, alone)
    members_of(cluster, home, on[stays], with_it)
    time.sleep(QUIET_SECONDS)
    assert bound(cluster, "train") == on, "what runs does not move"
    assert written_phase(cluster, "train") == "Running"

    cluster.delete("Pod", goes)  # its controller makes it again, under the same name
    cluster.wait(
        lambda: bound(cluster, "train").get(goes) == with_it, START_SECONDS, "the replacement"
    )
    assert bound(cluster, "train")[stays] == on[stays]


@pytest.mark.usefixtures("volcano_corral")
def test_a_gang_whose_hyper_node_is_deleted_stays_and_a_pod_that_is_lost_waits_for_one(
    cluster: Cluster,
) -> None:
    on = running(cluster, "train")
    stays, goes = sorted(on)
    home = LEAF_OF[on[stays]]
    cluster.delete("HyperNode", home)
    time.sleep(QUIET_SECONDS)
    assert bound(cluster, "train") == on
    cluster.delete("Pod", goes)
    cluster.wait(lambda: "cannot be placed" in why(cluster, "train"), SOON, "the reason")
    assert bound(cluster, "train") == {stays: on[stays]}
    cluster.create(restored(home))
    cluster.wait(lambda: bound(cluster, "train") == on, START_SECONDS, "the replacement")


def why(cluster: Cluster, owner: str) -> str:
    """The message of the condition that says why pods of its PodGroup wait; "" for none."""
    conditions = group_of(cluster, owner).get("status", {}).get("conditions", ())
    return next((each["message"] for each in conditions if each["type"] == "Unschedulable"), "")


def restored(leaf: str) -> Object:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": leaf},
        "spec": {"tier": 1, "members": exact("Node", *LEAVES[leaf])},
    }


def test_vcjobs_start_whole_though_their_controllers_end_at_any_point(
    cluster: Cluster, volcano: Process, volcano_corral: CorralProcess
) -> None:
    """Before the PodGroup, after it, and with some of the pods made; Corral as well."""
    for at, wait in enumerate((0.0, 0.1, 0.5)):
        cluster.create(pair(f"train{at}"))
        time.sleep(wait)
        volcano.kill()
        volcano_corral.kill()
        volcano_corral.start()
        volcano.start_again()
    for at in range(3):
        name = f"train{at}"
        cluster.wait(lambda n=name: len(bound(cluster, n)) == 2, START_SECONDS, f"{name} starts")
        assert len({LEAF_OF[each] for each in bound(cluster, name).values()}) == 1
        cluster.wait(lambda n=name: written_phase(cluster, n) == "Running", SOON, "the phase")


@pytest.mark.usefixtures("volcano_corral")
def test_vcjobs_jobs_with_annotations_of_kueue_and_plain_pods_share_the_racks(
    cluster: Cluster,
) -> None:
    """Nine nodes' worth for eight nodes: every gang whole or not at all, each in its own domain."""
    gangs = {"volcano0": 2, "volcano1": 2, "kueue": 2}
    plain = [f"plain{at}" for at in range(3)]
    for name in plain:
        cluster.create(pod(name, requests={GPU: 8}))
    for name in gangs:
        if name == "kueue":
            cluster.create(job(name, pods=2, requests={GPU: 8}, annotations=asking(required=RACK)))
        else:
            cluster.create(pair(name))
    assert watch_whole(cluster, gangs), "one rack at least has no plain pod"
    for name in plain:
        cluster.delete("Pod", name)
    for name, pods in gangs.items():
        cluster.wait(
            lambda n=name, p=pods: len(bound(cluster, n)) == p, START_SECONDS, f"{name} starts"
        )
        assert len({LEAF_OF[each] for each in bound(cluster, name).values()}) == 1


def watch_whole(cluster: Cluster, gangs: dict[str, int]) -> set[str]:
    """The gangs that have started; none may be in part for longer than its bindings take."""
    partial_since: dict[str, float] = {}
    began = time.monotonic()
    started: set[str] = set()
    while (lasted := time.monotonic() - began) < RACE_SECONDS or (
        not started and lasted < START_SECONDS
    ):
        on = cluster.bound()
        for name, pods in gangs.items():
            its = [node for each, node in on.items() if each.startswith(f"{name}-")]
            if len(its) == pods:
                started.add(name)
                assert len({LEAF_OF[each] for each in its}) == 1, name
            if 0 < len(its) < pods:
                since = partial_since.setdefault(name, time.monotonic())
                assert time.monotonic() < since + BINDING_SECONDS, f"{name} has started in part"
            else:
                partial_since.pop(name, None)
        time.sleep(0.2)
    return started
