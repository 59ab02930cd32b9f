"""PodGangs: how many pods of which pod groups start together, and in which domains.

    podgroups                         minReplicas pods of each, and more as they fit
    topologyConstraintGroupConfigs    pod groups that are in one domain together
    topologyConstraint                of all pods of the PodGang

    podReferences                     the pods of a pod group, those without Grove's labels too

Grove's operator writes them, and checks what users write before that: the flaws here are what
cannot be read as a gang. References are read of a PodGang with a flaw as well, so that its pods
wait. reuseReservationRef is a suggestion: of a PodGang in another namespace, or of itself, nothing
is known that it could be for. What priorityClassName names is in `priority_classes.py`.
Source: grove scheduler/api/core/v1alpha1/podgang.go (v0.1.0-alpha.8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from app.dialects.flaw import Flaw
from app.dialects.gang_objects import read_status
from app.dialects.grove import constraints, keys
from app.dialects.grove.constraints import TopologyConstraint
from app.dialects.rules import (
    duplicate,
    forbidden,
    invalid,
    of_spec,
    required,
    too_long,
    too_many,
    too_small,
)
from app.dialects.spec import ANYWHERE
from app.kube.core.objects import ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded
from app.kube.watch.resource import Resource
from topology.model.request import Constraint

GROUP = "scheduler.grove.io"
KIND = "PodGang"
PATH = f"/apis/{GROUP}/v1alpha1/podgangs"
# Of these, `MOST_KINDS` may have pods: those of two pod groups are of two kinds.
MOST_POD_GROUPS = 256
MOST_BYTES = 1536 * 1024  # of pod groups, as many as etcd takes: 20,000 references …
MOST_OBJECTS = 24_576  # the same; to build more takes longer than 5 ms
MOST_GROUP_BYTES = 64 * 1024  # … of the groups of pod groups …
MOST_STATUS_BYTES = 16 * 1024  # … and of a status
LONGEST_GROUP = 63  # characters: pods name a pod group in a label


@dataclass(frozen=True, slots=True)
class PodGroup:
    """One pod group. Pods beyond `least` follow as they fit."""

    name: str
    least: int = 0
    constraint: Constraint = ANYWHERE


@dataclass(frozen=True, slots=True)
class Together:
    """Pod groups, by name, that share a constraint."""

    name: str
    pod_groups: tuple[str, ...]
    constraint: Constraint = ANYWHERE


class PodGangRecord(ObjectRecord, frozen=True, gc=False):
    """One PodGang, with what its status says already."""

    topology: str = ""
    """The name of the topology that its keys are levels of; "": it says none."""
    constraint: Constraint = ANYWHERE
    pod_groups: tuple[PodGroup, ...] = ()
    together: tuple[Together, ...] = ()
    """No pod group is in two of them."""
    reuses: str = ""
    """The PodGang of its namespace whose place it takes, if that is a good one; "": none."""
    priority_class: str = ""
    """The name of the PriorityClass that it has as a whole; "": its pods have their own."""
    pods: Mapping[str, tuple[str, ...]] = {}
    """The pod groups that name a pod of its namespace, by the name of the pod; one, or a flaw."""
    foreign: tuple[str, str] | None = None
    """(namespace, name) of the first pod that it names in another namespace."""
    unread: str = ""
    """Why it is not known which pods it names; "": it is."""
    role: str = ""
    """Among the PodGangs of its replica of a PodCliqueSet; "": its pods say it."""
    flaw: str = ""
    """What of it is not valid; "" if it can be read."""
    phase: str = ""
    conditions: tuple[dict[str, Any], ...] | None = ()
    """None: they cannot be read, and what is in them is not known."""
    score: float | None = None
    """Its placementScore; None: it has none."""


class _Reference(wire.Wire):
    namespace: wire.Text = None
    name: wire.Text = None


class _PodGroup(wire.Wire):
    name: wire.Text = None
    min_replicas: int | None = None
    pod_references: list[_Reference | None] | None = None
    topology_constraint: TopologyConstraint | None = None


class _Together(wire.Wire):
    name: wire.Text = None
    pod_group_names: wire.Texts = None
    topology_constraint: TopologyConstraint | None = None


class _Spec(wire.Wire):
    podgroups: msgspec.Raw = msgspec.Raw(b"null")
    topology_constraint: TopologyConstraint | None = None
    topology_constraint_group_configs: msgspec.Raw = msgspec.Raw(b"null")
    reuse_reservation_ref: _Reference | None = None
    priority_class_name: wire.Text = None


class _Status(wire.Wire):
    phase: wire.Text = None
    conditions: list[dict[str, Any] | None] | None = None
    placement_score: float | None = None


class _PodGang(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None
    status: msgspec.Raw = msgspec.Raw(b"null")  # if it cannot be read, the spec still is


_POD_GANG = msgspec.json.Decoder(_PodGang)
_POD_GROUPS: msgspec.json.Decoder[list[_PodGroup | None] | None] = msgspec.json.Decoder(
    list[_PodGroup | None] | None
)
_TOGETHER: msgspec.json.Decoder[list[_Together | None] | None] = msgspec.json.Decoder(
    list[_Together | None] | None
)
_STATUS: msgspec.json.Decoder[_Status | None] = msgspec.json.Decoder(_Status | None)
_T = TypeVar("_T")


def decode_pod_gang(raw: Json) -> PodGangRecord:
    """Return the record of a PodGang; of one that is not valid the `flaw` and no more of its spec.

    Raises: DecodeError naming the PodGang and the field.
    """
    found = decoded(_POD_GANG, raw, KIND)
    metadata, spec = found.metadata or wire.Metadata(), found.spec or _Spec()
    parts = _parts(spec)
    flaw = next(of_spec(_flaws(spec, parts)), None)
    phase, conditions, score = _status(found.status)
    pods, foreign = _named(parts.pod_groups, metadata.namespace or "")
    record = PodGangRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        pods=pods,
        foreign=foreign,
        unread=str(parts.unread or ""),
        phase=phase,
        conditions=conditions,
        score=score,
    )
    if flaw is not None:
        where = f"PodGang {metadata.namespace}/{metadata.name}"
        return msgspec.structs.replace(record, flaw=f"{where}: {flaw}")
    return msgspec.structs.replace(
        record,
        role=((metadata.labels or {}).get(keys.ROLE) or "")[: keys.LONGEST_LABEL],
        topology=((metadata.annotations or {}).get(keys.TOPOLOGY) or "")[: keys.LONGEST_NAME],
        constraint=constraints.constraint_of(spec.topology_constraint),
        reuses=_reused(spec.reuse_reservation_ref, metadata),
        priority_class=(spec.priority_class_name or "")[: keys.LONGEST_NAME],
        pod_groups=tuple(
            PodGroup(
                each.name or "",
                each.min_replicas or 0,
                constraints.constraint_of(each.topology_constraint),
            )
            for each in parts.pod_groups
        ),
        together=tuple(
            Together(
                each.name or "",
                tuple(name or "" for name in each.pod_group_names),
                constraints.constraint_of(each.topology_constraint),
            )
            for each in parts.together
            if each.pod_group_names
        ),
    )


def _status(raw: msgspec.Raw) -> tuple[str, tuple[dict[str, Any], ...] | None, float | None]:
    """The phase, the conditions and the score of a status."""
    status = read_status(_STATUS, raw, _Status(), MOST_STATUS_BYTES)
    if status is None:
        return "", None, None
    conditions = tuple(each for each in status.conditions or () if each)
    return status.phase or "", conditions, status.placement_score


def _reused(said: _Reference | None, metadata: wire.Metadata) -> str:
    """The PodGang that it names as the one before it, if that can be."""
    if said is None or said.namespace not in (None, "", metadata.namespace):
        return ""
    name = (said.name or "")[: keys.LONGEST_NAME]
    return "" if name == metadata.name else name


def _named(
    pod_groups: Sequence[_PodGroup], namespace: str
) -> tuple[dict[str, tuple[str, ...]], tuple[str, str] | None]:
    """The pods that are named in a namespace, by name, and the first one of another."""
    found: dict[str, tuple[str, ...]] = {}
    foreign = None
    for each in pod_groups:
        its = (each.name or "",)
        for reference in each.pod_references or ():
            if reference is None or not reference.name:
                continue
            if reference.namespace in (None, "", namespace):
                there = found.setdefault(reference.name, its)
                if there is not its and its[0] not in there:
                    found[reference.name] = (*there[:1], *its)  # two are as wrong as more
            else:
                foreign = foreign or (reference.namespace or "", reference.name)
    return found, foreign


@dataclass(slots=True)
class _Parts:
    """What a spec declares of pod groups; none where they cannot be read."""

    pod_groups: Sequence[_PodGroup] = ()
    together: Sequence[_Together] = ()
    flaws: list[Flaw] = field(default_factory=list)
    unread: Flaw | None = None
    """Why the pod groups are not read."""


def _parts(spec: _Spec) -> _Parts:
    parts = _Parts()
    pod_groups = _read(_POD_GROUPS, spec.podgroups, "podgroups", MOST_BYTES, parts.flaws)
    parts.unread = next(of_spec(parts.flaws), None)
    together = _read(
        _TOGETHER,
        spec.topology_constraint_group_configs,
        "topologyConstraintGroupConfigs",
        MOST_GROUP_BYTES,
        parts.flaws,
    )
    parts.pod_groups = [each or _PodGroup() for each in pod_groups]
    parts.together = [each or _Together() for each in together]
    return parts


def _read(
    decoder: msgspec.json.Decoder[list[_T | None] | None],
    raw: msgspec.Raw,
    name: str,
    most_bytes: int,
    flaws: list[Flaw],
) -> Sequence[_T | None]:
    """The entries of a list; none, and a flaw more, if it cannot be read or is too long."""
    text = bytes(raw)
    if len(text) > most_bytes:
        flaws.append(too_long(name, most_bytes))
        return ()
    if (objects := text.count(b"{")) > MOST_OBJECTS:
        flaws.append(too_many(name, objects, MOST_OBJECTS, "objects"))
        return ()
    try:
        found = decoder.decode(raw) or []
    except (ValueError, RecursionError) as error:
        flaws.append(Flaw(name, "Invalid value", str(error)))
        return ()
    if len(found) > MOST_POD_GROUPS:
        flaws.append(too_many(name, len(found), MOST_POD_GROUPS))
        return ()
    return found


def _flaws(spec: _Spec, parts: _Parts) -> Iterator[Flaw]:
    """What of a spec cannot be read as a gang; the fields are below it."""
    yield from parts.flaws
    yield from constraints.flaws_of(spec.topology_constraint, "topologyConstraint")
    if not parts.pod_groups:
        yield required("podgroups", "must have at least one pod group")
    seen: set[str] = set()
    for at, each in enumerate(parts.pod_groups):
        where, name = f"podgroups[{at}]", each.name or ""
        if name in seen:
            yield duplicate(f"{where}.name", name)
        elif not name or len(name) > LONGEST_GROUP:
            yield invalid(f"{where}.name", name, f"must have 1 to {LONGEST_GROUP} characters")
        seen.add(name)
        if (each.min_replicas or 0) < 0:
            yield too_small(f"{where}.minReplicas", each.min_replicas or 0, 0)
        yield from constraints.flaws_of(each.topology_constraint, f"{where}.topologyConstraint")
    yield from _together_flaws(parts.together, seen)


def _together_flaws(together: Sequence[_Together], pod_groups: set[str]) -> Iterator[Flaw]:
    """`pod_groups`: the names that there are."""
    times = Counter(name or "" for each in together for name in each.pod_group_names or ())
    for at, each in enumerate(together):
        where = f"topologyConstraintGroupConfigs[{at}]"
        for index, name in enumerate(each.pod_group_names or ()):
            its = f"{where}.podGroupNames[{index}]"
            if (name or "") not in pod_groups:
                yield invalid(its, name or "", "no pod group has this name")
            elif times[name or ""] > 1:
                yield forbidden(its, f"pod group {name} is named twice, and is in one group")
        yield from constraints.flaws_of(each.topology_constraint, f"{where}.topologyConstraint")


RESOURCE = Resource(KIND, PATH, PodGangRecord, decode_pod_gang, is_optional=True)
