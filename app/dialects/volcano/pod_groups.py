"""PodGroups of scheduling.volcano.sh: how many pods start together, and how close to each other.

    minMember, minTaskMember       what it takes to start; of each task
    networkTopology                of all its pods
    subGroupPolicy                 sub-groups by values of labels, each with a size and a topology

Source: volcano staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go (v1.14).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from app.dialects.spec import Within
from app.dialects.volcano.keys import LONGEST_NAME
from app.dialects.volcano.selectors import requirements
from app.kube.core import wire
from app.kube.core.decode import Json, decoded
from app.kube.core.objects import ObjectRecord
from app.kube.watch.resource import Resource
from app.labels import EVERYTHING, LabelSelector

KIND = "PodGroup.scheduling.volcano.sh"  # two other API groups have a kind of that name
PATH = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
# An object may have 1.5 MiB. Each policy is compared with every pod of the group.
MOST_POLICIES = 32
MOST_KEYS = MOST_REQUIREMENTS = 8  # of one policy
MOST_TASKS = 256
MOST_BYTES = 32 * 1024  # of what is declared of sub-groups, and of tasks …
MOST_STATUS_BYTES = 8 * 1024  # … and of a status: Volcano writes two conditions


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

    least: int = 0
    """How many pods it takes to start."""
    least_of: Mapping[str, int] = {}
    """The same by task."""
    within: Within | None = None
    policies: tuple[SubGroupPolicy, ...] = ()
    flaw: str = ""
    """What of it is not valid; "" if it can be read."""
    phase: str = ""
    counted: tuple[int, int, int] = (0, 0, 0)
    """Running, succeeded and failed pods, as its status has them."""
    conditions: tuple[dict[str, Any], ...] = ()


class _NetworkTopology(wire.Wire):
    mode: wire.Text = None
    highest_tier_allowed: int | None = None
    highest_tier_name: wire.Text = None


class _Policy(wire.Wire):
    name: wire.Text = None
    network_topology: _NetworkTopology | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: wire.LabelSelector | None = None
    match_label_keys: wire.Texts = None


class _Spec(wire.Wire):
    min_member: int | None = None
    min_task_member: msgspec.Raw = msgspec.Raw(b"null")
    network_topology: _NetworkTopology | None = None
    sub_group_policy: msgspec.Raw = msgspec.Raw(b"null")


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
    """Return the record of a PodGroup; one that is not valid has a `flaw`.

    Raises: DecodeError naming the PodGroup and the field.
    """
    found = decoded(_POD_GROUP, raw, "PodGroup")
    metadata, spec = found.metadata or wire.Metadata(), found.spec or _Spec()
    status = _status(found.status)
    least_of: Mapping[str, int] = {}
    within: Within | None = None
    policies: tuple[SubGroupPolicy, ...] = ()
    flaw = ""
    try:
        within = _within(spec.network_topology, "spec.networkTopology")
        least_of = _tasks(spec.min_task_member)
        policies = _policies(spec.sub_group_policy)
    except ValueError as error:
        flaw = f"PodGroup {metadata.namespace}/{metadata.name}: {error}"
    return PodGroupRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        least=max(spec.min_member or 0, 0),
        least_of=least_of,
        within=within,
        policies=policies,
        flaw=flaw,
        phase=status.phase or "",
        counted=(status.running or 0, status.succeeded or 0, status.failed or 0),
        conditions=tuple(each for each in status.conditions or () if each),
    )


def _status(raw: msgspec.Raw) -> _Status:
    """What the status says; nothing if it is none."""
    if len(bytes(raw)) > MOST_STATUS_BYTES:
        return _Status()
    try:
        return _STATUS.decode(raw) or _Status()
    except (ValueError, RecursionError):
        return _Status()


def _within(topology: _NetworkTopology | None, where: str) -> Within | None:
    """Raises: ValueError saying what is wrong with it."""
    if topology is None:
        return None
    tier, name = topology.highest_tier_allowed, topology.highest_tier_name or ""
    mode = topology.mode or "hard"
    if mode == "soft":
        return Within(is_soft=True)
    if mode != "hard":
        raise ValueError(f"{where}.mode: Unsupported value: {mode[:64]!r}: it is hard or soft")
    if tier is not None and name:
        raise ValueError(f"{where}: highestTierAllowed and highestTierName may not both be set")
    if tier is None and not name:
        raise ValueError(
            f"{where}: Required value: hard mode needs highestTierAllowed or highestTierName"
        )
    if tier is not None and tier < 0:
        raise ValueError(f"{where}.highestTierAllowed: Invalid value: {tier}: it is 0 or more")
    return Within(tier, name)


def _tasks(raw: msgspec.Raw) -> Mapping[str, int]:
    """Raises: ValueError saying what is wrong with them."""
    tasks = _part(_TASKS, raw, "spec.minTaskMember") or {}
    if len(tasks) > MOST_TASKS:
        raise ValueError(f"spec.minTaskMember: {len(tasks)} tasks, and {MOST_TASKS} are read")
    return {name: max(least or 0, 0) for name, least in tasks.items()}


def _policies(raw: msgspec.Raw) -> tuple[SubGroupPolicy, ...]:
    """Raises: ValueError saying what is wrong with them."""
    policies = _part(_POLICIES, raw, "spec.subGroupPolicy") or []
    if len(policies) > MOST_POLICIES:
        raise ValueError(
            f"spec.subGroupPolicy: {len(policies)} policies, and {MOST_POLICIES} are read"
        )
    found: dict[str, SubGroupPolicy] = {}
    for at, each in enumerate(policies):
        policy, where = each or _Policy(), f"spec.subGroupPolicy[{at}]"
        if (policy.name or "") in found:
            raise ValueError(f"{where}.name: Duplicate value: {(policy.name or '')[:64]!r}")
        found[policy.name or ""] = _policy(policy, where)
    return tuple(found.values())


def _policy(policy: _Policy, where: str) -> SubGroupPolicy:
    """Raises: ValueError saying what is wrong with it."""
    keys = tuple(key for key in policy.match_label_keys or () if key)
    if len(keys) > MOST_KEYS:
        raise ValueError(f"{where}.matchLabelKeys: {len(keys)} keys, and {MOST_KEYS} are read")
    if len(policy.name or "") > LONGEST_NAME:
        raise ValueError(f"{where}.name: Too long: may not be more than {LONGEST_NAME} bytes")
    size = 1 if policy.sub_group_size is None else policy.sub_group_size
    if size < 1:
        raise ValueError(f"{where}.subGroupSize: Invalid value: {size}: it is 1 or more")
    try:
        selector = LabelSelector(tuple(requirements(policy.label_selector or wire.LabelSelector())))
    except ValueError as error:
        raise ValueError(f"{where}.labelSelector.{error}") from None
    if len(selector.requirements) > MOST_REQUIREMENTS:
        raise ValueError(
            f"{where}.labelSelector: {len(selector.requirements)} requirements, and"
            f" {MOST_REQUIREMENTS} are read"
        )
    return SubGroupPolicy(
        policy.name or "",
        size,
        max(policy.min_sub_groups or 0, 0),
        selector,
        keys,
        _within(policy.network_topology, f"{where}.networkTopology"),
    )


def _part(decoder: msgspec.json.Decoder[Any], raw: msgspec.Raw, where: str) -> Any:
    """A part of the spec, unless it is too long to be read at once.

    Raises: ValueError naming the field.
    """
    size = len(bytes(raw))
    if size > MOST_BYTES:
        raise ValueError(f"{where}: Too long: {size} bytes, and {MOST_BYTES} are read")
    try:
        return decoder.decode(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: {error}") from None


RESOURCE = Resource(KIND, PATH, PodGroupRecord, decode_pod_group, is_optional=True)
