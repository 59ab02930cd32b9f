"""Nodes that a gang is about to start on, as node autoscalers see them: annotated till it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchmarks.costs import writes
from tests.cluster import Cluster, grid
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.test_barrier import gang, hold_three_of_four, let_the_last_one_come
from tests.corral_process import CorralProcess, scheduled

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CA, KARPENTER = (
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
)
NOTE = "corral.dev/protected"
THEIRS, OTHERS = "b0-r0-n1", ("b0-r0-n0", "b0-r0-n2", "b0-r0-n3")
ASKED = 'corral_node_asks_total{how="%s",result="written"}'


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """Beside it, somebody else keeps cluster-autoscaler off one node."""
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    cluster.patch("Node", THEIRS, {"metadata": {"annotations": {CA: "true"}}})
    with (
        plane.granted("corral-protect-nodes"),
        scheduled(plane, tmp_path, protect_held_nodes=True) as corral,
    ):
        yield corral
        assert corral.bugs() == {}


def said(cluster: Cluster) -> dict[str, Mapping[str, str]]:
    """By node: what it says to autoscalers, and what we say of that."""
    return {
        one["metadata"]["name"]: {key: every[key] for key in (CA, KARPENTER, NOTE) if key in every}
        for one in cluster.list("Node")
        for every in [one["metadata"].get("annotations", {})]
    }


def is_kept(cluster: Cluster) -> bool:
    ours = {CA: "true", KARPENTER: "true", NOTE: "cluster-autoscaler,karpenter: default/gang"}
    beside = {CA: "true", KARPENTER: "true", NOTE: "karpenter: default/gang"}
    return said(cluster) == {THEIRS: beside, **dict.fromkeys(OTHERS, ours)}


def is_as_before(cluster: Cluster) -> bool:
    return said(cluster) == {THEIRS: {CA: "true"}, **{each: {} for each in OTHERS}}


def test_nodes_of_a_gang_at_the_barrier_are_kept_through_a_crash_and_free_once_it_runs(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    before = writes(plane)
    hold_three_of_four(cluster, corral)
    cluster.wait(lambda: is_kept(cluster), START_SECONDS, "four annotated nodes")
    corral.kill()
    assert is_kept(cluster)

    corral.start()
    placed = 'corral_gangs{phase="placed"}'
    cluster.wait(lambda: corral.metric(placed) == 1, START_SECONDS, "the plan, made again")
    let_the_last_one_come(cluster)
    cluster.wait(lambda: len(gang(cluster)) == 4, 2 * START_SECONDS, "the gang's start")
    cluster.wait(lambda: is_as_before(cluster), START_SECONDS, "the nodes as they were")
    assert (writes(plane) - before)["PATCH nodes"] == 8, "one to keep each node and one to free it"
    assert corral.metric(ASKED % "unprotect") == 4


def test_nodes_of_a_gang_that_goes_while_corral_is_down_are_freed_when_it_is_back(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    hold_three_of_four(cluster, corral)
    cluster.wait(lambda: is_kept(cluster), START_SECONDS, "four annotated nodes")
    corral.kill()
    cluster.clear("Pod")
    assert is_kept(cluster)
    corral.start()
    cluster.wait(lambda: is_as_before(cluster), START_SECONDS, "the nodes as they were")
