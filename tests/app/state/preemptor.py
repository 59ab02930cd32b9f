"""kube-scheduler's part of a preemption, in virtual time: what it asks, deletes and tries again.

One attempt of an ordinary pod: /filter with the nodes that in-tree filters leave (of those only
resources play a part), and where none is left PostFilter. A nominated node is tried alone first;
while a pod of lower priority ends there, nobody else is preempted. Members that wait at /bind take
their nodes, as kube-scheduler has assumed them.
Source: kubernetes v1.36 pkg/scheduler/schedule_one.go, framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.kube.core.objects import PodRecord
from app.state.effects import RejectBind
from app.state.filter_result import Passed, Victims
from tests import records
from tests.app.state.world import World

SECONDS = 1.0  # between two attempts


def rack(number=0, nodes=8):
    """A rack of nodes of 8 GPUs."""
    return [records.node(f"b0/r{number}/n{number}{at}") for at in range(nodes)]


def running(world, *gangs):
    """The world, once these gangs run."""
    for gang in gangs:
        world.put(*gang)
        assert len(world.schedule(*gang)) == len(gang)
    return world


def hp(name="hp", priority=1000, **more):
    """A pod that preempts."""
    return records.pod(name, priority=priority, **more)


class Preemptors:
    """Ordinary pods that preempt, and what became of all others."""

    def __init__(self, world: World, *pods: PodRecord, is_slow: bool = False) -> None:
        self.world = world
        self.pods = {pod.uid: pod for pod in pods}
        self.killed: list[str] = []
        self.asked = 0  # /preempt
        self.is_slow = is_slow  # victims take their time to end
        self.ending: list[PodRecord] = []
        world.put(*pods)

    @property
    def bound(self) -> dict[str, str]:
        """Name and node of those that have one."""
        pods = (self.world.pods[uid] for uid in self.pods)
        return {pod.name: pod.node for pod in pods if pod.node}

    def play(self, attempts: int = 30) -> None:
        """So many attempts of each, one after the other."""
        for _ in range(attempts):
            for uid in self.pods:
                self._attempt(self.world.pods[uid])
            self.world.tick(SECONDS)

    def end_victims(self) -> None:
        """Those that take their time are gone."""
        ending, self.ending = self.ending, []
        self.world.delete(*ending)
        self.world.tick()

    def _attempt(self, pod: PodRecord) -> None:
        if pod.node:
            return
        if pod.nominated_node and self._tried(pod, [pod.nominated_node]):
            return
        if self._tried(pod, list(self.world.engine.books.nodes)):
            return
        pod = self.world.pods[pod.uid]
        if any(each.node == pod.nominated_node for each in self.ending):
            return
        self._preempt(pod)

    def _tried(self, pod: PodRecord, nodes: Sequence[str]) -> bool:
        """Whether the pod is bound to one of these nodes."""
        fitting = [node for node in nodes if self._fits(pod, node)]
        if not fitting:
            return False
        answer = self.world.filter(pod, fitting)
        assert isinstance(answer, Passed)
        left = [node for node in fitting if node not in answer.without]
        if left:
            self.world.confirm(self.world.bind(pod, left[0]))
        return bool(self.world.pods[pod.uid].node)

    def offered(self, pod: PodRecord) -> dict[str, Victims]:
        """Nodes and the victims there, as kube-scheduler finds them."""
        found = ((node, self._victims(pod, node)) for node in self.world.engine.books.nodes)
        return {
            node: Victims(tuple(each.uid for each in victims), 0)
            for node, victims in found
            if victims
        }

    def _preempt(self, pod: PodRecord) -> None:
        offered = self.offered(pod)
        if not offered:
            return
        self.asked += 1
        answer, effects = self.world.inputs.preempt(pod, offered, self.world.now)
        self.world._take(effects)
        assert len(answer) <= 1
        for node, chosen in answer.items():
            assert set(chosen.uids) == set(offered[node].uids)
            for uid in chosen.uids:
                self._kill(self.world.pods[uid])
            self.world.put(msgspec.structs.replace(pod, nominated_node=node))

    def _kill(self, victim: PodRecord) -> None:
        self.killed.append(victim.name)
        ending = msgspec.structs.replace(victim, is_preempted=True)
        self.world.put(ending)  # its condition is written first
        if not self.is_slow:
            self.world.delete(ending)
            return
        ending = msgspec.structs.replace(ending, is_terminating=True)
        self.ending.append(ending)
        self.world.put(ending)

    def _victims(self, pod: PodRecord, node: str) -> list[PodRecord]:
        """As few as are enough, the least important first; none if it does not fit at all."""
        lower = [each for each in self._on(node) if each.priority < pod.priority]
        lower.sort(key=lambda each: (-each.priority, each.created))
        if not self._fits(pod, node, lower):
            return []
        out = list(lower)
        for each in lower:
            rest = [other for other in out if other is not each]
            if self._fits(pod, node, rest):
                out = rest
        return out

    def _on(self, node: str) -> list[PodRecord]:
        """Pods that run there, or are assumed to since they came to /bind."""
        refused = {each.uid for each in self.world.effects if isinstance(each, RejectBind)}
        at_bind = {
            uid: gang.plan.nodes[uid]
            for gang in self.world.engine.gangs.by_key.values()
            for uid in gang.binding.at_bind
            if uid not in refused
        }
        return [
            each for each in self.world.pods.values() if node in (each.node, at_bind.get(each.uid))
        ]

    def _fits(self, pod: PodRecord, node: str, without: Sequence[PodRecord] = ()) -> bool:
        there = [each for each in self._on(node) if each not in without]
        there += [
            each
            for each in self.world.pods.values()
            if each.nominated_node == node and not each.node and each.priority >= pod.priority
            if each.uid != pod.uid
        ]
        free = dict(self.world.engine.books.nodes[node].allocatable)
        for each in there:
            for resource, amount in each.request:
                free[resource] = free.get(resource, 0) - amount
        return all(amount <= free.get(resource, 0) for resource, amount in pod.request)
