"""What Volcano's controllers write, and what they wait for: the facts that its dialect rests on.

Corral does not run here, nor any scheduler: the test binds the pods, and says that they run.
"""

from __future__ import annotations

import time
from functools import partial

import pytest

from tests.app.dialects.volcano.workloads import (
    GROUP_NAME,
    HIGHEST_TIER,
    MIN_MEMBER,
    PARTITION,
    QUEUE_NAME,
    TASK,
    TASK_INDEX,
    TOPOLOGY_MODE,
    network_topology,
    partition_policy,
    pod_group,
    sub_group,
    task,
    vcjob,
)
from tests.cluster import GPU, Cluster, Object, Objects, job, node
from tests.controlplane.kubelet import end_running_pods, start_bound_pods
from tests.controlplane.volcano import INQUEUE, JOB, POD_GROUP
from tests.workloads import GATE, gates_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("volcano")]

SOON = 10.0  # under one second, once the controllers have started
QUIET_SECONDS = 1.0  # pods come 0.1 s after the phase that allows them


def test_a_vcjob_has_a_pod_group_and_its_pods_only_once_that_is_inqueue(cluster: Cluster) -> None:
    policy = partition_policy(2, 2, min_partitions=1, topology=network_topology(1))
    made = cluster.create(
        vcjob(
            "train",
            task("master", 1, requests={GPU: 8}),
            task(
                "worker",
                4,
                min_available=3,
                requests={GPU: 8},
                gates=[GATE],
                partitionPolicy=policy,
            ),
            networkTopology=network_topology(2),
        )
    )
    name = f"train-{made['metadata']['uid']}"
    group = wait_group(cluster, name)
    assert [(each["kind"], each["name"]) for each in owners(group)] == [("Job", "train")]
    worker = sub_group("worker", 2, min_sub_groups=1, topology=network_topology(1))
    wanted = pod_group(
        name,
        4,
        tasks={"master": 1, "worker": 3},
        topology=network_topology(2),
        sub_groups=[worker],
        minResources=resources(pods=4, gpus=32),
    )
    assert group["spec"] == wanted["spec"]
    cluster.wait(partial(phase_of, cluster, "train"), SOON, "the vcjob's phase")
    time.sleep(QUIET_SECONDS)
    assert wait_group(cluster, name)["status"] == {}  # not even Pending
    assert phase_of(cluster, "train") == "Pending"
    assert cluster.list("Pod", "default") == []

    cluster.patch(POD_GROUP, name, INQUEUE)
    pods = wait_pods(cluster, name, 5)
    assert {one["metadata"]["name"]: labels(one, TASK, TASK_INDEX, PARTITION) for one in pods} == {
        "train-master-0": ("master", "0", None),
        "train-worker-0": ("worker", "0", "0"),
        "train-worker-1": ("worker", "1", "0"),
        "train-worker-2": ("worker", "2", "1"),
        "train-worker-3": ("worker", "3", "1"),
    }
    for one in pods:
        assert [(each["apiVersion"], each["name"]) for each in owners(one)] == [
            ("batch.volcano.sh/v1alpha1", "train")
        ]
        assert one["spec"]["schedulerName"] == "corral"
        assert gates_of(one) == ([GATE] if labels(one, TASK) == ("worker",) else [])


def test_a_vcjob_follows_its_pods_and_takes_its_pod_group_with_it(cluster: Cluster) -> None:
    cluster.create(node("n", gpus=8))
    made = cluster.create(vcjob("train", task("worker", 2)))
    name = f"train-{made['metadata']['uid']}"
    wait_group(cluster, name)
    cluster.patch(POD_GROUP, name, INQUEUE)
    first = {one["metadata"]["uid"] for one in wait_pods(cluster, name, 2)}
    cluster.delete("Pod", "train-worker-1")
    cluster.wait(lambda: uids(cluster) - first, SOON, "the pod's successor")
    assert len(wait_pods(cluster, name, 2)) == 2

    for pod in ("train-worker-0", "train-worker-1"):
        cluster.bind(pod, "n")
    start_bound_pods(cluster)
    cluster.wait(lambda: phase_of(cluster, "train") == "Running", SOON, "the vcjob runs")
    assert wait_group(cluster, name)["status"] == INQUEUE["status"]  # a scheduler writes the rest
    end_running_pods(cluster)
    cluster.wait(lambda: phase_of(cluster, "train") == "Completed", SOON, "the vcjob has ended")
    cluster.wait(lambda: cluster.get(POD_GROUP, name) is None, SOON, "its PodGroup is gone")
    assert len(uids(cluster)) == 2  # its pods stay


def test_the_pods_of_a_plain_job_get_a_pod_group_after_they_were_made(cluster: Cluster) -> None:
    asked = {TOPOLOGY_MODE: "hard", HIGHEST_TIER: "1", QUEUE_NAME: "default"}
    plain = job("plain", pods=4, requests={GPU: 8}, annotations=asked)
    plain["metadata"]["annotations"] = {MIN_MEMBER: "3"}
    name = f"podgroup-{cluster.create(plain)['metadata']['uid']}"
    group = wait_group(cluster, name)
    assert [(each["kind"], each["name"]) for each in owners(group)] == [("Job", "plain")]
    wanted = pod_group(
        name,
        3,
        topology=network_topology(1),
        phase="Pending",
        minResources=resources(pods=3, gpus=24),
    )
    assert group["spec"] == wanted["spec"]
    assert group["status"] == wanted["status"]
    for one in wait_pods(cluster, name, 4):
        assert asked.items() <= one["metadata"]["annotations"].items()
        assert labels(one, PARTITION, TASK) == (None, None)


def wait_group(cluster: Cluster, name: str) -> Object:
    """The PodGroup, once there is one."""
    found = cluster.wait(lambda: cluster.get(POD_GROUP, name), SOON, f"PodGroup {name}")
    assert found is not None
    return found


def wait_pods(cluster: Cluster, group: str, pods: int) -> Objects:
    """All pods there are, once that many of the PodGroup are there."""

    def found() -> Objects:
        there = cluster.list("Pod", "default")
        named = [one["metadata"].get("annotations", {}).get(GROUP_NAME) for one in there]
        return there if named == [group] * pods else []

    return cluster.wait(found, SOON, f"{pods} pods of {group}")


def phase_of(cluster: Cluster, name: str) -> str:
    """Of a vcjob; empty before its controller has seen it."""
    found = cluster.get(JOB, name) or {}
    phase: str = found.get("status", {}).get("state", {}).get("phase", "")
    return phase


def uids(cluster: Cluster) -> set[str]:
    return {one["metadata"]["uid"] for one in cluster.list("Pod", "default")}


def owners(thing: Object) -> Objects:
    found: Objects = thing["metadata"]["ownerReferences"]
    return found


def labels(one: Object, *names: str) -> tuple[str | None, ...]:
    """The values of these labels; None of one that is not there."""
    found = one["metadata"].get("labels", {})
    return tuple(found.get(name) for name in names)


def resources(*, pods: int, gpus: int) -> dict[str, str]:
    """What that many pods request, in the words of a ResourceQuota too."""
    amounts = {"pods": pods, "count/pods": pods, GPU: gpus, f"requests.{GPU}": gpus}
    return {name: str(amount) for name, amount in amounts.items()}
