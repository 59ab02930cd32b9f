"""PodGroups of scheduling.volcano.sh: how many pods start together, and how close to each other.

    minMember, minTaskMember       what it takes to start; of each task
    networkTopology                of all its pods
    subGroupPolicy                 sub-groups by values of labels, each with a size and a topology

Source: volcano staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go (v1.14).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.dialects.dialect import CheckedObject, Known, ObjectRules, none_known
from app.dialects.flaw import Flaw
from app.dialects.gang_objects import read_status
from app.dialects.rules import (
    duplicate,
    invalid,
    of_spec,
    required,
    too_long,
    too_many,
    too_small,
)
from app.dialects.spec import Within
from app.dialects.volcano import network_topology, selectors
from app.dialects.volcano.keys import LONGEST_NAME
from app.dialects.volcano.network_topology import NetworkTopology
from app.dialects.volcano.queues import amounts_of
from app.kube.core.objects import Amounts, ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, controller, decoded
from app.kube.watch.resource import Resource
from app.labels import EVERYTHING, LabelSelector, is_label_key

GROUP = "scheduling.volcano.sh"
KIND = f"PodGroup.{GROUP}"  # two other API groups have a kind of that name
PATH = f"/apis/{GROUP}/v1beta1/podgroups"
# An object may have 1.5 MiB. Each policy is compared with every pod of the group.
MOST_POLICIES = 32
MOST_KEYS = MOST_REQUIREMENTS = 8  # of one policy
MOST_TASKS = 256
MOST_BYTES = 32 * 1024  # of what is declared of sub-groups, and of tasks …
MOST_STATUS_BYTES = 8 * 1024  # … and of a status: Volcano writes two conditions
LONGEST_UID = 63  # characters; the API server makes 36
DEFAULT_QUEUE = "default"


@dataclass(frozen=True, slots=True)
class SubGroupPolicy:
    """Pods with equal values of `keys` are a sub-group of `size`, of which `least` must start."""

    name: str
    size: int = 1
    least: int = 0
    selector: LabelSelector = EVERYTHING
    keys: tuple[str, ...] = ()
    within: Within | None = None

    def values_of(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """What tells the sub-group of a pod with these labels; () for a pod of none."""
        values = tuple(labels.get(key, "") for key in self.keys)
        return values if all(values) and self.selector.matches(labels) else ()


class PodGroupRecord(ObjectRecord, frozen=True, gc=False):
    """One PodGroup, with what its status says already."""

    made_for: str = ""
    """The uid of the object that a controller has made it for; "": it was made by hand."""
    least: int = 0
    """How many pods it takes to start."""
    least_of: Mapping[str, int] = {}
    """The same by task."""
    within: Within | None = None
    policies: tuple[SubGroupPolicy, ...] = ()
    flaw: str = ""
    """What of it is not valid; "" if it can be read."""
    queue: str = DEFAULT_QUEUE
    least_requests: Amounts = ()
    """What it counts for in its queue: minResources, () where it says none."""
    created: str = ""
    """When it was made, as the API server writes times."""
    phase: str = ""
    counted: tuple[int, int, int] = (0, 0, 0)
    """Running, succeeded and failed pods, as its status has them."""
    conditions: tuple[dict[str, Any], ...] = ()


class _Policy(wire.Wire):
    name: wire.Text = None
    network_topology: NetworkTopology | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: wire.LabelSelector | None = None
    match_label_keys: wire.Texts = None


class _Spec(wire.Wire):
    min_member: int | None = None
    min_task_member: msgspec.Raw = msgspec.Raw(b"null")
    network_topology: NetworkTopology | None = None
    sub_group_policy: msgspec.Raw = msgspec.Raw(b"null")
    queue: wire.Text = None
    min_resources: msgspec.Raw = msgspec.Raw(b"null")


class _Status(wire.Wire):
    phase: wire.Text = None
    running: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    conditions: list[dict[str, Any] | None] | None = None


class _PodGroup(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None
    status: msgspec.Raw = msgspec.Raw(b"null")  # if it cannot be read, the spec still is


_POD_GROUP = msgspec.json.Decoder(_PodGroup)
_POLICIES: msgspec.json.Decoder[list[_Policy | None] | None] = msgspec.json.Decoder(
    list[_Policy | None] | None
)
_TASKS: msgspec.json.Decoder[dict[str, int | None] | None] = msgspec.json.Decoder(
    dict[str, int | None] | None
)
_STATUS: msgspec.json.Decoder[_Status | None] = msgspec.json.Decoder(_Status | None)


def decode_pod_group(raw: Json) -> PodGroupRecord:
    """Return the record of a PodGroup; of one that is not valid the `flaw` and no more of its spec.

    Raises: DecodeError naming the PodGroup and the field.
    """
    found = decoded(_POD_GROUP, raw, "PodGroup")
    metadata, spec = found.metadata or wire.Metadata(), found.spec or _Spec()
    owner, status, parts = controller(metadata), _status(found.status), _parts(spec)
    flaw = next((each for each in _flaws(spec, parts) if each.is_fatal), None)
    within: Within | None = None
    policies: tuple[SubGroupPolicy, ...] = ()
    least_of: Mapping[str, int] = {}
    if flaw is None:
        within = network_topology.within_of(spec.network_topology)
        policies = tuple(map(_policy, parts.policies))
        least_of = {name: max(least or 0, 0) for name, least in parts.tasks.items()}
    return PodGroupRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        made_for=owner.uid if owner is not None and len(owner.uid) <= LONGEST_UID else "",
        least=max(spec.min_member or 0, 0),
        least_of=least_of,
        within=within,
        policies=policies,
        flaw=f"PodGroup {metadata.namespace}/{metadata.name}: {flaw}" if flaw else "",
        queue=parts.queue,
        least_requests=parts.least_requests,
        created=metadata.creation_timestamp or "",
        phase=status.phase or "",
        counted=(status.running or 0, status.succeeded or 0, status.failed or 0),
        conditions=tuple(each for each in status.conditions or () if each),
    )


def check_pod_group(
    raw: Json, _before: Json | None = None, _known: Known = none_known
) -> CheckedObject:
    """What is wrong with a PodGroup of a user's.

    A controller writes what the object says that it made it for: refused, it would only try again,
    and the user would not be told.
    Raises: DecodeError naming the PodGroup and the field.
    """
    found = decoded(_POD_GROUP, raw, "PodGroup")
    metadata, spec = found.metadata or wire.Metadata(), found.spec or _Spec()
    if controller(metadata) is not None:
        return CheckedObject(iter(()))
    return CheckedObject(_flaws(spec, _parts(spec)))


def _status(raw: msgspec.Raw) -> _Status:
    """What the status says; nothing if it is none."""
    return read_status(_STATUS, raw, _Status(), MOST_STATUS_BYTES) or _Status()


@dataclass(slots=True)
class _Parts:
    """What a spec declares of tasks and sub-groups; nothing of a part that cannot be read."""

    tasks: Mapping[str, int | None] = field(default_factory=dict)
    policies: Sequence[_Policy] = ()
    queue: str = DEFAULT_QUEUE
    least_requests: Amounts = ()
    flaws: list[Flaw] = field(default_factory=list)


def _parts(spec: _Spec) -> _Parts:
    parts = _Parts()
    tasks = _part(_TASKS, spec.min_task_member, "minTaskMember", parts.flaws) or {}
    policies = _part(_POLICIES, spec.sub_group_policy, "subGroupPolicy", parts.flaws) or []
    if len(tasks) > MOST_TASKS:
        parts.flaws.append(too_many("minTaskMember", len(tasks), MOST_TASKS))
    else:
        parts.tasks = tasks
    if len(policies) > MOST_POLICIES:
        parts.flaws.append(too_many("subGroupPolicy", len(policies), MOST_POLICIES))
    else:
        parts.policies = [each or _Policy() for each in policies]
    if len(spec.queue or "") > LONGEST_NAME:
        parts.flaws.append(too_long("queue", LONGEST_NAME))
    else:
        parts.queue = spec.queue or DEFAULT_QUEUE
    parts.least_requests, flaw = amounts_of(spec.min_resources, "minResources")
    if flaw is not None:
        parts.flaws.append(flaw)
    return parts


def _part(decoder: msgspec.json.Decoder[Any], raw: msgspec.Raw, name: str, to: list[Flaw]) -> Any:
    """A part of the spec, unless it is too long to be read at once, or something else."""
    if len(bytes(raw)) > MOST_BYTES:
        to.append(too_long(name, MOST_BYTES))
        return None
    try:
        return decoder.decode(raw)
    except (ValueError, RecursionError) as error:
        to.append(Flaw(name, "Invalid value", str(error)))
        return None


def _flaws(spec: _Spec, parts: _Parts) -> Iterator[Flaw]:
    return of_spec(_spec_flaws(spec, parts))


def _spec_flaws(spec: _Spec, parts: _Parts) -> Iterator[Flaw]:
    yield from network_topology.flaws_of(spec.network_topology, "networkTopology")
    yield from parts.flaws
    if spec.min_member is not None and spec.min_member < 0:
        yield too_small("minMember", spec.min_member, 0, is_fatal=False)
    for name, least in parts.tasks.items():
        if least is not None and least < 0:
            yield too_small(f"minTaskMember[{name[:63]}]", least, 0, is_fatal=False)
    names: set[str] = set()
    for at, policy in enumerate(parts.policies):
        name, where = policy.name or "", f"subGroupPolicy[{at}]"
        if name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)
        yield from _policy_flaws(policy, where)


def _policy_flaws(policy: _Policy, where: str) -> Iterator[Flaw]:
    if len(policy.name or "") > LONGEST_NAME:
        yield too_long(f"{where}.name", LONGEST_NAME)
    size, least = policy.sub_group_size, policy.min_sub_groups or 0
    if size is not None and size < 1:
        yield too_small(f"{where}.subGroupSize", size, 1)
    if least < 0:
        yield too_small(f"{where}.minSubGroups", least, 0, is_fatal=False)
    yield from selectors.flaws_of(
        policy.label_selector, f"{where}.labelSelector", MOST_REQUIREMENTS
    )
    yield from _key_flaws(_keys(policy), least, f"{where}.matchLabelKeys")
    yield from network_topology.flaws_of(policy.network_topology, f"{where}.networkTopology")


def _key_flaws(keys: tuple[str, ...], least: int, where: str) -> Iterator[Flaw]:
    if len(keys) > MOST_KEYS:
        yield too_many(where, len(keys), MOST_KEYS)
        return
    for at, key in enumerate(keys):
        if not is_label_key(key):
            yield invalid(f"{where}[{at}]", key, selectors.KEY, is_fatal=False)
    if not keys and least > 0:
        text = "no pod is in a sub-group without them, and minSubGroups must start"
        yield required(where, text, is_fatal=False)


def _keys(policy: _Policy) -> tuple[str, ...]:
    return tuple(key for key in policy.match_label_keys or () if key)


def _policy(policy: _Policy) -> SubGroupPolicy:
    """The policy, none of whose flaws is fatal."""
    return SubGroupPolicy(
        policy.name or "",
        1 if policy.sub_group_size is None else policy.sub_group_size,
        max(policy.min_sub_groups or 0, 0),
        selectors.selector_of(policy.label_selector),
        _keys(policy),
        network_topology.within_of(policy.network_topology),
    )


RESOURCE = Resource(KIND, PATH, PodGroupRecord, decode_pod_group, is_optional=True)
RULES = ObjectRules(GROUP, "PodGroup", check_pod_group)
