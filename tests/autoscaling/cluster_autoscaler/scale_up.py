"""Which group grows, and by how much: pods are packed on copies of each group's template.

The expander takes the group with the least waste of cpu and memory; of equals the first by name,
where cluster-autoscaler draws one. A group that backs off, or is full, is no option.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.autoscaling.machines.cloud import Cloud, Machine
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.reading.pods import Amounts, amounts_of, by_size, is_of_node, request_of
from tests.autoscaling.reading.rooms import TO_BE_DELETED, Room, template_room
from tests.cluster import Object, Objects

STABLE_SECONDS = 60.0  # a node has been ready for so long when it is copied
WASTED = ("cpu", "memory")


@dataclass(frozen=True)
class Template:
    """What a new node of a group would be."""

    labels: Mapping[str, str]
    taints: tuple[Object, ...]
    free: Amounts


@dataclass(frozen=True)
class Option:
    """What growing a group would come to."""

    group: NodeGroup
    nodes: int
    helped: Objects
    waste: float


class ScaleUp:
    """The templates of all groups, and which of them back off."""

    def __init__(self, cloud: Cloud, backoff: tuple[float, float]) -> None:
        self._cloud = cloud
        self._least_backoff, self._most_backoff = backoff
        self._copied: dict[str, Template] = {}  # of a real node; kept when that has gone
        self._ready_at: dict[str, float] = {}  # by machine
        self._backoff: dict[str, tuple[float, float]] = {}  # group -> until, seconds of the next

    def learn(self, nodes: Mapping[str, Object], pods: Mapping[str, Objects], now: float) -> None:
        """Copy the first stable node of each group, with its rack and all."""
        copied: set[str] = set()
        for name, machine in self._cloud.machines.items():
            node = nodes.get(name)
            if node is None or not machine.is_whole:
                continue
            ready_at = self._ready_at.setdefault(name, now)
            if machine.group.name not in copied and now - ready_at >= STABLE_SECONDS:
                copied.add(machine.group.name)
                self._copied[machine.group.name] = _copy(node, pods.get(name, []))

    def template(self, group: NodeGroup) -> Template:
        """Of a real node, also of one that was; else what the provider says."""
        told = Template(group.known_labels, group.taints, amounts_of(group.allocatable))
        return self._copied.get(group.name, told)

    def room(self, machine: Machine) -> Room:
        """A machine on its way, as the simulation has it."""
        template = self.template(machine.group)
        return template_room(machine.name, template.labels, template.taints, template.free)

    def failed(self, group: str, now: float) -> None:
        """Machines of the group did not come: it is left alone for a while."""
        _, seconds = self._backoff.get(group, (0.0, self._least_backoff))
        self._backoff[group] = (now + seconds, min(2 * seconds, self._most_backoff))

    def best(self, pods: Objects, now: float, *, all_or_nothing: bool = False) -> Option | None:
        """The one group to grow, if one helps any of these pods, or all of them."""
        options = [self._option(each, pods, now) for each in self._cloud.groups.values()]
        helping = [each for each in options if each is not None and each.helped]
        if all_or_nothing:
            helping = [each for each in helping if len(each.helped) == len(pods)]
        return min(helping, key=lambda each: (each.waste, each.group.name), default=None)

    def grow(self, option: Option, now: float) -> None:
        """Order the nodes."""
        for _ in range(option.nodes):
            self._cloud.order(option.group, now)

    def _option(self, group: NodeGroup, pods: Objects, now: float) -> Option | None:
        most = group.max - len(self._cloud.of(group.name))
        if most <= 0 or self._backoff.get(group.name, (0.0, 0.0))[0] > now:
            return None
        template = self.template(group)
        rooms: list[Room] = []
        for pod in by_size(pods):
            room = next((each for each in rooms if not each.lacks(pod)), None)
            if room is None and len(rooms) < most:
                name = f"template-node-for-{group.name}-{len(rooms)}"
                new = template_room(name, template.labels, template.taints, template.free)
                if not new.lacks(pod):
                    rooms.append(new)
                    room = new
            if room is not None:
                room.put(pod)
        helped = [pod for room in rooms for pod in room.packed]
        return Option(group, len(rooms), helped, _waste(template.free, len(rooms), helped))


def _waste(free: Amounts, nodes: int, pods: Iterable[Object]) -> float:
    asked = sum((request_of(each) for each in pods), Amounts())
    wasted = 0.0
    for resource in WASTED:
        if has := free[resource] * nodes:
            wasted += (has - asked[resource]) / has
    return wasted


def _copy(node: Object, pods: Objects) -> Template:
    labels = node["metadata"]["labels"]  # `template_room` gives each a hostname of its own
    free = amounts_of(node["status"]["allocatable"])
    for each in pods:
        if is_of_node(each):
            free.subtract(request_of(each))
    taints = (node.get("spec") or {}).get("taints") or []
    return Template(labels, tuple(each for each in taints if each["key"] != TO_BE_DELETED), free)
