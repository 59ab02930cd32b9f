"""KAI-Scheduler's recorded topology scenarios in our words, and our answers held against its own.

    job ─▶ one Gang per member that has a topology of its own ─▶ find ─▶ {task group: pods per node}

The one place that knows this format, which is described in ../shared/conformance/README.md; its
meaning is that of KAI-Scheduler's pkg/scheduler/plugins/topology. What KAI assumes is said here:

* A job without sub-groups is all its tasks or nothing.
* Equal siblings are chosen among at random: two answers are equal if swapping domains that had
  the same inside turns one into the other.
* A group inside a group may name another topology; nodes then have the levels of both, the outer
  one's first. Members of an unconstrained job are placed one by one, each in its own topology.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    DomainOrder,
    Gang,
    Group,
    InvalidRequest,
    Options,
    Placement,
    PodSet,
    ResourceAxis,
    Tree,
    build,
    find,
    invariants,
)

LEFT_OUT: dict[str, str] = {
    "Required topology constraint - prefer packed domain": (
        "it expects a place for a second task of a job that has one task"
    )
}
"""Name of a case -> why nobody can answer it as expected."""

OPTIONS = Options(order=DomainOrder.TOPMOST, floor_first=True)
AFFINITY = "NodeAffinityKey"
NEVER_SHORT = 2**40  # of what a scenario does not limit
EVERYWHERE = "everywhere"

Json = dict[str, Any]
Replacements = dict[str, Counter[str]]
"""Per group of equal tasks: tasks on each node."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario."""

    name: str
    scenario: Json


