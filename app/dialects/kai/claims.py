"""Where a pod belongs in its PodGroup.

its sub-group, where the PodGroup has some    its segment, where its template is cut into some
else the leaf without a name: all pods of the PodGroup

KAI's pod-grouper makes the PodGroup when it sees a pod, and names it on the pod after that. Until
then the pod waits, as a gang of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from app.dialects.flaw import Flaw
from app.dialects.gang_objects import object_of, said_of
from app.dialects.kai import keys, segments
from app.dialects.kai.pod_groups import PodGroupRecord
from app.dialects.kai.sub_groups import SubGroup
from app.dialects.rules import annotation, forbidden, invalid, label, required
from app.dialects.spec import Claim, GangKey, Said
from app.kube.core.objects import ObjectRecord, PodRecord

SOURCE = "kai"


def gang_of(pod: PodRecord) -> GangKey | None:
    """The gang of a pod's PodGroup; None: it names none."""
    name = keys.group_of(pod)
    return GangKey(pod.namespace, name, SOURCE) if name else None


def claim(
    pod: PodRecord, objects: Collection[ObjectRecord], grouped: Collection[str]
) -> Claim | None:
    """Where the pod belongs, as its PodGroup says; None for a pod of none.

    `grouped`: the schedulers whose pods the pod-grouper takes.
    """
    gang = gang_of(pod)
    if gang is None:
        return _without_group(pod, grouped)
    if pod.problem:
        return Claim(gang, flaw=pod.problem)
    group = group_in(gang, objects)
    if group is None:
        return Claim(gang)
    if group.flaw:
        return Claim(gang, flaw=group.flaw)
    said = said_of(pod)
    if group.sub_groups:
        flaw = _sub_group_flaw(pod, group.sub_groups)
        if flaw is not None:
            return Claim(gang, flaw=f"pod {pod.name}: {flaw}")
        return Claim(gang, pod.labels[keys.SUB_GROUP], said=said)
    return _segment(pod, gang, group, said)


def asked_in(pod: PodRecord, objects: Collection[ObjectRecord]) -> str:
    """Where its user has a pod placed; "": the pod-grouper may have grouped it, as it does any."""
    key = keys.for_grouper(pod.annotations)
    if key:
        return f"metadata.{annotation(key)}"
    gang = gang_of(pod)
    group = gang and group_in(gang, objects)
    return f"metadata.{annotation(keys.GROUP_NAME)}" if group and group.topology else ""


def flaws_of(pod: PodRecord, grouped: Collection[str]) -> Iterator[Flaw]:
    """Every rule that a pod breaks, or the template of some."""
    yield from segments.flaws_of(pod)
    key = keys.for_grouper(pod.annotations)
    if key and not keys.group_of(pod) and not _is_grouped(pod, grouped):
        text = (
            f"only KAI's pod-grouper reads it, and the pod names no PodGroup in {keys.GROUP_NAME}"
        )
        yield forbidden(annotation(key), text)


def owner_flaw(
    annotations: Mapping[str, str], scheduler: str, grouped: Collection[str]
) -> Flaw | None:
    """The annotation of what makes pods of this scheduler that nothing reads, if it has one."""
    key = keys.for_grouper(annotations)
    if not key or scheduler in grouped or keys.is_skipped(annotations):
        return None
    text = f"only KAI's pod-grouper reads it, and it takes no pods of scheduler {scheduler}"
    return forbidden(annotation(key), text)


def group_in(gang: GangKey, objects: Collection[ObjectRecord]) -> PodGroupRecord | None:
    """The PodGroup of a gang; of two while one is made anew, either."""
    if gang.epoch:
        return None  # of a pod that has none yet
    return object_of(gang, PodGroupRecord, objects)


def _is_grouped(pod: PodRecord, grouped: Collection[str]) -> bool:
    return pod.scheduler in grouped and not keys.is_skipped(pod.annotations)


def _without_group(pod: PodRecord, grouped: Collection[str]) -> Claim | None:
    """What a pod that names no PodGroup waits for; None: for nothing."""
    alone = GangKey(pod.namespace, pod.name, SOURCE, epoch=pod.uid or pod.name)
    if _is_grouped(pod, grouped):
        return Claim(alone)
    flaw = next(flaws_of(pod, grouped), None)
    return None if flaw is None else Claim(alone, flaw=f"pod {pod.name}: {flaw}")


def _sub_group_flaw(pod: PodRecord, sub_groups: tuple[SubGroup, ...]) -> Flaw | None:
    """Why a pod is in no leaf of its PodGroup's tree."""
    name, field = pod.labels.get(keys.SUB_GROUP, ""), label(keys.SUB_GROUP)
    named = next((each for each in sub_groups if each.name == name), None)
    if not name:
        return required(field, "its PodGroup has sub-groups, and the pod is in none")
    if named is None:
        return invalid(field, name, "its PodGroup has no sub-group of this name")
    if not named.is_leaf:
        return invalid(field, name, "pods are in the sub-groups of this sub-group")
    return None


def _segment(pod: PodRecord, gang: GangKey, group: PodGroupRecord, said: Said) -> Claim:
    """Where a pod belongs whose PodGroup has no sub-groups."""
    flaw = next(segments.flaws_of(pod), None) or segments.flaw_in(pod, group)
    if flaw is not None:
        return Claim(gang, flaw=f"pod {pod.name}: {flaw}")
    return segments.claim(pod, gang, said)
