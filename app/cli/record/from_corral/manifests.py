"""Pods and nodes as kubectl writes them, made from what Corral remembers of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from app.cli.record.fields import Object
from app.kube.core.objects import Amounts, NodeRecord, PodRecord, Requirement, Shape, Term


def node_manifest(node: NodeRecord) -> Object:
    """A node with all of its labels."""
    spec: Object = {"unschedulable": True} if node.is_unschedulable else {}
    if node.taints:
        spec["taints"] = [
            _filled(key=each.key, value=each.value, effect=each.effect) for each in node.taints
        ]
    ready = {"type": "Ready", "status": "True" if node.is_ready else "False"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, **_filled(uid=node.uid), "labels": dict(node.labels)},
        "spec": spec,
        "status": {"allocatable": _quantities(node.allocatable), "conditions": [ready]},
    }


def pod_manifest(pod: PodRecord) -> Object:
    """A pod with one container that requests what the pod does in all."""
    metadata = _filled(
        name=pod.name,
        namespace=pod.namespace,
        uid=pod.uid,
        creationTimestamp=pod.created,
        labels=dict(pod.labels),
        annotations=dict(pod.annotations),
    )
    if pod.owner is not None:
        owner = pod.owner
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
            }
        ]
    requests = {name: text for name, text in _quantities(pod.request).items() if name != "pods"}
    spec = _filled(
        nodeName=pod.node,
        schedulerName=pod.scheduler,
        schedulingGates=[{"name": name} for name in pod.gates],
        **_placement(pod.shape),
    )
    if pod.pod_group:
        spec["schedulingGroup"] = {"podGroupName": pod.pod_group}
    if not pod.preempts:
        spec["preemptionPolicy"] = "Never"
    spec |= {
        "priority": pod.priority,
        "containers": [{"name": "c0", "resources": {"requests": requests}}],
    }
    status = _filled(phase=pod.phase, nominatedNodeName=pod.nominated_node)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _placement(shape: Shape) -> Object:
    """The fields of a pod's spec that say where it may go."""
    tolerations = [
        _filled(key=each.key, operator=each.operator, value=each.value, effect=each.effect)
        for each in shape.tolerations
    ]
    terms = [_term(each) for each in shape.terms]
    preferred = [{"weight": weight, "preference": _term(each)} for weight, each in shape.preferred]
    affinity = _filled(
        requiredDuringSchedulingIgnoredDuringExecution=_filled(nodeSelectorTerms=terms),
        preferredDuringSchedulingIgnoredDuringExecution=preferred,
    )
    return {
        "nodeSelector": dict(shape.selector),
        "tolerations": tolerations,
        "affinity": _filled(nodeAffinity=affinity),
    }


def _term(term: Term) -> Object:
    return _filled(
        matchExpressions=list(_requirements(term.expressions)),
        matchFields=list(_requirements(term.fields)),
    )


def _requirements(lines: Iterable[Requirement]) -> Iterator[Object]:
    for each in lines:
        yield {"key": each.key, "operator": each.operator, "values": list(each.values)}


def _quantities(amounts: Amounts) -> dict[str, str]:
    """As the API server writes them: cpu in millicores, the rest in base units."""
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts}


def _filled(**fields: Any) -> Object:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value not in ("", [], {})}
