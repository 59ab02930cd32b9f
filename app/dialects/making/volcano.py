"""Volcano's jobs: their PodGroup, and the pods that they have once that is Inqueue.

Source: volcano pkg/controllers/job/job_controller_{actions,util}.go, and what its webhook writes
where nothing is said: pkg/webhooks/admission/jobs/mutate (v1.14).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from app.dialects.making.parts import (
    Object,
    Part,
    listed,
    made,
    mapping,
    name_of,
    number,
    numbered,
    pod,
    text,
)
from app.dialects.volcano import keys
from app.dialects.volcano.pod_groups import DEFAULT_QUEUE
from app.kube.decoding.decode import decode_pod

POD_GROUP = ("scheduling.volcano.sh/v1beta1", "PodGroup")
_JOB_NAME, _QUEUE = "volcano.sh/job-name", "volcano.sh/queue-name"


def job(of: Object) -> Iterator[Part]:
    """A vcjob, its PodGroup, and its pods task by task."""
    yield Part(of)
    tasks = list(numbered(listed(of, "spec.tasks"), "spec.tasks"))
    name = f"{name_of(of)}-{text(of, 'metadata.uid')}"
    yield Part(_pod_group(of, name, tasks))
    for at, (where, task) in enumerate(tasks):
        yield from _pods(of, name, at, where, task)


def _task(at: int, task: Object, where: str) -> str:
    return text(task, "name", where) or f"default{at}"


def _pod_group(of: Object, name: str, tasks: list[tuple[str, Object]]) -> Object:
    least_of = {
        _task(at, task, where): number(
            task, "minAvailable", number(task, "replicas", 1, where), where
        )
        for at, (where, task) in enumerate(tasks)
    }
    least = number(of, "spec.minAvailable", 0) or sum(least_of.values())
    policies = [
        policy
        for at, (where, task) in enumerate(tasks)
        if (policy := _policy(_task(at, task, where), task, where)) is not None
    ]
    spec: Object = {
        "minMember": least,
        "minTaskMember": least_of,
        "queue": text(of, "spec.queue") or DEFAULT_QUEUE,
        "minResources": _requested(tasks, least),
    }
    topology = mapping(of, "spec.networkTopology")
    if topology:
        spec["networkTopology"] = topology
    if policies:
        spec["subGroupPolicy"] = policies
    return made(of, POD_GROUP, name, {"spec": spec, "status": {}})


def _policy(name: str, task: Object, where: str) -> Object | None:
    said = mapping(task, "partitionPolicy", where)
    if not said:
        return None
    inside = f"{where}partitionPolicy."
    policy: Object = {
        "name": name,
        "subGroupSize": number(said, "partitionSize", 0, inside),
        "minSubGroups": number(said, "minPartitions", 0, inside),
        "labelSelector": {"matchLabels": {keys.TASK: name}},
        "matchLabelKeys": [keys.PARTITION],
    }
    topology = mapping(said, "networkTopology", inside)
    return {**policy, "networkTopology": topology} if topology else policy


def _pods(of: Object, group: str, at: int, where: str, task: Object) -> Iterator[Part]:
    name, queue = name_of(of), text(of, "spec.queue") or DEFAULT_QUEUE
    named = _task(at, task, where)
    size = number(mapping(task, "partitionPolicy", where), "partitionSize", 0, where)
    written = mapping(task, "template", where)
    spec = {**mapping(written, "spec", f"{where}template.")}
    scheduler = text(of, "spec.schedulerName")
    if scheduler and not spec.get("schedulerName"):
        spec["schedulerName"] = scheduler
    priority = text(of, "spec.priorityClassName")
    if priority and not spec.get("priorityClassName"):
        spec["priorityClassName"] = priority
    template = {**written, "spec": spec}
    for index in range(number(task, "replicas", 1, where)):
        common = {
            _JOB_NAME: name,
            _QUEUE: queue,
            keys.TASK: named,
            keys.TASK_INDEX: str(index),
        }
        labels = {**common, keys.PARTITION: str(index // size)} if size else common
        annotations = {**common, keys.GROUP_NAME: group}
        inside = f"{where}template."
        yield pod(of, template, f"{name}-{named}-{index}", labels, annotations, inside)


def _requested(tasks: list[tuple[str, Object]], least: int) -> Object:
    """What the first so many pods request together, as quantities."""
    total = Counter[str]()
    for where, task in tasks:
        pods = min(number(task, "replicas", 1, where), least)
        least -= pods
        template = {"spec": mapping(task, "template.spec", where)}
        request = decode_pod(msgspec.json.encode(template), _nothing).request
        total.update({name: amount * pods for name, amount in request})
    return {name: f"{its}m" if name == "cpu" else str(its) for name, its in total.items()}


def _nothing(_key: str) -> bool:
    return False
