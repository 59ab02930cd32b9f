"""What kubelets would do, of which there are none: bound pods run, and end, when a test says so."""

from __future__ import annotations

from tests.cluster import STRATEGIC, Cluster


def start_bound_pods(cluster: Cluster) -> None:
    """Every bound pod runs and is ready."""
    ready = [{"type": "Ready", "status": "True"}]
    status = {"status": {"phase": "Running", "conditions": ready}}
    for one in cluster.list("Pod", "default"):
        if one["spec"].get("nodeName") and one["status"].get("phase") == "Pending":
            name = f"{one['metadata']['name']}/status"
            cluster.patch("Pod", name, status, content_type=STRATEGIC)


def end_running_pods(cluster: Cluster) -> None:
    """Every running pod has succeeded."""
    status = {"status": {"phase": "Succeeded"}}
    for one in cluster.list("Pod", "default"):
        if one["status"].get("phase") == "Running":
            name = f"{one['metadata']['name']}/status"
            cluster.patch("Pod", name, status, content_type=STRATEGIC)
