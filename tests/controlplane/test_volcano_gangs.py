"""Volcano's workloads on kube-scheduler with Corral beside it, and Volcano's own controllers.

They make the PodGroups and the pods; no scheduler of Volcano's runs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.dialects.volcano.workloads import (
    HIGHEST_TIER,
    MIN_MEMBER,
    PARTITION,
    TOPOLOGY_MODE,
    network_topology,
    partition_policy,
    pod_group,
    queue,
    task,
    vcjob,
)
from tests.cluster import GPU, RACK, Cluster, Object, job
from tests.controlplane.kubelet import end_running_pods, start_bound_pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.test_preemption import URGENT, classes
from tests.controlplane.volcano import POD_GROUP
from tests.controlplane.volcano_cluster import (
    LEAF_OF,
    SOON,
    SPINE_OF,
    bound,
    build,
    group_of,
    phase_of,
    uids,
    written_phase,
)
from tests.controlplane.webhook import GATED, installed
from tests.corral_process import CorralProcess, scheduled

__all__ = ["classes"]
pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("volcano")]


def plain_job() -> Object:
    """Two pods in one HyperNode of tier 1, or none, as a Job of Kubernetes says it to Volcano."""
    asked = {TOPOLOGY_MODE: "hard", HIGHEST_TIER: "1"}
    made = job("plain", pods=2, requests={GPU: 8}, annotations=asked)
    made["metadata"]["annotations"] = {MIN_MEMBER: "2"}
    return made


@pytest.mark.usefixtures("volcano_corral")
def test_a_vcjob_starts_in_its_hyper_nodes_runs_and_completes(cluster: Cluster) -> None:
    policy = partition_policy(2, 2, min_partitions=2, topology=network_topology(1))
    cluster.create(
        vcjob(
            "train",
            task("master", 1, requests={GPU: 8}),
            task("worker", 4, requests={GPU: 4}, partitionPolicy=policy),
            networkTopology=network_topology(2),
        )
    )
    cluster.wait(lambda: len(bound(cluster, "train")) == 5, START_SECONDS, "train starts")
    on = bound(cluster, "train")
    spines = {SPINE_OF[LEAF_OF[each]] for each in on.values()}
    assert len(spines) == 1
    pods = [cluster.get("Pod", name) or {} for name in on]
    for partition in ("0", "1"):
        its = {
            LEAF_OF[on[pod["metadata"]["name"]]]
            for pod in pods
            if pod["metadata"]["labels"].get(PARTITION) == partition
        }
        assert len(its) == 1

    start_bound_pods(cluster)
    cluster.wait(lambda: phase_of(cluster, "train") == "Running", SOON, "the vcjob runs")
    cluster.wait(
        lambda: written_phase(cluster, "train") == "Running",
        SOON,
        "the PodGroup runs",
    )
    status = group_of(cluster, "train")["status"]
    assert (status["running"], status["succeeded"], status["failed"]) == (5, 0, 0)
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [
        ("Scheduled", "True")
    ]
    end_running_pods(cluster)
    cluster.wait(lambda: phase_of(cluster, "train") == "Completed", SOON, "the vcjob ends")


@pytest.mark.usefixtures("volcano_corral")
def test_of_an_elastic_vcjob_only_what_it_needs_has_to_fit(cluster: Cluster) -> None:
    workers = task("worker", 4, min_available=2, requests={GPU: 8})
    cluster.create(vcjob("some", workers, networkTopology=network_topology(1)))
    cluster.wait(lambda: len(bound(cluster, "some")) == 2, START_SECONDS, "some starts")
    assert len({LEAF_OF[each] for each in bound(cluster, "some").values()}) == 1


@pytest.mark.usefixtures("volcano_corral")
def test_a_plain_job_waits_for_the_pod_group_that_is_made_after_its_pods(cluster: Cluster) -> None:
    cluster.create(plain_job())
    cluster.wait(lambda: len(bound(cluster, "plain")) == 2, START_SECONDS, "plain starts")
    assert len({LEAF_OF[each] for each in bound(cluster, "plain").values()}) == 1


def test_pods_of_a_pod_group_wait_behind_the_gate_of_the_webhook(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    build(plane, cluster)
    with installed(plane, tmp_path, levels=()) as webhook:
        workers = task("worker", 2, requests={GPU: 8})
        cluster.create(vcjob("train", workers, networkTopology=network_topology(1)))
        cluster.create(plain_job())
        plane.start_scheduler(extender=webhook.corral.url)
        for owner in ("train", "plain"):
            cluster.wait(lambda o=owner: len(bound(cluster, o)) == 2, START_SECONDS, owner)
            assert len({LEAF_OF[each] for each in bound(cluster, owner).values()}) == 1
        # A controller may try to make the same pod twice, so the pods are counted, not the calls.
        pods = cluster.list("Pod", "default")
        managed = [each["metadata"]["labels"].get("corral.dev/managed") for each in pods]
        assert managed == ["true"] * 4
        assert webhook.corral.metric(GATED) >= 4
        assert webhook.corral.bugs() == {}


def test_a_vcjob_starts_with_a_corral_that_is_killed_and_another_that_comes_later(
    cluster: Cluster, volcano_corral: CorralProcess
) -> None:
    """Whatever has been written is enough: the PodGroup is Inqueue at last, and the gang whole."""
    volcano_corral.kill()
    workers = task("worker", 2, requests={GPU: 8})
    cluster.create(vcjob("train", workers, networkTopology=network_topology(1)))
    cluster.wait(lambda: group_of(cluster, "train"), SOON, "the PodGroup")
    volcano_corral.start()
    cluster.wait(lambda: written_phase(cluster, "train") == "Inqueue", SOON, "the phase")
    volcano_corral.kill()
    cluster.wait(lambda: len(cluster.list("Pod", "default")) == 2, SOON, "the pods")
    volcano_corral.start()
    cluster.wait(lambda: len(bound(cluster, "train")) == 2, START_SECONDS, "train starts")
    assert len({LEAF_OF[each] for each in bound(cluster, "train").values()}) == 1
    cluster.wait(lambda: written_phase(cluster, "train") == "Running", SOON, "the phase")


@pytest.mark.usefixtures("volcano_corral")
def test_a_pod_group_says_why_it_waits(cluster: Cluster) -> None:
    unknown = network_topology(tier_name="island")
    cluster.create(vcjob("lost", task("worker", 2), networkTopology=unknown))
    cluster.wait(lambda: unschedulable(cluster, "lost"), SOON, "the reason")
    reason, message = unschedulable(cluster, "lost") or ("", "")
    assert reason == "NotEnoughResources"
    assert "tierName island" in message
    assert bound(cluster, "lost") == {}


@pytest.mark.usefixtures("volcano_corral")
def test_pod_groups_of_another_scheduler_or_without_pods_are_left_as_they_are(
    cluster: Cluster,
) -> None:
    cluster.create(vcjob("theirs", task("worker", 2), scheduler="volcano"))
    cluster.create(pod_group("alone", 2))
    cluster.wait(lambda: group_of(cluster, "theirs"), SOON, "their PodGroup")
    cluster.create(vcjob("later", task("worker", 2)))
    cluster.wait(lambda: written_phase(cluster, "later") == "Inqueue", SOON, "ours is written")
    assert not group_of(cluster, "theirs").get("status")
    assert not (cluster.get(POD_GROUP, "alone") or {"status": "gone"}).get("status")


def unschedulable(cluster: Cluster, owner: str) -> tuple[str, str] | None:
    for each in group_of(cluster, owner).get("status", {}).get("conditions", ()):
        if each["type"] == "Unschedulable":
            return each["reason"], each["message"]
    return None


@pytest.mark.usefixtures("volcano_corral")
def test_a_vcjob_has_no_pods_before_its_queue_has_room(cluster: Cluster) -> None:
    cluster.create(queue("team", capability={GPU: 24}))
    for name in ("first", "second"):
        cluster.create(vcjob(name, task("worker", 2, requests={GPU: 8}), queue="team"))
        cluster.wait(lambda n=name: group_of(cluster, n).get("status"), SOON, f"{name} is seen")
    cluster.wait(lambda: len(bound(cluster, "first")) == 2, START_SECONDS, "first starts")
    cluster.wait(
        lambda: (
            [
                each["message"]
                for each in group_of(cluster, "second")["status"].get("conditions", ())
            ]
            == [f"Queue team has no 16 {GPU} left"]
        ),
        SOON,
        "second says why it waits",
    )
    assert written_phase(cluster, "second") == "Pending"
    start_bound_pods(cluster)
    cluster.wait(lambda: written_phase(cluster, "first") == "Running", SOON, "first runs")
    assert not [pod for pod in cluster.list("Pod", "default") if "second" in pod_name(pod)]
    end_running_pods(cluster)
    cluster.wait(lambda: len(bound(cluster, "second")) == 2, START_SECONDS, "second starts")


def pod_name(pod: Object) -> str:
    return str(pod["metadata"]["name"])


def pair(name: str, **spec: object) -> Object:
    """A vcjob of two whole nodes of one HyperNode, whose pods end at once."""
    made = vcjob(name, task("worker", 2, requests={GPU: 8}), networkTopology=network_topology(1))
    made["spec"]["tasks"][0]["template"]["spec"] |= {"terminationGracePeriodSeconds": 0, **spec}
    return made


@pytest.mark.usefixtures("classes")
def test_a_vcjob_goes_as_a_whole_for_one_of_higher_priority_and_waits_for_another_place(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    build(plane, cluster)
    lower = [f"low-{at}" for at in range(4)]  # one in each HyperNode
    with (
        plane.granted("corral-evict"),
        scheduled(
            plane,
            tmp_path,
            levels=(RACK,),
            preempt="on",
            preempt_after_seconds=1,
        ) as corral,
    ):
        for name in lower:
            cluster.create(pair(name))
        cluster.wait(lambda: len(cluster.bound()) == 8, START_SECONDS, "the cluster is full")
        start_bound_pods(cluster)
        before = {name: uids(cluster, name) for name in lower}
        cluster.create(pair("high", priorityClassName=URGENT))
        cluster.wait(lambda: len(bound(cluster, "high")) == 2, START_SECONDS, "high starts")
        assert len({LEAF_OF[on] for on in bound(cluster, "high").values()}) == 1
        left = [name for name in lower if uids(cluster, name) == before[name]]
        assert len(left) == 3
        (gone,) = set(lower) - set(left)
        assert uids(cluster, gone) == {}
        assert corral.metric('corral_room_victims_total{kind="gang"}') == 1
        assert corral.bugs() == {}
