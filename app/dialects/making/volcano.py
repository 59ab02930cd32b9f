"""Volcano's jobs: their PodGroup, and the pods that they have once that is Inqueue.

Source: volcano pkg/controllers/job/job_controller_{actions,util}.go, and what its webhook writes
where nothing is said: pkg/webhooks/admission/jobs/mutate (v1.14). No schema has a default for the
replicas of a task: one that says nothing has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from app.dialects.making.parts import (
    MOST_NUMBER,
    Misfit,
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
    """A vcjob, its PodGroup, and the pods of the tasks that wait for no other, task by task."""
    yield Part(of)
    tasks = list(numbered(listed(of, "spec.tasks"), "spec.tasks"))
    least_of = {
        _task(at, task, where): _least(task, where) for at, (where, task) in enumerate(tasks)
    }
    name = f"{name_of(of)}-{text(of, 'metadata.uid')}"
    yield Part(_pod_group(of, name, tasks, least_of))
    for at, (where, task) in enumerate(tasks):
        if not _waits(task, where, least_of):
            yield from _pods(of, name, at, where, task)


def _task(at: int, task: Object, where: str) -> str:
    return text(task, "name", where) or f"default{at}"


def _replicas(task: Object, where: str) -> int:
    return number(task, "replicas", 0, where)


def _least(task: Object, where: str) -> int:
    """How many pods of a task it takes to start."""
    policy, inside = mapping(task, "partitionPolicy", where), f"{where}partitionPolicy."
    whole = _replicas(task, where)
    if policy:
        partitions = number(policy, "minPartitions", 0, inside)
        whole = min(partitions * number(policy, "partitionSize", 0, inside), MOST_NUMBER)
    return number(task, "minAvailable", whole, where)


def _waits(task: Object, where: str, least_of: Mapping[str, int]) -> bool:
    """Whether a task's pods are made only once so many pods of others are ready as these need.

    Source: volcano pkg/controllers/job/job_controller_actions.go, waitDependsOnTaskMeetCondition.
    """
    said = mapping(task, "dependsOn", where)
    names = said.get("name") or []
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise Misfit(f"{where}dependsOn.name", names, "must be a list of texts")
    waits = [least_of.get(each) != 0 for each in names]
    is_any = text(said, "iteration", f"{where}dependsOn.") == "any" and len(names) > 1
    return all(waits) if is_any else any(waits)


def _pod_group(
    of: Object, name: str, tasks: list[tuple[str, Object]], least_of: Mapping[str, int]
) -> Object:
    least = number(of, "spec.minAvailable", 0) or sum(least_of.values())
    policies = [
        policy
        for at, (where, task) in enumerate(tasks)
        if (policy := _policy(_task(at, task, where), task, where)) is not None
    ]
    spec: Object = {
        "minMember": least,
        "minTaskMember": dict(least_of),
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
    for index in range(_replicas(task, where)):
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
    """What the first so many pods request together, as quantities.

    They are those that the tasks need, then the others, if these are not more than it takes.
    """
    total = Counter[str]()
    for (where, task), pods in zip(tasks, _counted(tasks, least), strict=True):
        template = {"spec": mapping(task, "template.spec", where)}
        request = decode_pod(msgspec.json.encode(template), _nothing).request
        total.update({name: amount * pods for name, amount in request})
    return {name: f"{its}m" if name == "cpu" else str(its) for name, its in total.items()}


def _counted(tasks: list[tuple[str, Object]], least: int) -> list[int]:
    """How many pods of each task are counted.

    Source: volcano pkg/controllers/job/job_controller_util.go, CalcFirstCountResources and
    CalcPGMinResources, but for the order of tasks with a PriorityClass.
    """
    replicas = [_replicas(task, where) for where, task in tasks]
    needed = [min(_least(task, where), _replicas(task, where)) for where, task in tasks]
    counted = [0] * len(tasks)
    if sum(needed) <= least:
        counted = _filled(counted, needed, least)
    return _filled(counted, replicas, least - sum(counted))


def _filled(counted: list[int], most: list[int], pods: int) -> list[int]:
    """The numbers with so many more, each up to its most, the first ones first."""
    filled = []
    for its, up_to in zip(counted, most, strict=True):
        more = min(up_to - its, pods)
        pods -= more
        filled.append(its + more)
    return filled


def _nothing(_key: str) -> bool:
    return False
