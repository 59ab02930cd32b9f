"""JSON of one object in, one slim record out.

The bytes come from the API server and, for pods, also from any client of the extender port:
any input yields a record or a DecodeError. An object that is well-formed but says something
impossible (a quantity of "-5") yields a record whose `problem` says so, since a pod we refuse to
see would still take up room.

Strings that repeat are interned and so are requests and shapes: gangs have thousands of equal pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from sys import intern
from typing import TypeVar

import msgspec

from app.errors import DecodeError
from app.kube.core import wire
from app.kube.core.objects import (
    NodeRecord,
    Owner,
    PodRecord,
    Requirement,
    Shape,
    Taint,
    Term,
    Toleration,
)
from app.kube.core.requests import node_allocatable, pod_request

Json = bytes | memoryview | msgspec.Raw
Keep = Callable[[str], bool]
"""Tells which label and annotation keys a record retains."""

MOST_WEIGHT = 100  # of one preferred term

_T = TypeVar("_T")
_NOTHING: Mapping[str, str] = {}  # shared by all pods without kept keys
_NO_METADATA = wire.Metadata()
_POD = msgspec.json.Decoder(wire.Pod)
_AFFINITY = msgspec.json.Decoder(wire.Affinity | None)
_NODE = msgspec.json.Decoder(wire.Node)
_VERSIONED = msgspec.json.Decoder(wire.Versioned)


def decode_pod(raw: Json, keep: Keep) -> PodRecord:
    """Return the record of a pod, from a watch or an extender request.

    Raises: DecodeError naming the pod and the field.
    """
    pod = decoded(_POD, raw, "Pod")
    metadata = pod.metadata or _NO_METADATA
    spec = pod.spec or wire.PodSpec()
    status = pod.status or wire.PodStatus()
    request, unreadable = pod_request(spec)
    namespace, name = intern(metadata.namespace or ""), metadata.name or ""
    return PodRecord(
        namespace=namespace,
        name=name,
        uid=metadata.uid or "",
        node=intern(spec.node_name or ""),
        phase=intern(status.phase or ""),
        scheduler=intern(spec.scheduler_name or ""),
        priority=spec.priority or 0,
        request=request,
        shape=_shape(spec, raw),
        gates=_gates(spec),
        is_terminating=metadata.deletion_timestamp is not None,
        created=intern(metadata.creation_timestamp or ""),
        labels=kept(metadata.labels, keep),
        annotations=kept(metadata.annotations, keep),
        owner=controller(metadata),
        nominated_node=intern(status.nominated_node_name or ""),
        version=metadata.resource_version or "",
        problem=f"Pod {namespace}/{name}: {unreadable}" if unreadable else "",
        has_claims=bool(spec.resource_claims),
    )


def decode_node(raw: Json) -> NodeRecord:
    """Return the record of a node.

    Raises: DecodeError naming the node and the field.
    """
    node = decoded(_NODE, raw, "Node")
    metadata = node.metadata or _NO_METADATA
    spec = node.spec or wire.NodeSpec()
    status = node.status or wire.NodeStatus()
    allocatable, unreadable = node_allocatable(status)
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
        problem=f"Node {name}: {unreadable}" if unreadable else "",
    )


def decode_version(raw: Json) -> str:
    """Return the resourceVersion of any object, "" if it has none.

    Raises: DecodeError.
    """
    return (decoded(_VERSIONED, raw, "object").metadata or _NO_METADATA).resource_version or ""


def decoded(decoder: msgspec.json.Decoder[_T], raw: Json, kind: str) -> _T:
    """Return the wire object in the bytes.

    Raises: DecodeError naming the object.
    """
    try:
        return decoder.decode(raw)
    except (ValueError, RecursionError) as error:  # RecursionError: 100,000 opening brackets
        raise DecodeError(f"{kind} {_name_in(raw)}: {error}") from error


def _name_in(raw: Json) -> str:
    try:
        metadata = _VERSIONED.decode(raw).metadata or _NO_METADATA
    except (ValueError, RecursionError):
        return "without a readable name"
    return f"{metadata.namespace or ''}/{metadata.name or ''}".removeprefix("/")


def kept(texts: wire.Strings, keep: Keep) -> Mapping[str, str]:
    """Return those labels or annotations that are worth their memory."""
    if not texts:
        return _NOTHING
    kept = {intern(key): intern(value or "") for key, value in texts.items() if keep(key)}
    return kept or _NOTHING


def _gates(spec: wire.PodSpec) -> tuple[str, ...]:
    gates = spec.scheduling_gates
    return tuple(intern(gate.name or "") for gate in gates if gate is not None) if gates else ()


def controller(metadata: wire.Metadata) -> Owner | None:
    """Return the owner that controls an object, if one does."""
    for owner in metadata.owner_references or ():
        if owner is not None and owner.controller:
            return _owner(
                owner.api_version or "", owner.kind or "", owner.name or "", owner.uid or ""
            )
    return None


@lru_cache(maxsize=4_096)
def _owner(api_version: str, kind: str, name: str, uid: str) -> Owner:
    return Owner(api_version, kind, name, uid)


def has_condition(conditions: list[wire.Condition | None] | None, *types: str) -> bool:
    """Tell whether one of these conditions is true."""
    return any(
        condition is not None and condition.type in types and condition.status == "True"
        for condition in conditions or ()
    )


def _shape(spec: wire.PodSpec, raw: Json) -> Shape:
    selector = spec.node_selector
    tolerations = spec.tolerations
    try:
        terms, preferred = _affinity(bytes(spec.affinity))
    except (ValueError, RecursionError) as error:
        where = str(error).replace("`$", "`$.spec.affinity")
        raise DecodeError(f"Pod {_name_in(raw)}: {where}") from error
    return _interned_shape(
        tuple(sorted((key, value or "") for key, value in selector.items())) if selector else (),
        terms,
        tuple(
            _toleration(
                t.key or "",
                t.operator or "Equal",
                t.value or "",
                t.effect or "",
                is_for_a_while=t.toleration_seconds is not None,
            )
            for t in tolerations
            if t is not None
        )
        if tolerations
        else (),
        preferred,
    )


@lru_cache(maxsize=16_384)  # bounded, since pods come from users
def _interned_shape(
    selector: tuple[tuple[str, str], ...],
    terms: tuple[Term, ...],
    tolerations: tuple[Toleration, ...],
    preferred: tuple[tuple[int, Term], ...],
) -> Shape:
    return Shape(selector, terms, tolerations, preferred)


@lru_cache(maxsize=4_096)
def _toleration(
    key: str, operator: str, value: str, effect: str, *, is_for_a_while: bool
) -> Toleration:
    return Toleration(key, operator, value, effect, is_for_a_while)


@lru_cache(maxsize=4_096)  # narrowed pods carry dozens of terms, and a gang's pods the same ones
def _affinity(raw: bytes) -> tuple[tuple[Term, ...], tuple[tuple[int, Term], ...]]:
    affinity = _AFFINITY.decode(raw)
    return ((), ()) if affinity is None else (_terms(affinity), _preferred(affinity))


def _terms(affinity: wire.Affinity) -> tuple[Term, ...]:
    if affinity.node_affinity is None or affinity.node_affinity.required is None:
        return ()
    terms = tuple(
        _term(term)
        for term in affinity.node_affinity.required.node_selector_terms or ()
        if term is not None
    )
    # Required affinity without terms matches no node; one empty term says the same.
    return terms or (Term(),)


def _preferred(affinity: wire.Affinity) -> tuple[tuple[int, Term], ...]:
    if affinity.node_affinity is None or not affinity.node_affinity.preferred:
        return ()
    return tuple(
        # The API server takes 1 to 100; who else sends us pods may not be so careful.
        (min(max(line.weight or 0, 0), MOST_WEIGHT), _term(line.preference))
        for line in affinity.node_affinity.preferred
        if line is not None and line.preference is not None
    )


def _term(term: wire.SelectorTerm) -> Term:
    return Term(_requirements(term.match_expressions), _requirements(term.match_fields))


def _requirements(lines: list[wire.SelectorRequirement | None] | None) -> tuple[Requirement, ...]:
    return tuple(
        # A null line is one that never holds, as in Go; dropping it would widen the term.
        Requirement("", "", ())
        if line is None
        else Requirement(
            intern(line.key or ""),
            intern(line.operator or ""),
            tuple(intern(value or "") for value in line.values or ()),
        )
        for line in lines or ()
    )
