"""What the watch shows of nodes, and what follows for the books and for gangs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from app.kube.core.objects import NodeRecord
from app.state.cache.books import Books, is_open
from app.state.cache.eligibility.node_table import NodeTable
from app.state.domains.topologies import Topologies
from app.state.nodes.invalidation import Invalidation
from app.state.nodes.repair import Failures, Repairs
from app.state.reserve.reservations import Reservations
from app.state.settings import EngineSettings

NodeChange = Literal["new", "changed", "none"]


@dataclass(frozen=True, slots=True)
class NodeEvents:
    """Books each change of a node, then gives up plans and begins repairs as it requires."""

    settings: EngineSettings
    books: Books
    topologies: Topologies
    node_table: NodeTable
    reservations: Reservations
    invalidation: Invalidation
    failures: Failures
    repairs: Repairs

    def put(self, node: NodeRecord, now: float) -> NodeChange:
        """Add a node or replace what is known of it; what that changes for pods."""
        before = self.books.nodes.get(node.name)
        placed: Collection[str] = ()
        if before is None or before.labels != node.labels:
            placed = self.topologies.place(node)
        if placed:
            self.books.outdate(only_explicit=True)
        if before is None:
            self.invalidation.lose_plans_around([node.name], now)
        elif before.labels != node.labels:
            unseen = self.topologies.moved_unseen(before, node)
            moved_in = {*placed, *self.books.moved_in(before, node), *unseen}
            if moved_in:
                self.invalidation.lose_plans_around([node.name], now, by=moved_in)
        claimed = self.books.axis.claimed
        self.books.put_node(node)
        self._note_claimed(claimed)
        self.node_table.put_node(node)
        if self.failures.put_node(node, now):
            self.repairs.return_node(node.name, now)
        if before is not None and _is_heartbeat(before, node):
            return "none"
        self.reservations.capacity_grew([node.name])
        if node.name in self.books.held_on:
            if not is_open(node):
                why = f"node {node.name} takes no pods any more"
                self.invalidation.lose_plans_on(node.name, why, now)
            else:
                self.invalidation.lose_barred(node, now)
                self.invalidation.lose_overcommitted(node.name, now)
        self.repairs.lose_ending(node.name, now)
        return "new" if before is None else "changed"

    def drop(self, name: str, now: float) -> None:
        """Forget a node that is gone."""
        if name not in self.books.nodes:
            return
        claimed = self.books.axis.claimed
        self.books.drop_node(name)
        self._note_claimed(claimed)
        self.topologies.remove(name)
        self.node_table.drop_node(name)
        self.failures.drop_node(name)
        self.invalidation.lose_plans_on(name, f"node {name} has gone", now)
        if self.settings.replace_failed_nodes:
            self.repairs.lose_node(name, now)
        self.repairs.lose_ending(name, now)

    def _note_claimed(self, before: frozenset[str]) -> None:
        """Have gangs tried if nodes need not have by now what was counted of them `before`."""
        if self.books.axis.claimed != before:
            self.reservations.capacity_grew()

    def expire(self, now: float) -> None:
        """Begin repairs for nodes that have not been ready for long enough."""
        for node in self.failures.due(now):
            self.repairs.lose_node(node, now)


def _is_heartbeat(before: NodeRecord, node: NodeRecord) -> bool:
    """Whether an update changes nothing that decides which pods the node may take."""
    return (
        before.allocatable == node.allocatable
        and before.labels == node.labels
        and before.taints == node.taints
        and is_open(before) == is_open(node)
    )
