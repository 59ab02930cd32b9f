"""What kubelets would do, of which there are none: bound pods run, and end, when a test says so."""

from __future__ import annotations

from tests.cluster import STRATEGIC, Cluster, Object, Refused


def start_bound_pods(cluster: Cluster) -> None:
    """Every bound pod runs and is ready."""
    ready = [{"type": "Ready", "status": "True"}]
    for one in cluster.list("Pod", "default"):
        if one["spec"].get("nodeName") and one["status"].get("phase") == "Pending":
            report(cluster, one, {"phase": "Running", "conditions": ready})


def end_running_pods(cluster: Cluster) -> None:
    """Every running pod has succeeded."""
    for one in cluster.list("Pod", "default"):
        if one["status"].get("phase") == "Running":
            report(cluster, one, {"phase": "Succeeded"})


def report(cluster: Cluster, pod: Object, status: Object) -> None:
    """Writes that into the pod's status, unless it has gone meanwhile."""
    try:
        name = f"{pod['metadata']['name']}/status"
        cluster.patch("Pod", name, {"status": status}, content_type=STRATEGIC)
    except Refused as refused:
        if refused.status != 404:
            raise
