"""Gangs that a JobSet owns: the pods of all its Jobs start together.

Each replicated Job is one pod set.

    JobSet ──replicatedJobs──▶ Job 0 … Job r-1 of each ──▶ pods 0 … p-1 of each Job

Ranks go through the Jobs of one replicated Job in order. A JobSet that restarts deletes all its
Jobs and makes new ones: that is another gang, told apart by the number of the attempt.

Jobs that are only made once others run (`startupPolicy: InOrder`, `dependsOn`) cannot be waited
for: then the gang may start with the Jobs there are, and the later ones join it where it is.
Source: labels as its controller writes them on Jobs and pods (jobset_types.go).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from app.dialects import jobs, kueue
from app.dialects.membership import Declared, GangKey, Number, Place
from app.kube.core.objects import JobRecord, PodRecord, Replicas

PREFIX = "jobset.sigs.k8s.io/"
NAME = PREFIX + "jobset-name"
UID = PREFIX + "jobset-uid"
RESTART = PREFIX + "restart-attempt"
REPLICATED_JOB = PREFIX + "replicatedjob-name"
REPLICAS = PREFIX + "replicatedjob-replicas"  # Jobs of the same replicated Job
GLOBAL_REPLICAS = PREFIX + "global-replicas"  # Jobs of the whole JobSet
JOB_INDEX = PREFIX + "job-index"  # of the Job in its replicated Job
KEPT = (NAME, UID, RESTART, REPLICATED_JOB, REPLICAS, GLOBAL_REPLICAS, JOB_INDEX)
SOURCE = "jobset"


def place_of(pod: PodRecord) -> Place | None:
    """The pod's place in the gang of its JobSet; None: no JobSet made it."""
    if NAME not in pod.labels or jobs.owning_job(pod) is None:
        return None
    return Place(_key(pod), _number(pod), pod.labels.get(REPLICATED_JOB, ""))


def _key(made: PodRecord | JobRecord) -> GangKey:
    epoch = f"{made.labels.get(UID, '')}/{made.labels.get(RESTART, '0')}"
    return GangKey(made.namespace, made.labels[NAME], SOURCE, epoch)


def _number(pod: PodRecord) -> Number | None:
    index = jobs.completion_index(pod)
    part = kueue.whole_number(pod.labels.get(JOB_INDEX))
    parts = kueue.whole_number(pod.labels.get(REPLICAS))
    if index is None or part is None or not parts:
        return None
    return Number(index, part, parts)


def keys_of(record: JobRecord) -> Iterator[GangKey]:
    """The gang of the JobSet this is, or of the one that made this Job."""
    if record.kind == "JobSet":
        for uid in (record.uid, ""):  # its older versions do not write their uid on pods
            epoch = f"{uid}/{record.restarts}"
            yield GangKey(record.namespace, record.name, SOURCE, epoch)
    elif NAME in record.labels and record.owner is not None and record.owner.kind == "JobSet":
        yield _key(record)


def declared_by(owners: Collection[JobRecord]) -> Declared | None:
    """What the Jobs of a JobSet declare together, once all that can be there are."""
    made = [record for record in owners if record.kind == "Job"]
    whole = next((record for record in owners if record.kind == "JobSet"), None)
    expected = max((_jobs_of_all(job) for job in made), default=0)
    if not made or not expected:
        return None
    name = made[0].labels[NAME]
    asking = [job for job in made if any(_asks(part) for part in job.replicas)]
    there = sum(jobs.members(job).members for job in asking or made)
    if len(made) >= expected:
        return Declared(there, f"parallelism of all Jobs of JobSet {name}")
    if whole is None or not whole.is_gradual or not _are_whole(made):
        return None
    return Declared(
        max(there, sum(part.pods for part in kueue.asking(whole.replicas))),
        f"spec of JobSet {name}",
        needed=there,
    )


def _asks(part: Replicas) -> bool:
    return kueue.asks_for_topology(part.annotations)


def _jobs_of_all(job: JobRecord) -> int:
    return kueue.whole_number(job.labels.get(GLOBAL_REPLICAS)) or 0


def _are_whole(made: Collection[JobRecord]) -> bool:
    """Whether every replicated Job that has begun has all its Jobs."""
    names = [job.labels.get(REPLICATED_JOB) for job in made]
    return all(
        names.count(job.labels.get(REPLICATED_JOB))
        >= (kueue.whole_number(job.labels.get(REPLICAS)) or 0)
        for job in made
    )
