"""Gangs through the kube-scheduler of each supported minor version, by the file for that version.

The API server is always that of go.mod, so a kube-scheduler may be newer than it or two versions
older, which Kubernetes does not promise to work.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from app.cli.doctor import shipped
from app.kube.decoding.requests import MARKERS
from tests.cluster import Cluster, Object, grid, pod
from tests.controlplane.built import skip_unless_built
from tests.controlplane.plane import SCHEDULER_CONFIG, ControlPlane, binaries, operator
from tests.controlplane.test_making_room import MADE_SECONDS, SOON, started
from tests.controlplane.test_making_room import racks as racks_of_these
from tests.controlplane.test_mutual_tls import Folder
from tests.controlplane.test_preemption import (
    SECONDS,
    classes,
    is_bound,
    live,
    start,
    urgent,
)
from tests.controlplane.test_room import train
from tests.corral_process import CorralProcess
from tests.workloads import behind_gate

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("classes")]

__all__ = ["classes"]
# What a newer kube-scheduler watches and this API server does not serve; it would wait for it.
FLAGS = {"1.37": ["--feature-gates=DRADeviceTaintRules=false"]}
OWN = SCHEDULER_CONFIG.stem  # the control plane's; the others are built on demand
MINORS = [
    pytest.param(minor, marks=[] if minor == OWN else [pytest.mark.schedulers])
    for minor in shipped.minors()
]


@pytest.fixture(params=MINORS)
def minor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def program(minor: str) -> Path:
    """The kube-scheduler of that version."""
    if minor == OWN:
        return binaries() / "kube-scheduler"
    skip_unless_built(f"kube-scheduler-{minor}")
    return operator(f"kube-scheduler-{minor}")


@pytest.fixture
def corral(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, minor: str, program: Path
) -> Iterator[CorralProcess]:
    """Corral, which makes room for gangs, and that kube-scheduler with its file."""
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    kubeconfig = plane.kubeconfig("corral")
    with (
        plane.granted("corral-evict"),
        CorralProcess(kubeconfig, tmp_path, **SOON) as corral,
    ):
        config = SCHEDULER_CONFIG.with_name(f"{minor}.yaml")
        flags = FLAGS.get(minor, ())
        plane.start_scheduler(config, extender=corral.url, flags=flags, program=program)
        yield corral
        assert corral.bugs() == {}


def test_it_is_of_the_version_whose_file_it_gets(minor: str, program: Path) -> None:
    ran = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30)
    assert ran.stdout.startswith(f"Kubernetes v{minor}.")


@pytest.mark.parametrize("is_gated", [False, True], ids=["gateless", "gated"])
def test_a_gang_starts_in_one_rack(cluster: Cluster, corral: CorralProcess, is_gated: bool) -> None:
    gang = start(cluster, "g", 4, behind_gate if is_gated else lambda one: one)
    assert len(racks_of_these(cluster, gang)) == 1
    assert corral.metric('corral_binds_total{outcome="bound"}') == 4


def test_a_pod_that_preempts_costs_one_gang_one_pod(
    cluster: Cluster, corral: CorralProcess
) -> None:
    gangs = start(cluster, "a", 4) | start(cluster, "b", 4)
    cluster.create(urgent("first"))
    cluster.wait(partial(is_bound, cluster, "first"), SECONDS, "the pod that preempts")
    assert len(gangs - live(cluster, "a-") - live(cluster, "b-")) == 1


def test_a_gang_that_preempts_starts_where_another_one_was(
    cluster: Cluster, corral: CorralProcess
) -> None:
    gangs = start(cluster, "a", 4) | start(cluster, "b", 4)
    waiting = train(cluster)
    cluster.wait(partial(started, cluster, waiting), MADE_SECONDS, "the gang in the freed rack")
    assert len(racks_of_these(cluster, waiting)) == 1
    stayed = gangs & cluster.bound().keys()
    assert len({name[0] for name in stayed}) == 1
    assert len(stayed) == 4


def test_a_gang_starts_over_mutual_tls(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, minor: str, program: Path
) -> None:
    folder = Folder(tmp_path)
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    with CorralProcess(plane.kubeconfig("corral"), tmp_path, **folder.settings) as corral:
        plane.start_scheduler(
            SCHEDULER_CONFIG.with_name(f"{minor}-mtls.yaml"),
            extender=corral.url,
            tls=folder.show("scheduler", by="schedulers"),
            flags=FLAGS.get(minor, ()),
            program=program,
        )
        gang = start(cluster, "g", 4)
        assert len(racks_of_these(cluster, gang)) == 1


@pytest.mark.parametrize("way", ["-marker", "-mtls-marker"])
def test_it_asks_about_members_alone(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, minor: str, program: Path, way: str
) -> None:
    """Whom the webhook marks, test_marker.py shows: here each pod says so itself."""
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    marked = {"resources": {part: dict.fromkeys(MARKERS, "1") for part in ("limits", "requests")}}
    folder = Folder(tmp_path) if "mtls" in way else None
    with CorralProcess(
        plane.kubeconfig("corral"), tmp_path, **(folder.settings if folder else {})
    ) as corral:
        plane.start_scheduler(
            SCHEDULER_CONFIG.with_name(f"{minor}{way}.yaml"),
            extender=corral.url,
            tls=folder.show("scheduler", by="schedulers") if folder else None,
            flags=FLAGS.get(minor, ()),
            program=program,
        )
        cluster.create(pod("ordinary"))
        cluster.wait(partial(is_bound, cluster, "ordinary"), SECONDS, "the ordinary pod")
        container = {"name": "main", "image": "pause", **marked}

        def with_markers(one: Object) -> Object:
            return one | {"spec": one["spec"] | {"containers": [container]}}

        gang = start(cluster, "g", 4, with_markers)
        assert len(racks_of_these(cluster, gang)) == 1
        assert corral.metric('corral_filter_answers_total{answer="passed"}') == 0
        assert corral.metric('corral_binds_total{outcome="bound"}') == 4
