"""Gangs of Kubeflow's training operator and MPI operator: one per job, a leaf per replica type.

The launcher of an MPIJob is the pod of a batch Job that the MPIJob makes: it is a member like the
workers, as in Kueue, if its template requests a topology. With `runLauncherAsWorker` it has number
0 and the workers count on from it. A launcher that is made only once the workers run
(`WaitForWorkersReady`) is not waited for: they reserve its place.
Source: labels as the two operators write them, training-operator pkg/apis/kubeflow.org/v1 (v1.9)
and mpi-operator pkg/apis/kubeflow/v2beta1 (v0.7).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial

import msgspec

from app.dialects.rules import whole_number
from app.dialects.spec import GangKey, GangSpec, Index, LeafSpec, Lifecycle, Numbers
from app.dialects.workloads import job
from app.dialects.workloads.kind import (
    Place,
    Reads,
    WorkloadKind,
    asking,
    gang_of,
    leaf_to_come,
)
from app.dialects.workloads.record import (
    NULL,
    Template,
    Templates,
    WorkloadRecord,
    record_of,
)
from app.dialects.workloads.templates import TemplatePlace
from app.kube.core.objects import PodRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import (
    Json,
    Keep,
    conditions,
    deadline,
    decoded,
    has_condition,
    part,
)

PREFIX = "training.kubeflow.org/"
JOB_NAME = PREFIX + "job-name"
REPLICA_TYPE = PREFIX + "replica-type"
REPLICA_INDEX = PREFIX + "replica-index"
OPERATOR = PREFIX + "operator-name"
JOB_ROLE = PREFIX + "job-role"  # the MPI operator writes this one instead of the replica type
MPI = "MPIJob"
MPI_OPERATOR = "mpi-operator"
LAUNCHER, WORKER = "Launcher", "Worker"
FIELDS = {  # kind -> the prefix of its field of replica specs, and its version
    "PyTorchJob": ("pytorch", "v1"),
    "TFJob": ("tf", "v1"),
    "XGBoostJob": ("xgb", "v1"),
    "PaddleJob": ("paddle", "v1"),
    "JAXJob": ("jax", "v1"),
    MPI: ("mpi", "v2beta1"),
}


# The operator fills them in for itself alone, and never stores them.
_DEFAULT_POLICIES = {"JAXJob": "Never"}


class _ReplicaSpec(wire.Wire):
    replicas: wire.Int32 | None = None
    restart_policy: wire.Text = None
    template: msgspec.Raw = NULL


_ReplicaSpecs = msgspec.Raw  # by replica type
_BY_TYPE = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)


class _RunPolicy(wire.Wire):
    suspend: bool | None = None
    active_deadline_seconds: int | None = None
    managed_by: wire.Text = None
    clean_pod_policy: wire.Text = None


class _Spec(wire.Wire):
    """The spec of any of the kinds; each has one of the maps, by replica type."""

    pytorch_replica_specs: _ReplicaSpecs = NULL
    tf_replica_specs: _ReplicaSpecs = NULL
    xgb_replica_specs: _ReplicaSpecs = NULL
    paddle_replica_specs: _ReplicaSpecs = NULL
    jax_replica_specs: _ReplicaSpecs = NULL
    mpi_replica_specs: _ReplicaSpecs = NULL
    run_policy: _RunPolicy | None = None
    launcher_creation_policy: wire.Text = None
    run_launcher_as_worker: bool | None = None
    enable_dynamic_worker: bool | None = None


class _ReplicaStatus(wire.Wire):
    succeeded: wire.Int32 | None = None


class _Status(wire.Wire):
    replica_statuses: msgspec.Raw = NULL
    conditions: msgspec.Raw = NULL


class _TrainingJob(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


_REPLICA_SPEC = msgspec.json.Decoder(_ReplicaSpec | None)
_STATUSES = msgspec.json.Decoder(dict[str, _ReplicaStatus | None] | None)
_TRAINING_JOB = msgspec.json.Decoder(_TrainingJob)


def decode_training_job(raw: Json, keep: Keep, *, kind: str) -> WorkloadRecord:
    """Return the record of one of Kubeflow's jobs: a PyTorchJob, an MPIJob and so on.

    Raises: DecodeError naming the object and the field.
    """
    found = decoded(_TRAINING_JOB, raw, kind)
    spec, status = found.spec or _Spec(), found.status or _Status()
    templates = Templates(kind, found.metadata, keep)
    maps = {
        f"spec.{prefix}ReplicaSpecs": getattr(spec, f"{prefix}_replica_specs")
        for prefix, _ in FIELDS.values()
    }
    parts = [
        (name, templates.holder(_REPLICA_SPEC, raw, f"{field}[{name}]"))
        for field, by_type in maps.items()
        for name, raw in templates.named(_BY_TYPE, by_type, field).items()
    ]
    statuses = status.replica_statuses
    read = part(_STATUSES, statuses, "status.replicaStatuses", kind, found.metadata) or {}
    # An operator that takes other spellings of a type writes its own.
    ended = {name.lower(): (each and each.succeeded) or 0 for name, each in read.items()}
    ends = conditions(status.conditions, kind, found.metadata)
    is_gradual = spec.launcher_creation_policy == "WaitForWorkersReady"
    policy = spec.run_policy or _RunPolicy()
    is_lost_whole = any(
        _fails_if_lost(
            kind, name, replica.restart_policy, is_dynamic=bool(spec.enable_dynamic_worker)
        )
        for name, replica in parts
        if replica is not None
    )
    return record_of(
        kind,
        found.metadata,
        keep,
        [
            msgspec.structs.replace(
                templates.read(
                    name,
                    least_of(kind, name) if replica.replicas is None else replica.replicas,
                    replica.template,
                    comes_later=is_gradual and name == LAUNCHER,
                    jobs=int(bool(spec.run_launcher_as_worker and name == LAUNCHER)),
                ),
                succeeded=ended.get(name.lower(), 0),
            )
            for name, replica in parts
            if replica is not None
        ],
        is_suspended=bool(policy.suspend),
        is_finished=has_condition(ends, "Succeeded", "Failed"),
        is_gradual=is_gradual,
        failures_left=0 if is_lost_whole else None,
        fails_if_lost=is_lost_whole,
        deadline_seconds=_deadline(kind, policy),
    )


def least_of(kind: str, replica_type: str) -> int:
    """How many pods a replica type has that says no number.

    The MPI operator fills that in for itself alone, never stores it, and starts no job without
    workers that has a type for them.
    Source: mpi-operator v0.7 pkg/apis/kubeflow/v2beta1/default.go, setDefaultsTypeWorker;
    training-operator v1.9 pkg/apis/kubeflow.org/v1/defaulting_utils.go.
    """
    return 0 if (kind, replica_type) == (MPI, WORKER) else 1


def _fails_if_lost(kind: str, replica_type: str, policy: str | None, *, is_dynamic: bool) -> bool:
    """Whether a job fails for good when a pod of this type is deleted while it runs.

    Such a pod has failed to the training operator, though it has not ended yet; what becomes of
    that is up to the kind. Pods that wait are only made again. That of MPIJobs makes workers again;
    their launcher is a Job's.
    Source: training-operator v1.9 pkg/core/status.go, UpdateJobReplicaStatuses, and UpdateJobStatus
    in pkg/controller.v1/*; kubeflow/trainer issue 2124.
    """
    if kind == "TFJob":  # it restarts only for pods that have ended, whatever the policy says
        return not (is_dynamic and replica_type == WORKER)
    if kind == "XGBoostJob":
        return policy != "ExitCode"
    return kind != MPI and (policy or _DEFAULT_POLICIES.get(kind)) == "Never"


def _deadline(kind: str, policy: _RunPolicy) -> int:
    """When its operator ends its pods at the latest, counted from its start; 0: never.

    That of MPIJobs leaves workers that run alone, unless a policy says otherwise.
    Source: kubeflow training-operator v1.9 pkg/controller.v1/common/job.go,
    DeletePodsAndServices; mpi-operator v0.6 pkg/controller/mpi_job_controller.go,
    cleanUpWorkerPods.
    """
    operator, ends_pods = "kubeflow.org/training-operator", True
    if kind == MPI:
        operator = "kubeflow.org/mpi-operator"
        ends_pods = policy.clean_pod_policy in ("Running", "All")
    if not ends_pods or policy.managed_by not in (None, "", operator):
        return 0
    return deadline(policy.active_deadline_seconds)


def place_of(pod: PodRecord) -> Place | None:
    """The pod's place in the gang of its job; None: neither operator made it."""
    key = _key_of(pod)
    if key is None:
        return None
    index = whole_number(pod.labels.get(REPLICA_INDEX))
    is_across = key.source == MPI.lower()
    return Place(
        key,
        None if index is None else Index(index, is_across=is_across),
        pod.labels.get(REPLICA_TYPE, pod.labels.get(JOB_ROLE, "")),
    )


def _key_of(pod: PodRecord) -> GangKey | None:
    owner = pod.owner
    if owner is None:
        return None
    if owner.kind in FIELDS and owner.api_version.startswith("kubeflow.org/"):
        return _key(pod.namespace, owner.name, owner.kind, owner.uid)
    name = pod.labels.get(JOB_NAME)
    is_launcher = pod.labels.get(OPERATOR) == MPI_OPERATOR and job.owning_job(pod) is not None
    return _key(pod.namespace, name, MPI, "") if name and is_launcher else None


def _key(namespace: str, name: str, kind: str, uid: str) -> GangKey:
    # A launcher does not know the uid of its MPIJob, only that of its Job.
    return GangKey(namespace, name, kind.lower(), "" if kind == MPI else uid)


def keys_of(record: WorkloadRecord) -> Iterator[GangKey]:
    """The gang of one of Kubeflow's jobs."""
    if record.kind in FIELDS:
        yield _key(record.namespace, record.name, record.kind, record.uid)


def spec_of(key: GangKey, owners: Collection[WorkloadRecord], reads: Reads) -> GangSpec | None:
    """What the job declares: all pods of the types that request a topology, less those done."""
    for record in owners:
        where = f"spec of {record.kind} {record.name}"
        lifecycle = Lifecycle(
            failures=record.failure_limit, deadline_seconds=record.deadline_seconds
        )
        templates = asking(record, reads)
        # Each type makes its own pods anew; what has succeeded of another is none of theirs.
        working = [part for part in templates if part.name != LAUNCHER]
        workers = sum(part.left for part in working)
        left = sum(part.left for part in templates)
        launcher = next((part for part in templates if part.name == LAUNCHER), None)
        if not record.is_gradual or launcher is None or not 0 < workers < left:
            all_of_it = LeafSpec("", left, ended=_ended(templates))
            return gang_of(key, where, [all_of_it], lifecycle=lifecycle)
        later = leaf_to_come(LAUNCHER.lower(), record, launcher, reads, _numbers)
        leaves = [LeafSpec("", workers, ended=_ended(working)), later]
        return gang_of(key, where, leaves, starts_with=workers, lifecycle=lifecycle)
    return None


def _ended(templates: Iterable[Template]) -> int:
    return sum(part.pods - part.left for part in templates)


def _numbers(launcher: Template, offset: int) -> Numbers:
    """A launcher that is a worker as well is the first of them."""
    return Numbers(1 if launcher.jobs else 0, offset=offset, is_across=True)


def _kind(kind: str, prefix: str, version: str) -> WorkloadKind:
    return WorkloadKind(
        kind,
        "kubeflow.org",
        version,
        partial(decode_training_job, kind=kind),
        place_of,
        keys_of,
        spec_of,
        kind.lower(),
        (TemplatePlace(f"spec.{prefix}ReplicaSpecs[*]", "template", (("replicas",),)),),
        path_of=lambda template, _at: f"spec.{prefix}ReplicaSpecs[{template.name}].template",
        kept=(JOB_NAME, REPLICA_TYPE, REPLICA_INDEX, OPERATOR, JOB_ROLE),
    )


KINDS = tuple(_kind(kind, *fields) for kind, fields in FIELDS.items())
