"""Gangs that a JobSet owns: the pods of all its Jobs start together.

Each replicated Job is one leaf.

    JobSet ──replicatedJobs──▶ Job 0 … Job r-1 of each ──▶ pods 0 … p-1 of each Job

Ranks go through the Jobs of one replicated Job in order. A JobSet that restarts deletes all its
Jobs and makes new ones: that is another gang, told apart by the number of the attempt.

Jobs that are only made once others run (`startupPolicy: InOrder`, `dependsOn`) cannot be waited
for. There the gang starts with the Jobs there are, and reserves places for the pods of the others;
also for those that depend on a Job's end, since Kueue admits a JobSet as a whole as well. Those
that were made while the JobSet was suspended are resumed as they would be made, one after another.
Jobs that outlive their JobSet (`kubectl delete --cascade=orphan`) stay together, those there are.
So it is with Jobs that are to be alone in a domain (`exclusive-topology`): the other pods of each
are only made once its first one has a node.
Source: labels as its controller writes them on Jobs and pods, jobset
api/jobset/v1alpha2/jobset_types.go, pkg/webhooks/pod_webhook.go; when it makes and resumes Jobs,
pkg/controllers/jobset_controller.go (v0.12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from operator import attrgetter

import msgspec

from app.dialects.rules import whole_number
from app.dialects.spec import (
    Expected,
    FailureLimit,
    GangKey,
    GangSpec,
    Index,
    LeafSpec,
    Lifecycle,
    Numbers,
)
from app.dialects.workloads import job
from app.dialects.workloads import job_set_failures as failures
from app.dialects.workloads.kind import (
    Place,
    Reads,
    WorkloadKind,
    asking,
    gang_of,
    leaf_to_come,
)
from app.dialects.workloads.record import (
    JOB_SET_PART,
    NULL,
    Template,
    Templates,
    WorkloadRecord,
    is_filled,
    or_one,
    record_of,
)
from app.dialects.workloads.templates import TemplatePlace
from app.kube.core.objects import PodRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, Keep, conditions, decoded, has_condition
from app.kube.decoding.decode import part as read_part

PREFIX = "jobset.sigs.k8s.io/"
NAME = PREFIX + "jobset-name"
UID = PREFIX + "jobset-uid"
RESTART = PREFIX + "restart-attempt"
REPLICATED_JOB = JOB_SET_PART
REPLICAS = PREFIX + "replicatedjob-replicas"  # Jobs of the same replicated Job
GLOBAL_REPLICAS = PREFIX + "global-replicas"  # Jobs of the whole JobSet
JOB_INDEX = PREFIX + "job-index"  # of the Job in its replicated Job
# On a JobSet or a replicated Job's template, whence its controller writes them on Jobs and pods.
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"  # exclusive, but its pods do not wait
SOURCE = "jobset"


class _JobTemplate(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: job.JobSpec | None = None


class _ReplicatedJob(wire.Wire):
    name: wire.Text = None
    replicas: wire.Int32 | None = None
    template: _JobTemplate | None = None
    depends_on: msgspec.Raw = NULL  # only whether there is one


class _StartupPolicy(wire.Wire):
    startup_policy_order: wire.Text = None


class _FailurePolicy(wire.Wire):
    max_restarts: wire.Int32 | None = None
    rules: msgspec.Raw = NULL


class _Spec(wire.Wire):
    failure_policy: _FailurePolicy | None = None
    replicated_jobs: msgspec.Raw = NULL
    startup_policy: _StartupPolicy | None = None
    suspend: bool | None = None


class _PartStatus(wire.Wire):
    job_restarts_count_towards_max: list[int] | None = None


class _Status(wire.Wire):
    restarts: wire.Int32 | None = None
    restarts_count_towards_max: wire.Int32 | None = None
    replicated_jobs_status: msgspec.Raw = NULL
    conditions: msgspec.Raw = NULL


class _JobSet(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


_REPLICATED_JOB = msgspec.json.Decoder(_ReplicatedJob | None)
_REPLICATED_JOBS = msgspec.json.Decoder(list[msgspec.Raw] | None)
_JOB_SET = msgspec.json.Decoder(_JobSet)
_PartStatuses = list[_PartStatus | None] | None
_PART_STATUSES: msgspec.json.Decoder[_PartStatuses] = msgspec.json.Decoder(_PartStatuses)


def decode_job_set(raw: Json, keep: Keep) -> WorkloadRecord:
    """Return the record of a jobset.x-k8s.io JobSet.

    Raises: DecodeError naming the object and the field.
    """
    found = decoded(_JOB_SET, raw, "JobSet")
    spec, status = found.spec or _Spec(), found.status or _Status()
    templates = Templates("JobSet", found.metadata, keep)
    ends = conditions(status.conditions, "JobSet", found.metadata)
    written = templates.listed(_REPLICATED_JOBS, spec.replicated_jobs, "spec.replicatedJobs")
    read = (
        templates.holder(_REPLICATED_JOB, raw, f"spec.replicatedJobs[{index}]")
        for index, raw in enumerate(written)
    )
    parts = [each for each in read if each is not None]
    order = spec.startup_policy and spec.startup_policy.startup_policy_order
    is_gradual = order == "InOrder" or any(is_filled(each.depends_on) for each in parts)
    policy = spec.failure_policy or _FailurePolicy()
    rules = read_part(
        failures.RULES, policy.rules, "spec.failurePolicy.rules", "JobSet", found.metadata
    )
    restarts = _restarts(status, rules, found.metadata)
    return record_of(
        "JobSet",
        found.metadata,
        keep,
        [
            _template(
                each, templates, comes_later=is_gradual or _is_exclusive(found.metadata, each)
            )
            for each in parts
        ],
        is_suspended=bool(spec.suspend),
        is_finished=has_condition(ends, "Completed", "Failed"),
        restarts=status.restarts or 0,
        restarts_left=max(0, (policy.max_restarts or 0) - restarts),
        failure_rules=failures.rules_of(
            rules, {each.name or "" for each in parts}, job.FAILURE_REASONS
        ),
        is_gradual=is_gradual,
    )


def _is_exclusive(whole: wire.Metadata | None, part: _ReplicatedJob) -> bool:
    made = part.template and part.template.metadata
    written = ((each and each.annotations) or {} for each in (whole, made))
    return any(_has_followers(each) for each in written)


def _has_followers(annotations: Collection[str]) -> bool:
    """Whether a Job that says so has only its first pod until that one has a node."""
    return EXCLUSIVE in annotations and NODE_SELECTOR not in annotations


def _restarts(status: _Status, rules: failures.Rules, written: wire.Metadata | None) -> int:
    """The restarts that count towards the most it may have: of the JobSet, and of single Jobs.

    Without a number either it is none, or the controller is one that counts all.
    Source: jobset v0.12 pkg/controllers/failure_policy.go, totalRestartsCountTowardsMax.
    """
    counted = status.restarts_count_towards_max
    if counted is None:
        counted = 0 if failures.ignores_maximum(rules) else status.restarts or 0
    raw = status.replicated_jobs_status
    parts = read_part(_PART_STATUSES, raw, "status.replicatedJobsStatus", "JobSet", written) or ()
    return counted + sum(
        sum((each and each.job_restarts_count_towards_max) or ()) for each in parts
    )


def _template(part: _ReplicatedJob, templates: Templates, *, comes_later: bool) -> Template:
    made = (part.template and part.template.spec) or job.JobSpec()
    jobs, pods = or_one(part.replicas), or_one(made.parallelism)
    if made.completions is not None:
        pods = min(pods, made.completions)
    return templates.read(
        part.name or "",
        jobs * pods,
        made.template,
        comes_later=comes_later,
        # As the JobSet's own webhook sets it where nothing is said.
        jobs=jobs if made.completion_mode in (None, "", "Indexed") else 0,
    )


def place_of(pod: PodRecord) -> Place | None:
    """The pod's place in the gang of its JobSet; None: no JobSet made it."""
    if NAME not in pod.labels or job.owning_job(pod) is None:
        return None
    return Place(_key(pod), _index(pod), pod.labels.get(REPLICATED_JOB, ""))


