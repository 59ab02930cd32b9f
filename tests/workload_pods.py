"""Pods and records of workloads, labelled as their controllers do it."""

from __future__ import annotations

from collections.abc import Mapping

from app.dialects.workloads import Template, WorkloadRecord
from app.kube.core.objects import Owner, PodRecord
from tests.records import REQUIRED, pod

JOBSET = "jobset.sigs.k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"
KUBEFLOW = "training.kubeflow.org/"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
POD_INDEX = "apps.kubernetes.io/pod-index"


def workload(
    kind: str,
    name: str,
    replicas: Mapping[str, int],
    *,
    level: str | None = None,
    like: PodRecord | None = None,
    jobs: int = 0,
    **more: object,
) -> WorkloadRecord:
    """A workload with so many pods by template; all of them ask for `level` if it is given.

    `like`: what a pod of any template will be like, where places are reserved beforehand; `jobs`:
    how many Jobs number the pods of a template, each for itself.
    """
    annotations = {REQUIRED: level} if level else {}
    fields = {
        "namespace": "default",
        "name": name,
        "uid": f"uid-{kind}-{name}",
        "version": "1",
        "kind": kind,
        "templates": tuple(
            Template(part, pods, annotations, like, jobs) for part, pods in replicas.items()
        ),
    }
    return WorkloadRecord(**{**fields, **more})  # type: ignore[arg-type]


def stateful_pods(name: str, pods: int, level: str, **more: object) -> list[PodRecord]:
    """The pods of a StatefulSet."""
    owner = Owner("apps/v1", "StatefulSet", name, f"uid-StatefulSet-{name}")
    return [
        pod(
            f"{name}-{index}",
            owner=owner,
            labels={POD_INDEX: str(index)},
            annotations={REQUIRED: level},
            **more,  # type: ignore[arg-type]
        )
        for index in range(pods)
    ]


def job_set_labels(name: str, part: str, index: int, replicas: int, jobs: int) -> dict[str, str]:
    """What the JobSet controller writes on a Job and on the Job's pods."""
    return {
        f"{JOBSET}jobset-name": name,
        f"{JOBSET}jobset-uid": f"uid-JobSet-{name}",
        f"{JOBSET}restart-attempt": "0",
        f"{JOBSET}replicatedjob-name": part,
        f"{JOBSET}replicatedjob-replicas": str(replicas),
        f"{JOBSET}global-replicas": str(jobs),
        f"{JOBSET}job-index": str(index),
    }


def job_set(
    name: str, parts: Mapping[str, tuple[int, int]], level: str, **more: object
) -> tuple[list[WorkloadRecord], list[PodRecord]]:
    """The Jobs of a JobSet and their pods; parts: replicated Job -> (replicas, pods of each)."""
    jobs, pods = [], []
    total = sum(replicas for replicas, _ in parts.values())
    owner = Owner("jobset.x-k8s.io/v1alpha2", "JobSet", name, f"uid-JobSet-{name}")
    for part, (replicas, size) in parts.items():
        for index in range(replicas):
            labels = job_set_labels(name, part, index, replicas, total)
            job = f"{name}-{part}-{index}"
            jobs.append(workload("Job", job, {"": size}, level=level, labels=labels, owner=owner))
            pods += [
                pod(
                    f"{job}-{each}",
                    owner=Owner("batch/v1", "Job", job, jobs[-1].uid),
                    labels={**labels, COMPLETION_INDEX: str(each)},
                    annotations={REQUIRED: level},
                    **more,  # type: ignore[arg-type]
                )
                for each in range(size)
            ]
    return jobs, pods


def group_pods(name: str, group: int, size: int, level: str, **more: object) -> list[PodRecord]:
    """One group of a LeaderWorkerSet, the leader first."""
    leader = f"{name}-{group}"
    return [
        pod(
            f"{leader}-{index}" if index else leader,
            owner=Owner("apps/v1", "StatefulSet", leader if index else name, f"uid-{name}"),
            labels={
                f"{LWS}name": name,
                f"{LWS}group-index": str(group),
                f"{LWS}worker-index": str(index),
            },
            annotations={f"{LWS}size": str(size), REQUIRED: level},
            **more,  # type: ignore[arg-type]
        )
        for index in range(size)
    ]


def training_pods(
    kind: str, name: str, parts: Mapping[str, int], level: str, **more: object
) -> list[PodRecord]:
    """The pods of one of Kubeflow's jobs; parts: replica type -> pods."""
    owner = Owner("kubeflow.org/v1", kind, name, f"uid-{kind}-{name}")
    return [
        pod(
            f"{name}-{part.lower()}-{index}",
            owner=owner,
            labels={
                f"{KUBEFLOW}job-name": name,
                f"{KUBEFLOW}replica-type": part.lower(),
                f"{KUBEFLOW}replica-index": str(index),
            },
            annotations={REQUIRED: level},
            **more,  # type: ignore[arg-type]
        )
        for part, pods in parts.items()
        for index in range(pods)
    ]


def mpi_pods(name: str, workers: int, level: str, *, first: int = 0) -> list[PodRecord]:
    """The launcher of an MPIJob and its workers, which count from `first`."""
    common = {f"{KUBEFLOW}job-name": name, f"{KUBEFLOW}operator-name": "mpi-operator"}
    launcher = pod(
        f"{name}-launcher-x",
        owner=Owner("batch/v1", "Job", f"{name}-launcher", "uid-of-its-job"),
        labels={
            **common,
            f"{KUBEFLOW}job-role": "launcher",
            **({f"{KUBEFLOW}replica-index": "0"} if first else {}),
        },
        annotations={REQUIRED: level},
    )
    return [launcher] + [
        pod(
            f"{name}-worker-{index}",
            owner=Owner("kubeflow.org/v2beta1", "MPIJob", name, f"uid-MPIJob-{name}"),
            labels={
                **common,
                f"{KUBEFLOW}job-role": "worker",
                f"{KUBEFLOW}replica-index": str(index + first),
            },
            annotations={REQUIRED: level},
        )
        for index in range(workers)
    ]
