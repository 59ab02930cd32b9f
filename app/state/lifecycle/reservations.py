"""Capacity held for planned members, in the books and in `Gang.plan` at once, and what frees it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from app.state.cache.books import Books, is_open
from app.state.effects import RejectBind
from app.state.gang.gang import Gang
from app.state.lifecycle import binding
from app.state.plan.planner import Planner
from app.state.plan.queue import Queue
from app.state.plan.verdict import Plan
from app.state.report.outbox import Outbox


@dataclass(slots=True)
class Reservations:
    """Holds capacity for gangs, and ends that.

    Invariant: a gang's plan and the books name the same node for a uid.
    """

    books: Books
    planner: Planner
    queue: Queue
    outbox: Outbox
    _freed_nodes: dict[str, None] = field(default_factory=dict)  # where ordinary pods may fit now

    def hold(self, gang: Gang, plan: Plan, now: float) -> None:
        """Book the plan and make it part of the gang's."""
        gang.plan.version += 1
        for uid, node in plan.nodes.items():
            self.books.hold(uid, node, self.books.vector(gang.member(uid).pod.request))
        gang.plan.nodes.update(plan.nodes)
        gang.plan.domains.update(plan.domains)
        gang.plan.domain_nodes.update(plan.domain_nodes)
        binding.progress(gang, now)

    def hand_over(self, gang: Gang, uid: str, newcomer: str) -> None:
        """Give one member's part of the plan to another, unchanged."""
        plan = Plan(
            {newcomer: gang.plan.nodes[uid]},
            {newcomer: gang.plan.domains[uid]},
            {newcomer: gang.plan.domain_nodes[uid]},
        )
        self.books.release(uid)
        _forget(gang, uid)
        self.hold(gang, plan, now=gang.binding.moved_at)

    def end(self, gang: Gang, uid: str, sentence: str) -> None:
        """End one member's part of the plan; a held /bind request is refused with the sentence."""
        if self.give_back(gang, uid, sentence):
            self.capacity_grew()

    def give_back(self, gang: Gang, uid: str, sentence: str) -> bool:
        """The same where the member is planned again at once; True if something was held."""
        if uid in gang.binding.at_bind:
            self.outbox.add(RejectBind(uid, sentence))
        booking = self.books.release(uid)
        if booking is not None:
            self._freed_nodes[booking.node] = None
        _forget(gang, uid)
        return booking is not None

    def is_void(self, node: str) -> bool:
        """Whether reservations on a node are worth nothing: it takes no pods, or is too small."""
        record = self.books.nodes.get(node)
        return record is None or not is_open(record) or self.books.is_overcommitted(node)

    def taken_freed_nodes(self) -> Collection[str]:
        """Remove and return the nodes where capacity was freed since the last call."""
        freed, self._freed_nodes = self._freed_nodes, {}
        return freed

    def capacity_grew(self, nodes: Iterable[str] = ()) -> None:
        """Plan again what did not fit before; on `nodes` ordinary pods may fit now, too."""
        self._freed_nodes.update(dict.fromkeys(nodes))
        self.planner.begin_pass()
        self.queue.want_pass()


def _forget(gang: Gang, uid: str) -> None:
    """Drop one member's part of the plan."""
    gang.plan.version += 1
    gang.plan.nodes.pop(uid, None)
    gang.plan.domains.pop(uid, None)
    gang.plan.domain_nodes.pop(uid, None)
    binding.forget(gang, uid)
