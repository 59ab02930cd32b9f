"""The pods that come, and the cluster that they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.dialects.kueue.annotations import PREFERRED, REQUIRED
from app.dialects.kueue.pod_groups import GROUP_NAME, TOTAL_COUNT
from app.dialects.registry import DIALECTS
from app.dialects.spec import Claim
from app.kube.decoding.decode import decode_pod
from app.settings import EngineOptions

Object = dict[str, Any]
STAYING_OWNERS = ("DaemonSet", "Node")  # whose pods are where they are
SCHEDULER = "corral"
DEFAULT_NAMESPACE = "default"
ALONE = "pod"  # the source of a gang of one
_DIALECTS = DIALECTS.configured(EngineOptions(native_pod_groups="on"))


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

    Consecutive pods become a gang, so that it comes together, as the pods of a workload do. Pods of
    a gang that an object declares, in any vocabulary, become a pod group with as many pods as
    came: the sandbox has no such objects.
    """
    staying = [each for each in snapshot.get("pods", ()) if _stays(each)]
    coming = [each for each in snapshot.get("pods", ()) if not _stays(each)][:most]
    pods: list[Object] = []
    arriving: list[Arriving] = []
    for at, (pod, group) in enumerate(zip(coming, _groups(coming, mix), strict=True)):
        made = _waiting(pod, f"load-{at}", group)
        metadata = made["metadata"]
        pods.append(made)
        name = group.name if group is not None else ""
        arriving.append(Arriving(metadata["namespace"], metadata["name"], metadata["uid"], name))
    return Work({**snapshot, "pods": [*staying, *pods], "objects": []}, tuple(arriving))


def _stays(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    is_bound = bool(pod["spec"].get("nodeName"))
    return is_bound and any(each.get("kind") in STAYING_OWNERS for each in owners)


@dataclass(frozen=True, slots=True)
class _Group:
    """A pod group. `levels`: what its pods require or prefer, as annotations."""

    name: str
    pods: int
    levels: tuple[tuple[str, str], ...]
    is_recorded: bool = False


def _groups(coming: Sequence[Object], mix: Mix) -> list[_Group | None]:
    """The pod group of each pod: a recorded one, a made-up one, or none.

    Made-up ones are whole, and evenly among the others.
    """
    claims = [_claim(each) for each in coming]
    sizes = Counter(claim.gang for claim in claims if claim is not None)
    found: list[_Group | None] = [
        None if claim is None else _recorded(claim, sizes[claim.gang]) for claim in claims
    ]
    free = [at for at, claim in enumerate(claims) if claim is None]
    level = ((PREFERRED, mix.level),) if mix.level else ()
    owed = 0.0
    for first in range(0, len(free) - mix.size + 1, mix.size):
        owed += mix.share * mix.size
        if owed >= mix.size:
            owed -= mix.size
            group = _Group(f"gang-{first // mix.size}", mix.size, level)
            for at in free[first : first + mix.size]:
                found[at] = group
    return found


def _claim(pod: Object) -> Claim | None:
    """The gang that a recorded pod says it is in, with others."""
    claim = _DIALECTS.claim(decode_pod(orjson.dumps(pod), _DIALECTS.keeps))
    return None if claim is None or claim.flaw or claim.gang.source == ALONE else claim


def _recorded(claim: Claim, pods: int) -> _Group:
    constraint = claim.said.constraint
    levels = ((REQUIRED, constraint.required), (PREFERRED, constraint.preferred))
    said = tuple((key, level) for key, level in levels if level)[:1]
    return _Group(f"{claim.gang.name}-{claim.gang.source}", pods, said, is_recorded=True)


def _waiting(pod: Object, uid: str, group: _Group | None) -> Object:
    """The pod as it waits for a node, in its pod group if it has one."""
    metadata = {"namespace": DEFAULT_NAMESPACE} | pod["metadata"] | {"uid": uid}
    metadata.pop("deletionTimestamp", None)
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    spec |= {"schedulerName": SCHEDULER, "schedulingGates": []}
    spec.pop("schedulingGroup", None)
    if group is not None:
        said = {GROUP_NAME: group.name, TOTAL_COUNT: str(group.pods), **dict(group.levels)}
        metadata |= {"labels": {}, "annotations": said, "ownerReferences": []}
        if not group.is_recorded:
            # Pods of all namespaces follow each other in a recording, and a gang is in one.
            metadata |= {"namespace": DEFAULT_NAMESPACE, "name": f"{group.name}-{uid}"}
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
