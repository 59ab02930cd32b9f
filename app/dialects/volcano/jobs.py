"""Volcano's jobs: whose pods they are to be before there are any, and what they may say.

Everything else of a vcjob its controller writes into the job's PodGroup, a policy for each task
that has partitions: so what no PodGroup may say, no vcjob may.
Source: volcano staging/src/volcano.sh/apis/pkg/apis/batch/v1alpha1/job.go (v1.14);
pkg/controllers/job/job_controller_actions.go, `createOrUpdatePodGroup`;
pkg/webhooks/admission/jobs/validate/admit_job.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from app.dialects.dialect import CheckedObject, Known, ObjectRules, PodsMade, none_known
from app.dialects.flaw import Flaw
from app.dialects.rules import duplicate, invalid, of_spec, too_many, too_small
from app.dialects.volcano import network_topology
from app.dialects.volcano.keys import LONGEST_NAME
from app.dialects.volcano.network_topology import NetworkTopology
from app.dialects.volcano.pod_groups import MOST_POLICIES, MOST_TASKS
from app.kube.core.objects import ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded
from app.kube.watch.resource import Resource

GROUP = "batch.volcano.sh"
KIND = f"Job.{GROUP}"  # batch has a kind of that name as well
PATH = f"/apis/{GROUP}/v1alpha1/jobs"
MOST_OBJECTS = 24_576  # of all tasks: 256 have some 8,000, and to build more takes longer than 5 ms


_T = TypeVar("_T")


class VolcanoJobRecord(ObjectRecord, frozen=True, gc=False):
    """One vcjob."""

    schedulers: tuple[str, ...] = ()
    """What its pods will have as schedulerName: each once, and its own if it has no tasks."""
    failures_left: int | None = None
    """How many of its pods may be evicted until it ends for good; None: any number."""

    @property
    def pod_group(self) -> str:
        """The name of its PodGroup."""
        return f"{self.name}-{self.uid}"


class _PodSpec(wire.Wire):
    scheduler_name: wire.Text = None


class _PodTemplate(wire.Wire):
    spec: _PodSpec | None = None


class _Policy(wire.Wire):
    action: wire.Text = None
    event: wire.Text = None
    events: wire.Texts = None


_Policies = list[_Policy | None] | None


class _TaskRead(wire.Wire):
    template: _PodTemplate | None = None
    policies: _Policies = None


class _Spec(wire.Wire):
    scheduler_name: wire.Text = None
    max_retry: wire.Int32 | None = None
    policies: msgspec.Raw = msgspec.Raw(b"null")
    tasks: msgspec.Raw = msgspec.Raw(b"null")


class _Status(wire.Wire):
    retry_count: wire.Int32 | None = None


class _Job(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


_JOB = msgspec.json.Decoder(_Job)
_TASKS: msgspec.json.Decoder[list[_TaskRead | None] | None] = msgspec.json.Decoder(
    list[_TaskRead | None] | None
)
_POLICIES: msgspec.json.Decoder[_Policies] = msgspec.json.Decoder(_Policies)
MAX_RETRY = 3  # where a vcjob says none
EVICTED = frozenset(("PodEvicted", "*"))
ENDS = ("AbortJob", "TerminateJob", "CompleteJob")
RESTARTS = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")


def decode_job(raw: Json) -> VolcanoJobRecord:
    """Return the record of a vcjob.

    Raises: DecodeError naming the job and the field.
    """
    job = decoded(_JOB, raw, "Job")
    metadata, spec = job.metadata or wire.Metadata(), job.spec or _Spec()
    tasks = _tasks(spec)
    return VolcanoJobRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        schedulers=_schedulers(spec, tasks),
        failures_left=_failures_left(spec, tasks, job.status or _Status()),
    )


def _tasks(spec: _Spec) -> Sequence[_TaskRead]:
    """Its tasks, as far as they are read."""
    return tuple(each for each in _read(_TASKS, spec.tasks)[:MOST_TASKS] if each is not None)


def _read(decoder: msgspec.json.Decoder[list[_T] | None], raw: msgspec.Raw) -> list[_T]:
    """A list; an empty one, if it has too much in it or cannot be read."""
    try:
        is_read = bytes(raw).count(b"{") <= MOST_OBJECTS
        return (decoder.decode(raw) or []) if is_read else []
    except (ValueError, RecursionError):
        return []


def _failures_left(spec: _Spec, tasks: Sequence[_TaskRead], status: _Status) -> int | None:
    """How many pods may be evicted: none, if some task's policy ends the vcjob with the first.

    So it is if it starts again and may not. One without such a policy makes the pods again.
    Source: volcano v1.14 pkg/controllers/job/job_controller_util.go, applyPolicies, and
    pkg/controllers/job/state/restarting.go; pkg/webhooks/admission/jobs/mutate/mutate_job.go.
    """
    whole = _action(_read(_POLICIES, spec.policies))
    actions = {_action(task.policies or ()) or whole for task in tasks} or {whole}
    is_last = (status.retry_count or 0) + 1 >= (spec.max_retry or MAX_RETRY)
    ends = (*ENDS, *RESTARTS) if is_last else ENDS
    return None if actions.isdisjoint(ends) else 0


def _action(policies: Iterable[_Policy | None]) -> str:
    """What the first policy of pods that are evicted does; "": there is none."""
    for policy in policies:
        if policy is not None and not EVICTED.isdisjoint((policy.event, *(policy.events or ()))):
            return policy.action or ""
    return ""


def _schedulers(spec: _Spec, tasks: Sequence[_TaskRead]) -> tuple[str, ...]:
    """That of each template, which counts before the vcjob's."""
    own = (spec.scheduler_name or "")[:LONGEST_NAME]
    templates = (each.template for each in tasks)
    specs = (each.spec if each is not None else None for each in templates)
    named = ((each.scheduler_name if each is not None else None) or own for each in specs)
    return tuple(dict.fromkeys(name[:LONGEST_NAME] for name in named)) or (own,)