def _key(made: PodRecord | WorkloadRecord) -> GangKey:
    epoch = f"{made.labels.get(UID, '')}/{made.labels.get(RESTART, '0')}"
    return GangKey(made.namespace, made.labels[NAME], SOURCE, epoch)


def _index(pod: PodRecord) -> Index | None:
    index = job.completion_index(pod)
    part = whole_number(pod.labels.get(JOB_INDEX))
    parts = whole_number(pod.labels.get(REPLICAS))
    if index is None or part is None or not parts:
        return None
    return Index(index, part, parts)


def keys_of(record: WorkloadRecord) -> Iterator[GangKey]:
    """The gang of the JobSet this is, or of the one that made this Job."""
    if record.kind == "JobSet":
        for uid in {record.uid: None, "": None}:  # older versions do not write their uid on pods
            epoch = f"{uid}/{record.restarts}"
            yield GangKey(record.namespace, record.name, SOURCE, epoch)
    elif NAME in record.labels and record.kind == "Job" and _may_be_made_by_one(record):
        yield _key(record)


def _may_be_made_by_one(record: WorkloadRecord) -> bool:
    """Whether a JobSet made a Job: one that is gone has left it without an owner."""
    return record.owner is None or record.owner.kind == "JobSet"


def spec_of(key: GangKey, owners: Collection[WorkloadRecord], reads: Reads) -> GangSpec | None:
    """What the Jobs of a JobSet declare together, once all that can be there are."""
    made = [each for each in owners if each.kind == "Job" and each.owner is not None]
    whole = next((record for record in owners if record.kind == "JobSet"), None)
    expected = _jobs_of_all(made)
    if not made:
        # They have outlived their JobSet: no others are made, and none is resumed in its turn.
        left = [each for each in owners if each.kind == "Job"]
        made = [each for each in left if not _is_to_come(each)] or left
        whole, expected = None, len(made)
    if not made or not expected:
        return None
    lifecycle = Lifecycle(
        failures=_failures(whole, made),
        restarts_together=any(each.failures_left == 0 for each in made),
        suspension=None if whole is None else JOB_SET.suspension(whole),
        deadline_seconds=_deadline(made),
    )
    is_gradual = whole is not None and whole.is_gradual
    begun = [each for each in made if not _is_to_come(each)] if is_gradual else made
    if len(made) >= expected and len(begun) in (0, len(made)):
        members = _members(made, reads) or made
        where = f"parallelism of all Jobs of JobSet {key.name}"
        starts_with = _first_pods(members) if any(map(_is_led, members)) else None
        leaves = _leaves_there(members, whole, reads)
        return gang_of(key, where, leaves, starts_with=starts_with, lifecycle=lifecycle)
    if whole is None or not whole.is_gradual or not begun:
        return None
    members = _members(begun, reads)
    if not members and not any(reads(each.annotations) for each in whole.templates):
        members = begun
    partial = _partial(begun)
    there = [each for each in members if _part(each) not in partial]
    leaves = _leaves_there(there, whole, reads)
    partial &= set(map(_part, members))
    beginning = [each for each in made if _part(each) in partial]
    return gang_of(
        key,
        f"spec of JobSet {key.name}",
        [*leaves, *(() if whole.is_finished else _leaves_to_come(whole, leaves, reads))],
        # None: no pod can be there yet but one that comes before the record of its Job.
        starts_with=_first_pods(there) + _first_pods_once_all_begin(beginning) or None,
        lifecycle=lifecycle,
    )


