"""JSON of a workload that is no batch/v1 Job in, one JobRecord of its kind out.

What all of them come down to: how many pods there will be, from which templates, and whether they
are made at once. A workload without a number has the default its API gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern

import msgspec

from app.kube.core import wire
from app.kube.core.decode import Json, Keep, controller, decoded, has_condition, kept, replicas_of
from app.kube.core.objects import JobRecord, Replicas
from app.kube.watch.events import OwnerKind

MOST_GANGS = 10_000  # of one LeaderWorkerSet; each has a key of its own

_STATEFUL_SET = msgspec.json.Decoder(wire.StatefulSet)
_JOB_SET = msgspec.json.Decoder(wire.JobSet)
_LEADER_WORKER_SET = msgspec.json.Decoder(wire.LeaderWorkerSet)
_TRAINING_JOB = msgspec.json.Decoder(wire.TrainingJob)


def decode_stateful_set(raw: Json, keep: Keep) -> JobRecord:
    """Return the record of an apps/v1 StatefulSet.

    Raises: DecodeError naming the object and the field.
    """
    found = decoded(_STATEFUL_SET, raw, "StatefulSet")
    spec = found.spec or wire.StatefulSetSpec()
    pods = _or_one(spec.replicas)
    return _record(
        "StatefulSet",
        found.metadata,
        keep,
        [replicas_of("", pods, spec.template, keep)],
        is_gradual=spec.pod_management_policy != "Parallel",
    )


def decode_job_set(raw: Json, keep: Keep) -> JobRecord:
    """Return the record of a jobset.x-k8s.io JobSet.

    Raises: DecodeError naming the object and the field.
    """
    found = decoded(_JOB_SET, raw, "JobSet")
    spec, status = found.spec or wire.JobSetSpec(), found.status or wire.JobSetStatus()
    parts = [part for part in spec.replicated_jobs or () if part is not None]
    order = spec.startup_policy and spec.startup_policy.startup_policy_order
    return _record(
        "JobSet",
        found.metadata,
        keep,
        [_of_replicated_job(part, keep) for part in parts],
        is_suspended=bool(spec.suspend),
        is_finished=has_condition(status.conditions, "Completed", "Failed"),
        restarts=status.restarts or 0,
        is_gradual=order == "InOrder" or any(part.depends_on for part in parts),
    )


def _of_replicated_job(part: wire.ReplicatedJob, keep: Keep) -> Replicas:
    job = (part.template and part.template.spec) or wire.JobSpec()
    pods = _or_one(job.parallelism)
    if job.completions is not None:
        pods = min(pods, job.completions)
    return replicas_of(part.name or "", _or_one(part.replicas) * pods, job.template, keep)


def decode_leader_worker_set(raw: Json, keep: Keep) -> JobRecord:
    """Return the record of a leaderworkerset.x-k8s.io LeaderWorkerSet.

    Each of its groups is a gang of `parallelism` pods. During a rolling update there may be more
    groups than it asks for: those it may have at most are counted.
    Raises: DecodeError naming the object and the field.
    """
    found = decoded(_LEADER_WORKER_SET, raw, "LeaderWorkerSet")
    spec = found.spec or wire.LeaderWorkerSetSpec()
    pods = spec.leader_worker_template or wire.LeaderWorkerTemplate()
    size, groups = _or_one(pods.size), _or_one(spec.replicas)
    rollout = spec.rollout_strategy and spec.rollout_strategy.rolling_update_configuration
    surge = (rollout and rollout.max_surge) or 0
    replicas = [replicas_of("worker", size, pods.worker_template, keep)]
    if pods.leader_template is not None:
        replicas = [
            replicas_of("leader", 1, pods.leader_template, keep),
            replicas_of("worker", size - 1, pods.worker_template, keep),
        ]
    return _record(
        "LeaderWorkerSet",
        found.metadata,
        keep,
        replicas,
        # A surge in percent is at most as many groups again.
        gangs=min(groups + (surge if isinstance(surge, int) else groups), MOST_GANGS),
        is_gradual=spec.startup_policy == "LeaderReady",
    )


def decode_training_job(raw: Json, keep: Keep, *, kind: OwnerKind) -> JobRecord:
    """Return the record of one of Kubeflow's jobs: a PyTorchJob, an MPIJob and so on.

    Raises: DecodeError naming the object and the field.
    """
    found = decoded(_TRAINING_JOB, raw, kind)
    spec, status = found.spec or wire.TrainingSpec(), found.status or wire.TrainingStatus()
    maps = (
        spec.pytorch_replica_specs,
        spec.tf_replica_specs,
        spec.xgb_replica_specs,
        spec.paddle_replica_specs,
        spec.jax_replica_specs,
        spec.mpi_replica_specs,
    )
    ended = (status.replica_statuses or {}).values()
    return _record(
        kind,
        found.metadata,
        keep,
        [
            replicas_of(name, _or_one(part.replicas), part.template, keep)
            for parts in maps
            for name, part in (parts or {}).items()
            if part is not None
        ],
        succeeded=sum(part.succeeded or 0 for part in ended if part is not None),
        is_suspended=bool(spec.run_policy and spec.run_policy.suspend),
        is_finished=has_condition(status.conditions, "Succeeded", "Failed"),
        is_gradual=spec.launcher_creation_policy == "WaitForWorkersReady",
    )


def _record(
    kind: OwnerKind,
    written: wire.Metadata | None,
    keep: Keep,
    replicas: Sequence[Replicas],
    *,
    succeeded: int = 0,
    is_suspended: bool = False,
    is_finished: bool = False,
    gangs: int = 1,
    restarts: int = 0,
    is_gradual: bool = False,
) -> JobRecord:
    metadata = written or wire.Metadata()
    return JobRecord(
        namespace=intern(metadata.namespace or ""),
        name=metadata.name or "",
        uid=metadata.uid or "",
        parallelism=sum(part.pods for part in replicas),
        completions=None,
        succeeded=succeeded,
        is_suspended=is_suspended,
        is_finished=is_finished,
        annotations=kept(metadata.annotations, keep),
        owner=controller(metadata),
        version=metadata.resource_version or "",
        kind=kind,
        labels=kept(metadata.labels, keep),
        replicas=tuple(replicas),
        gangs=gangs,
        restarts=restarts,
        is_gradual=is_gradual,
    )


def _or_one(number: int | None) -> int:
    return 1 if number is None else number
