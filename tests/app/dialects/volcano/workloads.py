"""Volcano's Jobs, PodGroups and Queues as users write them.

    train = vcjob(
        "train",
        task("master", 1),
        task("worker", 4, partitionPolicy=partition_policy(2, 2, topology=network_topology(1))),
        networkTopology=network_topology(2),
    )

They say what Volcano's webhooks would fill in, since those do not run here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.cluster import Object, pod

GROUP_NAME = "scheduling.k8s.io/group-name"  # annotation of a pod
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"  # annotation of a Job of Kubernetes
QUEUE_NAME = "scheduling.volcano.sh/queue-name"  # annotation of a pod
TOPOLOGY_MODE = "volcano.sh/network-topology-mode"  # annotation of a pod
HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"  # annotation of a pod
TASK = "volcano.sh/task-spec"  # label of a pod
TASK_INDEX = "volcano.sh/task-index"  # label of a pod
PARTITION = "volcano.sh/partition-id"  # label of a pod

BATCH = "batch.volcano.sh/v1alpha1"
SCHEDULING = "scheduling.volcano.sh/v1beta1"


def vcjob(
    name: str,
    *tasks: Object,
    min_available: int | None = None,
    scheduler: str = "corral",
    queue: str = "default",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A Job of Volcano; further keywords go into its spec as they are.

    min_available: pods; None: those that its tasks need, together.
    """
    needed = sum(one["minAvailable"] for one in tasks)
    made = _object(
        BATCH,
        "Job",
        name,
        {
            "schedulerName": scheduler,
            "queue": queue,
            "minAvailable": needed if min_available is None else min_available,
            "maxRetry": 3,
            "tasks": list(tasks),
            **spec,
        },
    )
    if annotations:
        made["metadata"]["annotations"] = dict(annotations)
    return made


def task(
    name: str,
    replicas: int,
    *,
    min_available: int | None = None,
    requests: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    gates: Sequence[str] = (),
    **fields: Any,
) -> Object:
    """A task of a vcjob; further keywords are further fields of it.

    min_available: pods; None: all.
    """
    one = pod(
        "",
        requests=requests,
        labels=labels,
        annotations=annotations,
        gates=gates,
        restartPolicy="Never",
    )
    del one["spec"]["schedulerName"]  # the Job's is meant
    metadata = {field: one["metadata"][field] for field in ("labels", "annotations")}
    return {
        "name": name,
        "replicas": replicas,
        "minAvailable": replicas if min_available is None else min_available,
        "template": {"metadata": metadata, "spec": one["spec"]},
        **fields,
    }


def partition_policy(
    partitions: int, size: int, *, min_partitions: int = 0, topology: Object | None = None
) -> Object:
    """How a task is cut into partitions of that many pods each."""
    policy = {
        "totalPartitions": partitions,
        "partitionSize": size,
        "minPartitions": min_partitions,
    }
    return policy if topology is None else {**policy, "networkTopology": topology}


def network_topology(
    tier: int | None = None, *, tier_name: str | None = None, mode: str = "hard"
) -> Object:
    """The widest tier allowed, by its number or by its name."""
    wanted: Object = {"mode": mode}
    if tier is not None:
        wanted["highestTierAllowed"] = tier
    if tier_name is not None:
        wanted["highestTierName"] = tier_name
    return wanted


def pod_group(
    name: str,
    min_member: int,
    *,
    tasks: Mapping[str, int] | None = None,
    queue: str = "default",
    topology: Object | None = None,
    sub_groups: Iterable[Object] = (),
    phase: str | None = None,
    **spec: Any,
) -> Object:
    """A PodGroup of Volcano; further keywords go into its spec as they are.

    tasks: minTaskMember. phase: None before anybody has looked at it.
    """
    made = _object(SCHEDULING, "PodGroup", name, {"minMember": min_member, "queue": queue, **spec})
    if tasks is not None:
        made["spec"]["minTaskMember"] = dict(tasks)
    if topology is not None:
        made["spec"]["networkTopology"] = topology
    if policies := list(sub_groups):
        made["spec"]["subGroupPolicy"] = policies
    if phase is not None:
        made["status"] = {"phase": phase}
    return made


def sub_group(
    name: str,
    size: int,
    *,
    min_sub_groups: int = 0,
    labels: Mapping[str, str] | None = None,
    keys: Sequence[str] = (PARTITION,),
    topology: Object | None = None,
) -> Object:
    """An entry of subGroupPolicy: the pods with these labels, cut by the values of those keys.

    labels: None: the pods of the task of that name.
    """
    policy: Object = {
        "name": name,
        "subGroupSize": size,
        "minSubGroups": min_sub_groups,
        "labelSelector": {"matchLabels": {TASK: name} if labels is None else dict(labels)},
        "matchLabelKeys": list(keys),
    }
    return policy if topology is None else {**policy, "networkTopology": topology}


def queue(name: str = "default", **spec: Any) -> Object:
    """A Queue of Volcano, which has no namespace."""
    made = _object(SCHEDULING, "Queue", name, {"weight": 1, **spec})
    del made["metadata"]["namespace"]
    return made


def _object(version: str, kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
