"""Gangs of Kubeflow's training operator and MPI operator: one per job, a pod set per replica type.

The launcher of an MPIJob is the pod of a batch Job that the MPIJob makes: it is a member like the
workers, as in Kueue, if its template asks for topology. With `runLauncherAsWorker` it has number 0
and the workers count on from it. A launcher that is only made once the workers run
(`WaitForWorkersReady`) is not waited for, but joins them later.
Source: labels as the two operators write them; kueue.md 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from app.dialects import jobs, kueue
from app.dialects.membership import Declared, GangKey, Number, Place
from app.kube.core.objects import JobRecord, PodRecord

PREFIX = "training.kubeflow.org/"
JOB_NAME = PREFIX + "job-name"
REPLICA_TYPE = PREFIX + "replica-type"
REPLICA_INDEX = PREFIX + "replica-index"
OPERATOR = PREFIX + "operator-name"
JOB_ROLE = PREFIX + "job-role"  # the MPI operator writes this one instead of the replica type
KEPT = (JOB_NAME, REPLICA_TYPE, REPLICA_INDEX, OPERATOR, JOB_ROLE)
MPI = "MPIJob"
MPI_OPERATOR = "mpi-operator"
LAUNCHER = "Launcher"
KINDS = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", MPI)
SOURCES = frozenset(kind.lower() for kind in KINDS)


def place_of(pod: PodRecord) -> Place | None:
    """The pod's place in the gang of its job; None: neither operator made it."""
    key = _key_of(pod)
    if key is None:
        return None
    index = kueue.whole_number(pod.labels.get(REPLICA_INDEX))
    is_across = key.source == MPI.lower()
    return Place(
        key,
        None if index is None else Number(index, is_across=is_across),
        pod.labels.get(REPLICA_TYPE, pod.labels.get(JOB_ROLE, "")),
    )


def _key_of(pod: PodRecord) -> GangKey | None:
    owner = pod.owner
    if owner is None:
        return None
    if owner.kind in KINDS and owner.api_version.startswith("kubeflow.org/"):
        return _key(pod.namespace, owner.name, owner.kind, owner.uid)
    name = pod.labels.get(JOB_NAME)
    is_launcher = pod.labels.get(OPERATOR) == MPI_OPERATOR and jobs.owning_job(pod) is not None
    return _key(pod.namespace, name, MPI, "") if name and is_launcher else None


def _key(namespace: str, name: str, kind: str, uid: str) -> GangKey:
    # A launcher does not know the uid of its MPIJob, only that of its Job.
    return GangKey(namespace, name, kind.lower(), "" if kind == MPI else uid)


def keys_of(record: JobRecord) -> Iterator[GangKey]:
    """The gang of one of Kubeflow's jobs."""
    if record.kind in KINDS:
        yield _key(record.namespace, record.name, record.kind, record.uid)


def declared_by(owners: Collection[JobRecord]) -> Declared | None:
    """What the job declares: all pods of the types that ask for topology, less those done."""
    for record in owners:
        asking = kueue.asking(record.replicas)
        members = sum(part.pods for part in asking)
        workers = sum(part.pods for part in asking if part.name != LAUNCHER)
        return Declared(
            max(members - record.succeeded, 0),
            f"spec of {record.kind} {record.name}",
            needed=workers if record.is_gradual and 0 < workers < members else None,
        )
    return None
