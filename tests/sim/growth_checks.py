"""What must hold of an autoscaler's actions beside gangs, and what such a world has come to.

G1  no node is removed on which a member of a gang runs, and none is evicted so that its node can
    go; but one that came to a node which was given up already goes with it
G2  while no pod begins or ends, nodes come and go no more after a while
G3  when all is quiet no gang waits that one group could take whole, if its pods name that group
G4  with every pod gone every node goes that no group has to have
G5  for a gang that is alone no more machines are ordered than it has pods

G2 to G5 are judged in `growing.py`, where the autoscaler is. G1 is what Corral's annotations on
running pods are for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.kube.core.objects import NodeRecord, PodRecord
from tests.autoscaling.machines.actions import Action, DeleteNode, EvictPod, MakeNode, SetTaint
from tests.autoscaling.machines.cloud import Machine
from tests.sim.api import ApiServer
from tests.sim.clock import Clock
from tests.sim.corral import Corral
from tests.sim.faults import Hits
from tests.sim.liveness import gangs
from tests.sim.node_filters import counts
from tests.sim.violation import require


@dataclass(slots=True)
class GrowthChecks:
    """Looks on while nodes come and go. `made`: the nodes that the autoscaler has made."""

    clock: Clock
    api: ApiServer
    hits: Hits
    made: Mapping[str, NodeRecord] = field(default_factory=dict)
    _given_up_at: dict[str, float] = field(default_factory=dict)  # by node
    _marked: set[str] = field(default_factory=set)  # uids of pods that were, and wait
    _counted: set[object] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.api.subscribe("Pod", self._note_pod)

    def _note_pod(self) -> None:
        """Count who was marked and runs on a node that was made."""
        pod = self.api.changes["Pod"][-1].record
        assert isinstance(pod, PodRecord)
        if pod.is_marked:
            self._marked.add(pod.uid)
        elif pod.node and pod.uid in self._marked:
            self._marked.discard(pod.uid)
            if pod.node in self.made:
                self.hits.hit("W grown for")

    def look(self, corrals: Iterable[Corral], machines: Iterable[Machine]) -> None:
        """Count the nodes that are kept for gangs which asked for them, and those in vain."""
        for machine in machines:
            if not machine.comes and machine.name not in self._counted:
                self._counted.add(machine.name)
                self.hits.hit("F24 out of stock")
        for corral in corrals:
            for key, mark in corral.engine.new_nodes.of.items() if corral.life else ():
                if (corral.name, key, mark.since) not in self._counted:
                    self._counted.add((corral.name, key, mark.since))
                    self.hits.hit("W new nodes kept")

    def about_to(self, action: Action) -> None:
        """G1. Raises: Violation."""
        match action:
            case MakeNode():
                self.hits.hit("W node made")
            case SetTaint(name, _, is_set):
                if is_set:
                    self._given_up_at[name] = self.clock.now
                else:
                    self._given_up_at.pop(name, None)
                    self.hits.hit("W node kept on")
            case DeleteNode(name):
                self.hits.hit("W node removed")
                run = [pod.name for pod in self._members() if pod.node == name and counts(pod)]
                require(not run, f"G1: node {name} is removed, where {run} run")
            case EvictPod(_, name, uid):
                if uid not in self._counted:  # a budget may refuse it many times
                    self._counted.add(uid)
                    self.hits.hit("W moved")
                found = next((pod for pod in self._members() if pod.uid == uid), None)
                if found is not None:
                    since = self.api.started.get(uid, self.clock.now)
                    require(
                        self._given_up_at.get(found.node, self.clock.now) <= since,
                        f"G1: {name} is evicted for its node to go, and is of a gang",
                    )

    def _members(self) -> list[PodRecord]:
        return [pod for members in gangs(self.api).values() for pod in members]
