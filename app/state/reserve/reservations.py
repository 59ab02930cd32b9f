"""Capacity held for planned members, in the books and in `Gang.plan` at once, and what frees it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.kube.core.objects import Shape
from app.state.autoscaling.held_nodes import HeldNodes
from app.state.cache import room
from app.state.cache.books import Books, is_open
from app.state.cache.eligibility.one_node import may_host
from app.state.effects import RejectBind
from app.state.fairness.absent_pods import AbsentPods
from app.state.fairness.owed_places import OwedPlaces
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.plan.planner import Planner
from app.state.plan.verdict import Plan
from app.state.queueing.outbox import Outbox
from app.state.reserve import binding
from app.state.turns.queue import Queue


@dataclass(slots=True)
class Reservations:
    """Holds capacity for gangs, and ends that.

    Invariant: a gang's plan and the books name the same node for a uid.
    """

    books: Books
    planner: Planner
    queue: Queue
    absent_pods: AbsentPods
    owed_places: OwedPlaces
    held_nodes: HeldNodes
    outbox: Outbox
    _freed_nodes: dict[str, None] = field(default_factory=dict)  # where ordinary pods may fit now

    def hold(self, gang: Gang, plan: Plan, now: float) -> None:
        """Book the plan and make it part of the gang's."""
        gang.plan.version += 1
        self.books.hold_all(
            (uid, node, gang.member(uid).pod.request, gang.priority_of(uid))
            for uid, node in plan.nodes.items()
        )
        gang.plan.nodes.update(plan.nodes)
        self.held_nodes.hold(gang.key, plan.nodes.values())
        gang.plan.domains.update(plan.domains)
        gang.plan.domain_nodes.update(plan.domain_nodes)
        gang.plan.topology = plan.topology or gang.plan.topology
        if gang.placeholders:
            self.absent_pods.hold(gang, plan.nodes)
            self.owed_places.hold(gang, plan.nodes)
        binding.progress(gang, now)

    def count_placeholders(self, gang: Gang) -> None:
        """Note that placeholders of a gang have come or gone."""
        if self.absent_pods.count_awaited(gang):
            self.queue.want_pass()

    def count_as_owed(self, gang: Gang, uid: str) -> None:
        """Count a spare's place as a lost pod's and no longer as an absent one's."""
        if self.absent_pods.release(uid):
            self.queue.want_pass()
        self.owed_places.hold(gang, (uid,))

    def may_owe(self, gang: Gang, lost: Member) -> bool:
        """Whether a place may be held for the replacement of one more pod."""
        return self.owed_places.may_hold(gang.key.namespace, lost.pod.request)

    def most_absent(self, gang: Gang) -> int:
        """For how many pods that do not exist the gang can have places held."""
        return self.absent_pods.most_for(gang)

    def hand_over(self, gang: Gang, uid: str, newcomer: str) -> None:
        """Give one member's part of the plan to another, unchanged."""
        plan = Plan(
            {newcomer: gang.plan.nodes[uid]},
            {newcomer: gang.plan.domains[uid]},
            {newcomer: gang.plan.domain_nodes[uid]},
        )
        self.books.release(uid)
        self._forget(gang, uid)
        self.hold(gang, plan, now=gang.binding.moved_at)

    def end(self, gang: Gang, uid: str, sentence: str) -> None:
        """End one member's part of the plan; a held /bind request is refused with the sentence."""
        node = gang.plan.nodes.get(uid)
        if self.give_back(gang, uid, sentence):
            self.capacity_grew([node] if node else ())

    def give_back(self, gang: Gang, uid: str, sentence: str) -> bool:
        """The same where the member is planned again at once; True if something was held."""
        if uid in gang.binding.at_bind:
            self.outbox.add(RejectBind(uid, sentence))
        booking = self.books.release(uid)
        if booking is not None:
            self._freed_nodes[booking.node] = None
        self._forget(gang, uid)
        return booking is not None

    @contextmanager
    def yielding(self, gang: Gang, uids: Sequence[str]) -> Iterator[None]:
        """Let others of the gang be planned before these parts of its plan.

        These take nothing meanwhile. Then they are held again in their order, and those that do not
        fit any more lose their nodes.
        """
        for uid in uids:
            self.books.release(uid)
        try:
            yield
        finally:
            for uid in uids:
                node = gang.plan.nodes[uid]
                request = gang.member(uid).pod.request
                if room.fits(self.books, node, request):
                    self.books.hold(uid, node, request, gang.priority_of(uid))
                else:
                    self._forget(gang, uid)
                    self.capacity_grew([node])

    def is_void(self, node: str, shape: Shape) -> bool:
        """Whether a reservation is worth nothing: the node does not take the pod, or is full."""
        record = self.books.nodes.get(node)
        is_closed = record is None or not is_open(record) or not may_host(record, shape)
        return is_closed or room.is_overcommitted(self.books, node)

    def taken_freed_nodes(self) -> Collection[str]:
        """Remove and return the nodes where capacity was freed since the last call."""
        freed, self._freed_nodes = self._freed_nodes, {}
        return freed

    def capacity_grew(self, nodes: Iterable[str] = ()) -> None:
        """Plan again what did not fit before, and have ordinary pods that may fit on `nodes` tried.

        Without any, there may be more room anywhere.
        """
        freed = dict.fromkeys(nodes)
        self._freed_nodes.update(freed)
        self.planner.capacity_grew(freed.keys())
        self.queue.want_pass()

    def _forget(self, gang: Gang, uid: str) -> None:
        """Drop one member's part of the plan."""
        gang.plan.version += 1
        node = gang.plan.nodes.pop(uid, None)
        if node is not None:
            self.held_nodes.release(gang.key, node)
        gang.plan.domains.pop(uid, None)
        gang.plan.domain_nodes.pop(uid, None)
        binding.forget(gang, uid)
        self.owed_places.release(uid)
        if self.absent_pods.release(uid):
            self.queue.want_pass()
