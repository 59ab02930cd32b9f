"""Nodes that fail and pods that end with them, as the API server shows it.

No kubelet, node controller, taint manager or pod collector runs here: what they would write is
written by the test, so that it comes at the moment the test is about.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.cluster import MERGE, Cluster, Object, collection

UNREACHABLE = "node.kubernetes.io/unreachable"
MAINTENANCE = "example.org/maintenance"
TERMINATING_SECONDS = 300  # of grace that no kubelet cuts short: longer than any test


def lose_contact(cluster: Cluster, name: str) -> None:
    """The node's kubelet has been silent for too long: Ready is Unknown, and it is tainted."""
    _status(cluster, "Node", name, _ready("Unknown"))
    taint(cluster, name, UNREACHABLE, "NoSchedule", "NoExecute")


def find_again(cluster: Cluster, name: str) -> None:
    """The node is ready, untainted and takes pods."""
    _status(cluster, "Node", name, _ready("True"))
    cluster.patch("Node", name, {"spec": {"taints": None, "unschedulable": None}})


def taint(cluster: Cluster, name: str, key: str, *effects: str) -> None:
    """The node has these taints and no others."""
    taints = [{"key": key, "effect": effect} for effect in effects]
    cluster.patch("Node", name, {"spec": {"taints": taints}})


def cordon(cluster: Cluster, name: str) -> None:
    cluster.patch("Node", name, {"spec": {"unschedulable": True}})


def uncordon(cluster: Cluster, name: str) -> None:
    cluster.patch("Node", name, {"spec": {"unschedulable": None}})


def fail_pods(cluster: Cluster, names: Iterable[str]) -> None:
    """The pods have ended, and stay as their owner's record of it."""
    for name in names:
        _status(cluster, "Pod", name, {"phase": "Failed", "reason": "NodeLost"})


def begin_deletion(cluster: Cluster, names: Iterable[str]) -> None:
    """The pods are being deleted, and no kubelet confirms it."""
    body = {"gracePeriodSeconds": TERMINATING_SECONDS}
    for name in names:
        cluster.request("DELETE", f"{collection('Pod', 'default')}/{name}", body=body)


def delete_pods(cluster: Cluster, names: Iterable[str]) -> None:
    """The pods are gone."""
    for name in names:
        cluster.delete("Pod", name)


def _ready(status: str) -> Object:
    return {"conditions": [{"type": "Ready", "status": status, "reason": "Test"}]}


def _status(cluster: Cluster, kind: str, name: str, status: Object) -> None:
    namespace = None if kind == "Node" else "default"
    path = f"{collection(kind, namespace)}/{name}/status"
    cluster.request("PATCH", path, body={"status": status}, content_type=MERGE)
