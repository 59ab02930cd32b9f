"""Pods and nodes as short calls."""

from __future__ import annotations

from typing import Any

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import EVENT, NODE, POD


def node(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    is_closed: bool = False,
    **amounts: str,
) -> dict[str, Any]:
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"} | amounts
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | (labels or {})},
        "spec": {"taints": taints or [], "unschedulable": is_closed},
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str,
    *,
    cpu: str = "1",
    gates: tuple[str, ...] = (),
    on: tuple[str, ...] = (),
    scheduler: str = "default-scheduler",
    limits: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """on: nodes named by required affinity, one term each. It is gone as soon as it is deleted."""
    resources = {"requests": {"cpu": cpu}, "limits": limits or {}}
    body: dict[str, Any] = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "main", "resources": resources}],
    }
    if gates:
        body["schedulingGates"] = [{"name": gate} for gate in gates]
    if on:
        body["affinity"] = narrowed_to(*on)
    return {"metadata": {"name": name}, "spec": body | spec}


def narrowed_to(*names: str) -> dict[str, Any]:
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
        for name in names
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def fill(sandbox: Sandbox, nodes: int, **amounts: str) -> None:
    for place in range(nodes):
        sandbox.registry.create(NODE, "", node(f"n{place}", **amounts))


def add_pod(sandbox: Sandbox, body: dict[str, Any]) -> None:
    sandbox.registry.create(POD, "default", body)


def pod_of(sandbox: Sandbox, name: str) -> dict[str, Any]:
    return sandbox.registry.read(POD, ("default", name)).body


def node_of(sandbox: Sandbox, name: str) -> str:
    return str(pod_of(sandbox, name)["spec"].get("nodeName", ""))


def condition_of(sandbox: Sandbox, name: str) -> dict[str, Any]:
    conditions = pod_of(sandbox, name)["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def event_texts(sandbox: Sandbox, pod_name: str, reason: str) -> list[str]:
    return [
        stored.body["message"]
        for stored in sandbox.store.values(EVENT)
        if stored.body["involvedObject"]["name"] == pod_name and stored.body["reason"] == reason
    ]
