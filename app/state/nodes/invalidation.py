"""Plans that a change of one of their nodes makes invalid.

    the node closes or goes                   every plan on it
    it moves to another domain                plans of gangs that have members there and name levels
    a level is added above one they name      plans that were made by the topology
    its taints or labels change               plans of members that it takes no more
    it shrinks, or a foreign pod is bound     plans on it, the least first, until the rest fits
    a pod of higher priority takes it         plans of lower priority on it
    a planned pod requests more               its gang's plan, if that is too much for the node

A gang that has started loses only its reservations on that node, unless the node moves to another
domain. A member that is being bound keeps its reservation, as the binding may succeed; `permit.py`
ends it when the binding fails. Pods that run on the node are the matter of `repair.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from app.dialects.spec import GangKey
from app.kube.core.objects import NodeRecord, PodRecord
from app.state.cache import room
from app.state.cache.books import Books
from app.state.cache.eligibility.one_node import may_host
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.pods.arrivals import WaitingPod
from app.state.pods.nominations import Nomination
from app.state.report.messages import preemption as messages
from app.state.report.naming import Naming
from app.state.reserve import binding
from app.state.reserve.plans import Plans


@dataclass(frozen=True, slots=True)
class Invalidation:
    """Gives up the plans that a change of a node makes invalid."""

    books: Books
    gangs: Gangs
    plans: Plans
    naming: Naming

    def lose_plans_on(self, node: str, why: str, now: float) -> None:
        """Give up plans on a node that takes no pods any more, or is gone."""
        for gang in self._gangs_held_on(node):
            self.plans.lose(gang, why, now, on=node)

    def lose_plans_around(
        self,
        nodes: Iterable[str],
        now: float,
        levels: Collection[str] | None = None,
        by: Collection[str] | None = None,
    ) -> None:
        """Give up plans of gangs with members on nodes that are in other domains now.

        `levels`: those whose domains have changed; None: any. `by`: of which topologies these
        domains are; None: of any. However many nodes a gang has among
        these, it is looked at once.
        """
        node_of: dict[GangKey, str] = {}
        for node in nodes:
            for gang in self._gangs_held_on(node):
                node_of.setdefault(gang.key, node)
            for key in self.gangs.keys_of(self.books.bound_on.get(node, {})):
                node_of.setdefault(key, node)
        for key, node in node_of.items():
            gang = self.gangs.by_key[key]
            named = gang.levels
            if not named or (levels is not None and named.isdisjoint(levels)):
                continue
            if by is not None and self._named_by(gang).isdisjoint(by):
                continue
            self._lose_or_outdate(gang, f"node {node} has moved to another domain", now)

    def lose_plans_by(self, split: Mapping[str, Collection[str]], now: float) -> None:
        """Give up plans by topologies of which levels were split, for gangs that name these levels.

        A gang that names a topology which is gone has no other: its plan stays until that is back.
        """
        for key in tuple(self.gangs.planned) if split else ():
            gang = self.gangs.by_key[key]
            for topology in self._planned_by(gang):
                if not gang.levels.isdisjoint(split.get(topology, ())):
                    why = f"the levels of topology {topology} are others"
                    self._lose_or_outdate(gang, why, now)
                    break

    @staticmethod
    def _named_by(gang: Gang) -> frozenset[str]:
        """The topologies by which a gang is planned, or would be if they were there."""
        return gang.membership.topologies or frozenset((gang.plan.topology,))

    def _planned_by(self, gang: Gang) -> Collection[str]:
        """The topologies by which a gang is planned; of those that it names the ones there are."""
        named = self._named_by(gang)
        return named & self.books.topologies.keys() if gang.membership.topologies else named

    def _lose_or_outdate(self, gang: Gang, why: str, now: float) -> None:
        if gang.plan.nodes.keys() - gang.binding.posted:
            self.plans.lose(gang, why, now)
        else:
            binding.outdate(gang)

    def lose_barred(self, node: NodeRecord, now: float) -> None:
        """Give up plans of members that a node's taints or labels do not allow there any more."""
        for gang in self._gangs_held_on(node.name):
            planned = (uid for uid, on in gang.plan.nodes.items() if on == node.name)
            if not all(may_host(node, gang.member(uid).shape) for uid in planned):
                why = f"node {node.name} takes its pods no more"
                self.plans.lose(gang, why, now, on=node.name)

    def lose_overcommitted(
        self,
        node: str,
        now: float,
        by: PodRecord | WaitingPod | None = None,
        below: int | None = None,
    ) -> None:
        """Give up plans on a node until what is held fits beside what runs.

        Those of the lowest priority go first, the youngest of them. `by`: who took their capacity;
        None: no pod, the node has less of something.
        `below`: plans that hold nothing there below this priority stay.
        """
        for gang in self._least_held_on(node):
            if not room.is_overcommitted(self.books, node):
                return
            if below is not None and not self._holds_below(gang, node, below):
                continue
            # No fault of the gang's: its back-off does not grow, else a tenant who may name a
            # node for a pod could keep it waiting beside free nodes.
            self.plans.lose(gang, self._taken(gang, node, by), now, losses=0, on=node)

    def lose_outgrown(self, pod: PodRecord, node: str, now: float) -> None:
        """Give up the plan by which a pod is held on a node, if it requests too much by now.

        If its binding is under way, others give way to it.
        """
        gang = self.gangs.of_pod(pod.uid)
        if gang is not None and room.is_overcommitted(self.books, node):
            why = f"pod {pod.name} requests more than before"
            self.plans.lose(gang, why, now, losses=0, on=node)
        self.lose_overcommitted(node, now, pod)

    def _taken(self, gang: Gang, node: str, by: PodRecord | WaitingPod | None) -> str:
        """Why a gang loses its plan: a pod took its capacity, or the node has less than before."""
        if by is None:
            return f"node {node} has less by now than is held there"
        who = self.naming.pod(by.namespace, by.name, gang.key.namespace)
        return f"capacity held on node {node} was taken by {messages.of_priority(who, by.priority)}"

    def lose_to_nominated(
        self, nomination: Nomination, leaving: Collection[str], by: PodRecord, now: float
    ) -> None:
        """Give up plans of a lower priority that leave a nominated pod no room.

        `leaving`: uids of pods on its node that count as gone; `by`: that pod.
        """
        node, request = nomination.node, nomination.request
        for gang in self._least_held_on(node):
            if room.fits(self.books, node, request, without=leaving):
                return
            if not self._holds_below(gang, node, nomination.priority):
                continue
            self.plans.lose(gang, self._taken(gang, node, by), now, losses=0, on=node)

    def _holds_below(self, gang: Gang, node: str, priority: int) -> bool:
        """Whether something is held there for a pod of the gang that has a lower priority."""
        return any(gang.has(uid) for uid in room.held_below(self.books, node, priority))

    def _least_held_on(self, node: str) -> list[Gang]:
        """The gangs with plans on a node: the lowest priority first, then the youngest plan."""
        return sorted(
            self._gangs_held_on(node),
            key=lambda gang: (gang.highest_priority, -gang.binding.moved_at),
        )

    def _gangs_held_on(self, node: str) -> list[Gang]:
        gangs, held = self.gangs, self.books.held_on.get(node)
        if not held:
            return []
        keys = gangs.keys_of(held)
        for key in gangs.with_placeholders:
            if any(uid in held for uid in gangs.by_key[key].placeholders):
                keys[key] = None
        return [gangs.by_key[key] for key in keys]