def _deadline(made: Collection[WorkloadRecord]) -> int:
    """When the last of these Jobs ends at the latest, as it is counted of a Job; 0: never.

    It is the controller of Jobs that ends them, whatever manages the JobSet.
    """
    deadlines = set(map(attrgetter("deadline_seconds"), made))
    return 0 if 0 in deadlines else max(deadlines)


def _members(made: Collection[WorkloadRecord], reads: Reads) -> list[WorkloadRecord]:
    """The Jobs whose pods are members; thousands of them are made from a few templates."""
    known: dict[tuple[tuple[str, str], ...], bool] = {}
    found: list[WorkloadRecord] = []
    for each in made:
        for part in each.templates:
            said = tuple(part.annotations.items())
            if said not in known:
                known[said] = bool(reads(part.annotations))
            if known[said]:
                found.append(each)
                break
    return found


def _failures(
    whole: WorkloadRecord | None, made: Collection[WorkloadRecord]
) -> FailureLimit | None:
    """None, if it lives on when all its pods are evicted; else no pod may fail: one Job ends it."""
    known: dict[tuple[str, tuple[str, ...]], bool] = {}
    for each in made:
        if each.failures_left is None or each.failures_left >= job.pods_at_once(each):
            continue
        kind = (_part(each), each.failure_reasons)
        if kind not in known:
            known[kind] = whole is not None and whole.lives_on(each)
        if not known[kind]:
            return FailureLimit(0)
    return None


