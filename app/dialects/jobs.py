"""Gangs that a batch/v1 Job owns: its pods with a topology annotation start together."""

from __future__ import annotations

from app.dialects.membership import Declared
from app.kube.objects import JobRecord, Owner, PodRecord

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


def owning_job(pod: PodRecord) -> Owner | None:
    """The Job that controls this pod, if one does."""
    owner = pod.owner
    if owner is not None and owner.kind == "Job" and owner.api_version.startswith("batch/"):
        return owner
    return None


def members(job: JobRecord) -> Declared:
    """How many pods the Job runs at a time: its parallelism, capped by the completions left."""
    if job.completions is None:
        return Declared(job.parallelism, f"parallelism of Job {job.name}")
    left = max(job.completions - job.succeeded, 0)
    return Declared(min(job.parallelism, left), f"parallelism of Job {job.name}")
