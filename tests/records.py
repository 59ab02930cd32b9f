"""Builders of slim records for tests: short names, everything else as the API would default it."""

from __future__ import annotations

from collections.abc import Mapping

from app.dialects.kueue.topology import TopologyRecord
from app.dialects.workloads import Template, WorkloadRecord
from app.kube.core.objects import NodeRecord, Owner, PodRecord, Shape, Taint

BLOCK = "cloud.provider.com/topology-block"
RACK = "cloud.provider.com/topology-rack"
GPU = "nvidia.com/gpu"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE_LEVEL = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
SLICE_LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL = "kueue.x-k8s.io/pod-group-total-count"


def node(
    path: str,
    *,
    gpus: int = 8,
    cpu: int = 64_000,
    pods: int = 110,
    is_ready: bool = True,
    is_cordoned: bool = False,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
) -> NodeRecord:
    """A node "b1/r1/n1" in its block and rack, or "n1" without any labels of levels."""
    *above, name = path.split("/")
    levels = dict(zip((BLOCK, RACK), above, strict=True)) if above else {}
    return NodeRecord(
        name=name,
        uid=f"uid-{name}",
        labels={"kubernetes.io/hostname": name, **levels, **(labels or {})},
        allocatable=(("cpu", cpu), (GPU, gpus), ("pods", pods)),
        is_ready=is_ready,
        is_unschedulable=is_cordoned,
        taints=taints,
        version="1",
    )


def pod(
    name: str,
    *,
    gpus: int = 8,
    cpu: int = 1000,
    on: str = "",
    phase: str = "Pending",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    gates: tuple[str, ...] = (),
    owner: Owner | None = None,
    scheduler: str = "corral",
    priority: int = 0,
    shape: Shape | None = None,
    is_terminating: bool = False,
    created: str = "2026-01-01T00:00:00Z",
    uid: str = "",
) -> PodRecord:
    """An ordinary pod of the default namespace."""
    amounts = {"cpu": cpu, GPU: gpus, "pods": 1}
    return PodRecord(
        namespace="default",
        name=name,
        uid=uid or f"uid-{name}",
        node=on,
        phase=phase,
        scheduler=scheduler,
        priority=priority,
        request=tuple(sorted((key, amount) for key, amount in amounts.items() if amount)),
        shape=shape or Shape(),
        gates=gates,
        is_terminating=is_terminating,
        created=created,
        labels=labels or {},
        annotations=annotations or {},
        owner=owner,
        nominated_node="",
        version="1",
    )


def group(name: str, total: int | str, required: str | None = None, **more: str) -> dict[str, str]:
    """Annotations of a pod group's members."""
    levels = {REQUIRED: required} if required else {}
    return {GROUP: name, TOTAL: str(total), **levels, **more}


def job(
    name: str, parallelism: int, *, completions: int | None = None, succeeded: int = 0
) -> WorkloadRecord:
    """A Job; `job_owner(name)` is how its pods name it."""
    return WorkloadRecord(
        kind="Job",
        namespace="default",
        name=name,
        uid=f"uid-job-{name}",
        version="1",
        templates=(Template("", parallelism, {}),),
        completions=completions,
        succeeded=succeeded,
    )


def topology(name: str, *levels: str) -> TopologyRecord:
    """A Topology of these levels, widest first."""
    return TopologyRecord(
        kind="Topology", namespace="", name=name, uid=f"uid-{name}", version="1", levels=levels
    )


def job_owner(name: str) -> Owner:
    """The ownerReference that the Job controller puts on its pods."""
    return Owner("batch/v1", "Job", name, f"uid-job-{name}")


def job_pods(name: str, pods: int, **annotations: str) -> list[PodRecord]:
    """The pods of a Job, with these annotations."""
    return [
        pod(f"{name}-{i}", owner=job_owner(name), annotations={**annotations}) for i in range(pods)
    ]
