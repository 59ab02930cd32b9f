"""The cloud behind an autoscaler: machines that are ordered, register, become ready, or never come.

    order ─register_seconds─▶ Node, not ready, GPUs 0 ─▶ Ready ─▶ late labels ─▶ GPUs

The last three come each at its own time after the registration, in whatever order that is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.autoscaling.machines.actions import Action, ChangeNode, MakeNode
from tests.autoscaling.machines.groups import Labels, NodeGroup, is_extended, node_body
from tests.cluster import Object


@dataclass
class Machine:
    """One that was ordered."""

    name: str
    group: NodeGroup
    labels: Labels
    late_labels: Labels
    allocatable: Mapping[str, str]
    ordered_at: float
    comes: bool
    is_registered: bool = False
    is_seen: bool = False  # its Node has been in the cluster
    is_whole: bool = False  # it was ready once, with all its resources


class Cloud:
    """All machines there are."""

    def __init__(self, groups: Sequence[NodeGroup]) -> None:
        self.groups = {each.name: each for each in groups}
        self.stock = {each.name: each.stock for each in groups}  # a test may change it
        self.machines: dict[str, Machine] = {}
        self._plans: list[tuple[float, int, MakeNode | ChangeNode]] = []
        self._ordered = {each.name: 0 for each in groups}  # so many so far
        self._planned = 0

    def of(self, group: str) -> list[Machine]:
        """The machines of a group, those that are on their way included."""
        return [each for each in self.machines.values() if each.group.name == group]

    @property
    def orders(self) -> int:
        """How many machines were ever ordered."""
        return sum(self._ordered.values())

    def order(
        self,
        group: NodeGroup,
        now: float,
        *,
        labels: Labels | None = None,
        allocatable: Mapping[str, str] | None = None,
    ) -> Machine:
        """One more machine of a group; with labels and a size of its own where Karpenter chose."""
        number = self._ordered[group.name]
        self._ordered[group.name] += 1
        stock = self.stock[group.name]
        has = sum(each.comes for each in self.of(group.name))
        machine = Machine(
            name=f"{group.name}-{number}",
            group=group,
            labels=dict(group.labels) | dict(labels or {}),
            late_labels=group.labels_of(number),
            allocatable=allocatable or group.allocatable,
            ordered_at=now,
            comes=stock is None or has < stock,
        )
        self.machines[machine.name] = machine
        if machine.comes:
            self._plan_life(machine, now + group.register_seconds_of(number))
        return machine

    def release(self, name: str) -> None:
        """Give a machine back: it is in stock again."""
        self.machines.pop(name, None)

    def step(self, now: float) -> list[Action]:
        """What machines do by now."""
        due = [each for each in self._plans if each[0] <= now]
        self._plans = [each for each in self._plans if each[0] > now]
        actions: list[Action] = []
        for _, _, action in sorted(due, key=lambda each: each[:2]):
            name = action.body["metadata"]["name"] if isinstance(action, MakeNode) else action.name
            if name in self.machines:
                self.machines[name].is_registered = True
                actions.append(action)
        return actions

    def see(self, nodes: Sequence[Object]) -> None:
        """Forget the machines whose Nodes somebody has deleted."""
        names = {each["metadata"]["name"] for each in nodes}
        for machine in list(self.machines.values()):
            if machine.is_seen and machine.name not in names:
                self.release(machine.name)
            machine.is_seen = machine.is_seen or machine.name in names

    @property
    def next_at(self) -> float:
        """When something happens next."""
        return min((when for when, _, _ in self._plans), default=math.inf)

    def _plan_life(self, machine: Machine, then: float) -> None:
        group = machine.group
        labels, late = machine.labels, machine.late_labels
        if group.label_seconds <= 0.0:
            labels, late = {**labels, **late}, {}
        self._plan(
            then, MakeNode(node_body(machine.name, labels, group.taints, machine.allocatable))
        )
        self._plan(then + group.ready_seconds, ChangeNode(machine.name, is_ready=True))
        if late:
            self._plan(then + group.label_seconds, ChangeNode(machine.name, labels=late))
        devices = {key: value for key, value in machine.allocatable.items() if is_extended(key)}
        if devices:
            after = max(group.resource_seconds, 0.0)
            self._plan(then + after, ChangeNode(machine.name, allocatable=devices))

    def _plan(self, when: float, action: MakeNode | ChangeNode) -> None:
        self._planned += 1
        self._plans.append((when, self._planned, action))


def is_ready(node: Object) -> bool:
    """Whether the kubelet says so."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def has_devices(node: Object, machine: Machine) -> bool:
    """Whether the node reports all that the machine has."""
    reported = (node.get("status") or {}).get("allocatable") or {}
    wanted = [
        key for key, value in machine.allocatable.items() if is_extended(key) and value != "0"
    ]
    return all(str(reported.get(key, "0")) != "0" for key in wanted)
