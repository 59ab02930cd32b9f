"""The same scenarios through the product: as the objects that a user of Volcano has.

    scenario ─▶ HyperNodes, PodGroups, pods, nodes ─▶ `parity.product` ─▶ node of each pod

A vcjob's PodGroup is written as Volcano's controller writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.app.dialects.volcano.objects import hyper_node
from tests.app.dialects.volcano.workloads import GROUP_NAME, PARTITION, TASK
from tests.parity.product import Object, Told, told
from tests.parity.volcano.cases import OVERHEAD, domains_of

NAMESPACE = "c1"
Json = dict[str, Any]


def placed(scenario: Json) -> dict[str, str]:
    """The node of each pod that a unit scenario has bound, as "namespace/name"."""
    objects = [*_nodes(scenario), *_hyper_nodes(scenario)]
    objects += [_pod_group(group) for group in scenario["podGroups"]]
    objects += [_pod(pod) for pod in scenario["pods"]]
    return {f"{NAMESPACE}/{name}": each.node for name, each in _asked(objects).items() if each.node}


def _asked(objects: list[Object]) -> Mapping[str, Told]:
    return told(objects, {})


def _nodes(scenario: Json) -> Iterator[Object]:
    for node in scenario["nodes"]:
        yield _node(node["name"], node["allocatable"], node["labels"])


def _node(name: str, allocatable: Json, labels: Json | None = None) -> Object:
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels or {}},
        "status": {
            "allocatable": {"pods": "110", **allocatable},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _hyper_nodes(scenario: Json) -> Iterator[Object]:
    if not scenario["hyperNodes"]:
        return
    names = {tier: name for name, tier in scenario["tierNames"].items()}
    domains, claims = domains_of(scenario)
    for domain in domains:
        members = [
            *(("HyperNode", inner) for inner in domain.inner),
            *(("Node", node) for node, its in claims.items() if domain.name in its),
        ]
        yield _hyper_node(domain.name, domain.tier, members, names.get(domain.tier, ""))


def _hyper_node(name: str, tier: int, members: list[tuple[str, str]], tier_name: str) -> Object:
    exact = [
        {"type": kind, "selector": {"exactMatch": {"name": member}}} for kind, member in members
    ]
    made = hyper_node(name, tier, exact)
    made["spec"]["tierName"] = tier_name
    return made


def _pod_group(group: Json) -> Object:
    topology = group.get("networkTopology")
    return {
        "kind": "PodGroup.scheduling.volcano.sh",
        "metadata": {
            "name": group["name"],
            "namespace": NAMESPACE,
            "uid": f"uid-{group['name']}",
        },
        "spec": {
            "minMember": group["minMember"],
            "minTaskMember": group.get("minTaskMember") or None,
            "networkTopology": topology and _topology(topology),
            "subGroupPolicy": [
                {**policy, "networkTopology": _topology(policy["networkTopology"])}
                for policy in group["subGroupPolicy"]
            ],
        },
    }


def _topology(topology: Json | None) -> Json | None:
    """As the API server stores it: what is not said is not there."""
    if not topology:
        return None
    return {key: value for key, value in topology.items() if value not in (None, "")}


def _pod(pod: Json) -> Object:
    return {
        "kind": "Pod",
        "metadata": {
            "name": pod["name"],
            "namespace": NAMESPACE,
            "uid": f"uid-{pod['name']}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": pod["labels"],
            "annotations": {GROUP_NAME: pod["podGroup"]},
        },
        "spec": {
            "schedulerName": "corral",
            "nodeName": pod["nodeName"] or None,
            "nodeSelector": pod["nodeSelector"],
            "containers": [{"name": "main", "resources": {"requests": pod["requests"]}}],
        },
        "status": {"phase": "Running" if pod["nodeName"] else "Pending"},
    }


# End-to-end cases


def rounds(case: Json, tree: Json) -> Iterator[dict[str, str]]:
    """The node of each pod of the job: once it has started, and again when pods were killed."""
    objects = list(_end_to_end(case, tree))
    pods = [_task_pod(each) for each in _tasks(case["job"])]
    for _ in range(2):
        answers = _asked([*objects, *pods])
        for pod in pods:
            told_node = answers.get(pod["metadata"]["name"], Told()).node
            pod["spec"]["nodeName"] = pod["spec"]["nodeName"] or told_node or None
            pod["status"]["phase"] = "Running" if pod["spec"]["nodeName"] else "Pending"
        yield {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in pods
            if pod["spec"]["nodeName"]
        }
        running = [pod for pod in pods if pod["spec"]["nodeName"]]
        for pod in running[: case["expect"]["killsPods"]]:
            pod["spec"]["nodeName"] = None
            pod["metadata"]["uid"] += "-again"


def _end_to_end(case: Json, tree: Json) -> Iterator[Object]:
    has, names = tree["nodeCapacity"], {name for its in tree["tiers"].values() for name in its}
    members = {each for its in tree["tiers"].values() for one in its.values() for each in one}
    for node in sorted(members - names):
        yield _node(node, {"cpu": str(has["cpu"]), "memory": f"{has['memoryGi']}Gi"})
        yield _ordinary(f"daemon-{node}", node, {key: _text(key, its) for key, its in OVERHEAD})
    for tier, its in tree["tiers"].items():
        for name, inside in its.items():
            members_of = [("HyperNode" if one in names else "Node", one) for one in inside]
            yield _hyper_node(name, int(tier), members_of, "")
    for pod in case["occupied"]:
        yield _ordinary(pod["name"], pod["node"], _requests(pod))
    yield _pod_group(_group(case["job"]))


def _text(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == "cpu" else str(amount)


def _requests(each: Json) -> Json:
    return {"cpu": str(each["cpu"]), "memory": f"{each['memoryGi']}Gi"}


def _ordinary(name: str, node: str, requests: Json) -> Object:
    pod = {"name": name, "nodeName": node, "labels": {}, "nodeSelector": {}, "podGroup": ""}
    made = _pod({**pod, "requests": requests})
    made["metadata"]["annotations"] = {}
    return made


def _group(job: Json) -> Json:
    """The PodGroup that Volcano's controller writes for a vcjob."""
    least = {task["name"]: _least(task) for task in job["tasks"]}
    return {
        "name": "job",
        "minMember": job["minAvailable"] or sum(least.values()),
        "minTaskMember": least,
        "networkTopology": job["networkTopology"],
        "subGroupPolicy": [
            {
                "name": task["name"],
                "labelSelector": {"matchLabels": {TASK: task["name"]}},
                "matchLabelKeys": [PARTITION],
                "subGroupSize": policy["partitionSize"],
                "minSubGroups": policy["minPartitions"],
                "networkTopology": policy["networkTopology"],
            }
            for task in job["tasks"]
            if (policy := task["partitionPolicy"]) is not None
        ],
    }


def _least(task: Json) -> int:
    """As Volcano's webhook fills it in."""
    policy = task["partitionPolicy"] or {"minPartitions": 0, "partitionSize": 0}
    by_partitions = policy["minPartitions"] * policy["partitionSize"]
    return int(task["min"] if task["min"] is not None else by_partitions or task["replicas"])


def _tasks(job: Json) -> Iterator[Json]:
    for task in job["tasks"]:
        policy = task["partitionPolicy"]
        for index in range(task["replicas"]):
            labels = {TASK: task["name"]}
            if policy is not None:
                labels[PARTITION] = str(index // policy["partitionSize"])
            yield {
                "name": f"{task['name']}-{index}",
                "labels": labels,
                "requests": _requests(task),
            }


def _task_pod(each: Json) -> Object:
    return _pod({"nodeName": "", "nodeSelector": {}, "podGroup": "job", **each})
