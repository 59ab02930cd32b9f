"""Jobs of Kubeflow's training operator and MPI operator.

Source: training-operator pkg/controller.v1 (v1.9); mpi-operator pkg/controller (v0.7).
"""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.making import jobs
from app.dialects.making.parts import Object, Part, made, mapping, name_of, number, pod, text
from app.dialects.workloads.kubeflow import (
    FIELDS,
    JOB_NAME,
    JOB_ROLE,
    LAUNCHER,
    MPI,
    MPI_OPERATOR,
    OPERATOR,
    REPLICA_INDEX,
    REPLICA_TYPE,
    WORKER,
    least_of,
)

MPI_KIND = MPI
KINDS = tuple(kind for kind in FIELDS if kind != MPI)


def training_job(of: Object) -> Iterator[Part]:
    """A job of the training operator, and a pod for each replica of each type."""
    yield Part(of)
    kind = str(of.get("kind", ""))
    path = f"spec.{FIELDS[kind][0]}ReplicaSpecs"
    name = name_of(of)
    for replica_type in mapping(of, path):
        replica, where = mapping(of, f"{path}.{replica_type}"), f"{path}.{replica_type}."
        for at in range(number(replica, "replicas", 1, where)):
            labels = {
                JOB_NAME: name,
                OPERATOR: f"{kind.lower()}-controller",
                REPLICA_TYPE: replica_type.lower(),
                REPLICA_INDEX: str(at),
            }
            template = mapping(replica, "template", where)
            named = f"{name}-{replica_type.lower()}-{at}"
            yield pod(of, template, named, labels, where=f"{where}template.")


def mpi_job(of: Object) -> Iterator[Part]:
    """An MPIJob, its workers, and the launcher's Job, unless that waits for the workers."""
    yield Part(of)
    path, name = f"spec.{FIELDS[MPI][0]}ReplicaSpecs", name_of(of)
    is_worker = mapping(of, "spec").get("runLauncherAsWorker") is True
    common = {JOB_NAME: name, OPERATOR: MPI_OPERATOR}
    launcher, where = mapping(of, f"{path}.{LAUNCHER}"), f"{path}.{LAUNCHER}."
    if launcher and text(of, "spec.launcherCreationPolicy") != "WaitForWorkersReady":
        labels = {**common, JOB_ROLE: LAUNCHER.lower()}
        if is_worker:
            labels[REPLICA_INDEX] = "0"
        job = made(of, jobs.JOB, f"{name}-launcher", {"spec": {}})
        template = mapping(launcher, "template", where)
        yield pod(job, template, f"{name}-launcher", labels, where=f"{where}template.")
    workers, where = mapping(of, f"{path}.{WORKER}"), f"{path}.{WORKER}."
    for at in range(number(workers, "replicas", least_of(MPI, WORKER), where)):
        labels = {**common, JOB_ROLE: "worker", REPLICA_INDEX: str(at + is_worker)}
        template = mapping(workers, "template", where)
        yield pod(of, template, f"{name}-worker-{at}", labels, where=f"{where}template.")
