"""Vocabularies that workloads already speak, translated into our own. Pure.

Every label, annotation and CRD field name is spelled here and nowhere else:
`kueue.py` topology annotations, `pod_groups.py` groups of plain pods, `life.py` how those live on,
`corral.py` our own, `presets.py` well-known level labels. Of workloads: `jobs.py`, `job_sets.py`,
`leader_worker_sets.py`, `stateful_sets.py`, `kubeflow.py`.

| a pod with a topology annotation | its gang        | pod set        | numbered by      |
|----------------------------------|-----------------|----------------|------------------|
| in a pod group                   | the group       | role           | group pod index  |
| of a LeaderWorkerSet             | its group       | role           | worker index     |
| of a JobSet                      | the JobSet      | replicated Job | completion index |
| of a Kubeflow job                | that job        | replica type   | replica index    |
| of an MPIJob's launcher Job      | the MPIJob      | launcher       | replica index    |
| of a StatefulSet                 | the StatefulSet | -              | pod index        |
| of a Job                         | the Job         | -              | completion index |
| any other                        | it alone        | -              | -                |

The first row that holds counts. Groups need no annotation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator

from app.dialects import (
    corral,
    in_charge,
    job_sets,
    jobs,
    kubeflow,
    kueue,
    leader_worker_sets,
    life,
    pod_groups,
    stateful_sets,
)
from app.dialects.membership import Declared, GangKey, Membership, Mistake, Place
from app.kube.core.objects import JobRecord, PodRecord

KEPT = frozenset(
    (
        *kueue.KEPT,
        *in_charge.KEPT,
        *corral.KEPT,
        *life.KEPT,
        *pod_groups.KEPT,
        *jobs.KEPT,
        *job_sets.KEPT,
        *leader_worker_sets.KEPT,
        *stateful_sets.KEPT,
        *kubeflow.KEPT,
    )
)


_ALONE = Declared(1, "a pod of no group and no Job")


def is_kept(key: str) -> bool:
    """Whether a pod's label or annotation with this key is worth its memory."""
    return key in KEPT


def is_ours(pod: PodRecord, scheduler: str, *, kueue_manages: bool) -> bool:
    """Whether a pod is for the scheduler we extend ("": for any), and not in Kueue's charge."""
    return scheduler in ("", pod.scheduler) and not in_charge.is_kueues(
        pod.labels, pod.annotations, pod.gates, by_queue=kueue_manages
    )


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
            number = pod_groups.number(pod)
            return _membership(pod, Place(key, number, _role(pod), _group_size(pod)))
        if pod_groups.TOTAL_COUNT in pod.annotations:
            raise kueue.WrongAnnotation(
                f"annotation {pod_groups.TOTAL_COUNT}: set without {pod_groups.GROUP_NAME}"
            )
        if not kueue.asks_for_topology(pod.annotations):
            return None
        place = next(_places(pod), Place(key, declared=_ALONE))
        key = place.gang
        return _membership(pod, place)
    except kueue.WrongAnnotation as error:
        return Mistake(key, f"pod {pod.namespace}/{pod.name}: {error}")


def _places(pod: PodRecord) -> Iterator[Place]:
    """The pod's place in the gang of whoever made it.

    Raises: kueue.WrongAnnotation.
    """
    for place_of in (
        leader_worker_sets.place_of,
        job_sets.place_of,
        kubeflow.place_of,
        stateful_sets.place_of,
        jobs.place_of,
    ):
        place = place_of(pod)
        if place is not None:
            yield place


def _membership(pod: PodRecord, place: Place) -> Membership:
    """Raises: kueue.WrongAnnotation."""
    number, offset = place.number, kueue.index_offset(pod)
    return Membership(
        place.gang,
        place.declared,
        kueue.constraint(pod),
        kueue.slices(pod),
        number and dataclasses.replace(number, offset=offset),
        place.pod_set,
        kueue.pod_set_group(pod),
        life.life(pod),
    )


def _role(pod: PodRecord) -> str:
    """The pod's part in its group: what a driver calls it, else what tells templates apart.

    Raises: kueue.WrongAnnotation.
    """
    return life.role(pod) or pod.annotations.get(kueue.ROLE_HASH, "")


def _group_size(pod: PodRecord) -> Declared | None:
    """How many pods the pod's group has; None for a worker that leaves this to its driver.

    Raises: kueue.WrongAnnotation.
    """
    if life.SETS in pod.annotations:
        return Declared(life.total(pod), f"annotation {life.SETS}")
    if pod_groups.TOTAL_COUNT not in pod.annotations and life.role(pod):
        return None
    return pod_groups.total_count(pod)


def keys_of(record: JobRecord) -> Iterator[GangKey]:
    """The gangs whose size this workload has a say in."""
    yield from jobs.keys_of(record)
    yield from job_sets.keys_of(record)
    yield from leader_worker_sets.keys_of(record)
    yield from stateful_sets.keys_of(record)
    yield from kubeflow.keys_of(record)


def declared_by(key: GangKey, owners: Collection[JobRecord]) -> Declared | None:
    """How many members the workloads behind a gang declare; None if that is not known yet."""
    match key.source:
        case job_sets.SOURCE:
            return job_sets.declared_by(owners)
        case leader_worker_sets.SOURCE:
            return leader_worker_sets.declared_by(owners)
        case stateful_sets.SOURCE:
            return stateful_sets.declared_by(owners)
        case source if source in kubeflow.SOURCES:
            return kubeflow.declared_by(owners)
    return jobs.declared_by(owners)


__all__ = ["KEPT", "GangKey", "Membership", "Mistake", "corral", "is_kept", "read"]
