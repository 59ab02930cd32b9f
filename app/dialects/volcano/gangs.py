"""What a PodGroup declares, as a gang's spec.

    PodGroup ─┬─ policy worker ─┬─ sub-group worker/0 ── subGroupSize of its pods
              │   minSubGroups  └─ sub-group worker/1 ── …
              ├─ task ps ── minTaskMember of its pods
              └─ the other pods

A PodGroup says how many pods it takes to start and not how many there are: its pods are those that
exist, and those beyond what it takes are placed if there is room. minMember counts pods of any
kind. What the parts of the gang need makes up for most of it; the rest is needed of pods in this
order: those of no part, of the tasks by name, further sub-groups in their order, more pods of
these. Pods that it does not take to start come in that order too, whatever policies they are of.
Leaves are in the order of the highest priority among their pods, then sub-groups in that of the
number that their first value is.
Source: volcano pkg/scheduler/api/job_info.go, pkg/scheduler/plugins/gang/gang.go (v1.14).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.dialects.rules import whole_number
from app.dialects.spec import (
    GangKey,
    GangSpec,
    GroupSpec,
    LeafPods,
    LeafSpec,
    Lifecycle,
    SearchPolicy,
)
from app.dialects.volcano.claims import SEPARATOR
from app.dialects.volcano.hyper_nodes import TOPOLOGY
from app.dialects.volcano.keys import TASK
from app.dialects.volcano.pod_groups import PodGroupRecord, SubGroupPolicy
from topology.model.request import DomainOrder

POLICY = SearchPolicy(order=DomainOrder.MOST_USED)  # as network-topology-aware's binpack has it
MOST_PARTS = 256  # sub-groups and tasks; no gang is placed that has so many kinds of pods
ABSENT = "?"  # stands for sub-groups that do not exist; no label value is that


def spec_of(
    key: GangKey, group: PodGroupRecord, pods: Mapping[str, LeafPods], *, ends_together: bool | None
) -> GangSpec:
    """The spec of a PodGroup of which there are these pods, by leaf."""
    members: tuple[GroupSpec | LeafSpec, ...]
    if len(pods) > MOST_PARTS:
        members = (LeafSpec("", sum(each.pods for each in pods.values()), needed=group.least),)
    else:
        members = _Parts(group, pods).members()
    is_placed = group.within or any(policy.within for policy in group.policies)
    return GangSpec(
        key,
        GroupSpec(key.name, members, within=group.within),
        f"PodGroup {key}",
        topology=TOPOLOGY if is_placed else None,
        policy=POLICY,
        lifecycle=Lifecycle(
            counts_succeeded=True,
            ends_together=ends_together,
            repairs_together=True,  # as SubJobReadyFn has it: a task alone does not make one ready
        ),
    )


@dataclass(slots=True)
class _Parts:
    """The leaves of one gang, and how many pods each needs."""

    group: PodGroupRecord
    pods: Mapping[str, LeafPods]
    _needed: dict[str, int] = field(default_factory=dict)  # of tasks, and of the others: ""
    _wanted: dict[int, int] = field(default_factory=dict)  # sub-groups of each policy
    _needed_more: dict[str, int] = field(default_factory=dict)  # of sub-groups, beyond their size
    _turns: Mapping[str, int] = field(default_factory=dict)  # of all leaves that have pods

    def members(self) -> tuple[GroupSpec | LeafSpec, ...]:
        """The root's members; none of them is without pods."""
        tasks = {
            name: least for name, least in self.group.least_of.items() if SEPARATOR not in name
        }
        if sum(tasks.values()) > self.group.least:
            tasks = dict.fromkeys(tasks, 0)  # as the gang plugin has it
        values = self._values()
        selected = [_task_of(policy) for policy in self.group.policies]
        for at, policy in enumerate(self.group.policies):
            least = -(-tasks.pop(selected[at], 0) // policy.size) if selected[at] else 0
            self._wanted[at] = max(policy.least, least)
        self._needed = {"": 0, **tasks}
        self._turns = {name: turn for turn, name in enumerate(sorted(self.pods, key=self._order))}
        self._make_up(values)
        made = (
            *(self._leaf(name) for name in sorted(self._needed)),
            *(
                self._policy_group(policy, names, self._wanted[at])
                for at, (policy, names) in enumerate(zip(self.group.policies, values, strict=True))
            ),
        )
        return tuple(each for each in made if each is not None)

    def _values(self) -> list[list[str]]:
        """Of each policy the sub-groups that have pods, in the order in which they start."""
        found: dict[str, list[str]] = {policy.name: [] for policy in self.group.policies}
        for name in self.pods:
            policy, separator, _ = name.rpartition(SEPARATOR)
            if separator and policy in found:
                found[policy].append(name)
        return [sorted(names, key=self._order) for names in found.values()]

    def _make_up(self, values: list[list[str]]) -> None:
        """Need as many pods in all as the PodGroup does."""
        sizes = [policy.size for policy in self.group.policies]
        missing = self.group.least - sum(self._needed.values())
        missing -= sum(self._wanted[at] * size for at, size in enumerate(sizes))
        for name in sorted(self._needed):
            more = min(missing, self._there(name) - self._needed[name])
            if more > 0:
                self._needed[name] += more
                missing -= more
        further = [
            (self._order(name), at)
            for at, names in enumerate(values)
            for name in names[self._wanted[at] :]
        ]
        for _, at in sorted(further):
            if missing > 0:
                self._wanted[at] += 1
                missing -= sizes[at]
        for at, size in enumerate(sizes):
            for name in values[at]:
                more = min(missing, self._there(name) - size)
                if more > 0:
                    self._needed_more[name] = more
                    missing -= more
        self._needed[""] += max(missing, 0)  # pods that do not exist yet, whichever they will be

    def _there(self, name: str) -> int:
        """How many pods a leaf has."""
        return self.pods[name].pods if name in self.pods else 0

    def _order(self, name: str) -> tuple[int, int, bool, str]:
        """The highest priority first; of one, sub-groups by number and after tasks of number 0."""
        _, separator, values = name.rpartition(SEPARATOR)
        number = whole_number(values.partition(",")[0]) if separator else 0
        return -self.pods[name].priority, number or 0, bool(separator), name

    def _leaf(self, name: str) -> LeafSpec | None:
        needed, there = self._needed[name], self._there(name)
        if not (there or needed):
            return None
        turn = self._turns.get(name, 0)
        return LeafSpec(name, max(there, needed), needed=needed, turn=turn)

    def _policy_group(
        self, policy: SubGroupPolicy, names: list[str], wanted: int
    ) -> GroupSpec | None:
        """The sub-groups of a policy, with one that is always short if there are too few."""
        members = [
            GroupSpec(name, (self._sub_group(policy, name),), within=policy.within)
            for name in names
        ]
        absent = wanted - len(members)
        if absent > 0:
            name = policy.name + SEPARATOR + ABSENT
            members.append(GroupSpec(name, (LeafSpec(name, absent * policy.size),)))
        if not members:
            return None
        return GroupSpec(policy.name, tuple(members), needed=min(wanted, len(members)))

    def _sub_group(self, policy: SubGroupPolicy, name: str) -> LeafSpec:
        needed = policy.size + self._needed_more.get(name, 0)
        pods, turn = max(self._there(name), needed), self._turns[name]
        return LeafSpec(name, pods, needed=needed, turn=turn)


def _task_of(policy: SubGroupPolicy) -> str:
    """The task of which alone a policy makes sub-groups, as a vcjob's do; "" if it does not."""
    named = [each for each in policy.selector.requirements if each.key == TASK]
    if len(named) == 1 and named[0].operator == "In" and len(named[0].values) == 1:
        return next(iter(named[0].values))
    return ""