def _leaves_there(
    made: Collection[WorkloadRecord], whole: WorkloadRecord | None, reads: Reads
) -> list[LeafSpec]:
    """A leaf for each replicated Job whose Jobs exist; of some, pods come later than of others."""
    pods: dict[str, int] = {}
    ended: dict[str, int] = {}
    led: set[str] = set()
    for each in made:
        name = each.labels.get(REPLICATED_JOB, "")
        pods[name] = pods.get(name, 0) + job.pods_at_once(each)
        # A JobSet may have thousands of Jobs: no call that most of them do not need.
        if each.succeeded or each.failed_for_good:
            ended[name] = ended.get(name, 0) + job.ended(each)
        if _has_followers(each.annotations):
            led.add(name)
    later: dict[str, Expected | None] = {}
    if whole is not None:
        going = [each for each in made if not _is_to_come(each)] if whole.is_gradual else ()
        begun = set(map(_part, going))
        for template in whole.templates:
            name = template.name
            # Until its pods are there, their places are kept; for those that are done none is.
            if name in led or (name in begun and pods[name] == template.pods):
                later[name] = leaf_to_come(name, whole, template, reads, _numbers).like
    return [
        LeafSpec(name, count, like=later.get(name), ended=ended.get(name, 0))
        for name, count in pods.items()
    ]


def _is_led(record: WorkloadRecord) -> bool:
    """Whether all pods of the Job but its first one are made once that one has a node."""
    return _has_followers(record.annotations)


def _is_to_come(record: WorkloadRecord) -> bool:
    """Whether the Job makes its pods once it is resumed."""
    return record.is_suspended and not record.is_finished


def _part(record: WorkloadRecord) -> str:
    """The replicated Job that it is of."""
    return record.labels.get(REPLICATED_JOB, "")


def _first_pods(made: Collection[WorkloadRecord]) -> int:
    """The pods of these Jobs that are made before any of them has a node."""
    return sum(
        min(pods, 1) if _is_led(each) else pods
        for each, pods in ((each, job.pods_at_once(each)) for each in made)
    )


def _leaves_to_come(
    whole: WorkloadRecord, there: Collection[LeafSpec], reads: Reads
) -> Iterator[LeafSpec]:
    """A leaf for each replicated Job that is made only once others run."""
    names = {leaf.name for leaf in there}
    for template in asking(whole, reads):
        if template.name not in names and template.pods:
            yield leaf_to_come(template.name, whole, template, reads, _numbers)


def _numbers(template: Template, offset: int) -> Numbers:
    """The numbers of a replicated Job's pods, Job by Job."""
    pods = template.pods // template.jobs if template.jobs else 0
    return Numbers(pods, template.jobs, offset=offset)


def _jobs_of_all(made: Collection[WorkloadRecord]) -> int:
    texts = {each.labels.get(GLOBAL_REPLICAS) for each in made}
    return max((whole_number(text) or 0 for text in texts), default=0)


def _partial(begun: Collection[WorkloadRecord]) -> set[str]:
    """The replicated Jobs of which only some Jobs have begun."""
    jobs = Counter(map(_part, begun))
    return {_part(each) for each in begun if jobs[_part(each)] < _jobs_beside(each)}


def _jobs_beside(record: WorkloadRecord) -> int:
    """How many Jobs its replicated Job has."""
    return whole_number(record.labels.get(REPLICAS)) or 0


def _first_pods_once_all_begin(made: Collection[WorkloadRecord]) -> int:
    """The first pods of replicated Jobs whose Jobs are being made, or resumed, one after another.

    Where each one is suspended or done, their turn has not come.
    """
    by_name: dict[str, list[WorkloadRecord]] = {}
    for each in made:
        by_name.setdefault(_part(each), []).append(each)
    found = 0
    for jobs in by_name.values():
        left = [each for each in jobs if not each.is_finished]
        going = [each for each in left if not each.is_suspended]
        if going:
            missing = max(_jobs_beside(going[0]) - len(jobs), 0)
            found += _first_pods(left) + missing * _first_pods(going[:1])
    return found


JOB_SET = WorkloadKind(
    "JobSet",
    "jobset.x-k8s.io",
    "v1alpha2",
    decode_job_set,
    place_of,
    keys_of,
    spec_of,
    SOURCE,
    (
        TemplatePlace(
            "spec.replicatedJobs[*]",
            "template.spec.template",
            (("replicas",), tuple(f"template.spec.{field}" for field in job.COUNTS)),
        ),
    ),
    path_of=lambda _template, at: f"spec.replicatedJobs[{at}].template.spec.template",
    kept=(
        NAME,
        UID,
        RESTART,
        REPLICATED_JOB,
        REPLICAS,
        GLOBAL_REPLICAS,
        JOB_INDEX,
        EXCLUSIVE,
        NODE_SELECTOR,
    ),
    is_suspendable=True,
)
