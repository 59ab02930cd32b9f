"""The objects that ask for nodes: a request, and a PodTemplate for each kind of pods in it.

A template is made of what a pod's own JSON says to a scheduler, and of nothing else: environment,
commands and mounts stay where they are. Left out as well: gates, the node, the host name (no two
pods of a simulation may share one), volumes that do not exist yet (no simulation finds them), and
what we narrowed the pod to. Requests that are missing are the limits, as for every pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from app.dialects import corral
from app.dialects.provisioning import keys
from app.kube.decoding.requests import MARKERS

Object = dict[str, Any]
_NOT_TAKEN = (
    *("schedulingGates", "nodeName", "hostname", "subdomain", "setHostnameAsFQDN", "hostAliases"),
    *("ephemeralContainers", "imagePullSecrets", "schedulingGroup", "readinessGates"),
    *("securityContext", "dnsConfig", "dnsPolicy", "activeDeadlineSeconds"),
)
_OF_CONTAINERS = ("name", "image", "resources", "ports", "restartPolicy")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def owner_reference(api_version: str, kind: str, name: str, uid: str) -> Object:
    """Whose end is an object's end as well; it does not control it."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


def pod_template(
    name: str,
    uid: str,
    pod: Mapping[str, Any],
    owners: Sequence[Object],
    *,
    off_nodes: Sequence[str] = (),
    off_level: str = "",
    off_domains: Sequence[str] = (),
) -> Object:
    """A PodTemplate of pods like this one.

    `uid`: of the gang. The pods are kept off these nodes, and off the nodes with one of
    `off_domains` as the value of the label `off_level`.
    """
    metadata = pod.get("metadata") or {}
    labels = {"labels": dict(metadata["labels"])} if metadata.get("labels") else {}
    spec = _spec(pod)
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in off_nodes]
    labelled = [{"key": off_level, "operator": "NotIn", "values": list(off_domains)}]
    _keep_off(spec, fields, labelled if off_level and off_domains else [])
    return {
        "apiVersion": "v1",
        "kind": keys.TEMPLATE_KIND,
        "metadata": _metadata(name, uid, metadata.get("namespace", ""), owners),
        "template": {"metadata": labels, "spec": spec},
    }


def request(
    name: str,
    uid: str,
    namespace: str,
    class_name: str,
    pod_sets: Iterable[tuple[str, int]],
    owners: Sequence[Object],
) -> Object:
    """A ProvisioningRequest for so many pods of each of these PodTemplates."""
    sets = [{"count": pods, "podTemplateRef": {"name": each}} for each, pods in pod_sets]
    return {
        "apiVersion": keys.API_VERSION,
        "kind": keys.KIND,
        "metadata": _metadata(name, uid, namespace, owners),
        "spec": {"provisioningClassName": class_name, "podSets": sets},
    }


def owned_by_request(name: str, uid: str) -> Object:
    """The change of a PodTemplate by which it ends with its request."""
    owner = owner_reference(keys.API_VERSION, keys.KIND, name, uid)
    return {"metadata": {"ownerReferences": [{**owner, "controller": True}]}}


def _metadata(name: str, uid: str, namespace: str, owners: Sequence[Object]) -> Object:
    return {
        "name": name,
        "namespace": namespace,
        "labels": {keys.GANG_UID: uid},
        "ownerReferences": list(owners),
    }


def _spec(pod: Mapping[str, Any]) -> Object:
    spec = {
        field: deepcopy(value)
        for field, value in (pod.get("spec") or {}).items()
        if field not in _NOT_TAKEN
    }
    for field in ("containers", "initContainers"):
        if spec.get(field):
            spec[field] = [_container(each) for each in spec[field]]
    _fill(spec.get("resources"))
    volumes = [each for each in spec.pop("volumes", None) or () if _is_there(each)]
    if volumes:
        spec["volumes"] = volumes
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    _widen(spec, annotations.get(corral.NARROWED, ""))
    return spec


def _container(container: Mapping[str, Any]) -> Object:
    kept = {field: container[field] for field in _OF_CONTAINERS if field in container}
    _fill(kept.get("resources"))
    return kept


def _fill(resources: Any) -> None:
    if not isinstance(resources, dict):
        return
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    for part in ("limits", "requests"):
        for marker in MARKERS:
            (resources.get(part) or {}).pop(marker, None)  # no node offers it


def _is_there(volume: Mapping[str, Any]) -> bool:
    return not ({"ephemeral", "projected"} & volume.keys())


def _widen(spec: Object, narrowed: str) -> None:
    """Take away what a pod was narrowed to when its gate was taken off."""
    if narrowed == corral.NODES:
        ((spec.get("affinity") or {}).get("nodeAffinity") or {}).pop(_REQUIRED, None)
        return
    for key in filter(None, narrowed.split(",")):
        (spec.get("nodeSelector") or {}).pop(key, None)


def _keep_off(spec: Object, fields: list[Object], expressions: list[Object]) -> None:
    """Add these to every term of the required node affinity, each of which is one way to fit.

    A term that is empty is none.
    """
    if not (fields or expressions):
        return
    affinity = spec["affinity"] = spec.get("affinity") or {}
    of_nodes = affinity["nodeAffinity"] = affinity.get("nodeAffinity") or {}
    required = of_nodes[_REQUIRED] = of_nodes.get(_REQUIRED) or {"nodeSelectorTerms": [None]}
    terms = []
    for term in required["nodeSelectorTerms"]:
        own = term or {}
        if term is not None and not (own.get("matchExpressions") or own.get("matchFields")):
            terms.append(own)
            continue
        both = {
            "matchExpressions": [*(own.get("matchExpressions") or ()), *expressions],
            "matchFields": [*(own.get("matchFields") or ()), *fields],
        }
        terms.append({name: lines for name, lines in both.items() if lines})
    required["nodeSelectorTerms"] = terms
