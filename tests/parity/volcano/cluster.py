"""Volcano's jobs on a cluster, asked of our core: what a job's pods and policies mean as a gang.

`volcano_cases` reads the recorded scenarios, runs them here and compares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from topology import (
    Capacity,
    Constraint,
    DomainOrder,
    Gang,
    Group,
    InvalidRequest,
    Mask,
    Options,
    Placement,
    PodSet,
    Tree,
    find,
    invariants,
)

OPTIONS = Options(order=DomainOrder.MOST_USED)

Json = dict[str, Any]


@dataclass(slots=True)
class Pod:
    """One pod of a job."""

    name: str
    amounts: tuple[tuple[str, int], ...]
    subgroup: tuple[str, str] | None
    """Policy, and which of its sub-groups; None: in none."""
    selector: tuple[tuple[str, str], ...] = ()
    node: str = ""
    """Where it runs; empty: pending."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How pods of a job form sub-groups."""

    topology: Json | None
    size: int
    needed: int


@dataclass(slots=True)
class Job:
    """One pod group."""

    name: str
    needed: int
    topology: Json | None
    policies: dict[str, Policy]
    pods: list[Pod]


@dataclass(slots=True)
class Cluster:
    """Nodes, their tree, and all that runs on them."""

    tree: Tree
    capacity: Capacity
    labels: dict[str, dict[str, str]]
    level_of_tier: dict[int, str]
    root_tier: int
    """Of the whole cluster: one more than any other."""
    tier_names: dict[str, int]

    def constraint(self, topology: Json | None, around: Json | None = None) -> Constraint:
        """What a topology wish means; a soft one inside another is bound by that."""
        if not topology:
            return Constraint()
        tiers = sorted(self.level_of_tier)
        narrowest = self.level_of_tier[tiers[0]] if tiers else None
        if topology.get("mode") == "soft":
            bound = self.constraint(around).required if around else None
            return Constraint(required=bound, preferred=narrowest)
        allowed = topology.get("highestTierAllowed")
        if topology.get("highestTierName"):
            allowed = self.tier_names.get(topology["highestTierName"])
        if allowed is None:
            return Constraint()
        if allowed >= self.root_tier:
            return Constraint(preferred=narrowest)
        within = [tier for tier in tiers if tier <= allowed]
        if not within:
            return Constraint(required=f"any tier up to {allowed}")  # there is none: never placed
        return Constraint(required=self.level_of_tier[within[-1]], preferred=narrowest)

    def near(self, constraint: Constraint, running: Sequence[str]) -> Mask:
        """Nodes that leave all pods in one required domain."""
        mask = np.ones(len(self.tree.nodes), dtype=np.bool_)
        if constraint.required in self.tree.levels:
            domain_of = self.tree.domain_of[self.tree.levels.index(constraint.required)]
            for slot in [self.tree.slot_of[node] for node in running if node in self.tree.slot_of]:
                mask &= domain_of == domain_of[slot]
        return mask

    def vector(self, pod: Pod) -> tuple[int, ...]:
        """The request of one pod."""
        return self.capacity.axis.vector([("pods", 1), *pod.amounts])


def place(cluster: Cluster, job: Job) -> None:
    """Gives pending pods a node, all that are needed or none; the books know them then."""
    before = [pod.node for pod in job.pods]
    question = _Question(cluster, job)
    gang = question.gang()
    if gang is None:
        return
    try:
        answer = find(cluster.tree, cluster.capacity, gang, question.masks, OPTIONS)
    except InvalidRequest:
        return  # a tier that does not exist
    if not isinstance(answer, Placement):
        return
    invariants.check(
        cluster.tree, cluster.capacity, gang=gang, placement=answer, masks=question.masks
    )
    for placed in answer.pod_sets:
        pods = iter(question.pods[placed.pod_set])
        for slot, number in placed.slots:
            for _ in range(number):
                next(pods).node = cluster.tree.nodes[slot]
    if not question.is_ready():
        for pod, node in zip(job.pods, before, strict=True):
            pod.node = node
        return
    for pod, node in zip(job.pods, before, strict=True):
        if pod.node and not node:
            cluster.capacity.use(cluster.tree.slot_of[pod.node], cluster.vector(pod))


