"""JSON of one object in, one slim record out.

The bytes come from the API server and, for pods, also from any client of the extender port:
any input yields a record or a DecodeError. An object that is well-formed but says something
impossible (a quantity of "-5") yields a record whose `problem` says so, since a pod we refuse to
see would still take up room.

Strings that repeat are shared and so are requests and shapes: gangs have thousands of equal pods.
What a tenant may make many of is shared by bounded caches alone: the interpreter's own table of
interned strings never shrinks. Nor is a long text kept whole that no vocabulary reads (`texts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from sys import intern
from typing import TypeVar

import msgspec

from app.errors import DecodeError
from app.kube.core.cached import KIB, cached
from app.kube.core.objects import (
    Health,
    NodeRecord,
    Owner,
    PodRecord,
    Record,
    Shape,
    Taint,
)
from app.kube.decoding import wire
from app.kube.decoding.large import parts as large
from app.kube.decoding.named_labels import named_labels
from app.kube.decoding.requests import NONE_OFFERED, Offered, node_allocatable, pod_request
from app.kube.decoding.resizes import resize_of
from app.kube.decoding.shapes import shape_of
from app.kube.decoding.texts import cut, kept_text, shared

Json = bytes | memoryview | msgspec.Raw
Keep = Callable[[str], bool]
"""Tells which label and annotation keys a record retains."""

DISRUPTION_TARGET = "DisruptionTarget"  # the condition of a pod that is evicted or preempted
PREEMPTED = "PreemptionByScheduler"  # the reason of that condition
SCHEDULED = "PodScheduled"  # the condition that says whether a pod has a node
UNSCHEDULABLE = "Unschedulable"  # its reason where no node takes the pod …
GATED = "SchedulingGated"  # … and where it was not tried yet, since the pod is behind a gate
MOST_GRACE_SECONDS = 86_400  # of what a pod may say
GRACE_SECONDS = 30  # of a pod that says nothing: the API server writes it
MOST_DEADLINE_SECONDS = 2**31 - 1  # as the API server has it

_T = TypeVar("_T")
_Record = TypeVar("_Record", bound=Record)
_PREEMPTED = PREEMPTED.encode()
_UNSCHEDULABLE = UNSCHEDULABLE.encode()
_NOTHING: Mapping[str, str] = {}  # shared by all pods without kept keys
_NO_METADATA = wire.Metadata()
_UNNAMED = wire.VersionedMetadata()
_POD = msgspec.json.Decoder(wire.Pod)
_CONDITIONS: msgspec.json.Decoder[list[wire.Condition | None] | None] = msgspec.json.Decoder(
    list[wire.Condition | None] | None
)
_READINESS: msgspec.json.Decoder[list[wire.Readiness | None] | None] = msgspec.json.Decoder(
    list[wire.Readiness | None] | None
)
_CONTAINER_STATUSES: msgspec.json.Decoder[list[wire.ContainerStatus | None] | None] = (
    msgspec.json.Decoder(list[wire.ContainerStatus | None] | None)
)
_NODE = msgspec.json.Decoder(wire.Node)
_VERSIONED = msgspec.json.Decoder(wire.Versioned)


def decode_pod(
    raw: Json, keep: Keep, keep_label: Keep | None = None, offered: Offered = NONE_OFFERED
) -> PodRecord:
    """Return the record of a pod, from a watch or an extender request.

    `keep_label`: which labels are kept, if not the same keys as of annotations; beside these those
    that the kept annotations name (`named_labels.py`).
    `offered`: the resources that are counted also of a pod with too many.
    Raises: DecodeError naming the pod and the field.
    """
    if len(raw) <= large.LARGE:
        return pod_record(decoded(_POD, raw, "Pod"), raw, keep, keep_label, offered)
    pod, unread = _read(large.pod, raw, "Pod")
    return pod_record(pod, raw, keep, keep_label, offered, unread)


def pod_record(
    pod: wire.Pod,
    raw: Json,
    keep: Keep,
    keep_label: Keep | None = None,
    offered: Offered = NONE_OFFERED,
    unread: str = "",
) -> PodRecord:
    """Return the record of a pod that is decoded already from these bytes.

    `unread`: what of the pod was left out, if anything.
    Raises: DecodeError naming the pod and the field.
    """
    metadata = pod.metadata or _NO_METADATA
    spec = pod.spec or wire.PodSpec()
    status = pod.status or wire.PodStatus()
    try:
        request, unreadable, offered_then = pod_request(spec, offered, resize_of(status))
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"Pod {_name_in(raw)}: {error}") from error
    problem = unread or unreadable
    namespace, name = intern(metadata.namespace or ""), metadata.name or ""
    preempted_at = _preempted_at(status.conditions)
    group = spec.scheduling_group
    labels, annotations = _kept(metadata.labels, metadata.annotations, keep_label or keep, keep)
    return PodRecord(
        namespace=namespace,
        name=name,
        uid=metadata.uid or "",
        node=intern(spec.node_name or ""),
        phase=intern(status.phase or ""),
        scheduler=shared(cut(spec.scheduler_name or "")),
        priority=spec.priority or 0,
        request=request,
        shape=_shape(spec, raw),
        gates=_gates(spec),
        is_terminating=metadata.deletion_timestamp is not None,
        created=intern(metadata.creation_timestamp or ""),
        labels=labels,
        annotations=annotations,
        owner=controller(metadata),
        nominated_node=intern(status.nominated_node_name or ""),
        version=metadata.resource_version or "",
        problem=f"Pod {namespace}/{name}: {problem}" if problem else "",
        has_claims=bool(spec.resource_claims),
        is_preempted=preempted_at is not None,
        preempted_at=preempted_at or "",
        grace_seconds=_grace(metadata.deletion_grace_period_seconds),
        preempts=spec.preemption_policy != "Never",
        offered_then=offered_then,
        pod_group=shared(cut(group.pod_group_name or "")) if group is not None else "",
        health=_health(status) if spec.node_name else "",
        is_marked=bool(spec.scheduling_gates) and _is_marked(status.conditions),
        deadline_seconds=deadline(spec.active_deadline_seconds),
        termination_seconds=_grace(spec.termination_grace_period_seconds, GRACE_SECONDS),
    )


def decode_node(raw: Json, keep: Keep | None = None) -> NodeRecord:
    """Return the record of a node.

    `keep`: which annotations are kept; None: none.
    Raises: DecodeError naming the node and the field.
    """
    if len(raw) <= large.LARGE:
        node, unread = decoded(_NODE, raw, "Node"), ""
    else:
        node, unread = _read(large.node, raw, "Node")
    metadata = node.metadata or _NO_METADATA
    spec = node.spec or wire.NodeSpec()
    status = node.status or wire.NodeStatus()
    allocatable, unreadable = node_allocatable(status)
    problem = unread or unreadable
    name = intern(metadata.name or "")
    labels = metadata.labels or {}
    return NodeRecord(
        name=name,
        uid=metadata.uid or "",
        labels={intern(key): intern(value or "") for key, value in labels.items()},
        allocatable=allocatable,
        is_ready=has_condition(status.conditions, "Ready"),
        is_unschedulable=bool(spec.unschedulable),
        taints=tuple(
            Taint(taint.key or "", taint.value or "", taint.effect or "")
            for taint in spec.taints or ()
            if taint is not None
        ),
        version=metadata.resource_version or "",
        problem=f"Node {name}: {problem}" if problem else "",
        annotations=kept(metadata.annotations, keep) if keep else _NOTHING,
    )


def decode_version(raw: Json) -> str:
    """Return the resourceVersion of any object, "" if it has none.

    Raises: DecodeError.
    """
    return (_read(_VERSIONED.decode, raw, "object").metadata or _UNNAMED).resource_version or ""


def decode_uid(raw: Json) -> str:
    """Return the uid of any object, "" if it has none.

    Raises: DecodeError.
    """
    return (_read(_VERSIONED.decode, raw, "object").metadata or _UNNAMED).uid or ""


def decode_named(raw: Json, kind: str, record: type[_Record]) -> _Record:
    """Return a record of any object that says which one it is, and nothing else.

    Raises: DecodeError, also where records of its kind say more.
    """
    metadata = _read(_VERSIONED.decode, raw, kind).metadata or _UNNAMED
    if not metadata.uid:
        raise DecodeError(f"{kind} {_name_of(metadata)}: it has no uid")
    said = {
        "kind": kind,
        "namespace": metadata.namespace or "",
        "name": metadata.name or "",
        "uid": metadata.uid,
        "version": metadata.resource_version or "",
    }
    try:
        return msgspec.convert(said, record)
    except msgspec.ValidationError as error:
        raise DecodeError(f"{kind} {_name_of(metadata)}: {error}") from error


def decoded(decoder: msgspec.json.Decoder[_T], raw: Json, kind: str) -> _T:
    """Return the wire object in the bytes.

    Raises: DecodeError naming the object, also for one whose metadata is more than is read.
    """
    if len(raw) <= large.LARGE:
        return _read(decoder.decode, raw, kind)
    found, metadata, unread = _read(partial(large.any_object, decoder), raw, kind)
    if unread:
        raise DecodeError(f"{kind} {_name_of(metadata)}: {unread}")
    return found


def part(
    decoder: msgspec.json.Decoder[_T],
    raw: msgspec.Raw,
    path: str,
    kind: str,
    written: wire.Metadata | None,
    most: int = large.MOST_VALUES,
) -> _T:
    """Return a part of an object, if it has no more values than any real one.

    Raises: DecodeError naming the object and the part.
    """
    try:
        return large.part(decoder, raw, path, most)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{kind} {_name_of(written or _NO_METADATA)}: {error}") from error


def conditions(
    raw: msgspec.Raw, kind: str, written: wire.Metadata | None
) -> list[wire.Condition | None] | None:
    """Return the conditions in an object's status.

    Raises: DecodeError naming the object.
    """
    return part(_CONDITIONS, raw, "status.conditions", kind, written)


def _read(decode: Callable[[Json], _T], raw: Json, kind: str) -> _T:
    try:
        return decode(raw)
    except (ValueError, RecursionError) as error:  # RecursionError: 100,000 opening brackets
        raise DecodeError(f"{kind} {_name_in(raw)}: {error}") from error


def _name_in(raw: Json) -> str:
    try:
        metadata = _VERSIONED.decode(raw).metadata or _UNNAMED
    except (ValueError, RecursionError):
        return "without a readable name"
    return _name_of(metadata)


def _name_of(metadata: wire.Metadata | wire.VersionedMetadata) -> str:
    return f"{metadata.namespace or ''}/{metadata.name or ''}".removeprefix("/")


def kept(texts: Mapping[str, str | None] | None, keep: Keep) -> Mapping[str, str]:
    """Return those labels or annotations that are worth their memory."""
    if not texts:
        return _NOTHING
    kept = {intern(key): kept_text(key, value or "") for key, value in texts.items() if keep(key)}
    return kept or _NOTHING


def _kept(
    labels: Mapping[str, str | None] | None,
    annotations: Mapping[str, str | None] | None,
    keep_label: Keep,
    keep: Keep,
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the labels and annotations of a pod that are worth their memory."""
    its, said = kept(labels, keep_label), kept(annotations, keep)
    if said and (named := named_labels(labels, said)):
        its = {**its, **{shared(key): shared(value) for key, value in named.items()}}
    return its, said