def read(path: Path) -> Iterator[Case]:
    """Every scenario of a file, .json or .json.gz."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as text:
        tables = json.load(text)["tables"]
    for cases in tables.values():
        yield from (Case(case["Name"], case) for case in cases)


@dataclass(slots=True)
class Cluster:
    """The nodes of a scenario, and what is on them so far."""

    scenario: Json
    axis: ResourceAxis = field(default_factory=ResourceAxis)
    on_node: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    """Requests of the tasks on each node."""

    @classmethod
    def of(cls, scenario: Json) -> Cluster:
        """As it is before anything pending is placed."""
        cluster = cls(scenario)
        for job in scenario["Jobs"]:
            for task in job["Tasks"]:
                if task["State"] != "Pending":
                    its = cluster.on_node.setdefault(task["NodeName"], [])
                    its.append(cluster.request(job, task))
        return cluster

    def view(self, levels: list[str]) -> tuple[Tree, Capacity]:
        """The nodes that have all these labels."""
        paths = {}
        for name, node in self.scenario["Nodes"].items():
            labels = {NODE_LEVEL: name, EVERYWHERE: ""} | node.get("Labels", {})
            if all(level in labels for level in levels):
                values = [labels[level] for level in levels]
                paths[name] = values if levels[-1] == NODE_LEVEL else [*values, name]
        tree = build(levels, paths, 1)
        capacity = Capacity(self.axis, tree)
        for slot, name in enumerate(tree.nodes):
            capacity.set_node(slot, self._offered(self.scenario["Nodes"][name]), is_open=True)
            for request in self.on_node.get(name, ()):
                capacity.use(slot, request)
        return tree, capacity

    def _offered(self, node: Json) -> tuple[int, ...]:
        return self.axis.vector(
            [
                ("pods", node.get("MaxTaskNum") or 110),
                ("cpu", int(node.get("CPUMillis") or NEVER_SHORT)),
                ("memory", int(node.get("CPUMemory") or NEVER_SHORT)),
                ("gpu", round(node.get("GPUs", 0) * 1000)),
            ]
        )

    def request(self, job: Json, task: Json) -> tuple[int, ...]:
        """What one task asks for."""
        gpus = task.get("RequiredGPUs") or job.get("RequiredGPUsPerTask") or 0
        return self.axis.vector(
            [
                ("pods", 1),
                ("cpu", int(job.get("RequiredCPUsPerTask") or 0)),
                ("memory", int(job.get("RequiredMemoryPerTask") or 0)),
                ("gpu", round(gpus * 1000)),
            ]
        )


def difference(case: Case) -> str:
    """How our answers to the jobs of a case differ from those expected; empty if they do not."""
    cluster = Cluster.of(case.scenario)
    bound = 0
    for job in case.scenario["Jobs"]:
        pending = [task for task in job["Tasks"] if task["State"] == "Pending"]
        if not pending:
            continue
        before = {name: Counter(requests) for name, requests in cluster.on_node.items()}
        found = JobSearch(cluster, job).places()
        bound += 0 if found is None else sum(sum(nodes.values()) for nodes in found.values())
        wrong = compared(case.scenario, job, found, before)
        if wrong:
            return wrong
    binds = expected_binds(case.scenario)
    return f"{bound} tasks placed, not {binds}" if binds not in (None, bound) else ""


def expected_binds(scenario: Json) -> int | None:
    """How many tasks are to be placed, where nothing else is expected; None: not said."""
    if scenario.get("TaskExpectedResults") or scenario.get("JobExpectedResults"):
        return None
    binds = scenario.get("Mocks", {}).get("CacheRequirements", {}).get("NumberOfCacheBinds")
    return None if binds is None else int(binds)


@dataclass(slots=True)
class JobSearch:
    """One pending job, placed in the topologies it names."""

    cluster: Cluster
    job: Json

    def places(self) -> Replacements | None:
        """Where its tasks go, which is on the books then; None if it stays pending."""
        root = self.job.get("RootSubGroupSet") or {}
        members = [*root.get("groups", ()), *root.get("podSets", ())]
        found: Replacements = {}
        undo = {name: list(requests) for name, requests in self.cluster.on_node.items()}
        alone = [root]
        if len(_topologies(root)) > 1 and not _topology(root):
            alone = members
        for top in alone:
            placed = self._placed(top)
            if placed is None:
                self.cluster.on_node = undo
                return None
            found |= placed
        return found

    def _placed(self, top: Json) -> Replacements | None:
        try:
            levels = self._levels(top)
            tree, capacity = self.cluster.view(levels or [EVERYWHERE])
            masks: dict[Hashable, Any] = {}
            member = self._member(top, tree, masks, np.ones(len(tree.nodes), dtype=np.bool_))
        except InvalidRequest:
            return None
        if member is None:
            return {}
        root = member if isinstance(member, Group) else Group("job", (member,))
        gang = Gang(self.job["Name"], root)
        answer = find(tree, capacity, gang, masks, OPTIONS)
        if not isinstance(answer, Placement):
            return None
        invariants.check(tree, capacity, gang=gang, placement=answer, masks=masks)
        found: Replacements = {}
        for pod_set, placed in zip(gang.pod_sets(), answer.pod_sets, strict=True):
            nodes = Counter({tree.nodes[slot]: pods for slot, pods in placed.slots})
            found[pod_set.name] = nodes
            for node, pods in nodes.items():
                self.cluster.on_node.setdefault(node, []).extend([pod_set.request] * pods)
        return found

    def _levels(self, top: Json) -> list[str]:
        """Level keys of the topologies named, the outermost first."""
        known = {
            one["ObjectMeta"]["Name"]: [level["NodeLabel"] for level in one["Spec"]["Levels"]]
            for one in self.cluster.scenario["Topologies"]
        }
        levels: list[str] = []
        for name in _topologies(top):
            if name not in known:
                raise InvalidRequest(f"topology {name} does not exist")
            levels += [level for level in known[name] if level not in levels]
        return levels

    def _member(self, subgroup: Json, tree: Tree, masks: dict[Hashable, Any], inside: Any) -> Any:
        """A Group or PodSet with all pending tasks below it; None if it has none."""
        constraint = _constraint(subgroup)
        inside = inside & self._beside_active(subgroup, tree, constraint)
        members = [*(subgroup.get("groups") or ()), *(subgroup.get("podSets") or ())]
        if not members:
            return self._leaf(subgroup, tree, masks, inside)
        made = [self._member(one, tree, masks, inside) for one in members]
        pending = tuple(one for one in made if one is not None)
        if not pending:
            return None
        needed = (subgroup.get("minSubGroup") or len(members)) - (len(members) - len(pending))
        needed = min(len(pending), max(1, needed))
        return Group(subgroup["name"] or "root", pending, constraint, needed)

    def _leaf(self, subgroup: Json, tree: Tree, masks: dict[Hashable, Any], inside: Any) -> Any:
        tasks = self._tasks(subgroup)
        pending = [task for task in tasks if task["State"] == "Pending"]
        if not pending:
            return None
        least = subgroup.get("minAvailable") or len(tasks)
        least = max(1, least - (len(tasks) - len(pending)))
        kinds: dict[Hashable, list[Json]] = {}
        for task in pending:
            names = tuple(task.get("NodeAffinityNames") or ())
            kinds.setdefault((names, self.cluster.request(self.job, task)), []).append(task)
        constraint, pod_sets = _constraint(subgroup), []
        for index, ((names, request), alike) in enumerate(kinds.items()):
            name = f"{self.job['Name']}/{subgroup.get('name', '')}/{index}"
            masks[name] = inside & np.array([self._allows(node, names) for node in tree.nodes])
            pods = len(alike)
            needed = max(1, min(pods, least))
            least -= needed
            pod_sets.append(PodSet(name, pods, request, name, needed=needed))
        return Group(subgroup.get("name") or "tasks", tuple(pod_sets), constraint)

    def _allows(self, node: str, names: tuple[str, ...]) -> bool:
        labels = self.cluster.scenario["Nodes"][node].get("Labels", {})
        return not names or labels.get(AFFINITY) in names

    def _tasks(self, subgroup: Json) -> list[Json]:
        root = self.job.get("RootSubGroupSet") or {}
        if not root.get("groups") and not root.get("podSets"):
            return list(self.job["Tasks"])
        return [task for task in self.job["Tasks"] if task.get("SubGroupName") == subgroup["name"]]

    def _beside_active(self, subgroup: Json, tree: Tree, constraint: Constraint) -> Any:
        """Where a required level lets the other tasks go beside those that run: a mask."""
        everywhere = np.ones(len(tree.nodes), dtype=np.bool_)
        if constraint.required is None or constraint.required not in tree.levels:
            return everywhere
        active = [
            tree.slot_of[task["NodeName"]]
            for leaf in _leaves(subgroup)
            for task in self._tasks(leaf)
            if task["State"] != "Pending" and task.get("NodeName") in tree.slot_of
        ]
        if not active:
            return everywhere
        domain_of = tree.domain_of[tree.levels.index(constraint.required)]
        return np.isin(domain_of, domain_of[active])


def _leaves(subgroup: Json) -> Iterator[Json]:
    members = [*(subgroup.get("groups") or ()), *(subgroup.get("podSets") or ())]
    if not members:
        yield subgroup
    for member in members:
        yield from _leaves(member)


def _topology(subgroup: Json) -> str:
    return str((subgroup.get("topology") or {}).get("Topology") or "")


def _topologies(subgroup: Json) -> list[str]:
    """Names of the topologies in use, the outermost first."""
    names = [_topology(subgroup)]
    for member in [*(subgroup.get("groups") or ()), *(subgroup.get("podSets") or ())]:
        names += _topologies(member)
    return list(dict.fromkeys(name for name in names if name))


def _constraint(subgroup: Json) -> Constraint:
    topology = subgroup.get("topology") or {}
    return Constraint(
        required=topology.get("RequiredLevel") or None,
        preferred=topology.get("PreferredLevel") or None,
    )


# Comparing


def compared(
    scenario: Json, job: Json, found: Replacements | None, before: Mapping[str, Counter[Any]]
) -> str:
    """How the places of one job differ from what is expected."""
    tasks = scenario.get("TaskExpectedResults") or {}
    expected = (scenario.get("JobExpectedResults") or {}).get(job["Name"], {})
    of_tasks = {
        index: tasks[f"{job['Name']}-{index}"]
        for index, task in enumerate(job["Tasks"])
        if task["State"] == "Pending" and f"{job['Name']}-{index}" in tasks
    }
    pending = sum(task["State"] == "Pending" for task in job["Tasks"])
    placed = 0 if found is None else sum(sum(nodes.values()) for nodes in found.values())
    tasks_of_job = [name for name in tasks if name.rpartition("-")[0] == job["Name"]]
    if len(tasks_of_job) > len(job["Tasks"]):
        return f"{job['Name']}: a place is expected for a task it does not have"
    if of_tasks:
        wanted = sum(one["Status"] != "Pending" for one in of_tasks.values())
        if placed != wanted:
            return f"{job['Name']}: {placed} tasks placed, not {wanted}"
        named = Counter(
            (_subgroup(job, index), one["NodeName"])
            for index, one in of_tasks.items()
            if one.get("NodeName") and one["Status"] != "Pending"
        )
    elif expected:
        wanted = 0 if expected["Status"] == "Pending" else pending
        if placed != wanted:
            return f"{job['Name']}: {placed} tasks placed, not {wanted}"
        named = Counter()
        if expected.get("NodeName") and wanted:
            named = Counter(
                (_subgroup(job, index), expected["NodeName"])
                for index, task in enumerate(job["Tasks"])
                if task["State"] == "Pending"
            )
    else:
        return ""
    if sum(named.values()) != placed or not placed or found is None:
        return ""
    ours: Counter[tuple[str, str]] = Counter()
    for name, nodes in found.items():
        for node, pods in nodes.items():
            ours[name.split("/")[-2], node] += pods
    if _form(scenario, ours, before) == _form(scenario, named, before):
        return ""
    return f"{job['Name']}: {dict(ours)}\n    not {dict(named)}"


def _subgroup(job: Json, index: int) -> str:
    return str(job["Tasks"][index].get("SubGroupName") or "")


def _form(
    scenario: Json, placed: Counter[tuple[str, str]], before: Mapping[str, Counter[Any]]
) -> Any:
    """The tree with its tasks, siblings in an order of their contents: equal up to ties."""
    levels = [
        level["NodeLabel"] for one in scenario["Topologies"] for level in one["Spec"]["Levels"]
    ]

    def of(nodes: list[str], depth: int) -> Any:
        if depth == len(levels):
            return sorted(
                repr(
                    (
                        {
                            key: had
                            for key, had in scenario["Nodes"][node].items()
                            if key != "Labels"
                        },
                        scenario["Nodes"][node].get("Labels", {}).get(AFFINITY),
                        sorted(before.get(node, Counter()).items()),
                        sorted((name, pods) for (name, at), pods in placed.items() if at == node),
                    )
                )
                for node in nodes
            )
        inside: dict[str, list[str]] = {}
        for node in nodes:
            label = scenario["Nodes"][node].get("Labels", {}).get(levels[depth], "")
            inside.setdefault(label, []).append(node)
        return sorted((of(one, depth + 1) for one in inside.values()), key=repr)

    return of(sorted(scenario["Nodes"]), 0)
