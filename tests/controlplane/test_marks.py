"""Gangs that wait for nodes, as node autoscalers see them: a condition of their gated pods.

Nothing here makes nodes; `test_karpenter.py` has a real autoscaler.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.costs import writes
from tests.cluster import GPU, RACK, Cluster, Object, grid
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, behind_gate, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
NEVER = 'corral_needs_nodes_gangs{reason="never"}'
QUIET_SECONDS = 3.0  # in which nothing more is to be written


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    with scheduled(plane, tmp_path, needs_nodes_seconds=2.0) as corral:
        yield corral
        assert corral.bugs() == {}


def gated(name: str, pods: int) -> list[Object]:
    return [behind_gate(one) for one in members(name, pods, annotations=IN_RACK, requests={GPU: 8})]


def conditions(cluster: Cluster, name: str = "") -> dict[str, Object]:
    """By the name of a pod: what its condition PodScheduled says."""
    return {
        one["metadata"]["name"]: condition
        for one in cluster.list("Pod", "default")
        if one["metadata"]["name"].startswith(name)
        for condition in one["status"].get("conditions", ())
        if condition["type"] == "PodScheduled"
    }


def marked(cluster: Cluster, name: str = "") -> list[str]:
    found = conditions(cluster, name)
    return sorted(each for each, its in found.items() if its.get("reason") == "Unschedulable")


def test_a_gang_of_an_empty_cluster_is_marked_once_and_starts_when_nodes_come(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    before = writes(plane)
    cluster.create_all(gated("g", 8))
    cluster.wait(lambda: len(marked(cluster)) == 8, START_SECONDS, "eight marks")
    (said,) = {its["message"] for its in conditions(cluster).values()}
    assert "gang default/g needs nodes" in said
    time.sleep(QUIET_SECONDS)
    written = writes(plane) - before
    assert written["PATCH pods/status"] == 8
    assert written["PATCH pods"] == 0
    assert corral.metric(NEVER) == 1
    assert corral.metric("corral_needs_nodes_pods") == 8
    assert corral.metric('corral_filter_answers_total{answer="rejected"}') == 0

    plane.nodes(grid(racks=1, nodes=8, gpus=8))
    cluster.wait(lambda: len(cluster.bound()) == 8, START_SECONDS, "the gang's start")
    assert {its["status"] for its in conditions(cluster).values()} == {"True"}
    assert (writes(plane) - before)["PATCH pods/status"] == 8
    for one in cluster.list("Pod", "default"):
        said = one["metadata"]["annotations"]
        assert said["karpenter.sh/do-not-disrupt"] == "true"
        assert said["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


def test_what_is_taken_back_reads_as_the_api_server_wrote_it(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    waiting = gated("g", 3)
    cluster.create_all(waiting[:2])  # one is missing: nothing is marked
    time.sleep(QUIET_SECONDS)
    at_first = {name: (its["reason"], its["message"]) for name, its in conditions(cluster).items()}
    cluster.create(waiting[2])
    cluster.wait(lambda: len(marked(cluster)) == 3, START_SECONDS, "three marks")
    cluster.delete("Pod", "g-2")
    cluster.wait(lambda: not marked(cluster), START_SECONDS, "no mark")
    now = {name: (its["reason"], its["message"]) for name, its in conditions(cluster).items()}
    assert now == at_first


def test_a_killed_corral_finds_its_marks_and_writes_none_again(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    cluster.create_all(gated("g", 4))
    cluster.wait(lambda: len(marked(cluster)) == 4, START_SECONDS, "four marks")
    before = writes(plane)
    corral.kill()
    corral.start()
    cluster.wait(lambda: corral.metric(NEVER) == 1, START_SECONDS, "the gang, known again")
    time.sleep(QUIET_SECONDS)
    assert (writes(plane) - before)["PATCH pods/status"] == 0
    assert len(marked(cluster)) == 4


def test_a_gang_on_a_full_cluster_is_marked_after_a_while_and_a_strangers_mark_goes(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=1, nodes=2, gpus=8))
    cluster.create_all(gated("first", 2))
    cluster.wait(lambda: len(cluster.bound()) == 2, START_SECONDS, "the first gang's start")
    cluster.create_all(gated("g", 2))
    cluster.create_all(gated("part", 2)[:1])
    cluster.wait(lambda: marked(cluster, "g-"), START_SECONDS, "a mark")
    stranger = {
        "status": {
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        }
    }
    cluster.request(
        "PATCH",
        "/api/v1/namespaces/default/pods/part-0/status",
        body=stranger,
        content_type="application/strategic-merge-patch+json",
    )
    cluster.wait(lambda: marked(cluster) == ["g-0", "g-1"], START_SECONDS, "only what is warranted")


def test_pods_without_a_gate_ask_for_no_node_while_their_gang_gathers(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    made = members("g", 3, annotations=IN_RACK, requests={GPU: 8})
    with scheduled(plane, tmp_path, gathering_answer="failed") as corral:
        plane.nodes(grid(racks=1, nodes=1, gpus=8))
        cluster.create_all(made[:2])

        def reasons() -> set[str]:
            return {its["reason"] for its in conditions(cluster).values()}

        cluster.wait(lambda: reasons() == {"SchedulerError"}, START_SECONDS, "two errors")
        cluster.create(made[2])
        cluster.wait(lambda: len(marked(cluster)) == 3, START_SECONDS, "kube-scheduler's marks")
        assert corral.bugs() == {}
