"""Vocabularies that workloads already speak, translated into our own. Pure.

Every label, annotation and CRD field name is spelled here and nowhere else:
`kueue.py` topology annotations, `pod_groups.py` groups of plain pods, `jobs.py` batch Jobs,
`corral.py` our own, `presets.py` well-known level labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from app.dialects import corral, jobs, kueue, pod_groups
from app.dialects.membership import Declared, GangKey, Membership, Mistake, Number
from app.kube.objects import JobRecord, PodRecord

KEPT = frozenset(
    (
        *kueue.MODES,
        *kueue.SLICES,
        *kueue.NOT_ENFORCED,
        *corral.KEPT,
        pod_groups.GROUP_NAME,
        pod_groups.TOTAL_COUNT,
        pod_groups.POD_INDEX,
        jobs.COMPLETION_INDEX,
    )
)


_ALONE = Declared(1, "a pod of no group and no Job")


def is_kept(key: str) -> bool:
    """Whether a pod's label or annotation with this key is worth its memory."""
    return key in KEPT


def read(pod: PodRecord) -> Membership | Mistake | None:
    """The gang this pod belongs to, what is wrong with its claim, or None for an ordinary pod.

    A group's name wins over an owning Job; a pod with a topology annotation and neither is a gang
    of its own.
    """
    key = GangKey(pod.namespace, pod.name, "pod", pod.uid)
    try:
        group = pod_groups.group_name(pod)
        if group:
            key = GangKey(pod.namespace, group, "group")
            return _membership(pod, key, pod_groups.total_count(pod))
        if pod_groups.TOTAL_COUNT in pod.annotations:
            raise kueue.WrongAnnotation(
                f"annotation {pod_groups.TOTAL_COUNT}: set without {pod_groups.GROUP_NAME}"
            )
        if not kueue.asks_for_topology(pod):
            return None
        job = jobs.owning_job(pod)
        if job is None:
            return _membership(pod, key, _ALONE)
        key = GangKey(pod.namespace, job.name, "job", job.uid)
        return _membership(pod, key, None)
    except kueue.WrongAnnotation as error:
        return Mistake(key, f"pod {pod.namespace}/{pod.name}: {error}")


def _membership(pod: PodRecord, key: GangKey, declared: Declared | None) -> Membership:
    """Raises: kueue.WrongAnnotation."""
    constraint, slices = kueue.constraint(pod), kueue.slices(pod)
    return Membership(key, declared, constraint, slices, _number(pod))


def keys_of(job: JobRecord) -> Iterator[GangKey]:
    """The gangs whose size this Job has a say in."""
    yield GangKey(job.namespace, job.name, "job", job.uid)


def declared_by(key: GangKey, owners: Collection[JobRecord]) -> Declared | None:
    """How many members the gang's owning Jobs declare; None if that is not known yet."""
    for job in owners:
        return jobs.members(job)
    return None


def _number(pod: PodRecord) -> Number | None:
    """The pod's index in its gang; anything that is no small whole number is none."""
    for where, key in (
        (pod.labels, pod_groups.POD_INDEX),
        (pod.labels, jobs.COMPLETION_INDEX),
        (pod.annotations, jobs.COMPLETION_INDEX),
    ):
        text = where.get(key, "")
        if text.isascii() and text.isdecimal() and len(text) <= 9:
            return Number(int(text))
    return None


__all__ = ["KEPT", "GangKey", "Membership", "Mistake", "corral", "is_kept", "read"]
