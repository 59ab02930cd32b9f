"""Gangs that a batch/v1 Job owns: its pods start together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from app.dialects.rules import whole_number
from app.dialects.spec import GangKey, GangSpec, Index, LeafSpec, Lifecycle
from app.dialects.workloads import indexes
from app.dialects.workloads.kind import Place, Reads, WorkloadKind, gang_of
from app.dialects.workloads.record import NULL, Templates, WorkloadRecord, or_one, record_of
from app.dialects.workloads.templates import TemplatePlace
from app.kube.core.objects import Owner, PodRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import (
    DISRUPTION_TARGET,
    Json,
    Keep,
    conditions,
    deadline,
    decoded,
    has_condition,
    part,
)

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
SOURCE = "job"
INDEXED = "Indexed"  # the completionMode of pods that have numbers
CONTROLLER = "kubernetes.io/job-controller"
BACKOFF_LIMIT = 6  # where a Job says none
FAIL_JOB, FAIL_INDEX, COUNT, IGNORE = _ACTIONS = ("FailJob", "FailIndex", "Count", "Ignore")
# ^ the worst first
NO_CODES = frozenset[int]()
STOPPED = frozenset((143, 137))  # exit codes of containers that end by SIGTERM, or SIGKILL after it
# What a Job may say when it fails, by what it fails of.
POLICY, BACKOFF, INDEXES = ("PodFailurePolicy",), ("BackoffLimitExceeded",), ("FailedIndexes",)
MOST_INDEXES = (*INDEXES, "MaxFailedIndexesExceeded")
FAILURE_REASONS = (*POLICY, *BACKOFF, *MOST_INDEXES)
COUNTS = ("parallelism", "completions")  # fields of a Job's spec; the pods are the least of them


class JobSpec(wire.Wire):
    """The part of a Job's spec that counts."""

    parallelism: wire.Int32 | None = None
    completions: wire.Int32 | None = None
    completion_mode: wire.Text = None
    suspend: bool | None = None
    template: msgspec.Raw = NULL


class _OnPodCondition(wire.Wire):
    type: wire.Text = None
    status: wire.Text = None


class _OnExitCodes(wire.Wire):
    operator: wire.Text = None
    values: list[int] | None = None


class _FailureRule(wire.Wire):
    action: wire.Text = None
    on_exit_codes: _OnExitCodes | None = None
    on_pod_conditions: list[_OnPodCondition | None] | None = None


class _FailurePolicy(wire.Wire):
    rules: msgspec.Raw = NULL


class _WholeJobSpec(JobSpec):
    backoff_limit: wire.Int32 | None = None
    backoff_limit_per_index: wire.Int32 | None = None
    max_failed_indexes: wire.Int32 | None = None
    pod_failure_policy: _FailurePolicy | None = None
    active_deadline_seconds: int | None = None
    managed_by: wire.Text = None


class _Status(wire.Wire):
    failed: wire.Int32 | None = None
    succeeded: wire.Int32 | None = None
    completed_indexes: wire.Text = None
    failed_indexes: wire.Text = None
    conditions: msgspec.Raw = NULL


