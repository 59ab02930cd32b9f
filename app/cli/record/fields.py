"""Which fields of a pod and of a node are recorded. What is not named here is left out.

Left out with all the rest: env, args, commands, images and volumes of containers, their names and
limits, messages of conditions, addresses, and what kube-scheduler alone looks at: affinity and
spread between pods, host ports, volumes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from app.kube.decoding.named_labels import named_labels

Object = dict[str, Any]
Keep = Callable[[str], bool]

_VALUE = "a text, a number or a flag"
_VALUES = "a mapping, or a list, of these"

_EXPRESSIONS = [{"key": _VALUE, "operator": _VALUE, "values": _VALUES}]
_TERM = {"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}
_RESOURCES = {"requests": _VALUES}
_CONTAINERS = [{"resources": _RESOURCES, "restartPolicy": _VALUE}]
_CONTAINER_STATUSES = [
    {"ready": _VALUE, "started": _VALUE, "lastState": {"terminated": {"exitCode": _VALUE}}}
]
_METADATA = {
    "name": _VALUE,
    "namespace": _VALUE,
    "uid": _VALUE,
    "creationTimestamp": _VALUE,
    "deletionTimestamp": _VALUE,
    "deletionGracePeriodSeconds": _VALUE,
    "labels": _VALUES,
    "annotations": _VALUES,
    "ownerReferences": [
        {"apiVersion": _VALUE, "kind": _VALUE, "name": _VALUE, "uid": _VALUE, "controller": _VALUE}
    ],
}
_POD: dict[str, Any] = {
    "metadata": _METADATA,
    "spec": {
        "nodeName": _VALUE,
        "schedulerName": _VALUE,
        "priority": _VALUE,
        "preemptionPolicy": _VALUE,
        "nodeSelector": _VALUES,
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]},
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": _VALUE, "preference": _TERM}
                ],
            }
        },
        "tolerations": [
            {
                "key": _VALUE,
                "operator": _VALUE,
                "value": _VALUE,
                "effect": _VALUE,
                "tolerationSeconds": _VALUE,
            }
        ],
        "schedulingGates": [{"name": _VALUE}],
        "schedulingGroup": {"podGroupName": _VALUE},
        "activeDeadlineSeconds": _VALUE,
        "terminationGracePeriodSeconds": _VALUE,
        "overhead": _VALUES,
        "resources": _RESOURCES,
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
    },
    "status": {
        "phase": _VALUE,
        "nominatedNodeName": _VALUE,
        "containerStatuses": _CONTAINER_STATUSES,
        "initContainerStatuses": _CONTAINER_STATUSES,
    },
}
_IN_TEMPLATE = {"resources": {"requests": _VALUES, "limits": _VALUES}, "requests": _VALUES}
_TEMPLATE: dict[str, Any] = {
    "metadata": {"annotations": _VALUES},
    "spec": {
        **_POD["spec"],
        "resources": _IN_TEMPLATE["resources"],
        "containers": [{**_CONTAINERS[0], **_IN_TEMPLATE}],
        "initContainers": [{**_CONTAINERS[0], **_IN_TEMPLATE}],
    },
}
_NODE = {
    "metadata": {"name": _VALUE, "uid": _VALUE, "labels": _VALUES},
    "spec": {
        "unschedulable": _VALUE,
        "taints": [{"key": _VALUE, "value": _VALUE, "effect": _VALUE}],
    },
    "status": {"allocatable": _VALUES, "capacity": _VALUES},
}
_ENDED = ("Succeeded", "Failed")
# Conditions that say something, and the reasons that do.
_POD_CONDITIONS = {"Ready": (), "PodScheduled": (), "DisruptionTarget": ("PreemptionByScheduler",)}
_NODE_CONDITIONS: Mapping[str, Collection[str]] = {"Ready": ()}


def kept_pod(pod: Object, keep: Keep, keep_label: Keep | None = None) -> Object | None:
    """What is recorded of a pod; None: it has ended.

    `keep`: which annotations; `keep_label`: which labels, if not those as well. Any tenant's
    selector may name a label, and the annotation of the same key may be kubectl's copy of a pod
    with its secrets. A label that an annotation of the pod names is kept only as a number.
    """
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return None
    kept: Object = _picked(pod, _POD)
    metadata, spec = kept.setdefault("metadata", {}), kept.setdefault("spec", {})
    labels, annotations = (metadata.pop(part, {}) for part in ("labels", "annotations"))
    said = {key: text for key, text in annotations.items() if keep(key)}
    its = {key: text for key, text in labels.items() if (keep_label or keep)(key)}
    for part, texts in (("labels", its | named_labels(labels, said)), ("annotations", said)):
        metadata |= {part: texts} if texts else {}
    for part, short in (("containers", "c"), ("initContainers", "i")):
        for at, container in enumerate(spec.get(part, ())):
            container["name"] = f"{short}{at}"
    _add_claims(spec, pod)
    _add_conditions(kept, pod, _POD_CONDITIONS)
    return {"apiVersion": "v1", "kind": "Pod", **kept}


def kept_template(template: Any, keep: Keep) -> Object:
    """What is recorded of a template, whose pods get requests by their limits; `keep` as above."""
    kept: Object = _picked(template, _TEMPLATE)
    if metadata := kept.get("metadata"):
        said = metadata["annotations"].items()
        metadata["annotations"] = {key: text for key, text in said if keep(key)}
    if "spec" in kept:
        _add_claims(kept["spec"], template)
    return kept


def kept_node(node: Object) -> Object:
    """What is recorded of a node; all of its labels are still there."""
    kept: Object = _picked(node, _NODE)
    _add_conditions(kept, node, _NODE_CONDITIONS)
    return {"apiVersion": "v1", "kind": "Node", **kept}


def with_labels(node: Object, keep: Keep) -> Object:
    """The same node with these of its labels alone."""
    metadata = node["metadata"]
    labels = {key: text for key, text in metadata.get("labels", {}).items() if keep(key)}
    return {**node, "metadata": {**metadata, "labels": labels}}


def _add_claims(spec: Object, said: Object) -> None:
    """Say how many resource claims a pod has."""
    if claims := (said.get("spec") or {}).get("resourceClaims"):
        spec["resourceClaims"] = [{"name": f"claim-{at}"} for at in range(len(claims))]


def _add_conditions(kept: Object, said: Object, known: Mapping[str, Collection[str]]) -> None:
    conditions = []
    for each in (said.get("status") or {}).get("conditions") or ():
        reasons = known.get(str(each.get("type"))) if isinstance(each, dict) else None
        if reasons is None:
            continue
        made = {"type": each["type"], "status": str(each.get("status"))[:7]}
        if each.get("reason") in reasons:
            made |= {name: str(each.get(name)) for name in ("reason", "lastTransitionTime")}
        conditions.append(made)
    if conditions:
        kept.setdefault("status", {})["conditions"] = conditions


def _picked(value: Any, wanted: Any) -> Any:
    """The part of a value that is wanted; an empty mapping for what is of another form."""
    if wanted is _VALUE:
        return value if isinstance(value, str | int | float) else None
    if wanted is _VALUES:
        if isinstance(value, list):
            return [each for each in value if isinstance(each, str | int | float)]
        pairs = value.items() if isinstance(value, dict) else ()
        return {key: each for key, each in pairs if isinstance(each, str | int | float)}
    if isinstance(wanted, list):
        return [_picked(each, wanted[0]) for each in value] if isinstance(value, list) else []
    if not isinstance(value, dict):
        return {}
    found = {
        name: _picked(value[name], part)
        for name, part in wanted.items()
        if value.get(name) is not None
    }
    return {name: part for name, part in found.items() if part not in (None, {}, [])}