@dataclass(slots=True)
class _Question:
    """One job as a gang."""

    cluster: Cluster
    job: Job
    masks: dict[Hashable, Mask] = field(default_factory=dict)
    pods: dict[str, list[Pod]] = field(default_factory=dict)
    """Pod set -> its pods."""

    def gang(self) -> Gang | None:
        """What is pending; None if there is nothing, or never enough."""
        job, cluster = self.job, self.cluster
        constraint = cluster.constraint(job.topology)
        mask = cluster.near(constraint, [pod.node for pod in job.pods if pod.node])
        missing = job.needed - sum(bool(pod.node) for pod in job.pods)
        members: list[tuple[bool, Group]] = []
        loose = [pod for pod in job.pods if pod.subgroup is None]
        if loose:
            running = sum(bool(pod.node) for pod in loose)
            needed = max(0, min(1, 1 - running) if job.policies else missing)
            group = self._leaf("loose", loose, Constraint(), mask, needed)
            if group is not None:
                members.append((needed > 0, group))
                missing -= needed
            elif needed:
                return None
        made = {name: self._subgroups(name, policy, mask) for name, policy in job.policies.items()}
        lacking: dict[str, int] = {}
        for name, policy in job.policies.items():
            if made[name] is None:
                return None
            ready, wanted, _ = made[name]
            lacking[name] = min(len(wanted), max(0, policy.needed - ready))
            missing -= sum(pods for _, pods in wanted[: lacking[name]])
        for name, (_, wanted, rest) in made.items():
            while missing > 0 and lacking[name] < len(wanted):
                missing -= wanted[lacking[name]][1]
                lacking[name] += 1
            if wanted:
                groups = tuple(group for group, _ in wanted)
                around = Group(name, groups, needed=max(1, lacking[name]))
                members.append((lacking[name] > 0, around))
            members += [(False, group) for group in rest]
        if not members:
            return None
        members.sort(key=lambda entry: not entry[0])
        needed = max(1, sum(is_needed for is_needed, _ in members))
        root = Group("job", tuple(group for _, group in members), constraint, needed)
        return Gang(f"ns/{job.name}", root)

    def _subgroups(
        self, name: str, policy: Policy, mask: Mask
    ) -> tuple[int, list[tuple[Group, int]], list[Group]] | None:
        """Of one policy: how many are whole, the others with the pods they lack, and what is
        pending of the whole ones; None if there never are enough."""
        by_value: dict[str, list[Pod]] = {}
        for pod in self.job.pods:
            if pod.subgroup is not None and pod.subgroup[0] == name:
                by_value.setdefault(pod.subgroup[1], []).append(pod)
        valid = {value: pods for value, pods in by_value.items() if len(pods) >= policy.size}
        if len(valid) < policy.needed:
            return None
        constraint = self.cluster.constraint(policy.topology, self.job.topology)
        ready, wanted, rest = 0, list[tuple[Group, int]](), list[Group]()
        for value, pods in valid.items():
            running = [pod.node for pod in pods if pod.node]
            here = mask & self.cluster.near(constraint, running)
            lacks = max(0, policy.size - len(running))
            ready += lacks == 0
            group = self._leaf(f"{name}/{value}", pods, constraint, here, max(lacks, 1))
            if group is not None and lacks:
                wanted.append((group, lacks))
            elif group is not None:
                rest.append(group)
        return ready, wanted, rest

    def _leaf(
        self, name: str, pods: list[Pod], constraint: Constraint, mask: Mask, needed: int
    ) -> Group | None:
        """Pending pods of one sub-group, alike ones together; None if there are too few."""
        alike: dict[Any, list[Pod]] = {}
        for pod in pods:
            if not pod.node:
                alike.setdefault((pod.amounts, pod.selector), []).append(pod)
        if not alike or sum(map(len, alike.values())) < needed:
            return None
        pod_sets, members = [], 0
        for index, ((_, selector), same) in enumerate(alike.items()):
            key = f"{self.job.name}/{name}/{index}"
            labels = [self.cluster.labels.get(node, {}) for node in self.cluster.tree.nodes]
            self.masks[key] = mask & np.array(
                [set(selector) <= set(one.items()) for one in labels], dtype=np.bool_
            )
            self.pods[key] = same
            least = min(needed, len(same))
            needed -= least
            members += least > 0
            request = self.cluster.vector(same[0])
            pod_sets.append(PodSet(key, len(same), request, key, needed=max(1, least)))
        return Group(name, tuple(pod_sets), constraint, max(1, members))

    def is_ready(self) -> bool:
        """Enough pods, and enough whole sub-groups of each policy."""
        placed = [pod for pod in self.job.pods if pod.node]
        whole: Counter[str] = Counter()
        for (policy, _), pods in Counter(
            pod.subgroup for pod in placed if pod.subgroup is not None
        ).items():
            whole[policy] += pods >= self.job.policies[policy].size
        return len(placed) >= self.job.needed and all(
            whole[name] >= policy.needed for name, policy in self.job.policies.items()
        )
