"""What a test sees of pods: where they run, and what those that wait are told."""

from __future__ import annotations

from tests.cluster import Cluster

START_SECONDS = 20.0  # a gang's start with every back-off of kube-scheduler (1, 2, 4 … 10 s)


def racks_of(cluster: Cluster) -> set[str]:
    """The racks of all bound pods, where `grid` has named the nodes."""
    return {on.rsplit("-", 1)[0] for on in cluster.bound().values()}


def unschedulable(cluster: Cluster) -> dict[str, str]:
    """Pod name -> what it is told, for the pods that kube-scheduler has given up for now."""
    return {
        one["metadata"]["name"]: condition["message"]
        for one in cluster.list("Pod", "default")
        for condition in one.get("status", {}).get("conditions", [])
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    }


def told_to_all(cluster: Cluster, pods: int) -> dict[str, str]:
    """What waiting pods are told, once that many have been told something; nothing before."""
    told = unschedulable(cluster)
    return told if len(told) == pods else {}


def clear(cluster: Cluster) -> None:
    """No pods; the nodes stay."""
    cluster.delete_all("Pod")
    cluster.wait(lambda: not cluster.list("Pod", "default"), 10, "no pod left")