# -- what a vcjob may say --------------------------------------------------------------------------


class _PartitionPolicy(wire.Wire):
    total_partitions: int | None = None
    partition_size: int | None = None
    min_partitions: int | None = None
    network_topology: NetworkTopology | None = None


class _TemplateMetadata(wire.Wire):
    labels: wire.Strings = None


class _Template(wire.Wire):
    metadata: _TemplateMetadata | None = None
    spec: _PodSpec | None = None


class _Task(wire.Wire):
    name: wire.Text = None
    replicas: int | None = None
    min_available: int | None = None
    partition_policy: _PartitionPolicy | None = None
    template: _Template | None = None


class _WholeSpec(wire.Wire):
    scheduler_name: wire.Text = None
    network_topology: NetworkTopology | None = None
    tasks: list[_Task | None] | None = None


class _WholeJob(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _WholeSpec | None = None


_WHOLE_JOB = msgspec.json.Decoder(_WholeJob)


def check_job(raw: Json, _before: Json | None = None, _known: Known = none_known) -> CheckedObject:
    """What is wrong with a vcjob, and which pods it makes.

    Raises: DecodeError naming the job and the field.
    """
    spec = decoded(_WHOLE_JOB, raw, "Job").spec or _WholeSpec()
    tasks = [each or _Task() for each in (spec.tasks or ())[:MOST_TASKS]]
    made = (_pods(task, spec.scheduler_name or "") for task in tasks)
    return CheckedObject(of_spec(_flaws(spec, tasks)), tuple(made))


def _pods(task: _Task, scheduler: str) -> PodsMade:
    """`scheduler`: the vcjob's, which is that of pods whose template names none."""
    template = task.template or _Template()
    spec, metadata = template.spec or _PodSpec(), template.metadata or _TemplateMetadata()
    labels = {key: value or "" for key, value in (metadata.labels or {}).items()}
    return PodsMade(spec.scheduler_name or scheduler, labels)


def _flaws(spec: _WholeSpec, tasks: list[_Task]) -> Iterator[Flaw]:
    yield from network_topology.flaws_of(spec.network_topology, "networkTopology")
    if len(spec.tasks or ()) > MOST_TASKS:
        yield too_many("tasks", len(spec.tasks or ()), MOST_TASKS)
        return
    parted = sum(task.partition_policy is not None for task in tasks)
    if parted > MOST_POLICIES:
        yield too_many("tasks", parted, MOST_POLICIES, "items with a partitionPolicy")
    names: set[str] = set()
    for at, task in enumerate(tasks):
        if task.name and task.name in names:
            yield duplicate(f"tasks[{at}].name", task.name)
        names.add(task.name or "")
        if task.partition_policy is not None:
            yield from _partition_flaws(task, task.partition_policy, f"tasks[{at}]")


def _partition_flaws(task: _Task, policy: _PartitionPolicy, where: str) -> Iterator[Flaw]:
    inside = f"{where}.partitionPolicy"
    partitions, size = policy.total_partitions or 0, policy.partition_size or 0
    least, replicas = policy.min_partitions or 0, task.replicas or 0
    for name, value in (("totalPartitions", partitions), ("partitionSize", size)):
        if value < 1:
            yield too_small(f"{inside}.{name}", value, 1)
    if least < 0:
        yield too_small(f"{inside}.minPartitions", least, 0)
    yield from network_topology.flaws_of(policy.network_topology, f"{inside}.networkTopology")
    if partitions < 1 or size < 1:
        return  # said already, and the products are none
    if replicas != partitions * size:
        text = f"must equal totalPartitions * partitionSize, which is {partitions * size}"
        yield invalid(f"{where}.replicas", replicas, text)
    if least > partitions:
        text = f"must not be greater than totalPartitions, which is {partitions}"
        yield invalid(f"{inside}.minPartitions", least, text)
    elif least > 0 and task.min_available not in (None, least * size):
        text = f"must equal minPartitions * partitionSize, which is {least * size}"
        yield invalid(f"{where}.minAvailable", task.min_available, text)


RESOURCE = Resource(KIND, PATH, VolcanoJobRecord, decode_job, is_optional=True)
RULES = ObjectRules(GROUP, "Job", check_job)
