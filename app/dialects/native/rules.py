"""What the webhook refuses of PodGroups, of CompositePodGroups and of the `scheduling` of a Job.

The same that pods would wait for, where it is written: Kubernetes' Job controller makes a PodGroup
of what a Job says, and would make it again. So what a controller has made is not looked at. What
contradicts in objects that are inside one another is only known once all of them are there.
While kube-scheduler starts their pods (`native_pod_groups: off`), PodGroups are its business, and
of a Job only what it would not keep is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from app.dialects.dialect import (
    CheckedObject,
    Known,
    ObjectRules,
    PodSetClaim,
    TemplateOwner,
    none_known,
)
from app.dialects.flaw import Flaw
from app.dialects.kueue import annotations as keys_of_topology
from app.dialects.native import composites, gangs, pod_groups, scheduling
from app.dialects.native.scheduling import GROUP, LONGEST_NAME, Scheduling
from app.dialects.rules import forbidden
from app.dialects.spec import MOST_PODS
from app.errors import DecodeError
from app.kube.core.objects import PodRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decode_pod, decoded

JOB = ("batch", "Job")  # group and kind


class _Owned(wire.Wire):
    metadata: wire.Metadata | None = None


class _JobSpec(wire.Wire):
    scheduling: Scheduling | None = None


_OWNED = msgspec.json.Decoder(_Owned)


def check_pod_group(
    raw: Json, _before: Json | None = None, _known: Known = none_known
) -> CheckedObject:
    """What is wrong with a PodGroup of a user's. Raises: DecodeError."""
    return CheckedObject(iter(()) if _is_made(raw, "PodGroup") else pod_groups.flaws_of(raw))


def check_composite(
    raw: Json, _before: Json | None = None, _known: Known = none_known
) -> CheckedObject:
    """What is wrong with a CompositePodGroup of a user's. Raises: DecodeError."""
    return CheckedObject(iter(()) if _is_made(raw, composites.KIND) else composites.flaws_of(raw))


RULES = (
    ObjectRules(GROUP, "PodGroup", check_pod_group),
    ObjectRules(GROUP, composites.KIND, check_composite),
)


def job_flaws(owner: TemplateOwner, *, is_on: bool) -> Iterator[tuple[PodSetClaim, Flaw]]:
    """What is wrong with the `scheduling` of a Job whose pods are ours."""
    spec, metadata = owner.content.get("spec"), owner.content.get("metadata")
    is_made = isinstance(metadata, dict) and bool(metadata.get("ownerReferences"))
    if (owner.group, owner.kind) != JOB or is_made or not isinstance(spec, dict):
        return
    try:
        said = msgspec.convert(spec, _JobSpec).scheduling
    except msgspec.ValidationError:
        return  # the API server refuses it
    for each in owner.pod_sets if said is not None else ():
        pod = _pod_of(spec.get("template"))
        for flaw in _job_flaws(said, pod, is_on=is_on) if pod is not None and said else ():
            yield replace(each, path="spec"), flaw


def _job_flaws(said: Scheduling, pod: PodRecord, *, is_on: bool) -> Iterator[Flaw]:
    """Of what it says, and the pods of its template.

    A Job that says no minCount starts with its parallelism. Source: KEP-5547 "Job API Changes".
    """
    text = gangs.contradicts(pod, is_on=is_on)
    if text:
        yield forbidden("scheduling", text)
    if is_on and pod.pod_group:
        text = f"its template names PodGroup {pod.pod_group[:LONGEST_NAME]}, and none is made of it"
        yield forbidden("scheduling", text)
    policy = said.scheduling_policy
    asked = keys_of_topology.asking(pod.annotations)
    if is_on and not text and asked and policy is not None and policy.basic is not None:
        text = f"may not be set together with {asked}, for which all pods start together"
        yield forbidden("scheduling.schedulingPolicy.basic", text)
    for flaw in _scheduling_flaws(said) if is_on else ():
        yield replace(flaw, field=f"scheduling.{flaw.field}")


def _scheduling_flaws(said: Scheduling) -> Iterator[Flaw]:
    policy = said.scheduling_policy
    if policy is not None:
        least = policy.gang.min_count if policy.gang is not None else None
        least = 1 if least is None else least
        yield from scheduling.policy_flaws(policy, least, "minCount", MOST_PODS)
    yield from scheduling.other_flaws(said)


def _pod_of(template: object) -> PodRecord | None:
    """A pod of a template; None: no pod can be made of it."""
    try:
        return decode_pod(msgspec.json.encode(template), lambda _key: True)
    except DecodeError:
        return None


def _is_made(raw: Json, kind: str) -> bool:
    """Whether a controller has made the object."""
    metadata = decoded(_OWNED, raw, kind).metadata
    return bool(metadata is not None and metadata.owner_references)