def with_kept(pod: PodRecord, keep: Keep) -> PodRecord:
    """Return the pod as the watch would show it, of labels and annotations no more than these."""
    labels, annotations = _kept(pod.labels, pod.annotations, keep, keep)
    return msgspec.structs.replace(pod, labels=labels, annotations=annotations)


def deadline(seconds: int | None) -> int:
    """Return an activeDeadlineSeconds within the bounds of the API; 0: there is none."""
    return min(max(seconds or 0, 0), MOST_DEADLINE_SECONDS)


def _grace(seconds: int | None, default: int = 0) -> int:
    return min(max(default if seconds is None else seconds, 0), MOST_GRACE_SECONDS)


def _gates(spec: wire.PodSpec) -> tuple[str, ...]:
    gates = spec.scheduling_gates
    return tuple(shared(gate.name or "") for gate in gates if gate is not None) if gates else ()


def controller(metadata: wire.Metadata) -> Owner | None:
    """Return the owner that controls an object, if one does."""
    for owner in metadata.owner_references or ():
        if owner is not None and owner.controller:
            return _owner(
                owner.api_version or "", owner.kind or "", owner.name or "", owner.uid or ""
            )
    return None


@cached(1_024, 2 * KIB)
def _owner(api_version: str, kind: str, name: str, uid: str) -> Owner:
    return Owner(api_version, kind, name, uid)


