"""Which nodes go: those that nobody has needed for a while, empty ones first.

    unneeded for `unneeded` s ─▶ taint ─▶ next loop: still empty ─▶ deleted
                                     └▶ pods came: taint off, or evict them where it is drained

A node is unneeded when the simulation put nothing there and it is empty, or little used with pods
that may move and fit elsewhere. What nobody can move keeps its node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.autoscaling.machines.actions import Action, DeleteNode, EmitEvent, EvictPod, SetTaint
from tests.autoscaling.machines.cloud import Cloud
from tests.autoscaling.reading.pods import (
    SAFE_TO_EVICT,
    Amounts,
    amounts_of,
    annotations_of,
    is_of_node,
    owner_of,
    request_of,
)
from tests.autoscaling.reading.rooms import TO_BE_DELETED, Room, pack
from tests.cluster import GPU, Object, Objects

DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
LITTLE_USED = 0.5  # share of the GPUs, or of cpu or memory where there are none
MOST_EMPTY = 10  # nodes at a time
MOST_DRAINED = 1


class ScaleDown:
    """Since when nodes are unneeded, and which are going."""

    def __init__(self, cloud: Cloud, *, unneeded: float, drains: bool) -> None:
        self._cloud, self._unneeded, self._drains = cloud, unneeded, drains
        self._since: dict[str, float] = {}
        self._going: dict[str, bool] = {}  # by node: whether it is drained

    def is_going(self, node: str) -> bool:
        """Whether the node has been given up."""
        return node in self._going

    def finish(self, nodes: Mapping[str, Object], pods: Mapping[str, Objects]) -> list[Action]:
        """Delete what was tainted in an earlier loop and is empty."""
        actions: list[Action] = []
        for name, is_drained in list(self._going.items()):
            here = [each for each in pods.get(name, []) if not is_of_node(each)]
            if name not in nodes:
                del self._going[name]
            elif not here:
                del self._going[name]
                self._cloud.release(name)
                actions += [_told(nodes[name]), DeleteNode(name)]
            elif is_drained:
                actions += [_eviction(each) for each in here]
            else:
                # "failed to delete empty node, new pods scheduled"
                del self._going[name]
                actions.append(SetTaint(name, _taint(0.0), is_set=False))
        return actions

    def look(
        self,
        nodes: Mapping[str, Object],
        pods: Mapping[str, Objects],
        rooms: Mapping[str, Room],
        now: float,
        *,
        is_cooling: bool,
    ) -> list[Action]:
        """Note who is unneeded, and taint those that have been for long enough."""
        unneeded = {
            name: bool(here)
            for name, here in self._movable(nodes, pods, rooms).items()
            if not rooms[name].packed
        }
        self._since = {name: self._since.get(name, now) for name in unneeded}
        if is_cooling:
            return []
        due = self._to_spare(
            [name for name, since in self._since.items() if now - since >= self._unneeded]
        )
        empty = [name for name in due if not unneeded[name]]
        drained = [name for name in due if unneeded[name]] if not empty else []
        actions: list[Action] = []
        for name in [*empty[:MOST_EMPTY], *drained[:MOST_DRAINED]]:
            del self._since[name]
            self._going[name] = unneeded[name]
            actions.append(SetTaint(name, _taint(now)))
        return actions

    def _to_spare(self, names: Iterable[str]) -> list[str]:
        """Those of these nodes without which their groups still have as many as they must."""
        machines = self._cloud.machines
        left = {
            name: len([each for each in self._cloud.of(name) if each.name not in self._going])
            for name in self._cloud.groups
        }
        found = []
        for name in names:
            group = machines[name].group
            if left[group.name] > group.min:
                left[group.name] -= 1
                found.append(name)
        return found

    def _movable(
        self,
        nodes: Mapping[str, Object],
        pods: Mapping[str, Objects],
        rooms: Mapping[str, Room],
    ) -> dict[str, Objects]:
        """The nodes that could go, with the pods that would have to move."""
        found: dict[str, Objects] = {}
        for name in rooms:
            machine = self._cloud.machines.get(name)
            if machine is None or not machine.is_whole or name not in nodes:
                continue
            if annotations_of(nodes[name]).get(DISABLED) == "true":
                continue
            here = [each for each in pods.get(name, []) if not is_of_node(each)]
            if not here or (self._drains and self._may_be_drained(nodes[name], here, rooms)):
                found[name] = here
        return found

    def _may_be_drained(self, node: Object, here: Objects, rooms: Mapping[str, Room]) -> bool:
        if usage(node, here) >= LITTLE_USED or not all(map(may_move, here)):
            return False
        name = node["metadata"]["name"]
        others = [
            each.copy()
            for each in rooms.values()
            if each.name != name and each.name in self._cloud.machines
        ]
        return not pack(here, others)


def usage(node: Object, pods: Objects) -> float:
    """The share of the node that pods request."""
    has = amounts_of(node["status"]["allocatable"])
    asked = sum((request_of(each) for each in pods), Amounts())
    resources = (GPU,) if has[GPU] else ("cpu", "memory")
    return max((asked[each] / has[each] for each in resources if has[each]), default=0.0)


def may_move(pod: Object) -> bool:
    """Whether the pod may be evicted for the sake of its node."""
    said = annotations_of(pod).get(SAFE_TO_EVICT)
    if said is not None:
        return said == "true"
    return owner_of(pod) is not None


def _taint(now: float) -> Object:
    return {"key": TO_BE_DELETED, "value": str(int(now)), "effect": "NoSchedule"}


def _told(node: Object) -> EmitEvent:
    return EmitEvent(node, "Normal", "ScaleDown", "node removed by cluster autoscaler")


def _eviction(pod: Object) -> EvictPod:
    metadata = pod["metadata"]
    return EvictPod(metadata["namespace"], metadata["name"], metadata["uid"])
