"""Where the product asks something else than Kueue does: one table, each entry with its reason.

An entry changes a scenario into what the product asks instead. It explains a difference only if
Kueue's way of answering, asked the changed scenario, comes to the product's very answer: pods
and domains, or numbers. So no entry hides a difference that it does not describe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from tests.parity.kueue.cases import Answer, Case, Json
from tests.parity.kueue.core.answers import answers
from tests.parity.kueue.core.questions import groups_of, has_remainder, layers_of
from tests.parity.kueue.product.cluster import Cluster
from tests.parity.kueue.product.outcome import Outcome
from topology import NODE_LEVEL, TopologyError


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that the product asks differently."""

    name: str
    reason: str
    applies: Callable[[Json], bool]
    changed: Callable[[Json], Json]


def explained_by(scenario: Json, outcome: Outcome) -> tuple[str, ...] | None:
    """Names of the fewest changes under which the core answers as the product does.

    None of them where both answer the scenario as it is alike; None: no changes come to that.
    """
    if has_remainder(scenario) and "must evenly divide pod set count" in outcome.sentence:
        return tuple(REFUSED)
    domains = Cluster(scenario).domains()
    applying = [change for change in CHANGES if change.applies(scenario)]
    for number in range(len(applying) + 1):
        for some in combinations(applying, number):
            changed = scenario
            for change in some:
                changed = change.changed(changed)
            if not outcome.differs(_answered(changed, domains)):
                return tuple(change.name for change in some)
    return None


def _answered(scenario: Json, domains: dict[str, tuple[str, ...]]) -> dict[str, Answer]:
    """The core's answers, with the domains of the scenario as it was."""
    try:
        found = answers(Case(0, scenario, {}))
    except (TopologyError, AssertionError) as error:
        return {"": str(error)}
    return {
        name: answer
        if isinstance(answer, str)
        else [(domains.get(values[-1], values), pods) for values, pods in answer]
        for name, answer in found.items()
    }


def _with_gates(**gates: bool) -> Callable[[Json], Json]:
    return lambda scenario: scenario | {"featureGates": scenario["featureGates"] | gates}


def _asked(**asked: object) -> Callable[[Json], Json]:
    return lambda scenario: scenario | {"asked": scenario.get("asked", {}) | asked}


def _by_demand(scenario: Json) -> Json:
    """Pod sets with the scarcest resources first: devices, then cpu and memory, by name."""

    def demand(pod_set: Json) -> list[tuple[bool, str, int]]:
        amounts = {**pod_set["requests"], "pods": 1}
        return sorted((("/" in key, key, n) for key, n in amounts.items() if n), reverse=True)

    return scenario | {"podSets": sorted(scenario["podSets"], key=demand, reverse=True)}


def _with_hostnames(scenario: Json) -> Json:
    nodes = [
        node | {"labels": {NODE_LEVEL: node["name"], **node["labels"]}}
        for node in scenario["nodes"]
    ]
    return scenario | {"nodes": nodes}


def _on_nodes(scenario: Json) -> Json:
    """The same with the nodes themselves as the lowest level, and usage on nodes."""
    cluster = Cluster(scenario)
    nodes = [
        node | {"labels": node["labels"] | {NODE_LEVEL: cluster.name_of(node)}}
        for node in scenario["nodes"]
    ]
    pods = [
        {
            "nodeName": _node_named(scenario, cluster, pod["spec"]["nodeName"]),
            "phase": pod["status"]["phase"],
            "requests": [c["resources"]["requests"] for c in pod["spec"]["containers"]],
        }
        for pod in cluster.used()
    ]
    return scenario | {
        "nodes": nodes,
        "pods": pods,
        "levels": [*scenario["levels"], NODE_LEVEL],
        "aggregatedDomainUsage": {},
        "priorOwnUsage": [],
    }


def _node_named(scenario: Json, cluster: Cluster, name: str) -> str:
    return next((n["name"] for n in scenario["nodes"] if cluster.name_of(n) == name), name)


def _without_levels(scenario: Json) -> Json:
    """All nodes, in the order of their names."""
    return scenario | {"levels": [NODE_LEVEL]}


def _has_lost_a_node(scenario: Json) -> bool:
    return bool((scenario.get("workload") or {}).get("unhealthyNodes"))


def _names_no_level(scenario: Json) -> bool:
    """No level but that of the nodes themselves."""
    named = {layer["topology"] for one in scenario["podSets"] for layer in layers_of(one)}
    for pod_set in scenario["podSets"]:
        request = pod_set["topologyRequest"] or {}
        named |= {request.get("required"), request.get("preferred")}
    return scenario["levels"] != [NODE_LEVEL] and named <= {None, NODE_LEVEL}


REFUSED = {
    "a slice size that does not divide": (
        "Kueue places no pod of the remainder, and does not say so; the product refuses the gang"
    )
}

CHANGES = (
    Change(
        "the hostname is not the lowest level",
        "Kueue takes all nodes of such a domain for one, and ignores their taints, labels and "
        "fragmentation; the product always places on nodes",
        lambda scenario: scenario["levels"][-1] != NODE_LEVEL,
        _on_nodes,
    ),
    Change(
        "a node without a hostname label",
        "Kueue leaves it out; the product goes by the node's name",
        lambda scenario: (
            scenario["levels"][-1] == NODE_LEVEL
            and any(NODE_LEVEL not in node["labels"] for node in scenario["nodes"])
        ),
        _with_hostnames,
    ),
    Change(
        "a lost pod that is a workload of its own",
        "Kueue leaves it where it was, for its workload ends with it; the product places the pod "
        "that comes in its place",
        _has_lost_a_node,
        _with_gates(SkipReassignmentForPodOwnedWorkloads=False),
    ),
    Change(
        "a loss that Kueue does not repair",
        "where another assigned node is gone as well, or part of a slice is to be replaced and no "
        "level is named beside the slices, Kueue evicts the workload; the product replaces every "
        "lost pod",
        _has_lost_a_node,
        _asked(any_loss=True),
    ),
    Change(
        "replaced beside the pods that run",
        "of a preferred level Kueue replaces pods wherever they fit best; the product looks in "
        "the domain where most of the others run first, then one level wider each time",
        _has_lost_a_node,
        _asked(beside=True),
    ),
    Change(
        "pods without a level",
        "a gang that names no level may use every node, also those without the labels of a "
        "topology; between equal nodes their names decide, in Kueue the domains around them",
        _names_no_level,
        _without_levels,
    ),
    Change(
        "TASProfileMixed off",
        "no setting: pods without a level always go to the fullest nodes first",
        lambda scenario: not scenario["featureGates"]["TASProfileMixed"],
        _with_gates(TASProfileMixed=True),
    ),
    Change(
        "order of the pod sets",
        "the pod sets that ask for the scarcest resources come first, whatever their order in the "
        "workload: pods of a group have none",
        lambda scenario: len(scenario["podSets"]) > 1,
        _by_demand,
    ),
    Change(
        "the leader's own selectors",
        "Kueue places a leader by the node selector, affinity and tolerations of its workers, "
        "where kube-scheduler may then refuse it; the product goes by its own",
        lambda scenario: any(len(group) > 1 for group in groups_of(scenario)),
        _asked(leaders_shape=True),
    ),
    Change(
        "another place than the first",
        "where Kueue's place for an earlier pod set leaves no room for a later one, or that for a "
        "lost part of a slice none for slices lost whole, the product tries others before it "
        "gives up",
        lambda scenario: len(groups_of(scenario)) > 1 or _has_lost_a_node(scenario),
        _asked(tries=32),
    ),
)