def _preempted_at(conditions: msgspec.Raw) -> str | None:
    """When kube-scheduler has said that it ends the pod for another one; None: it has not.

    Source: kubernetes v1.36 pkg/scheduler/framework/preemption/executor.go, PreemptPod.
    """
    if _PREEMPTED not in bytes(conditions):
        return None
    try:
        found = large.part(_CONDITIONS, conditions, "status.conditions")
    except (ValueError, RecursionError):
        return None  # of a request: the API server has none that cannot be read
    for condition in found or ():
        if has_condition([condition], DISRUPTION_TARGET, reason=PREEMPTED):
            return (condition and condition.last_transition_time) or ""
    return None


def _is_marked(conditions: msgspec.Raw) -> bool:
    """Whether node autoscalers count a pod as one that no node takes.

    Source: kubernetes/autoscaler cluster-autoscaler/utils/kubernetes/listers.go (1.36.1);
    kubernetes-sigs/karpenter pkg/utils/pod/scheduling.go, FailedToSchedule (v1.14.0).
    """
    if _UNSCHEDULABLE not in bytes(conditions):
        return False
    try:
        found = large.part(_CONDITIONS, conditions, "status.conditions")
    except (ValueError, RecursionError):
        return False
    return has_condition(found, SCHEDULED, reason=UNSCHEDULABLE, status="False")


