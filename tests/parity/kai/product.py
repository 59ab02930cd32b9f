"""The same scenarios through the product: as the objects that a user of KAI-Scheduler has.

    scenario ─▶ Topologies, PodGroups, pods, nodes ─▶ `parity.product` ─▶ node of each pod

A job's PodGroup is written as KAI's pod-grouper, or Grove's operator, would write it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.parity.kai.cases import AFFINITY, NEVER_SHORT, Case, Cluster, compared, expected_binds
from tests.parity.product import Object, told

NAMESPACE = "c1"
GPU = "nvidia.com/gpu"
Json = dict[str, Any]


def difference(case: Case) -> str:
    """How the answers for the jobs of a case differ from those expected; empty if they do not."""
    scenario = case.scenario
    answers = told(_objects(scenario), {})
    before = {name: Counter(requests) for name, requests in Cluster.of(scenario).on_node.items()}
    bound = 0
    for job in scenario["Jobs"]:
        found: dict[str, Counter[str]] = {}
        for name, task in _tasks(job):
            if task["State"] == "Pending" and answers[name].node:
                places = found.setdefault(
                    f"{job['Name']}/{task.get('SubGroupName', '')}/0", Counter()
                )
                places[answers[name].node] += 1
        bound += sum(places.total() for places in found.values())
        pending = any(task["State"] == "Pending" for task in job["Tasks"])
        wrong = compared(scenario, job, found or None, before) if pending else ""
        if wrong:
            why = {each.sentence for each in answers.values() if each.sentence}
            return "\n    ".join((wrong, *sorted(why)))
    binds = expected_binds(scenario)
    return f"{bound} tasks placed, not {binds}" if binds not in (None, bound) else ""


def _objects(scenario: Json) -> Iterator[Object]:
    for one in scenario["Topologies"]:
        levels = [{"nodeLabel": level["NodeLabel"]} for level in one["Spec"]["Levels"]]
        name = one["ObjectMeta"]["Name"]
        yield _object("Topology.kai.scheduler", name, {"levels": levels})
    for name, node in scenario["Nodes"].items():
        yield _node(name, node)
    for job in scenario["Jobs"]:
        yield _pod_group(job)
        yield from (_pod(job, name, task) for name, task in _tasks(job))


def _object(kind: str, name: str, spec: Json, **metadata: Any) -> Object:
    return {
        "kind": kind,
        "metadata": {"name": name, "uid": f"uid-{name}", **metadata},
        "spec": spec,
    }


def _node(name: str, node: Json) -> Object:
    allocatable = {
        "pods": str(node.get("MaxTaskNum") or 110),
        "cpu": f"{int(node.get('CPUMillis') or NEVER_SHORT)}m",
        "memory": str(int(node.get("CPUMemory") or NEVER_SHORT)),
        GPU: str(node.get("GPUs", 0)),
    }
    ready = {"type": "Ready", "status": "True"}
    made = _object("Node", name, {}, labels=node.get("Labels", {}))
    return {**made, "status": {"allocatable": allocatable, "conditions": [ready]}}


def _pod_group(job: Json) -> Object:
    root = job.get("RootSubGroupSet") or {}
    sub_groups = list(_sub_groups(root, None))
    spec: Json = {"queue": job["QueueName"], "topologyConstraint": _constraint(root)}
    if sub_groups:
        spec["subGroups"] = sub_groups
        if root.get("minSubGroup"):
            spec["minSubGroup"] = root["minSubGroup"]
    else:
        spec["minMember"] = len(job["Tasks"])
    return _object("PodGroup.scheduling.run.ai", job["Name"], spec, namespace=NAMESPACE)


def _sub_groups(inside: Json, parent: str | None) -> Iterator[Json]:
    for each in (*(inside.get("groups") or ()), *(inside.get("podSets") or ())):
        made: Json = {"name": each["name"], "topologyConstraint": _constraint(each)}
        if parent is not None:
            made["parent"] = parent
        if each.get("minAvailable"):
            made["minMember"] = each["minAvailable"]
        if each.get("minSubGroup"):
            made["minSubGroup"] = each["minSubGroup"]
        yield made
        yield from _sub_groups(each, each["name"])


def _constraint(of: Json) -> Json:
    said = of.get("topology") or {}
    made = {
        "topology": said.get("Topology"),
        "requiredTopologyLevel": said.get("RequiredLevel"),
        "preferredTopologyLevel": said.get("PreferredLevel"),
    }
    return {key: value for key, value in made.items() if value}


def _tasks(job: Json) -> Iterator[tuple[str, Json]]:
    return ((f"{job['Name'].replace('_', '-')}-{at}", each) for at, each in enumerate(job["Tasks"]))


def _pod(job: Json, name: str, task: Json) -> Object:
    requests = {
        "cpu": f"{int(job.get('RequiredCPUsPerTask') or 0)}m",
        "memory": str(int(job.get("RequiredMemoryPerTask") or 0)),
        GPU: str(task.get("RequiredGPUs") or job.get("RequiredGPUsPerTask") or 0),
    }
    sub_group = task.get("SubGroupName")
    made = _object(
        "Pod",
        name,
        {
            "schedulerName": "corral",
            "nodeName": task.get("NodeName") if task["State"] != "Pending" else None,
            "affinity": _affinity(task.get("NodeAffinityNames") or []),
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
        namespace=NAMESPACE,
        creationTimestamp="2026-01-01T00:00:00Z",
        labels={"kai.scheduler/subgroup-name": sub_group} if sub_group else {},
        annotations={"pod-group-name": job["Name"]},
    )
    is_pending = task["State"] == "Pending"
    return {**made, "status": {"phase": "Pending" if is_pending else "Running"}}


def _affinity(names: list[str]) -> Json | None:
    if not names:
        return None
    terms = [{"matchExpressions": [{"key": AFFINITY, "operator": "In", "values": names}]}]
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
