"""Kueue's recorded scenarios in our words: the test's own dialect, kept literal and small.

The format is described in ../shared/conformance/README.md, the meaning of the fields in
reference/kueue.md sections 1.4, 1.5 and 2.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    Gang,
    Group,
    Mask,
    PodSet,
    ResourceAxis,
    Tree,
    build,
    levels_of,
)

FOLDER = Path(__file__).parents[2] / ".." / "shared" / "conformance" / "kueue"
UNITS = {"": 1, "m": Fraction(1, 1000)} | {
    suffix: scale**power
    for scale, suffixes in ((1000, ["k", "M", "G", "T"]), (1024, ["Ki", "Mi", "Gi", "Ti"]))
    for power, suffix in enumerate(suffixes, 1)
}

Json = dict[str, Any]
Domains = list[tuple[tuple[str, ...], int]]


def read(name: str) -> Iterator[tuple[Json, dict[str, Domains | None]]]:
    """Each scenario of one file with Kueue's answer per pod set; None: it gave a reason instead."""
    with gzip.open(FOLDER / name, "rt") as lines:
        for line in lines:
            case = json.loads(line)
            scenario = case.get("scenario", case)
            answers: dict[str, Domains | None] = {}
            for pod_set in scenario["podSets"]:
                if "kueue" in case:
                    answer = case["kueue"].get(pod_set["name"], {})
                    assignment, reason = answer.get("ta"), answer.get("reason")
                else:
                    assignment, reason = pod_set.get("wantAssignment"), pod_set.get("wantReason")
                answers[pod_set["name"]] = None if reason else _domains(assignment)
            yield scenario, answers


def _domains(assignment: Json | None) -> Domains | None:
    if assignment is None:
        return None
    return [(tuple(domain["Values"]), domain["Count"]) for domain in assignment["Domains"]]


def out_of_scope(scenario: Json) -> str:
    """Why a scenario is not run; empty if it is."""
    gates, requests = scenario["featureGates"], []
    for pod_set in scenario["podSets"]:
        requests.append(pod_set.get("topologyRequest") or {})
        if pod_set.get("podSetGroupName"):
            return "leader and workers"
        if pod_set.get("previousAssignment"):
            return "previous assignment"
    if any("lice" in field for request in requests for field in request):
        return "slices"
    if scenario["levels"][-1] != NODE_LEVEL:
        return "lowest level is not the node"
    if (scenario.get("workload") or {}).get("unhealthyNodes") or scenario.get("priorOwnUsage"):
        return "node replacement"
    if gates["TASBalancedPlacement"] and any(request.get("preferred") for request in requests):
        return "gate TASBalancedPlacement, preferred"
    if not gates["TASProfileMixed"] and any(_constraint(r) == Constraint() for r in requests):
        return "gate TASProfileMixed off, unconstrained"
    if any(pod_set.get("nodeAffinity") for pod_set in scenario["podSets"]):
        return "node affinity"
    return ""


def translated(scenario: Json) -> tuple[Tree, Capacity, Gang, dict[Any, Mask]]:
    """One scenario as what `topology.find` takes."""
    levels = levels_of(scenario["levels"])
    flavor = scenario.get("flavorNodeLabels") or {}
    nodes = {
        node["name"]: node
        for node in scenario["nodes"]
        if all(level in node["labels"] for level in levels)
        and flavor.items() <= node["labels"].items()
    }
    values = {name: [node["labels"][level] for level in levels] for name, node in nodes.items()}
    tree = build(levels, values, generation=1)
    axis = ResourceAxis()
    capacity = Capacity(axis, tree)
    for name, node in nodes.items():
        is_open = node["ready"] and not node.get("unschedulable", False)
        capacity.set_node(tree.slot_of[name], _vector(axis, node["allocatable"]), is_open)
    _count_usage(scenario, capacity, nodes)
    pod_sets = tuple(
        PodSet(
            name=pod_set["name"] or "main",
            pods=pod_set["count"],
            request=axis.vector({"pods": 1, **pod_set["requests"]}.items()),
            shape=index,
            constraint=_constraint(pod_set.get("topologyRequest") or {}),
        )
        for index, pod_set in enumerate(scenario["podSets"])
    )
    masks: dict[Any, Mask] = {
        index: np.array([_may_host(nodes[name], pod_set) for name in tree.nodes], dtype=np.bool_)
        for index, pod_set in enumerate(scenario["podSets"])
    }
    return tree, capacity, Gang("ns/gang", Group("root", pod_sets)), masks


def _constraint(request: Json) -> Constraint:
    return Constraint(required=request.get("required"), preferred=request.get("preferred"))


def _count_usage(scenario: Json, capacity: Capacity, nodes: Mapping[str, Json]) -> None:
    """Pods that are not Kueue's, and what Kueue's other workloads use, by hostname."""
    tree, axis = capacity.tree, capacity.axis
    for pod in scenario.get("pods") or []:
        if pod["nodeName"] in nodes and pod["phase"] not in ("Succeeded", "Failed"):
            request = [0] * len(axis)
            for container in pod["requests"]:
                for row, amount in enumerate(_vector(axis, container)):
                    request[row] += amount
            request[0] = 1
            capacity.use(tree.slot_of[pod["nodeName"]], request)
    for hostname, used in scenario["aggregatedDomainUsage"].items():
        for name, node in nodes.items():
            if node["labels"][NODE_LEVEL] == hostname:
                capacity.use(tree.slot_of[name], axis.vector(used.items()))


def _vector(axis: ResourceAxis, quantities: Mapping[str, str]) -> tuple[int, ...]:
    return axis.vector((name, _amount(name, text)) for name, text in quantities.items())


def _amount(resource: str, text: str) -> int:
    digits = text.rstrip("kKMGTim")
    amount = Fraction(digits) * UNITS[text[len(digits) :]]
    return int(amount * 1000 if resource == "cpu" else amount)


def _may_host(node: Json, pod_set: Json) -> bool:
    """Untolerated taints, then the node selector (kueue.md 1.5)."""
    selector = pod_set.get("nodeSelector") or {}
    return selector.items() <= node["labels"].items() and all(
        taint["effect"] == "PreferNoSchedule"
        or any(_tolerates(toleration, taint) for toleration in pod_set.get("tolerations") or [])
        for taint in node.get("taints") or []
    )


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
