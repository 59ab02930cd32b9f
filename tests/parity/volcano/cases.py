"""Volcano's recorded scenarios in our words, and our answers held against what they expect.

    scenario ─▶ Job ─▶ Gang ─▶ find, and again if pods are killed ─▶ node of each pod

The one place that knows these formats, described in ../shared/conformance/README.md; their
meaning is that of Volcano's pkg/scheduler/plugins/network-topology-aware. What Volcano assumes:

* A tier is a level; hard up to tier k is required k, preferred the narrowest; soft is the latter
  alone. A tier above all others is the whole cluster. An unknown tier name is no constraint.
* All pods of a sub-group are looked at together, then those that are needed; a job is bound only
  when it is ready.
* Pods that run bind the others to the domain they are in, at the tier that is allowed.
* Policies without a domain tree (no HyperNode objects) see the cluster as one domain.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tests.parity.kueue.cases import UNITS
from tests.parity.volcano.cluster import Cluster, Job, Json, Pod, Policy, place
from topology import (
    Capacity,
    ResourceAxis,
    build,
)
from topology.model.explicit_tree import Domain, Forest

Claims = dict[str, list[str]]
"""node -> the domains that name it as their member"""

LEFT_OUT: dict[str, str] = {
    "1.3": "passes without a check upstream: the requests it states do fit",
    "2.1": "depends on Volcano's node scoring plugins",
    "2.2": "passes without a check upstream: the requests it states do fit",
    "7.2": "passes without a check upstream: the requests it states do fit",
}
"""Number of an end-to-end case -> why it proves nothing."""

OVERHEAD = (("cpu", 100), ("memory", 50 * 2**20))
"""What a daemon takes of each node of the end-to-end cluster."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario of either kind."""

    name: str
    scenario: Json
    tree: Json | None = None
    """Of an end-to-end case."""

    @property
    def left_out(self) -> str:
        """Why it proves nothing; empty if it does."""
        number = self.name.removeprefix("Case ").partition(":")[0]
        return LEFT_OUT.get(number, "") if self.tree is not None else ""


