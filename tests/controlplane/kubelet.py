"""What kubelets would do, of which there are none: bound pods run, and end, when a test says so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.cluster import STRATEGIC, Cluster, Object, Refused, collection

LOOK_SECONDS = 0.1  # between two looks at the pods


def start_bound_pods(cluster: Cluster) -> None:
    """Every bound pod runs and is ready."""
    for one in cluster.list("Pod", "default"):
        if one["spec"].get("nodeName") and one["status"].get("phase") == "Pending":
            report(cluster, one, _running(one))


@contextmanager
def kubelets(cluster: Cluster) -> Iterator[None]:
    """While the block lasts, pods run once they have a node, and end when they are deleted."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(LOOK_SECONDS):
            start_bound_pods(cluster)
            end_deleted_pods(cluster)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        try:
            yield
        finally:
            over.set()
            running.result()


def end_deleted_pods(cluster: Cluster) -> None:
    """Every pod that is being deleted has ended.

    One that has no grace shows as being deleted for the moment between the API server's two writes.
    """
    for one in cluster.list("Pod", "default"):
        if "deletionTimestamp" in one["metadata"]:
            path = f"{collection('Pod', 'default')}/{one['metadata']['name']}"
            uid = {"preconditions": {"uid": one["metadata"]["uid"]}}
            try:
                cluster.request("DELETE", path, body={"gracePeriodSeconds": 0, **uid})
            except Refused as refused:
                if refused.status not in (404, 409):  # it has gone, or another one has its name
                    raise


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


def _running(pod: Object) -> Object:
    """The status of a pod whose containers all run."""
    ready = [{"type": kind, "status": "True"} for kind in ("ContainersReady", "Ready")]
    containers = [
        {
            "name": each["name"],
            "image": each["image"],
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {}},
        }
        for each in pod["spec"]["containers"]
    ]
    return {"phase": "Running", "conditions": ready, "containerStatuses": containers}
