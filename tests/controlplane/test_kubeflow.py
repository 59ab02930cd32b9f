"""Kubeflow's operator with --gang-scheduler-name=volcano, and neither Volcano nor its scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import GPU, Cluster, Object, grid
from tests.controlplane.kinds import served, training_job
from tests.controlplane.kubeflow import KINDS, training_operator
from tests.controlplane.kubelet import end_running_pods, start_bound_pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.volcano import POD_GROUP
from tests.controlplane.volcano_cluster import SOON, bound, written_phase
from tests.corral_process import CorralProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def kubeflow(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[None]:
    with served(cluster, (*KINDS, POD_GROUP)), training_operator(plane, tmp_path):
        yield


def pytorch_job(name: str, workers: int, *, scheduler: str | None = "corral") -> Object:
    """A master and its workers of four GPUs each, which start together."""
    types = {"Master": ({}, 1), "Worker": ({}, workers)}
    made = training_job("PyTorchJob", "pytorchReplicaSpecs", name, types)
    for part in made["spec"]["pytorchReplicaSpecs"].values():
        part["template"]["spec"].pop("schedulerName", None)
        if scheduler is not None:
            part["template"]["spec"]["schedulerName"] = scheduler
        container = part["template"]["spec"]["containers"][0]
        container |= {"name": "pytorch", "resources": {"limits": {GPU: 4}}}
    return made


def conditions_of(cluster: Cluster, name: str) -> set[str]:
    status = (cluster.get("PyTorchJob", name) or {}).get("status", {})
    return {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}


@pytest.mark.usefixtures("kubeflow")
def test_a_pytorch_job_gets_its_pods_starts_whole_and_completes(
    cluster: Cluster, plane: ControlPlane, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=1, nodes=2, gpus=8))
    cluster.create(pytorch_job("other", 1, scheduler=None))
    cluster.create(pytorch_job("large", 4))
    cluster.create(pytorch_job("train", 3))

    cluster.wait(lambda: len(bound(cluster, "train")) == 4, START_SECONDS, "train starts")
    cluster.wait(lambda: written_phase(cluster, "train") == "Running", SOON, "its PodGroup runs")
    assert bound(cluster, "large") == {}
    assert written_phase(cluster, "large") == "Inqueue"

    start_bound_pods(cluster)
    cluster.wait(lambda: "Running" in conditions_of(cluster, "train"), SOON, "the job runs")
    end_running_pods(cluster)
    cluster.wait(lambda: "Succeeded" in conditions_of(cluster, "train"), SOON, "the job ends")
    assert written_phase(cluster, "other") in ("", "Pending"), "its pods name Volcano's scheduler"
    assert not [one for one in cluster.list("Pod", "default") if "other" in one["metadata"]["name"]]
