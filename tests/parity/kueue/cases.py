"""Kueue's recorded scenarios in our words, and our answers in Kueue's.

    scenario ─asked─▶ Question ─▶ find / complete ─▶ Placement | NoFit ─answered─▶ Kueue's form

The one place that knows this format, which ../shared/conformance/README.md describes; its fields
mean what they do in Kueue's pkg/cache/scheduler/tas_cache_test.go. What Kueue itself assumes is
said here, so that the same question is asked, and nowhere in the core:

* A slice size that does not divide the pods: Kueue drops the remainder without a word. We ask
  for the pods it does place; asked as it is, the request is refused (`has_remainder`).
* A leader is placed by the selectors of its workers.
* A lowest level that is not the hostname: Kueue takes all nodes of such a domain for one, and
  ignores their taints, labels and fragmentation. So do we here; the core never does.
* Replacement looks at one lost node, pod set by pod set, and refuses if another one is gone.
* Growth does not look where the pods that stay are (`Options.kept_bind`).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from topology import NODE_LEVEL, Capacity, Counts, ResourceAxis, Tree, build

UNITS = {"": 1, "m": Fraction(1, 1000)}
UNITS |= {letter: 1000**power for power, letter in enumerate("kMGTPE", 1)}
UNITS |= {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}

BROKE_DOWN = "panic"
"""Begins the reason of every pod set where Kueue gave no answer at all."""

Json = dict[str, Any]
Domains = list[tuple[tuple[str, ...], int]]
Answer = Domains | str
"""Of one pod set: (values of a domain, pods in it), or the reason why there are none."""


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a file."""

    number: int
    """Of the line, from 1."""
    scenario: Json
    expected: dict[str, Answer]
    """What Kueue answers, of the pod sets it answers at all."""

    @property
    def name(self) -> str:
        """Its own name where it has one, and its line."""
        name = self.scenario["name"]
        return f"{self.number} {name}" if len(name) > 1 else str(self.number)


