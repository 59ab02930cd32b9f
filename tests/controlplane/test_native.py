"""Native PodGroups of kube-apiserver, started by Corral beside a kube-scheduler without the gates.

The API server of the other tests serves none: this one has a control plane of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.dialects.native.objects import ALPHA, pod_group
from tests.cluster import GPU, RACK, Cluster, Object, grid, pod
from tests.controlplane.built import skip_unless_built
from tests.controlplane.plane import SCHEDULER_CONFIG, ControlPlane
from tests.controlplane.seen import START_SECONDS, unschedulable
from tests.controlplane.test_marker import CONFIG as MEMBERS_ALONE
from tests.controlplane.test_marker import MARKS
from tests.controlplane.webhook import installed
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import GATE, gates_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SERVED = (
    "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
    f"--runtime-config=scheduling.k8s.io/{ALPHA}=true",
)
KIND = "PodGroup.scheduling.k8s.io"
# This API server has no CompositePodGroups.
BROKEN = 'corral_watch_problems_total{kind="CompositePodGroup"}'
FILTERED = 'corral_extender_request_seconds_count{verb="filter"}'


@pytest.fixture(scope="module")
def native_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane whose API server has PodGroups."""
    skip_unless_built()
    folder = tmp_path_factory.mktemp("native")
    with ControlPlane(folder, is_audited=True, apiserver_flags=SERVED) as plane:
        plane.nodes(grid(racks=2, nodes=4, gpus=8))
        yield plane


@pytest.fixture
def cluster(native_plane: ControlPlane) -> Iterator[Cluster]:
    """Its API server as its administrator; afterwards no scheduler and no pods."""
    admin = native_plane.cluster()
    yield admin
    native_plane.stop_scheduler()
    admin.clear("Pod", 10)


@pytest.fixture
def corral(native_plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """Corral with the rights that are shipped, and a kube-scheduler that asks it."""
    with (
        native_plane.granted("corral-native-pod-groups"),
        scheduled(native_plane, tmp_path, native_pod_groups="on") as corral,
    ):
        yield corral
        assert corral.metrics()[BROKEN] == 0
        assert corral.bugs() == {}
        assert native_plane.denials() == []


def member(name: str, of: str) -> Object:
    return pod(name, requests={GPU: 8}, schedulingGroup={"podGroupName": of})


def condition(cluster: Cluster, name: str) -> dict[str, Any]:
    """What the PodGroup says of its pods; {} before it says anything."""
    found = cluster.get(KIND, name) or {}
    (one,) = found.get("status", {}).get("conditions", [{}])
    return {each: one.get(each) for each in ("type", "status", "reason")} if one else {}


def test_a_native_gang_starts_whole_in_one_rack_and_says_so(
    cluster: Cluster, corral: CorralProcess
) -> None:
    cluster.create(pod_group("train", 4, key=RACK))
    cluster.create_all(member(f"train-{at}", "train") for at in range(3))
    told = "waits until all 4 of its pods are there"
    cluster.wait(
        lambda: [told in sentence for sentence in unschedulable(cluster).values()] == [True] * 3,
        START_SECONDS,
        "three of four pods wait",
    )
    assert cluster.bound() == {}
    waits = {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable"}
    cluster.wait(lambda: condition(cluster, "train") == waits, 10, "the condition says so")

    cluster.create(member("train-3", "train"))
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the gang starts")
    assert len({node.split("-")[1] for node in cluster.bound().values()}) == 1
    runs = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled"}
    cluster.wait(lambda: condition(cluster, "train") == runs, 10, "the condition says so")


@pytest.mark.parametrize(
    ("name", "config", "marks"),
    [
        pytest.param("gated", SCHEDULER_CONFIG, {}, id="asked_about_all"),
        pytest.param("marked", MEMBERS_ALONE, MARKS, id="asked_about_members_alone"),
    ],
)
def test_its_pods_wait_behind_the_gate_until_all_of_them_are_there(
    native_plane: ControlPlane,
    cluster: Cluster,
    tmp_path: Path,
    name: str,
    config: Path,
    marks: dict[str, Any],
) -> None:
    """The shipped webhook is asked about pods that say nothing but which PodGroup they are in."""
    with (
        native_plane.granted("corral-native-pod-groups"),
        installed(native_plane, tmp_path, native_pod_groups="on", **marks) as webhook,
    ):
        native_plane.start_scheduler(config, extender=webhook.corral.url)
        cluster.create(pod_group(name, 4, key=RACK))
        made = cluster.create_all(member(f"{name}-{at}", name) for at in range(4))
        assert [gates_of(each) for each in made] == [[GATE]] * 4
        cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the gang starts")
        assert len({node.split("-")[1] for node in cluster.bound().values()}) == 1
        assert webhook.corral.bugs() == {}
        assert native_plane.denials() == []


def test_where_kube_scheduler_starts_native_gangs_corral_holds_and_plans_nothing(
    native_plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """Its gates are on, and Corral has its default: the trial calls in each rack pass."""
    gates = ["GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling"]
    own = f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"
    with CorralProcess(native_plane.kubeconfig("corral"), tmp_path) as corral:
        native_plane.start_scheduler(extender=corral.url, flags=[own])
        cluster.create(pod_group("own", 2, key=RACK))
        cluster.create_all(member(f"own-{at}", "own") for at in range(2))
        cluster.wait(lambda: len(cluster.bound()) == 2, START_SECONDS, "kube-scheduler starts it")
        assert len({node.split("-")[1] for node in cluster.bound().values()}) == 1
        metrics = corral.metrics()
        assert metrics[FILTERED] >= 4  # each pod in each rack
        assert {name: value for name, value in metrics.items() if value and is_held(name)} == {}
        assert corral.bugs() == {}


def is_held(metric: str) -> bool:
    """Whether a metric counts gangs, or places that are held for one."""
    return metric.startswith(("corral_gangs{", "corral_absent_pods", "corral_earmarked_nodes"))
