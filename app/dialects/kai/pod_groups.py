"""PodGroups of scheduling.run.ai: how many pods start together, in which domains, in which groups.

    minMember, minSubGroup         what it takes to start
    topologyConstraint             of all its pods
    subGroups                      parts with the same fields, one inside another

minMember is not read where there are sub-groups: what they take is what the PodGroup takes.
Source: KAI-Scheduler pkg/apis/scheduling/v2alpha2/podgroup_types.go, pkg/scheduler/api/
podgroup_info/job_info.go (v0.13).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.dialects.declared import Join, TreePart
from app.dialects.dialect import CheckedObject, Known, ObjectRules, none_known
from app.dialects.flaw import Flaw
from app.dialects.gang_objects import read_status
from app.dialects.kai import constraints, sub_groups
from app.dialects.kai.constraints import TopologyConstraint
from app.dialects.kai.joins import Trees
from app.dialects.kai.sub_groups import SubGroup, WireSubGroup
from app.dialects.rules import of_spec, too_long, too_many
from app.dialects.spec import ANYWHERE
from app.kube.core.objects import ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded
from app.kube.watch.resource import Resource
from topology.model.request import Constraint

GROUP = "scheduling.run.ai"
KIND = f"PodGroup.{GROUP}"  # two other API groups have a kind of that name
PATH = f"/apis/{GROUP}/v2alpha2/podgroups"
NODE_POOL = "kai.scheduler/node-pool"  # label: which of KAI's schedulers it is for
DEFAULT_POOL = "default"
# An object may have 1.5 MiB. Of these, `MOST_KINDS` leaves may have pods.
MOST_SUB_GROUPS = 256
MOST_BYTES = 64 * 1024  # of what is declared of sub-groups …
MOST_STATUS_BYTES = 16 * 1024  # … and of the conditions of a status
LONGEST_POOL = 63  # characters, as of a label's value


class PodGroupRecord(ObjectRecord, frozen=True, gc=False):
    """One PodGroup, with what its status says already."""

    least: int | None = None
    """Pods, or members where there are sub-groups, that it takes to start; None: all members."""
    topology: str = ""
    """The name of the Topology that its constraints name; of several the outermost, or first."""
    join: Join | None = None
    """How several are inside one another."""
    parts: tuple[TreePart, ...] = ()
    """The leaves on each, where they are not in one tree."""
    constraint: Constraint = ANYWHERE
    sub_groups: tuple[SubGroup, ...] = ()
    flaw: str = ""
    """What of it is not valid; "" if it can be read."""
    node_pool: str = DEFAULT_POOL
    conditions: tuple[dict[str, Any], ...] = ()
    """The scheduling conditions."""


class _Spec(wire.Wire):
    min_member: int | None = None
    min_sub_group: int | None = None
    topology_constraint: TopologyConstraint | None = None
    sub_groups: msgspec.Raw = msgspec.Raw(b"null")


class _Status(wire.Wire):
    scheduling_conditions: list[dict[str, Any] | None] | None = None


class _PodGroup(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None
    status: msgspec.Raw = msgspec.Raw(b"null")  # if it cannot be read, the spec still is


_POD_GROUP = msgspec.json.Decoder(_PodGroup)
_SUB_GROUPS: msgspec.json.Decoder[list[WireSubGroup | None] | None] = msgspec.json.Decoder(
    list[WireSubGroup | None] | None
)
_STATUS: msgspec.json.Decoder[_Status | None] = msgspec.json.Decoder(_Status | None)


def decode_pod_group(raw: Json) -> PodGroupRecord:
    """Return the record of a PodGroup; of one that is not valid the `flaw` and no more of its spec.

    Raises: DecodeError naming the PodGroup and the field.
    """
    found = decoded(_POD_GROUP, raw, "PodGroup")
    metadata, spec = found.metadata or wire.Metadata(), found.spec or _Spec()
    parts = _parts(spec)
    flaw = next((each for each in _flaws(spec, parts) if each.is_fatal), None)
    record = PodGroupRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        node_pool=((metadata.labels or {}).get(NODE_POOL) or DEFAULT_POOL)[:LONGEST_POOL],
        conditions=_conditions(found.status),
    )
    if flaw is not None:
        where = f"PodGroup {metadata.namespace}/{metadata.name}"
        return msgspec.structs.replace(record, flaw=f"{where}: {flaw}")
    least = spec.min_sub_group
    if not parts.sub_groups:
        least = 1 if spec.min_member is None else spec.min_member
    trees = Trees.of(spec.topology_constraint, parts.sub_groups)
    return msgspec.structs.replace(
        record,
        least=least,
        topology=trees.outermost,
        join=trees.join,
        parts=trees.parts,
        constraint=constraints.constraint_of(spec.topology_constraint),
        sub_groups=sub_groups.sub_groups_of(parts.sub_groups),
    )


def check_pod_group(
    raw: Json, _before: Json | None = None, _known: Known = none_known
) -> CheckedObject:
    """What is wrong with a PodGroup of a user's.

    KAI's pod-grouper and Grove's operator write what the object says that owns it: refused, they
    would only try again, and the user would not be told.
    Raises: DecodeError naming the PodGroup and the field.
    """
    found = decoded(_POD_GROUP, raw, "PodGroup")
    metadata, spec = found.metadata or wire.Metadata(), found.spec or _Spec()
    if metadata.owner_references:
        return CheckedObject(iter(()))
    return CheckedObject(_flaws(spec, _parts(spec)))


def _conditions(raw: msgspec.Raw) -> tuple[dict[str, Any], ...]:
    """The scheduling conditions of a status; none if it cannot be read."""
    status = read_status(_STATUS, raw, _Status(), MOST_STATUS_BYTES) or _Status()
    return tuple(each for each in status.scheduling_conditions or () if each)


@dataclass(slots=True)
class _Parts:
    """What a spec declares of sub-groups; none where they cannot be read."""

    sub_groups: Sequence[WireSubGroup] = ()
    flaws: list[Flaw] = field(default_factory=list)


def _parts(spec: _Spec) -> _Parts:
    parts, name = _Parts(), "subGroups"
    if len(bytes(spec.sub_groups)) > MOST_BYTES:
        parts.flaws.append(too_long(name, MOST_BYTES))
        return parts
    try:
        found = _SUB_GROUPS.decode(spec.sub_groups) or []
    except (ValueError, RecursionError) as error:
        parts.flaws.append(Flaw(name, "Invalid value", str(error)))
        return parts
    if len(found) > MOST_SUB_GROUPS:
        parts.flaws.append(too_many(name, len(found), MOST_SUB_GROUPS))
    else:
        parts.sub_groups = [each or WireSubGroup() for each in found]
    return parts


def _flaws(spec: _Spec, parts: _Parts) -> Iterator[Flaw]:
    return of_spec(_spec_flaws(spec, parts))


def _spec_flaws(spec: _Spec, parts: _Parts) -> Iterator[Flaw]:
    yield from parts.flaws
    tops = sum(not each.parent for each in parts.sub_groups)
    if not parts.flaws:
        yield from sub_groups.minimum_flaws(spec.min_member, spec.min_sub_group, tops, "")
    yield from constraints.flaws_of(spec.topology_constraint, "topologyConstraint")
    yield from sub_groups.flaws_of(parts.sub_groups)
    yield from sub_groups.leaf_flaws(parts.sub_groups, spec.min_sub_group)
    yield from Trees.of(spec.topology_constraint, parts.sub_groups).flaws(spec.min_sub_group)


RESOURCE = Resource(KIND, PATH, PodGroupRecord, decode_pod_group, is_optional=True)
RULES = ObjectRules(GROUP, "PodGroup", check_pod_group)
