"""Grove's operator and KAI's pod-grouper together, both for KAI's scheduler, which does not run.

The pod-grouper makes a PodGroup of each PodGang and leaves its levels out: the PodGang counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import BLOCK, RACK, Cluster, grid
from tests.controlplane.grove import bound, clique, grove_operator, pod_clique_set, why
from tests.controlplane.kai import SCHEDULER, groups_of, pod_grouper
from tests.controlplane.kubelet import kubelets
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import CorralProcess, scheduled

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.operators]


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """Four racks of three nodes in two blocks, both operators, kube-scheduler and Corral."""
    plane.nodes(grid(blocks=2, racks=2, nodes=3, gpus=8))
    levels = {"block": BLOCK, "rack": RACK}
    with (
        pod_grouper(plane, tmp_path),
        grove_operator(plane, tmp_path, levels, SCHEDULER),
        kubelets(cluster),
        scheduled(plane, tmp_path, SCHEDULER, levels=()) as corral,
    ):
        yield corral


def test_of_groves_pods_the_pod_gang_counts_and_not_the_pod_group_beside_it(
    cluster: Cluster, corral: CorralProcess
) -> None:
    cluster.create(pod_clique_set("large", clique("worker", 4), pack="rack"))
    cluster.create(pod_clique_set("small", clique("worker", 3), pack="rack"))
    cluster.wait(lambda: len(bound(cluster, "small")) == 3, START_SECONDS, "one starts")
    assert len({on.rpartition("-")[0] for on in bound(cluster, "small").values()}) == 1
    cluster.wait(lambda: groups_of(cluster, "large-0"), START_SECONDS, "KAI's PodGroup is there")
    (group,) = groups_of(cluster, "large-0")
    assert (group["spec"]["minMember"], group["spec"]["topologyConstraint"]) == (4, {})
    told = cluster.wait(lambda: why(cluster, "large"), START_SECONDS, "the PodGang says why")
    assert "3 of 4 pods fit" in told["large-0"]
    assert bound(cluster, "large") == {}
    assert corral.bugs() == {}
