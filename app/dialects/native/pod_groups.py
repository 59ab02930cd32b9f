"""PodGroups of scheduling.k8s.io: how many pods start together, and in one domain of which level.

    v1alpha2            Kubernetes 1.36    disruptionMode is "Pod" or "PodGroup"
    v1alpha3, v1beta1   Kubernetes 1.37    {single: {}} or {all: {}}; parents of PodGroups

All versions are read alike, but for what is written back (`status.py`). The API server checks what
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

from app.dialects.flaw import Flaw
from app.dialects.kueue.annotations import POD_SET_GROUP, Strings
from app.dialects.kueue.claims import read_annotations
from app.dialects.native import scheduling
from app.dialects.native.scheduling import GROUP, LONGEST_NAME
from app.dialects.native.stored import Spec, read
from app.dialects.rules import of_spec
from app.dialects.spec import ANYWHERE, MOST_PODS
from app.kube.core.objects import ObjectRecord
from app.kube.decoding.decode import Json, Keep, kept
from app.kube.watch.resource import Resource
from topology.model.request import Constraint, Slice

KIND = f"PodGroup.{GROUP}"  # two other API groups have a kind of that name
ALPHA, LATER_ALPHA, BETA = "v1alpha2", "v1alpha3", "v1beta1"
VERSIONS = (BETA, LATER_ALPHA, ALPHA)  # newest first
NO_LEADER = "a PodGroup has no leader that is placed with its workers"


class PodGroupRecord(ObjectRecord, frozen=True, gc=False):
    """One PodGroup, with the conditions in its status."""

    api: str = ""
    """The version of the API that it was read in."""
    generation: int = 0
    """How often its spec has changed."""
    least: int = 1
    """How many pods it takes to start; 1: it has the policy `basic`."""
    is_basic: bool = True
    level: str = ""
    """The key of the node label that all its pods have one value of; "": none."""
    ends_together: bool | None = None
    """Whether all its pods are evicted when one is preempted; None: it does not say."""
    constraint: Constraint = ANYWHERE
    """What its annotations request for its pods besides …"""
    slices: tuple[Slice, ...] = ()
    """… and in slices of so many."""
    together: Constraint = ANYWHERE
    """What they request for all pods of its gang."""
    parent: str = ""
    """The name of the CompositePodGroup that it is inside; "": of none."""
    flaw: str = ""
    """What of it cannot be kept; "" if all of it can."""
    conditions: tuple[dict[str, Any], ...] = ()


def decode_pod_group(raw: Json, *, api: str, keep: Keep) -> PodGroupRecord:
    """Return the record of a PodGroup; of one with a flaw that, and no more of its spec.

    `api`: the version of the API that it was read in; in a list the objects do not say it.
    Raises: DecodeError naming the PodGroup and the field.
    """
    found, metadata, spec = read(raw, "PodGroup")
    annotations = kept(metadata.annotations, keep)
    said, _ = read_annotations(annotations)
    flaw = next(_flaws(spec, annotations), None)
    return PodGroupRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        api=api,
        generation=metadata.generation or 0,
        least=1 if flaw else _least(spec) or 1,
        is_basic=scheduling.is_basic(spec),
        level="" if flaw else scheduling.level_of(spec),
        ends_together=scheduling.ends_together(spec.disruption_mode),
        constraint=said.constraint,
        together=said.together,
        slices=said.slices,
        parent=(spec.parent_composite_pod_group_name or "")[:LONGEST_NAME],
        flaw=f"PodGroup {metadata.namespace}/{metadata.name}: {flaw}" if flaw else "",
        conditions=found.conditions,
    )


def flaws_of(raw: Json) -> Iterator[Flaw]:
    """What of a PodGroup cannot be kept, by itself.

    Raises: DecodeError naming the PodGroup and the field.
    """
    _, metadata, spec = read(raw, "PodGroup")
    yield from _flaws(spec, kept(metadata.annotations, lambda _key: True))


def _flaws(spec: Spec, annotations: Strings) -> Iterator[Flaw]:
    yield from scheduling.annotation_flaws(annotations, {POD_SET_GROUP: NO_LEADER})
    policy = spec.scheduling_policy
    yield from of_spec(scheduling.policy_flaws(policy, _least(spec), "minCount", MOST_PODS))
    yield from of_spec(scheduling.other_flaws(spec))


def _least(spec: Spec) -> int | None:
    policy = spec.scheduling_policy
    gang = None if policy is None else policy.gang
    return None if gang is None else gang.min_count


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