def _health(status: wire.PodStatus) -> Health:
    """How the containers of a pod that has a node are, as Grove's operator counts them.

    Source: grove operator/internal/utils/kubernetes/pod.go, CategorizePodsByConditionType
    (v0.1.0-alpha.8).
    """
    try:
        for condition in large.part(_READINESS, status.conditions, "status.conditions") or ():
            if condition is not None and condition.type == "Ready" and condition.status == "True":
                return "ready"
        main, init = (
            large.part(_CONTAINER_STATUSES, part, "status.containerStatuses") or ()
            for part in (status.container_statuses, status.init_container_statuses)
        )
    except (ValueError, RecursionError):
        return ""
    has_erred = any(each is not None and _exit_code(each) for each in (*main, *init))
    is_unready = any(each is not None and each.started and not each.ready for each in main)
    return "failing" if has_erred or is_unready else ""


def _exit_code(status: wire.ContainerStatus) -> int:
    """With which a container has ended the last time; 0: well, or never."""
    last = status.last_state
    return (last and last.terminated and last.terminated.exit_code) or 0


def has_condition(
    conditions: list[wire.Condition | None] | None,
    *types: str,
    reason: str | None = None,
    status: str = "True",
) -> bool:
    """Tell whether one of these conditions has this status, for this reason if one is given."""
    return any(
        condition is not None
        and condition.type in types
        and condition.status == status
        and reason in (None, condition.reason)
        for condition in conditions or ()
    )


def _shape(spec: wire.PodSpec, raw: Json) -> Shape:
    try:
        return shape_of(spec)
    except (ValueError, RecursionError) as error:
        where = str(error).replace("`$", "`$.spec.affinity")
        raise DecodeError(f"Pod {_name_in(raw)}: {where}") from error
