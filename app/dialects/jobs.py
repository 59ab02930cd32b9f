"""Gangs that a batch/v1 Job owns: its pods with a topology annotation start together."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from app.dialects import kueue
from app.dialects.membership import Declared, GangKey, Number, Place
from app.kube.core.objects import JobRecord, Owner, PodRecord

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
KEPT = (COMPLETION_INDEX,)
SOURCE = "job"


def place_of(pod: PodRecord) -> Place | None:
    """The pod's place in the gang of its Job; None: no Job owns it."""
    job = owning_job(pod)
    if job is None:
        return None
    index = completion_index(pod)
    number = None if index is None else Number(index)
    return Place(GangKey(pod.namespace, job.name, SOURCE, job.uid), number)


def owning_job(pod: PodRecord) -> Owner | None:
    """The Job that controls this pod, if one does."""
    owner = pod.owner
    if owner is not None and owner.kind == "Job" and owner.api_version.startswith("batch/"):
        return owner
    return None


def completion_index(pod: PodRecord) -> int | None:
    """The pod's number in its Job: a label, and in older clusters only an annotation."""
    for where in (pod.labels, pod.annotations):
        index = kueue.whole_number(where.get(COMPLETION_INDEX))
        if index is not None:
            return index
    return None


def keys_of(job: JobRecord) -> Iterator[GangKey]:
    """The gang of the Job itself."""
    if job.kind == "Job":
        yield GangKey(job.namespace, job.name, SOURCE, job.uid)


def declared_by(owners: Collection[JobRecord]) -> Declared | None:
    """What the Job declares."""
    return next((members(job) for job in owners), None)


def members(job: JobRecord) -> Declared:
    """How many pods the Job runs at a time: its parallelism, capped by the completions left."""
    if job.completions is None:
        return Declared(job.parallelism, f"parallelism of Job {job.name}")
    left = max(job.completions - job.succeeded, 0)
    return Declared(min(job.parallelism, left), f"parallelism of Job {job.name}")
