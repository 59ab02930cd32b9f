"""fail_fast beside the real Job controller: no Job is ended for good by our evictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster import GPU, RACK, Cluster, Object, grid, job
from tests.controlplane import node_faults
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import scheduled
from tests.workloads import asking

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PODS = 2
BACK_OFF_SECONDS = 10 * 2 ** (PODS - 1)  # of the Job controller, after so many failed pods
IGNORED = {
    "rules": [
        {
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }
    ]
}


def is_over(cluster: Cluster, name: str) -> bool:
    found = cluster.get("Job", name)
    conditions = ((found or {}).get("status") or {}).get("conditions") or []
    return any(one["type"] in ("Failed", "FailureTarget") for one in conditions)


def terminating(cluster: Cluster) -> list[str]:
    pods = [each["metadata"] for each in cluster.list("Pod", "default")]
    return [each["name"] for each in pods if "deletionTimestamp" in each]


def train(policy: dict[str, Any] | None) -> Object:
    made = job("train", pods=PODS, requests={GPU: 8}, annotations=asking(required=RACK))
    made["spec"]["backoffLimit"] = PODS - 1  # the lost pod counts, and so would evicted ones
    made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    if policy:
        made["spec"]["podFailurePolicy"] = policy
    return made


@pytest.mark.parametrize("policy", [None, IGNORED], ids=["backoff limit", "disruptions ignored"])
def test_fail_fast_evicts_a_job_only_if_it_starts_again(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, policy: dict[str, Any] | None
) -> None:
    plane.nodes(grid(racks=2, nodes=PODS, gpus=8))
    with (
        plane.granted("corral-evict"),
        scheduled(plane, tmp_path, fail_fast=True) as corral,
    ):
        cluster.create(train(policy))
        cluster.wait(lambda: len(cluster.bound()) == PODS, START_SECONDS, "the Job's start")
        before = cluster.bound()
        lost, node = next(iter(before.items()))
        cluster.delete("Node", node)
        node_faults.delete_pods(cluster, [lost])
        if policy:
            cluster.wait(
                lambda: len(terminating(cluster)) == PODS, 30, "the eviction of the whole gang"
            )
            node_faults.fail_pods(cluster, before)  # as their kubelets would
            cluster.wait(
                lambda: len(cluster.bound()) == PODS and not before.keys() & cluster.bound().keys(),
                BACK_OFF_SECONDS + 30,
                "the whole gang, in the other rack",
            )
        else:
            told = cluster.wait(
                lambda: [
                    each["message"]
                    for each in cluster.list("Event", "default")
                    if each["reason"] == "GangNotEvicted"
                ],
                30,
                "the word that nobody is evicted",
            )
            assert "backoffLimit" in told[0]
            cluster.wait(lambda: lost not in cluster.bound(), 30, "the end of the lost pod")
            assert cluster.bound().keys() == before.keys() - {lost}
            assert not terminating(cluster)
        assert not is_over(cluster, "train")
        assert corral.bugs() == {}
