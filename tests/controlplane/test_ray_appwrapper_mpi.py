"""Gangs of RayClusters, RayJobs, AppWrappers and MPIJobs, whose pods their own operators make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.cluster import BLOCK, GPU, RACK, Cluster, Object, Objects, grid, job, node, pod
from tests.controlplane.kinds import app_wrapper, ray_cluster, ray_job, training_job
from tests.controlplane.kubelet import start_bound_pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.ray_appwrapper_mpi import clear
from tests.controlplane.seen import START_SECONDS, racks_of, told_to_all
from tests.corral_process import CorralProcess
from tests.workloads import GROUP, TOTAL, asking

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.operators]

HALF_A_NODE = {GPU: "4"}
IN_RACK = asking(required=RACK)
TOGETHER = {"corral.dev/workload-required-topology": RACK}
FIT = 4  # workers of half a node in a rack of two nodes


@dataclass(frozen=True)
class Owner:
    """An object of which an operator makes a gang: so many workers, and the pods beside them."""

    make: Callable[[int], Object]
    beside: int = 0


def group(pods: int) -> dict[str, str]:
    """What pods of a group of that size say that is in one rack."""
    return {GROUP: "train", TOTAL: str(pods), **IN_RACK, **TOGETHER}


def cluster_of(workers: int, hosts: int = 1) -> Object:
    return ray_cluster("train", group(1 + workers), HALF_A_NODE, workers=workers, hosts=hosts)


def ray_job_of(workers: int) -> Object:
    return ray_job("train", group(1 + workers), HALF_A_NODE, workers=workers)


def wrapped_job_of(workers: int) -> Object:
    return app_wrapper(
        "train", job("train", pods=workers, requests=HALF_A_NODE, annotations=IN_RACK)
    )


def wrapped_pods_of(workers: int) -> Object:
    said = group(workers)
    pods = [
        pod(f"train-{number}", requests=HALF_A_NODE, annotations=said) for number in range(workers)
    ]
    return app_wrapper("train", *pods)


def mpi_job_of(workers: int, **spec: str) -> Object:
    said = {**IN_RACK, **TOGETHER}
    types = {"Launcher": (said, 1), "Worker": (said, workers)}
    made = training_job("MPIJob", "mpiReplicaSpecs", "train", types)
    template = made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    template["spec"]["containers"][0]["resources"] = {"limits": HALF_A_NODE}
    made["spec"] |= spec
    return made


RAY_CLUSTER = pytest.param(Owner(cluster_of, 1), id="RayCluster")
RAY_HOSTS = pytest.param(
    Owner(lambda workers: cluster_of(workers, hosts=2), 1), id="RayCluster_of_two_hosts"
)
RAY_JOB = pytest.param(Owner(ray_job_of, 1), id="RayJob")
WRAPPED_JOB = pytest.param(Owner(wrapped_job_of), id="AppWrapper_of_a_Job")
WRAPPED_PODS = pytest.param(Owner(wrapped_pods_of), id="AppWrapper_of_pods")
MPI_JOB = pytest.param(Owner(mpi_job_of, 1), id="MPIJob")


@pytest.fixture
def racks(plane: ControlPlane, cluster: Cluster, kuberay_appwrapper_mpi: None) -> Iterator[None]:
    """Two racks of two nodes of eight GPUs; afterwards nothing that operators make pods of."""
    plane.nodes(grid(racks=2, nodes=2, gpus=8))
    yield
    clear(cluster)


@pytest.mark.usefixtures("racks", "corral")
@pytest.mark.parametrize("owner", [RAY_CLUSTER, RAY_HOSTS, RAY_JOB, WRAPPED_JOB, MPI_JOB])
def test_it_starts_whole_in_its_rack_and_a_lost_pod_comes_back_there(
    cluster: Cluster, owner: Owner
) -> None:
    cluster.create(owner.make(FIT))
    pods = running(cluster, FIT + owner.beside)
    (rack,) = racks_of(cluster)

    lost = next(one for one in pods if GPU in one["spec"]["containers"][0]["resources"]["limits"])
    cluster.delete("Pod", lost["metadata"]["name"])
    again = running(cluster, FIT + owner.beside, without=lost)
    assert racks_of(cluster) == {rack}
    assert len({one["metadata"]["uid"] for one in (*pods, *again)}) == FIT + owner.beside + 1


@pytest.mark.usefixtures("racks", "corral")
@pytest.mark.parametrize("owner", [RAY_CLUSTER, RAY_JOB, WRAPPED_JOB, WRAPPED_PODS, MPI_JOB])
def test_half_of_it_never_starts_where_it_does_not_fit(cluster: Cluster, owner: Owner) -> None:
    cluster.create(owner.make(FIT + 1))
    pods = FIT + 1 + owner.beside

    def all_told() -> bool:
        told = told_to_all(cluster, pods).values()
        return bool(told) and all("cannot be placed" in message for message in told)

    cluster.wait(all_told, START_SECONDS, "a verdict")
    assert cluster.bound() == {}

    cluster.create(node("b0-r1-more", labels={BLOCK: "b0", RACK: "b0-r1"}, gpus=8))
    running(cluster, pods)
    assert racks_of(cluster) == {"b0-r1"}


@pytest.mark.usefixtures("racks", "corral")
def test_the_launcher_that_an_mpi_job_makes_last_is_in_the_rack_of_its_workers(
    cluster: Cluster, corral: CorralProcess
) -> None:
    cluster.create(mpi_job_of(FIT, launcherCreationPolicy="WaitForWorkersReady"))
    running(cluster, FIT + 1)
    assert len(racks_of(cluster)) == 1


def running(cluster: Cluster, pods: int, *, without: Object | None = None) -> Objects:
    """All pods once that many run, `without` not among them; each that is bound is started."""
    gone = without["metadata"]["uid"] if without else ""

    def all_run() -> Objects:
        start_bound_pods(cluster)
        found = [one for one in cluster.list("Pod", "default") if one["spec"].get("nodeName")]
        uids = {one["metadata"]["uid"] for one in found}
        return found if len(found) == pods and gone not in uids else []

    return cluster.wait(all_run, START_SECONDS, f"{pods} bindings")
