"""PodGroups of scheduling.k8s.io: how many pods start together, and in one domain of which level.

    v1alpha2  Kubernetes 1.36    disruptionMode is "Pod" or "PodGroup"
    v1beta1   Kubernetes 1.37    disruptionMode is {single: {}} or {all: {}}; parents of PodGroups

Both versions are read alike, but for what is written back (`status.py`). The API server checks what
users write; the flaws here are what it takes and Corral cannot keep, or what a later version may
have. What is not read decides nothing here: workloadRef and podGroupTemplateRef name where the
PodGroup was made from, priority and preemptionPolicy count on the pods, resourceClaims are theirs.
Source: kubernetes staging/src/k8s.io/api/scheduling/v1alpha2/types.go (v1.36) and v1beta1/types.go
(v1.37); KEP-4671, KEP-5732.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from app.dialects.gang_objects import read_status
from app.dialects.kueue.claims import read_annotations
from app.dialects.rules import forbidden, invalid, of_spec, required, too_many, too_small
from app.dialects.spec import ANYWHERE, MOST_PODS, Flaw
from app.kube.core import wire
from app.kube.core.decode import Json, Keep, decoded, kept, part
from app.kube.core.objects import ObjectRecord
from app.kube.watch.resource import Resource
from app.labels import is_label_key
from topology.model.request import Constraint, Slice

GROUP = "scheduling.k8s.io"
KIND = f"PodGroup.{GROUP}"  # two other API groups have a kind of that name
ALPHA, BETA = "v1alpha2", "v1beta1"
VERSIONS = (BETA, ALPHA)  # newest first
MOST_KEYS = 1  # of schedulingConstraints.topology
MOST_STATUS_BYTES = 8 * 1024  # kube-scheduler writes two conditions
_SPLIT = {"Pod": False, "PodGroup": True}  # disruptionMode -> whether the pods end together
_KEY = "must be the key of a node label, such as topology.kubernetes.io/rack"


class PodGroupRecord(ObjectRecord, frozen=True, gc=False):
    """One PodGroup, with the conditions in its status."""

    api: str = ""
    """The version of the API that it was read in."""
    generation: int = 0
    """How often its spec has changed."""
    least: int = 1
    """How many pods it takes to start; 1: it has the policy `basic`."""
    level: str = ""
    """The key of the node label that all its pods have one value of; "": none."""
    ends_together: bool | None = None
    """Whether all its pods are evicted when one is preempted; None: it does not say."""
    constraint: Constraint = ANYWHERE
    """What its annotations request for its pods besides …"""
    slices: tuple[Slice, ...] = ()
    """… and in slices of so many."""
    flaw: str = ""
    """What of it cannot be kept; "" if all of it can."""
    conditions: tuple[dict[str, Any], ...] = ()


class _Empty(wire.Wire):
    """An object without fields, where only its presence counts."""


class _Gang(wire.Wire):
    min_count: int | None = None


class _Policy(wire.Wire):
    basic: _Empty | None = None
    gang: _Gang | None = None


class _Topology(wire.Wire):
    key: wire.Text = None


class _Constraints(wire.Wire):
    topology: list[_Topology | None] | None = None


class _Mode(wire.Wire):
    single: _Empty | None = None
    all: _Empty | None = None


class _Spec(wire.Wire):
    scheduling_policy: _Policy | None = None
    scheduling_constraints: _Constraints | None = None
    disruption_mode: str | _Mode | None = None
    parent_composite_pod_group_name: wire.Text = None


class _Status(wire.Wire):
    conditions: list[dict[str, Any] | None] | None = None


class _Metadata(wire.Metadata):
    generation: int | None = None


class _PodGroup(wire.Wire):
    metadata: _Metadata | None = None
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")  # if it cannot be read, the spec still is


_POD_GROUP = msgspec.json.Decoder(_PodGroup)
_SPEC: msgspec.json.Decoder[_Spec | None] = msgspec.json.Decoder(_Spec | None)
_STATUS: msgspec.json.Decoder[_Status | None] = msgspec.json.Decoder(_Status | None)


def decode_pod_group(raw: Json, *, api: str, keep: Keep) -> PodGroupRecord:
    """Return the record of a PodGroup; of one with a flaw that, and no more of its spec.

    `api`: the version of the API that it was read in; in a list the objects do not say it.
    Raises: DecodeError naming the PodGroup and the field.
    """
    found = decoded(_POD_GROUP, raw, "PodGroup")
    metadata = found.metadata or _Metadata()
    spec = part(_SPEC, found.spec, "spec", "PodGroup", metadata) or _Spec()
    said, unclear = read_annotations(kept(metadata.annotations, keep))
    flaw = unclear or next(of_spec(_flaws(spec)), None)
    return PodGroupRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        api=api,
        generation=metadata.generation or 0,
        least=1 if flaw else _least(spec),
        level="" if flaw else _level(spec),
        ends_together=_ends_together(spec.disruption_mode),
        constraint=said.constraint,
        slices=said.slices,
        flaw=f"PodGroup {metadata.namespace}/{metadata.name}: {flaw}" if flaw else "",
        conditions=tuple(each for each in _status(found.status).conditions or () if each),
    )


def _status(raw: msgspec.Raw) -> _Status:
    """What the status says; nothing if it is none."""
    return read_status(_STATUS, raw, _Status(), MOST_STATUS_BYTES) or _Status()


def _least(spec: _Spec) -> int:
    policy = spec.scheduling_policy
    return (policy and policy.gang and policy.gang.min_count) or 1


def _level(spec: _Spec) -> str:
    constraints = spec.scheduling_constraints
    keys = (constraints and constraints.topology) or ()
    return next((each.key for each in keys if each is not None and each.key), "")


def _ends_together(mode: str | _Mode | None) -> bool | None:
    if isinstance(mode, _Mode):
        return True if mode.all is not None else False if mode.single is not None else None
    return _SPLIT.get(mode or "")


def _flaws(spec: _Spec) -> Iterator[Flaw]:
    """What of a spec cannot be kept; the fields are below it."""
    if spec.parent_composite_pod_group_name:
        text = "CompositePodGroups are not read, and what they require would not be kept"
        yield forbidden("parentCompositePodGroupName", text)
    policy = spec.scheduling_policy or _Policy()
    if (policy.basic is None) == (policy.gang is None):
        yield required("schedulingPolicy", "must have either basic or gang")
    elif policy.gang is not None:
        yield from _least_flaws(policy.gang.min_count or 0)
    keys = (spec.scheduling_constraints or _Constraints()).topology or ()
    if len(keys) > MOST_KEYS:
        yield too_many("schedulingConstraints.topology", len(keys), MOST_KEYS)
    for at, each in enumerate(keys[:MOST_KEYS]):
        key = (each and each.key) or ""
        if not is_label_key(key):
            yield invalid(f"schedulingConstraints.topology[{at}].key", key, _KEY)
    mode = spec.disruption_mode
    if mode and _ends_together(mode) is None:
        shown = mode if isinstance(mode, str) else ""
        yield invalid("disruptionMode", shown, "must be Pod or PodGroup, or have single or all")


def _least_flaws(least: int) -> Iterator[Flaw]:
    where = "schedulingPolicy.gang.minCount"
    if least < 1:
        yield too_small(where, least, 1)
    elif least > MOST_PODS:
        yield invalid(where, least, f"must be less than or equal to {MOST_PODS}")


def path_of(api: str) -> str:
    """Where a version of the API has all PodGroups."""
    return f"/apis/{GROUP}/{api}/podgroups"


def resource(keep: Keep) -> Resource:
    """All PodGroups, in the newest version that is served; of annotations those that `keep` says.

    An API server without the feature gate GenericWorkload serves none.
    """
    newest, *older = (
        Resource(
            KIND,
            path_of(api),
            PodGroupRecord,
            partial(decode_pod_group, api=api, keep=keep),
            is_optional=True,
        )
        for api in VERSIONS
    )
    return replace(newest, older=tuple(older))
