"""A scenario of Kueue's as the Kubernetes objects that a user writes.

    nodes, levels, usage         `cluster.py`
    pod sets                     the pods of one pod group; each names its role itself, as those of
                                 Kueue's integrations do: the webhook's hash cannot tell equal pods
                                 apart that belong to different pod sets
    the labels of a flavor       in the pods' node selector, where Kueue puts them
    a workload with a lost node  its pods on other nodes run, those of the lost node wait once more

What no user can ask for, or Kueue itself would refuse, raises NotReachable.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.parity.kueue.cases import Domains, Json
from tests.parity.kueue.core.questions import Question, groups_of, layers_of
from tests.parity.kueue.product.cluster import Cluster, container, topology
from tests.parity.product import Object

PREFIX = "kueue.x-k8s.io/"
ANNOTATIONS = {
    "required": "podset-required-topology",
    "preferred": "podset-preferred-topology",
    "podSetSliceRequiredTopology": "podset-slice-required-topology",
    "podSetSliceSize": "podset-slice-size",
}
"""Field of a topology request -> the annotation it is made from."""

NAMESPACE = "ns"
GROUP = "gang"

ELASTIC = "a workload that grows or shrinks: its Job's controller says which pods stay"
SLICED_GROUP = "a pod set group beside slices: Kueue's own webhook refuses it"
FREE_GROUP = "a pod set group without a required or preferred level: Kueue's own webhook refuses it"
NO_PAIR = "a pod set group that is not a leader and its workers: Kueue's own webhook refuses it"
HALF_A_SLICE = "a slice level without a size, or a size without a level: refused by the webhook"
NEVER_PLACED = "a workload whose pods were never placed, so that none of them can be lost"


class NotReachable(Exception):
    """No user can ask for this; the text is the reason."""


@dataclass(slots=True)
class Written:
    """The objects of a scenario, and which of its pod sets each pod belongs to."""

    scenario: Json
    objects: list[Object] = field(default_factory=list)
    set_of: dict[str, int] = field(default_factory=dict)
    """Name of a pod that waits -> index of its pod set."""
    running: dict[int, Counter[str]] = field(default_factory=dict)
    """Index of a pod set -> its pods on each node."""


def written(scenario: Json) -> Written:
    """The objects a user writes for a scenario. Raises: NotReachable."""
    _check(scenario)
    result = Written(scenario)
    cluster = Cluster(scenario)
    result.objects += [topology(scenario["levels"]), *cluster.used()]
    if (scenario.get("workload") or {}).get("unhealthyNodes"):
        _write_again(result, cluster)
    else:
        _write_new(result)
    result.objects += cluster.nodes()
    return result


def _check(scenario: Json) -> None:
    """Raises: NotReachable."""
    if any(pod_set.get("previousAssignment") for pod_set in scenario["podSets"]):
        raise NotReachable(ELASTIC)
    for group in groups_of(scenario):
        if any(map(_has_half_a_slice, group)):
            raise NotReachable(HALF_A_SLICE)
        if len(group) == 1 and not group[0].get("podSetGroupName"):
            continue
        if any(layers_of(one) for one in group):
            raise NotReachable(SLICED_GROUP)
        levels = [_levels_of(one) for one in group]
        if not any(any(each) for each in levels):
            raise NotReachable(FREE_GROUP)
        if len(group) != 2 or min(one["count"] for one in group) != 1 or levels[0] != levels[1]:
            raise NotReachable(NO_PAIR)


def _has_half_a_slice(pod_set: Json) -> bool:
    layers, request = layers_of(pod_set), pod_set["topologyRequest"] or {}
    return not all(layer["size"] for layer in layers) or (
        "podSetSliceSize" in request and not layers
    )


def _levels_of(pod_set: Json) -> tuple[str | None, str | None]:
    request = pod_set["topologyRequest"] or {}
    return request.get("required"), request.get("preferred")


# The workload


def _write_new(result: Written) -> None:
    pod_sets = result.scenario["podSets"]
    total = sum(pod_set["count"] for pod_set in pod_sets)
    for index, pod_set in enumerate(pod_sets):
        _write_waiting(result, index, pod_set["count"], total)


def _write_again(result: Written, cluster: Cluster) -> None:
    """Members that run where they were assigned, and those that wait for a lost one's place."""
    question = Question(result.scenario)
    assigned: dict[int, Domains] = {}
    for index, pod_set in enumerate(result.scenario["podSets"]):
        domains = question.assigned(pod_set)
        if domains is not None:
            assigned[index] = domains
    if not assigned:
        raise NotReachable(NEVER_PLACED)
    total = sum(pods for domains in assigned.values() for _, pods in domains)
    for index, domains in assigned.items():
        stays = [
            (values[-1], pods)
            for values, pods in question.stays(domains)
            if question.cluster.open_slot(values) is not None  # else it is lost as well
        ]
        for node, pods in stays:
            _write_running(result, index, node, pods, total)
            # Kueue was told of no usage but the scenario's, so the node has that much more.
            cluster.make_room(node, result.scenario["podSets"][index]["requests"], pods)
        lost = sum(pods for _, pods in domains) - sum(pods for _, pods in stays)
        _write_waiting(result, index, lost, total)


def _write_running(result: Written, index: int, node: str, pods: int, total: int) -> None:
    spec = _spec(result.scenario, index) | {"nodeName": node}
    annotations = _annotations(result.scenario, index, total)
    for number in range(pods):
        pod = _pod(f"{index}-{node}-{number}", spec, annotations)
        result.objects.append(pod | {"status": {"phase": "Running"}})
    result.running.setdefault(index, Counter())[node] += pods


def _write_waiting(result: Written, index: int, pods: int, total: int) -> None:
    spec = _spec(result.scenario, index)
    annotations = _annotations(result.scenario, index, total)
    for number in range(pods):
        name = f"{index}-{number}"
        result.set_of[name] = index
        result.objects.append(_pod(name, spec, annotations))


def _pod(name: str, spec: Json, annotations: Mapping[str, str]) -> Object:
    return {
        "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": f"uid-{name}",
            "annotations": dict(annotations),
        },
        "spec": {"schedulerName": "corral", **spec},
    }


def _spec(scenario: Json, index: int) -> Json:
    pod_set = scenario["podSets"][index]
    selector = {
        **(scenario.get("flavorNodeLabels") or {}),
        **(pod_set.get("nodeSelector") or {}),
    }
    spec: Json = {"containers": [container(pod_set["requests"])]}
    if selector:
        spec["nodeSelector"] = selector
    if pod_set.get("tolerations"):
        spec["tolerations"] = pod_set["tolerations"]
    if pod_set.get("nodeAffinity"):
        spec["affinity"] = {"nodeAffinity": pod_set["nodeAffinity"]}
    return spec


def _annotations(scenario: Json, index: int, total: int) -> dict[str, str]:
    pod_set = scenario["podSets"][index]
    request = pod_set["topologyRequest"] or {}
    found = {
        "pod-group-name": GROUP,
        "pod-group-total-count": str(total),
        "role-hash": f"set-{index}",
    }
    if pod_set.get("podSetGroupName"):
        found["podset-group-name"] = pod_set["podSetGroupName"]
    for field_name, annotation in ANNOTATIONS.items():
        if request.get(field_name):
            found[annotation] = str(request[field_name])
    if request.get("unconstrained"):
        found["podset-unconstrained-topology"] = "true"
    layers = request.get("podsetSliceRequiredTopologyConstraints")
    if layers:
        found["podset-slice-required-topology-constraints"] = json.dumps(layers)
    return {PREFIX + key: text for key, text in found.items()}
