"""Plans that no longer hold, because of what became of a node they are on.

    the node closes or goes                   every plan on it
    it moves to another domain                plans with members there that name levels
    its taints or labels change               plans of members that it takes no more
    it shrinks, or somebody else takes room   plans on it, the youngest first, until it fits

Of a gang that has started only the places on that node are lost, but for a move to another domain.
What runs on the node is another matter: `repair.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.kube.core.objects import NodeRecord
from app.state.cache.books import Books
from app.state.cache.eligibility import may_host
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.lifecycle.plans import Plans


@dataclass(frozen=True, slots=True)
class Invalidation:
    """Gives up the plans that a change of a node makes invalid."""

    books: Books
    gangs: Gangs
    plans: Plans

    def lose_plans_on(self, node: str, why: str, now: float) -> None:
        """A node takes no pods any more, or is gone."""
        for gang in self._gangs_held_on(node):
            self.plans.lose(gang, why, now, on=node)

    def lose_plans_around(self, node: str, now: float) -> None:
        """A node is in other domains now: so are those who have it, and who was to be with them."""
        keys = dict.fromkeys(gang.key for gang in self._gangs_held_on(node))
        keys |= self.gangs.keys_of(self.books.bound_on.get(node, {}))
        for gang in [self.gangs.by_key[key] for key in keys]:
            if gang.names_levels and gang.plan.nodes.keys() - gang.binding.posted:
                self.plans.lose(gang, f"node {node} has moved to another domain", now)

    def lose_barred(self, node: NodeRecord, now: float) -> None:
        """The node's taints or labels may keep off what is planned there."""
        for gang in self._gangs_held_on(node.name):
            planned = (uid for uid, on in gang.plan.nodes.items() if on == node.name)
            if not all(may_host(node, gang.member(uid).shape) for uid in planned):
                why = f"node {node.name} takes its pods no more"
                self.plans.lose(gang, why, now, on=node.name)

    def lose_overcommitted(self, node: str, now: float) -> None:
        """Somebody took what was held: give up plans there, the youngest first, until it fits."""
        for gang in sorted(self._gangs_held_on(node), key=lambda gang: -gang.binding.moved_at):
            if not self.books.is_overcommitted(node):
                return
            self.plans.lose(gang, f"capacity held on node {node} was taken", now, on=node)

    def _gangs_held_on(self, node: str) -> list[Gang]:
        gangs, held = self.gangs, self.books.held_on.get(node, {})
        keys = gangs.keys_of(held)
        for key in gangs.with_placeholders:
            if any(uid in held for uid in gangs.by_key[key].placeholders):
                keys[key] = None
        return [gangs.by_key[key] for key in keys]
