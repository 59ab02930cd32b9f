"""KAI's own pod-grouper makes the PodGroups; its scheduler does not run, nor anything else of it.

This version makes one PodGroup of each pod of a Job, and one that starts with a single pod of a
JobSet; that of a PyTorchJob starts whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.app.dialects.kai.objects import topology
from tests.cluster import BLOCK, GPU, RACK, Cluster, Object, grid, job, pod
from tests.controlplane import jobset_lws
from tests.controlplane.kai import (
    NET,
    REQUIRED,
    SCHEDULER,
    TOPOLOGY,
    condition_of,
    groups_of,
    pod_grouper,
)
from tests.controlplane.kinds import job_set, served, training_job
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.seen import START_SECONDS, unschedulable
from tests.corral_process import scheduled

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_A_RACK = {NET: "net", REQUIRED: RACK}
TRAINING_JOB = "PyTorchJob"


@pytest.fixture(scope="module")
def grouper(
    plane: ControlPlane, job_set_controllers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    with (
        served(plane.cluster(), (TRAINING_JOB,)),
        pod_grouper(plane, tmp_path_factory.mktemp("kai")) as process,
    ):
        yield process


@pytest.fixture(scope="module")
def module_stage(
    plane: ControlPlane, grouper: Process, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Four racks of three nodes in two blocks, kube-scheduler and Corral."""
    cluster = plane.cluster()
    plane.nodes(grid(blocks=2, racks=2, nodes=3, gpus=8))
    cluster.create({**topology("net", BLOCK, RACK), "metadata": {"name": "net"}})
    with scheduled(plane, tmp_path_factory.mktemp("corral"), SCHEDULER, levels=()) as corral:
        yield cluster
        assert corral.bugs() == {}
    plane.stop_scheduler()
    cluster.delete(TOPOLOGY, "net")
    cluster.delete_all("Node")


@pytest.fixture
def stage(module_stage: Cluster, grouper: Process) -> Iterator[Cluster]:
    """The same, without pods again afterwards."""
    yield module_stage
    grouper.check()
    jobset_lws.clear(module_stage)
    for kind in (TRAINING_JOB, "Job", "Pod"):
        module_stage.clear(kind)


def pytorch_job(cluster: Cluster, name: str, pods: int) -> list[Object]:
    """The pods of a PyTorchJob that is there and requires a rack, as its operator makes them."""
    made = training_job("PyTorchJob", "pytorchReplicaSpecs", name, {"Worker": ({}, pods)})
    made["metadata"]["annotations"] = IN_A_RACK
    owner = _controlled_by(cluster.create(made))
    return [
        {**each, "metadata": {**each["metadata"], "ownerReferences": [owner]}}
        for each in (
            pod(f"{name}-worker-{at}", scheduler=SCHEDULER, requests={GPU: 8}) for at in range(pods)
        )
    ]


def _controlled_by(owner: Object) -> Object:
    """The reference of what its controller has made for that object."""
    whole = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    return whole | {key: owner["metadata"][key] for key in ("name", "uid")}


def bound(cluster: Cluster, name: str) -> dict[str, str]:
    return {each: on for each, on in cluster.bound().items() if each.startswith(f"{name}-")}


def racks(placed: dict[str, str]) -> set[str]:
    return {on.rpartition("-")[0] for on in placed.values()}


def test_a_pytorch_job_starts_whole_in_a_rack_or_its_pod_group_says_why_not(stage: Cluster) -> None:
    large = pytorch_job(stage, "large", 4)
    stage.create_all(large)
    pods = pytorch_job(stage, "train", 3)
    stage.create_all(pods[:2])
    stage.wait(lambda: condition_of(only(stage, "large")), START_SECONDS, "its PodGroup says why")
    told = condition_of(only(stage, "large"))
    assert (told["type"], told["status"]) == ("UnschedulableOnNodePool", "True")
    assert "3 of 4 pods fit" in told["message"]
    assert stage.bound() == {}

    stage.create(pods[2])
    stage.wait(lambda: len(bound(stage, "train")) == 3, START_SECONDS, "train starts")
    assert len(racks(bound(stage, "train"))) == 1
    assert only(stage, "train")["spec"]["minMember"] == 3
    assert bound(stage, "large") == {}


def test_pods_wait_for_the_annotation_that_comes_late_and_one_that_is_lost_comes_back(
    stage: Cluster, grouper: Process
) -> None:
    pods = pytorch_job(stage, "late", 3)
    grouper.pause()
    try:
        stage.create_all(pods)
        stage.wait(lambda: len(unschedulable(stage)) == 3, START_SECONDS, "all are told something")
        assert all(
            "pod-grouper names its PodGroup" in each for each in unschedulable(stage).values()
        )
        assert stage.bound() == {}
    finally:
        grouper.resume()
    stage.wait(lambda: len(bound(stage, "late")) == 3, START_SECONDS, "it starts")
    before = bound(stage, "late")

    stage.delete("Pod", pods[0]["metadata"]["name"])
    stage.create(pods[0])
    stage.wait(lambda: len(bound(stage, "late")) == 3, START_SECONDS, "the pod is back")
    assert racks(bound(stage, "late")) == racks(before)


def test_pods_of_a_job_and_bare_ones_are_each_a_gang_of_one(stage: Cluster) -> None:
    made = job("batch", pods=13, scheduler=SCHEDULER, requests={GPU: 8})
    made["metadata"]["annotations"] = IN_A_RACK
    stage.create(made)
    stage.wait(lambda: len(bound(stage, "batch")) == 12, START_SECONDS, "as many as fit start")
    stage.create(pod("bare-0", scheduler=SCHEDULER, requests={"cpu": 1}, annotations=IN_A_RACK))
    stage.wait(lambda: bound(stage, "bare"), START_SECONDS, "a pod alone starts")
    groups = groups_of(stage, "batch") + groups_of(stage, "bare-0")
    assert len(groups) >= 13, "one of each pod that has started"
    assert {each["spec"]["minMember"] for each in groups} == {1}


def test_a_job_set_is_in_one_rack_though_its_pod_group_starts_with_any_pod(stage: Cluster) -> None:
    made = job_set("set", {}, {GPU: 8}, driver={}, jobs=2, pods=1)
    for each in made["spec"]["replicatedJobs"]:
        each["template"]["spec"]["template"]["spec"]["schedulerName"] = SCHEDULER
    made["metadata"]["annotations"] = IN_A_RACK
    stage.create(made)
    stage.wait(lambda: len(bound(stage, "set")) == 3, START_SECONDS, "it starts")
    assert len(racks(bound(stage, "set"))) == 1
    assert only(stage, "set")["spec"]["minMember"] == 1


def only(cluster: Cluster, owner: str) -> Object:
    """The PodGroup of a workload that has one."""
    return next(iter(groups_of(cluster, owner)), {})
