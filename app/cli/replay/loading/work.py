"""The pods that come, and the cluster that they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.dialects.kueue.annotations import PREFERRED
from app.dialects.kueue.pod_groups import GROUP_NAME, TOTAL_COUNT
from app.dialects.registry import DIALECTS
from app.kube.core.decode import decode_pod

Object = dict[str, Any]
STAYING_OWNERS = ("DaemonSet", "Node")  # whose pods are where they are
SCHEDULER = "corral"
DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Mix:
    """What of the recorded pods is made into gangs; those that are in one stay so.

    share: 0..1 of the pods. size: pods of a gang. level: one domain of it is preferred; "": none.
    """

    share: float = 0.5
    size: int = 8
    level: str = ""


@dataclass(frozen=True, slots=True)
class Arriving:
    """One pod that comes. `gang`: whose member it is; "": an ordinary pod."""

    namespace: str
    name: str
    uid: str
    gang: str


@dataclass(frozen=True, slots=True)
class Work:
    """A snapshot in which the arriving pods wait, and these in the order in which they come."""

    snapshot: Object
    arriving: tuple[Arriving, ...]


def work_of(snapshot: Object, mix: Mix, most: int) -> Work:
    """The first pods of a recording as a load; what a DaemonSet runs stays where it is.

    Consecutive pods become a gang, so that it comes together, as the pods of a workload do.
    """
    staying = [each for each in snapshot.get("pods", ()) if _stays(each)]
    coming = [each for each in snapshot.get("pods", ()) if not _stays(each)][:most]
    pods: list[Object] = []
    arriving: list[Arriving] = []
    gangs = _gangs(coming, mix)
    for at, (pod, gang) in enumerate(zip(coming, gangs, strict=True)):
        made = _waiting(pod, f"load-{at}", gang, mix)
        metadata = made["metadata"]
        pods.append(made)
        name = gang or _gang_of(made)
        arriving.append(Arriving(metadata["namespace"], metadata["name"], metadata["uid"], name))
    return Work({**snapshot, "pods": [*staying, *pods], "objects": []}, tuple(arriving))


def _stays(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    is_bound = bool(pod["spec"].get("nodeName"))
    return is_bound and any(each.get("kind") in STAYING_OWNERS for each in owners)


def _gangs(coming: Sequence[Object], mix: Mix) -> list[str]:
    """The made-up gang of each pod, "" for none: whole gangs, evenly among the others."""
    found: list[str] = []
    owed = 0.0
    while len(found) < len(coming):
        size = min(mix.size, len(coming) - len(found))
        batch = coming[len(found) : len(found) + size]
        owed += mix.share * size
        is_gang = owed >= size and size == mix.size and not any(map(_gang_of, batch))
        owed -= size if is_gang else 0
        found.extend([f"gang-{len(found) // mix.size}" if is_gang else ""] * size)
    return found


def _gang_of(pod: Object) -> str:
    """The gang that a recorded pod says it is in."""
    claim = DIALECTS.claim(decode_pod(orjson.dumps(pod), DIALECTS.keeps))
    return "" if claim is None or claim.gang.source == "pod" else str(claim.gang)


def _waiting(pod: Object, uid: str, gang: str, mix: Mix) -> Object:
    """The pod as it waits for a node, in the made-up gang if there is one."""
    metadata = {"namespace": DEFAULT_NAMESPACE} | pod["metadata"] | {"uid": uid}
    metadata.pop("deletionTimestamp", None)
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    spec |= {"schedulerName": SCHEDULER, "schedulingGates": []}
    if gang:
        level = {PREFERRED: mix.level} if mix.level else {}
        said = {GROUP_NAME: gang, TOTAL_COUNT: str(mix.size), **level}
        # Pods of all namespaces follow each other in a recording, and a gang is in one.
        metadata |= {"namespace": DEFAULT_NAMESPACE, "name": f"{gang}-{uid}", "annotations": said}
        metadata |= {"labels": {}, "ownerReferences": []}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def with_overlay(
    snapshot: Object, overlay: Mapping[str, Sequence[str]], levels: Sequence[str]
) -> Object:
    """The snapshot with the domains of an overlay as labels of its nodes."""
    nodes = []
    for node in snapshot["nodes"]:
        metadata = node["metadata"]
        domains = overlay.get(metadata["name"], ())
        labels = (metadata.get("labels") or {}) | dict(zip(levels, domains, strict=False))
        nodes.append(node | {"metadata": metadata | {"labels": labels}})
    return {**snapshot, "nodes": nodes}
