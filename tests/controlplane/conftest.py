"""One real control plane per test run, left empty again by every test.

Not built on this machine: the tests are skipped, with the command that builds it. With
CORRAL_E2E=required, as tests/run.sh sets it where it has built, they fail instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import RACK, Cluster
from tests.controlplane import jobset_lws, ray_appwrapper_mpi
from tests.controlplane.built import skip_unless_built
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.volcano import QUEUES, clear, controllers
from tests.controlplane.volcano_cluster import build
from tests.corral_process import CorralProcess, scheduled

CLEAR_SECONDS = 30.0  # until what is deleted is gone; under one as a rule


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd, kube-apiserver and the controllers of Jobs and StatefulSets; no scheduler yet."""
    skip_unless_built()
    folder = tmp_path_factory.mktemp("plane")
    with ControlPlane(folder, has_controllers=True, is_audited=True) as plane:
        yield plane
    assert plane.denials() == []


@pytest.fixture(autouse=True)
def nothing_denied(request: pytest.FixtureRequest) -> Iterator[None]:
    """The rights that are shipped were enough; a test that means to be denied reads it itself."""
    yield
    if "plane" in request.fixturenames:
        plane: ControlPlane = request.getfixturevalue("plane")
        assert plane.denials() == []


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[Cluster]:
    """The plane's API server as its administrator; afterwards nothing that tests put there often.

    That is no scheduler, budgets, jobs, pods or nodes, however the test has ended.
    """
    admin = plane.cluster()
    yield admin
    plane.stop_scheduler()
    for kind in ("Job", "Pod", "Node"):
        admin.clear(kind, CLEAR_SECONDS)
    for kind in ("Event", "PodDisruptionBudget"):
        admin.delete_all(kind)


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """Corral with the rights that are shipped, and a kube-scheduler that asks it."""
    with scheduled(plane, tmp_path) as corral:
        yield corral
        assert corral.bugs() == {}


@pytest.fixture(scope="module")
def job_set_controllers(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The controllers of JobSets and LeaderWorkerSets, which take seconds to start."""
    with jobset_lws.controllers(plane, tmp_path_factory.mktemp("jobset-lws")):
        yield


@pytest.fixture
def job_sets(cluster: Cluster, job_set_controllers: None) -> Iterator[None]:
    """JobSets, LeaderWorkerSets and StatefulSets; afterwards none of them."""
    yield
    jobset_lws.clear(cluster)


@pytest.fixture(scope="module")
def kuberay_appwrapper_mpi(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """KubeRay, AppWrapper's controller and the MPI operator, with all kinds they read."""
    skip_unless_built("kuberay", "appwrapper", "mpi-operator")
    with ray_appwrapper_mpi.operators(plane, tmp_path_factory.mktemp("operators")):
        yield


@pytest.fixture(scope="module")
def volcano_controllers(plane: ControlPlane) -> Iterator[Process]:
    """Volcano's kinds, its usual queues and its controllers, which take seconds to start."""
    with controllers(plane, QUEUES) as process:
        yield process


@pytest.fixture
def volcano(cluster: Cluster, volcano_controllers: Process) -> Iterator[Process]:
    """Volcano's controllers, and no scheduler of its own; afterwards none of its objects."""
    yield volcano_controllers
    volcano_controllers.check()
    clear(cluster)


@pytest.fixture
def volcano_corral(
    plane: ControlPlane, cluster: Cluster, volcano: Process, tmp_path: Path
) -> Iterator[CorralProcess]:
    """On the cluster of `volcano_cluster`, beside kube-scheduler and Volcano's controllers."""
    build(plane, cluster)
    with scheduled(plane, tmp_path, levels=(RACK,)) as corral:
        yield corral
        assert corral.bugs() == {}