class _Job(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _WholeJobSpec | None = None
    status: _Status | None = None


_RULES: msgspec.json.Decoder[list[_FailureRule | None] | None] = msgspec.json.Decoder(
    list[_FailureRule | None] | None
)
_JOB = msgspec.json.Decoder(_Job)


def decode_job(raw: Json, keep: Keep) -> WorkloadRecord:
    """Return the record of a batch/v1 Job.

    Raises: DecodeError naming the job and the field.
    """
    job = decoded(_JOB, raw, "Job")
    spec, status = job.spec or _WholeJobSpec(), job.status or _Status()
    templates = Templates("Job", job.metadata, keep)
    found = conditions(status.conditions, "Job", job.metadata)
    policy = spec.pod_failure_policy or _FailurePolicy()
    rules = part(_RULES, policy.rules, "spec.podFailurePolicy.rules", "Job", job.metadata)
    completed, failed, numbers = "", "", 0
    if spec.completion_mode == INDEXED:
        completed, failed = status.completed_indexes or "", status.failed_indexes or ""
        numbers = spec.completions or 0
    return record_of(
        "Job",
        job.metadata,
        keep,
        [templates.read("", or_one(spec.parallelism), spec.template)],
        succeeded=status.succeeded or 0,
        completions=spec.completions,
        failed_for_good=indexes.how_many(failed, numbers),
        gaps=indexes.gaps((completed, failed), numbers),
        failures_left=_failures_left(spec, _action(rules or ()), status.failed or 0),
        failures=status.failed or 0,
        failure_reasons=_failure_reasons(spec, _action(rules or ())),
        is_suspended=bool(spec.suspend),
        is_finished=has_condition(found, "Complete", "Failed"),
        # Another controller need not end its pods.
        deadline_seconds=deadline(spec.active_deadline_seconds)
        if spec.managed_by in (None, "", CONTROLLER)
        else 0,
    )


def _action(rules: Iterable[_FailureRule | None]) -> str:
    """What a policy has done about a pod that is evicted: that of the first rule of such pods.

    An action that is not known is passed over. Of rules of exit codes it is the worst of what they
    do about those of such a pod; that it is ignored is not certain, as it may end by another one.
    Source: kubernetes v1.36 pkg/controller/job/pod_failure_policy.go, matchPodFailurePolicy.
    """
    left, found, last = STOPPED, list[str](), COUNT
    for rule in rules:
        if rule is not None and rule.on_exit_codes is not None:
            codes = left & _codes(rule.on_exit_codes)
            if codes and rule.action in (FAIL_JOB, FAIL_INDEX, COUNT):
                found.append(rule.action)
                left -= codes
            continue
        on = (rule and rule.on_pod_conditions) or ()
        is_of_them = any(
            each.type == DISRUPTION_TARGET and each.status in (None, "", "True")
            for each in on
            if each is not None
        )
        if rule is not None and is_of_them and rule.action in _ACTIONS:
            last = rule.action
            break
    return min((*found, last), key=_ACTIONS.index)


def _codes(rule: _OnExitCodes) -> frozenset[int]:
    """Of the exit codes of containers that are stopped, those that a rule is of."""
    values = frozenset(rule.values or ())
    return {"In": STOPPED & values, "NotIn": STOPPED - values}.get(rule.operator or "", NO_CODES)


def _failures_left(spec: _WholeJobSpec, action: str, failed: int) -> int | None:
    """How many more pods may be evicted before the Job fails for good; None: any number.

    A pod that is deleted counts as one that has failed, unless a policy ignores disruptions. One
    that fails the Job, or an index and so the Job in the end, has the first such pod be the last.
    Source: kubernetes v1.36 pkg/controller/job/job_controller.go, getNewFinishedPods;
    pkg/apis/batch/v1/defaults.go.
    """
    if action == IGNORE:
        return None
    if action in (FAIL_JOB, FAIL_INDEX):
        return 0
    if spec.backoff_limit_per_index is not None:
        # Of one index; those that it has had already are not known.
        return None if spec.backoff_limit_per_index > 0 else 0
    limit = BACKOFF_LIMIT if spec.backoff_limit is None else spec.backoff_limit
    return max(0, limit - failed)


def _failure_reasons(spec: _WholeJobSpec, action: str) -> tuple[str, ...]:
    """What the Job may say when it fails since pods of it were evicted."""
    if action == IGNORE:
        return ()
    if action == FAIL_JOB:
        return POLICY
    if spec.backoff_limit_per_index is None:
        return BACKOFF
    return INDEXES if spec.max_failed_indexes is None else MOST_INDEXES


def place_of(pod: PodRecord) -> Place | None:
    """The pod's place in the gang of its Job; None: no Job owns it."""
    job = owning_job(pod)
    if job is None:
        return None
    index = completion_index(pod)
    key = GangKey(pod.namespace, job.name, SOURCE, job.uid)
    return Place(key, None if index is None else Index(index))


def owning_job(pod: PodRecord) -> Owner | None:
    """The Job that controls this pod, if one does."""
    owner = pod.owner
    if owner is not None and owner.kind == "Job" and owner.api_version.startswith("batch/"):
        return owner
    return None


def completion_index(pod: PodRecord) -> int | None:
    """The pod's number in its Job: a label, and in older clusters only an annotation."""
    for where in (pod.labels, pod.annotations):
        index = whole_number(where.get(COMPLETION_INDEX))
        if index is not None:
            return index
    return None


def keys_of(record: WorkloadRecord) -> Iterator[GangKey]:
    """The gang of the Job itself."""
    if record.kind == "Job":
        yield GangKey(record.namespace, record.name, SOURCE, record.uid)


def spec_of(key: GangKey, owners: Collection[WorkloadRecord], reads: Reads) -> GangSpec | None:
    """What the Job declares."""
    for record in owners:
        return gang_of(
            key,
            f"parallelism of Job {record.name}",
            [LeafSpec("", pods_at_once(record), gaps=record.gaps, ended=ended(record))],
            lifecycle=Lifecycle(
                failures=record.failure_limit,
                suspension=JOB.suspension(record),
                deadline_seconds=record.deadline_seconds,
            ),
        )
    return None


def pods_at_once(record: WorkloadRecord) -> int:
    """How many pods a Job runs at a time: its parallelism, capped by the completions left."""
    if record.completions is None:
        return record.pods
    return max(0, min(record.pods, record.completions - record.succeeded - record.failed_for_good))


def ended(record: WorkloadRecord) -> int:
    """How many pods fewer it runs at a time than before any of them had ended for good."""
    if record.completions is None:
        return 0
    return min(record.pods, record.completions) - pods_at_once(record)


JOB = WorkloadKind(
    "Job",
    "batch",
    "v1",
    decode_job,
    place_of,
    keys_of,
    spec_of,
    SOURCE,
    # A Job that a JobSet made has one of its pod sets only.
    (TemplatePlace("spec", "template", (COUNTS,), is_grouped=False),),
    kept=(COMPLETION_INDEX,),
    is_optional=False,
    is_suspendable=True,
)
