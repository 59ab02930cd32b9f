"""What the Job controller counts of pods that wait: how such pods may be given back."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster, Object, job
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PODS = 4
SECONDS = 30.0
# Of the Job controller: before it makes pods again in the stead of so many that it has lost.
BACK_OFF_SECONDS = 10 * 2 ** (PODS - 1)
NOWHERE = {"corral.dev/test": "nowhere"}


def waiting(cluster: Cluster, limit: int) -> set[str]:
    """The names of the pods of a new Job, none of which has a node."""
    made = job("train", pods=PODS, annotations=NOWHERE)
    made["spec"]["backoffLimit"] = limit
    cluster.create(made)
    return cluster.wait(lambda: len(pods_of(cluster)) == PODS and pods_of(cluster), SECONDS, "pods")


def pods_of(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.list("Pod", "default")}


def status_of(cluster: Cluster) -> Object:
    found = cluster.get("Job", "train")
    assert found is not None
    return found.get("status") or {}


def has(cluster: Cluster, condition: str) -> bool:
    said = status_of(cluster).get("conditions") or []
    return any(each["type"] == condition and each["status"] == "True" for each in said)


def evict(cluster: Cluster, name: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    cluster.request("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", body=body)


def suspend(cluster: Cluster, *, is_suspended: bool) -> None:
    cluster.patch("Job", "train", {"spec": {"suspend": is_suspended}})


def test_pods_that_are_evicted_before_they_have_a_node_count_and_end_the_job(
    plane: ControlPlane, cluster: Cluster
) -> None:
    for name in waiting(cluster, limit=PODS - 1):
        evict(cluster, name)
    cluster.wait(lambda: has(cluster, "Failed"), SECONDS, "the end of the Job")
    assert status_of(cluster)["failed"] == PODS


def test_pods_that_go_since_their_job_is_suspended_do_not_count_and_are_made_again_at_once(
    plane: ControlPlane, cluster: Cluster
) -> None:
    first = waiting(cluster, limit=0)
    suspend(cluster, is_suspended=True)
    cluster.wait(lambda: not pods_of(cluster), SECONDS, "their end")
    suspend(cluster, is_suspended=False)
    later = cluster.wait(
        lambda: len(pods_of(cluster)) == PODS and pods_of(cluster), SECONDS, "those made again"
    )
    assert SECONDS < BACK_OFF_SECONDS
    assert not first & later
    assert status_of(cluster).get("failed", 0) == 0
    assert not has(cluster, "Failed")
