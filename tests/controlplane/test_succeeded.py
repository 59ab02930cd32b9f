"""Pods of a group that have run to completion stay counted: after their deletion, after a restart.

Source: KEP-976 "Retrying Failed Pods".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.dialects.corral import SUCCEEDED
from tests.cluster import RACK, STRATEGIC, Cluster, grid
from tests.controlplane import kubelet
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, unschedulable
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PODS = 4


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """A cluster of two racks with Corral at work in it."""
    plane.nodes(grid(racks=2, nodes=PODS, gpus=8))
    with scheduled(plane, tmp_path) as running:
        yield running
    kubelet.end_deleted_pods(cluster)


@pytest.mark.parametrize("restarts", [False, True], ids=["", "after_a_restart"])
def test_a_succeeded_pod_that_is_deleted_is_not_replaced_and_a_failed_one_is(
    cluster: Cluster, corral: CorralProcess, restarts: bool
) -> None:
    create(cluster, range(PODS))
    cluster.wait(lambda: len(cluster.bound()) == PODS, START_SECONDS, "the gang's start")
    end(cluster, "gang-0", "Succeeded")
    cluster.wait(lambda: carriers(cluster) == 2, START_SECONDS, "two members with the note")
    cluster.delete("Pod", "gang-0")
    kubelet.end_deleted_pods(cluster)
    if restarts:
        corral.kill()
        corral.start()
    create(cluster, [PODS])
    newcomer, refusal = f"gang-{PODS}", "is one more than the 4 pods"
    cluster.wait(
        lambda: refusal in unschedulable(cluster).get(newcomer, ""), START_SECONDS, "a refusal"
    )

    cluster.delete("Pod", newcomer)
    end(cluster, "gang-1", "Failed")
    create(cluster, [PODS + 1])
    replaced = f"gang-{PODS + 1}"
    cluster.wait(lambda: replaced in cluster.bound(), START_SECONDS, "the replacement's binding")
    racks = {node.rpartition("-")[0] for node in cluster.bound().values()}
    assert len(racks) == 1


def create(cluster: Cluster, numbers: range | list[int]) -> None:
    """Pods of the gang, without a gate: kube-scheduler asks about each of them."""
    cluster.create_all(members("gang", PODS, numbers=numbers, annotations=asking(required=RACK)))


def end(cluster: Cluster, name: str, phase: str) -> None:
    """The containers of a pod end."""
    cluster.patch("Pod", f"{name}/status", {"status": {"phase": phase}}, content_type=STRATEGIC)


def carriers(cluster: Cluster) -> int:
    """How many pods carry the note."""
    notes = (one["metadata"].get("annotations", {}) for one in cluster.list("Pod", "default"))
    return sum(SUCCEEDED in each for each in notes)