def read(path: Path) -> Iterator[Case]:
    """Every case of a file, .json or .json.gz, of either kind."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as text:
        content = json.load(text)
    for scenario in content.get("scenarios", ()):
        yield Case(scenario["id"], scenario)
    for case in content.get("cases", ()):
        yield Case(case["name"], case, content["tree"])


def amount(resource: str, quantity: str) -> int:
    """A quantity in millicores or base units."""
    text = str(quantity)
    digits = text.rstrip("".join({letter for unit in UNITS for letter in unit}))
    number = Fraction(digits) * UNITS[text[len(digits) :]]
    return int(number * 1000 if resource == "cpu" else number)


def difference(case: Case) -> str:
    """How our answer to a case differs from what it expects; empty if it does not."""
    return _unit(case.scenario) if case.tree is None else _end_to_end(case.scenario, case.tree)


# Unit scenarios


def _unit(scenario: Json) -> str:
    domains, claims = domains_of(scenario) if scenario["hyperNodes"] else ([], {})
    root_tier = max(map(int, scenario["tiers"]), default=0) + 1
    offered = {
        node["name"]: [(key, amount(key, value)) for key, value in node["allocatable"].items()]
        for node in scenario["nodes"]
    }
    labels = {node["name"]: dict(node["labels"]) for node in scenario["nodes"]}
    cluster = _cluster(domains, claims, offered, labels, root_tier, scenario["tierNames"])
    jobs = [_job(scenario, group) for group in scenario["podGroups"]]
    for job in jobs:
        for pod in job.pods:
            if pod.node in cluster.tree.slot_of:
                cluster.capacity.use(cluster.tree.slot_of[pod.node], cluster.vector(pod))
    pending = [pod for job in jobs for pod in job.pods if not pod.node]
    for job in jobs:
        place(cluster, job)
    return unit_difference(scenario, {f"c1/{pod.name}": pod.node for pod in pending if pod.node})


def unit_difference(scenario: Json, found: dict[str, str]) -> str:
    """How these nodes of pods that were pending differ from what is expected; "" if not."""
    expect = scenario["expect"]
    if len(found) != expect["bindsNum"]:
        return f"{len(found)} pods placed, not {expect['bindsNum']}: {found}"
    if expect["bindMap"] and not expect["minimalBindCheck"] and found != expect["bindMap"]:
        return f"{found}\n    not {expect['bindMap']}"
    if expect["bindNumsInHyperNode"]:
        narrowest = scenario["tiers"][min(scenario["tiers"], key=int)]
        per_domain = [
            sum(node in scenario["realNodes"][name] for node in found.values())
            for name in narrowest
        ]
        here = sorted(pods for pods in per_domain if pods)
        if here != sorted(expect["bindNumsInHyperNode"]):
            return f"{here} pods in domains of the lowest tier, not {expect['bindNumsInHyperNode']}"
    return ""


def domains_of(scenario: Json) -> tuple[list[Domain], Claims]:
    """The tree as Volcano has resolved it; some HyperNode objects it is made of are misnamed."""
    domains: list[Domain] = []
    claims: Claims = {}
    below: dict[str, set[str]] = {}
    for tier in sorted(scenario["tiers"], key=int):
        here = {name: set(scenario["realNodes"][name]) for name in scenario["tiers"][tier]}
        for name, nodes in here.items():
            inner = [one for one, its in below.items() if its <= nodes]
            for node in nodes - set[str]().union(*(below[one] for one in inner)):
                claims.setdefault(node, []).append(name)
            domains.append(Domain(name, int(tier), tuple(inner)))
        claimed = set[str]().union(*here.values())
        below = {name: nodes for name, nodes in below.items() if not nodes <= claimed} | here
    return domains, claims


def _cluster(
    domains: list[Domain],
    claims: Claims,
    offered: dict[str, list[tuple[str, int]]],
    labels: dict[str, dict[str, str]],
    root_tier: int,
    tier_names: dict[str, int],
) -> Cluster:
    axis, levels = ResourceAxis(), dict[int, str]()
    if domains:
        forest = Forest()
        for domain in domains:
            forest.put(domain)
        for node in offered:
            forest.place(node, claims.get(node, ()))
        levels = {tier: f"tier-{tier}" for tier in forest.tiers}
        tree = forest.tree(levels, 1)
    else:
        tree = build(["cluster"], {name: ["", name] for name in offered}, 1)
    capacity = Capacity(axis, tree)
    for slot, name in enumerate(tree.nodes):
        capacity.set_node(slot, axis.vector([("pods", 110), *offered[name]]), is_open=True)
    return Cluster(tree, capacity, labels, levels, root_tier, tier_names)


def _job(scenario: Json, group: Json) -> Job:
    policies = {one["name"]: one for one in group["subGroupPolicy"]}
    pods = []
    for pod in scenario["pods"]:
        if pod["podGroup"] != group["name"]:
            continue
        subgroup = None
        for name, policy in policies.items():
            values = [pod["labels"].get(key, "") for key in policy["matchLabelKeys"]]
            if values and all(values) and subgroup is None:
                subgroup = (name, "-".join(values))
        amounts = tuple((key, amount(key, value)) for key, value in pod["requests"].items())
        selector = tuple(sorted(pod["nodeSelector"].items()))
        pods.append(Pod(pod["name"], amounts, subgroup, selector, pod["nodeName"]))
    return Job(
        group["name"],
        group["minMember"],
        group.get("networkTopology"),
        {
            name: Policy(one["networkTopology"], one["subGroupSize"], one["minSubGroups"])
            for name, one in policies.items()
        },
        pods,
    )


# End-to-end cases


def _end_to_end(case: Json, tree: Json) -> str:
    inside = _inside(tree)
    domains: list[Domain] = []
    claims: Claims = {}
    for tier in sorted(tree["tiers"], key=int):
        for name, members in tree["tiers"][tier].items():
            inner = tuple(member for member in members if member in inside)
            domains.append(Domain(name, int(tier), inner))
            for node in members:
                claims.setdefault(node, []).append(name)
    nodes = sorted({node for names in inside.values() for node in names} - inside.keys())
    has = tree["nodeCapacity"]
    offered = [("cpu", has["cpu"] * 1000), ("memory", has["memoryGi"] * 2**30)]
    labels: dict[str, dict[str, str]] = {node: {} for node in nodes}
    root_tier = max(map(int, tree["tiers"])) + 1
    cluster = _cluster(domains, claims, dict.fromkeys(nodes, offered), labels, root_tier, {})
    for slot in range(len(nodes)):
        cluster.capacity.use(slot, cluster.capacity.axis.vector(OVERHEAD))
    for pod in case["occupied"]:
        one = Pod(pod["name"], _amounts(pod), None)
        cluster.capacity.use(cluster.tree.slot_of[pod["node"]], cluster.vector(one))
    job, expect = job_of(case["job"]), case["expect"]

    def wrong_in(turn: int) -> str:
        nodes = [pod.node for pod in job.pods if pod.node]
        return end_to_end_difference(case, tree, nodes, turn)

    place(cluster, job)
    wrong = wrong_in(0)
    if not wrong and expect["killsPods"]:
        placed = sum(bool(pod.node) for pod in job.pods)
        killed = [pod for pod in job.pods if pod.node][: expect["killsPods"]]
        for pod in killed:
            cluster.capacity.unuse(cluster.tree.slot_of[pod.node], cluster.vector(pod))
            pod.node = ""
        place(cluster, job)
        if sum(bool(pod.node) for pod in job.pods) != placed:
            return f"of {placed} pods {len(killed)} were killed and not placed again"
        wrong = wrong_in(1)
    return wrong


def _inside(tree: Json) -> dict[str, set[str]]:
    """The members of each domain at any depth, nodes and domains alike."""
    inside: dict[str, set[str]] = {}
    for tier in sorted(tree["tiers"], key=int):
        for name, members in tree["tiers"][tier].items():
            inside[name] = set().union(*({one} | inside.get(one, set()) for one in members))
    return inside


def _amounts(pod: Json) -> tuple[tuple[str, int], ...]:
    return (("cpu", pod["cpu"] * 1000), ("memory", pod["memoryGi"] * 2**30))


def job_of(job: Json) -> Job:
    """The job of an end-to-end case."""
    pods: list[Pod] = []
    policies: dict[str, Policy] = {}
    needed = 0
    for task in job["tasks"]:
        partition = task["partitionPolicy"]
        least = task["min"]
        if partition is not None:
            wanted, size = partition["minPartitions"], partition["partitionSize"]
            policies[task["name"]] = Policy(partition["networkTopology"], size, wanted)
            least = least if least is not None else (wanted * size or None)
        needed += task["replicas"] if least is None else least
        for index in range(task["replicas"]):
            subgroup = None
            if partition is not None:
                subgroup = (task["name"], str(index // partition["partitionSize"]))
            pods.append(Pod(f"{task['name']}-{index}", _amounts(task), subgroup))
    needed = needed if job["minAvailable"] is None else job["minAvailable"]
    return Job("job", needed, job["networkTopology"], policies, pods)


def end_to_end_difference(case: Json, tree: Json, nodes: list[str], turn: int) -> str:
    """How the nodes of the job's pods differ from what is expected in this turn; "" if not."""
    expect, inside = case["expect"], _inside(tree)
    needed, occupied = job_of(case["job"]).needed, [pod["node"] for pod in case["occupied"]]
    if not expect["jobReady"]:
        return f"placed on {nodes}, not pending" if nodes else ""
    if not nodes or len(nodes) < needed:
        return f"{len(nodes)} pods placed, not at least {needed}"
    allowed = expect["nodes"][turn : turn + 1]
    if allowed and not set(nodes) <= set(allowed[0]):
        return f"on {nodes}, not {allowed[0]}"
    for name in expect["hyperNodeGet"]:
        if not set(nodes) <= inside[name]:
            return f"on {nodes}, not in {name}"
    for name, pods in expect["hyperNodePods"]:
        here = sum(node in inside[name] for node in [*nodes, *occupied])
        if here != pods:
            return f"{here} pods in {name}, not {pods}: {nodes}"
    return ""