def read(path: Path) -> Iterator[Case]:
    """Every case of a file, .jsonl or .jsonl.gz."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as lines:
        for number, line in enumerate(filter(str.strip, lines), 1):
            yield read_line(number, line)


def read_line(number: int, line: str) -> Case:
    """One line of a file."""
    record = json.loads(line)
    scenario = record.get("scenario", record)
    return Case(number, scenario, _expected(record, scenario))


def _expected(record: Json, scenario: Json) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    recorded = record.get("kueue")
    if "kueue" in record and not _is_answer(recorded):
        text = f"{BROKE_DOWN}: {json.dumps(recorded)}"
        return dict.fromkeys((pod_set["name"] for pod_set in scenario["podSets"]), text)
    for pod_set in scenario["podSets"]:
        if recorded is None:
            assignment, reason = pod_set.get("wantAssignment"), pod_set.get("wantReason")
        elif pod_set["name"] in recorded:
            answer = recorded[pod_set["name"]]
            assignment, reason = answer.get("ta"), answer.get("reason")
        else:
            continue
        if reason:
            answers[pod_set["name"]] = reason
        elif assignment is not None:
            answers[pod_set["name"]] = _domains(assignment)
    return answers


def _is_answer(recorded: object) -> bool:
    """Of each pod set an assignment or a reason; else Kueue panicked."""
    return (
        isinstance(recorded, dict)
        and bool(recorded)
        and all(isinstance(answer, dict) for answer in recorded.values())
    )


def _domains(assignment: Json) -> Domains:
    domains = assignment["Domains"] or []
    return [(tuple(domain["Values"]), domain["Count"]) for domain in domains]


# The cluster


class Cluster:
    """The nodes of one scenario, as Kueue sees them."""

    def __init__(self, scenario: Json) -> None:
        self.scenario = scenario
        self.levels: list[str] = scenario["levels"]
        self.has_nodes = self.levels[-1] == NODE_LEVEL
        flavor = scenario.get("flavorNodeLabels") or {}
        self.nodes: dict[str, Json] = {
            node["name"]: node
            for node in scenario["nodes"]
            if all(level in node["labels"] for level in self.levels)
            and flavor.items() <= node["labels"].items()
            and (self.has_nodes or is_open(node))
        }
        self.leaf_of = {name: self._leaf(node) for name, node in self.nodes.items()}
        self.tree = self._tree()
        self.axis = ResourceAxis()
        self.capacity = Capacity(self.axis, self.tree)
        self._offer()
        self._count_usage()

    def _leaf(self, node: Json) -> str:
        """Name of the slot: the node, or the domain Kueue takes for one."""
        if self.has_nodes:
            return str(node["name"])
        return ",".join(node["labels"][level] for level in self.levels)

    def _tree(self) -> Tree:
        paths: dict[str, list[str]] = {}
        for name, node in self.nodes.items():
            values = [node["labels"][level] for level in self.levels]
            paths[self.leaf_of[name]] = values
        return build([self.level(key) for key in self.levels], paths, generation=1)

    def level(self, key: str) -> str:
        """A level key in our words: the lowest one is that of our nodes."""
        return NODE_LEVEL if key == self.levels[-1] else key

    def key(self, level: str) -> str:
        """A level of ours in Kueue's words."""
        return self.levels[-1] if level == NODE_LEVEL else level

    def _offer(self) -> None:
        """Allocatable, of several nodes together where they count as one."""
        offered: dict[str, list[tuple[str, int]]] = {}
        for name, node in self.nodes.items():
            amounts = [(key, amount(key, text)) for key, text in node["allocatable"].items()]
            offered.setdefault(self.leaf_of[name], []).extend(amounts)
        for leaf, amounts in offered.items():
            takes_pods = not self.has_nodes or is_open(self.nodes[leaf])
            self.capacity.set_node(self.tree.slot_of[leaf], self.axis.vector(amounts), takes_pods)

    def _count_usage(self) -> None:
        """Pods that are not Kueue's, and what Kueue's other workloads use, by leaf."""
        for pod in self.scenario.get("pods") or []:
            if pod["nodeName"] in self.nodes and pod["phase"] not in ("Succeeded", "Failed"):
                amounts = [
                    (key, amount(key, text))
                    for container in pod["requests"]
                    for key, text in container.items()
                ]
                self.use(self.leaf_of[pod["nodeName"]], [*amounts, ("pods", 1)])
        for leaf, used in (self.scenario.get("aggregatedDomainUsage") or {}).items():
            self.use(leaf, list(used.items()))
        for used in self.scenario.get("priorOwnUsage") or []:
            leaf = self.slot_name(used["values"])
            self.use(leaf, [*used["singlePodRequests"].items(), ("pods", 1)], used["count"])

    def use(self, leaf: str, amounts: list[tuple[str, int]], pods: int = 1) -> None:
        """Counts pods on a leaf, if it is there."""
        slot = self._slot_of_value(leaf)
        if slot is not None:
            self.capacity.use(slot, self.axis.vector(amounts), pods)

    def _slot_of_value(self, leaf: str) -> int | None:
        if leaf in self.tree.slot_of or not self.has_nodes:
            return self.tree.slot_of.get(leaf)
        values = self.tree.names[-1]
        return values.index(leaf) if leaf in values else None

    def slot_name(self, values: list[str] | tuple[str, ...]) -> str:
        """The leaf Kueue means by the values of a domain."""
        return values[-1] if self.has_nodes else ",".join(values)

    def open_slot(self, values: list[str] | tuple[str, ...]) -> int | None:
        """The slot of a domain in an assignment; None if it is gone or not ready."""
        slot = self._slot_of_value(self.slot_name(values))
        return slot if slot is not None and self.capacity.is_open[slot] else None

    def refusals(self, pod_set: Json) -> list[str]:
        """Per slot why a pod set may not be there, in Kueue's words; empty where it may."""
        if not self.has_nodes:
            return [""] * len(self.tree.nodes)
        return [_refusal(self.nodes[name], pod_set) for name in self.tree.nodes]

    def scores(self, pod_set: Json) -> Counts | None:
        """Per slot the weights of the preferred terms that match."""
        terms = (pod_set.get("nodeAffinity") or {}).get(
            "preferredDuringSchedulingIgnoredDuringExecution"
        )
        if not self.scenario["featureGates"]["TASRespectNodeAffinityPreferred"] or not terms:
            return None
        if not self.has_nodes:
            return None
        return np.array(
            [
                sum(
                    term["weight"]
                    for term in terms
                    if _matches(term["preference"], self.nodes[name])
                )
                for name in self.tree.nodes
            ],
            dtype=np.int64,
        )

    def values_of(self, slot: int) -> tuple[str, ...]:
        """A slot as Kueue names it in an assignment."""
        path = self.tree.path(self.tree.node_level, slot)
        return path[-1:] if self.has_nodes else path


def is_open(node: Json) -> bool:
    """Whether the node takes pods."""
    return bool(node["ready"]) and not node.get("unschedulable", False)


def amount(resource: str, text: str) -> int:
    """A quantity in millicores or base units."""
    digits = text.rstrip("kKMGTPEim")
    amount = Fraction(digits) * UNITS[text[len(digits) :]]
    return int(amount * 1000 if resource == "cpu" else amount)


def _refusal(node: Json, pod_set: Json) -> str:
    """Untolerated taints, then the node selector, then affinity."""
    for taint in node.get("taints") or []:
        if taint["effect"] != "PreferNoSchedule" and not any(
            _tolerates(toleration, taint) for toleration in pod_set.get("tolerations") or []
        ):
            value = f"={taint['value']}" if taint.get("value") else ""
            return f'taint "{taint["key"]}{value}:{taint["effect"]}"'
    selector = pod_set.get("nodeSelector") or {}
    if not selector.items() <= node["labels"].items():
        return "nodeSelector"
    required = (pod_set.get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required and not any(_matches(term, node) for term in required["nodeSelectorTerms"]):
        return "affinity"
    return ""


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _matches(term: Json, node: Json) -> bool:
    """Whether a node selector term matches; one without any expression matches nothing."""
    labels, expressions = node["labels"], term.get("matchExpressions") or []
    fields = term.get("matchFields") or []
    return (
        bool(expressions or fields)
        and all(_holds(expression, labels.get(expression["key"])) for expression in expressions)
        and all(_holds(expression, node["name"]) for expression in fields)
    )


def _holds(expression: Json, value: str | None) -> bool:
    operator, values = expression["operator"], expression.get("values") or []
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    raise ValueError(f"operator {operator!r}")
