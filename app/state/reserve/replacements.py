"""Reservations for placeholders: made when a member is lost, taken over by its replacement.

`placeholders.py` says for which pods there are placeholders; here each gets its node. The node of a
member that is lost while others run is held for its replacement, if that may run there beside the
others; else a spare stands in, or the next pass finds a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.state.cache import room
from app.state.cache.books import Books, is_open
from app.state.cache.eligibility.one_node import may_stay
from app.state.gang import lost_nodes
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.gang.members.member import Member
from app.state.plan.planner import Planner
from app.state.plan.single_nodes import SingleNodes
from app.state.plan.verdict import Plan
from app.state.queueing import ungating
from app.state.queueing.requeue import Requeues
from app.state.reserve import binding, placeholders
from app.state.reserve.reservations import Reservations
from app.state.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class Replacements:
    """Holds nodes for placeholders, and hands them over to the pods that come."""

    settings: EngineSettings
    books: Books
    gangs: Gangs
    planner: Planner
    single_nodes: SingleNodes
    reservations: Reservations
    requeues: Requeues

    def keep(self, gang: Gang, lost: Member, now: float) -> None:
        """Hold the node of a lost member for its replacement, if other members run."""
        if lost.pod.node and self._has_failed(lost):
            is_gone = lost.pod.node not in self.books.nodes
            if is_gone or self.settings.replace_on_pod_termination:
                self.note_failure(gang, lost.pod.node, lost)
        if gang.ending:
            return
        until = now + self.settings.owed_seconds
        if placeholders.prolong(gang, lost, until):
            return  # its node had failed before: another one is held already
        others = len(gang.running) - (lost.pod.uid in gang.running)
        if not (lost.pod.node and others and self.planner.is_ready and self.settings.owed_seconds):
            return
        if not self.reservations.may_owe(gang, lost):
            return
        uid = placeholders.keep_place(gang, lost, until)
        self.gangs.note_placeholders(gang)
        self._hold(gang, uid, lost, now)

    def _hold(self, gang: Gang, uid: str, lost: Member, now: float) -> None:
        """Hold the lost member's node for its placeholder, or let a spare stand in for that."""
        member, node = gang.placeholders[uid].member, lost.pod.node
        domain = self.single_nodes.domain_at(gang, member, node)

        def beside() -> Iterator[tuple[Member, str]]:
            for other in (gang.members[each] for each in gang.running if each != lost.pod.uid):
                yield other, other.pod.node
            for planned, on in gang.plan.nodes.items():
                if planned != lost.pod.uid and gang.has(planned):
                    yield gang.member(planned), on

        may_stay = self.single_nodes.may_have(gang, member, node) and self.single_nodes.is_beside(
            gang, member, node, beside
        )
        if domain is not None and may_stay:
            plan = Plan({uid: node}, {uid: domain[0]}, {uid: domain[1]})
            self.reservations.hold(gang, plan, now)
        else:
            self.use_spare(gang, uid)

    def use_spare(self, gang: Gang, uid: str) -> None:
        """Let a spare with a node stand in for a lost member, whose placeholder this is."""
        spare = placeholders.exchange_with_spare(gang, uid)
        if spare:
            self.reservations.count_as_owed(gang, spare)

    def end(self, gang: Gang, done: Member) -> None:
        """End what is held for the replacement of a member that has succeeded."""
        for uid in placeholders.end_for(gang, done):
            if uid in gang.plan.nodes:
                self.reservations.end(gang, uid, "")

    def is_stranded(self, member: Member) -> bool:
        """Whether a member terminates on a node that would not take it again."""
        if not (member.pod.is_terminating and self.settings.replace_failed_nodes):
            return False
        return self._has_failed(member)

    def _has_failed(self, member: Member) -> bool:
        """Whether a member's node would not take it again, however much room it had."""
        node = self.books.nodes.get(member.pod.node)
        return node is None or not is_open(node) or not may_stay(node, member.shape)

    def note_failure(self, gang: Gang, node: str, lost: Member | None = None) -> None:
        """Note that a node has failed under members of a gang; `lost`: one of them, gone by now."""
        if node not in gang.failed_nodes:
            is_known = self.planner.is_ready
            gang.failed_nodes[node] = lost_nodes.had(gang, lost, is_known=is_known)

    def end_failure(self, gang: Gang, node: str) -> None:
        """Note that a node is back."""
        gang.failed_nodes.pop(node, None)

    def review(self, gang: Gang, now: float) -> int:
        """Give placeholders' nodes to members that have joined, then follow the roll call.

        Returns the number of pods to come whose places are given up.
        """
        if not gang.has_started:  # no member is left that a replacement would join
            placeholders.forget_lost(gang)
        if gang.failed_nodes and not (gang.has_started and _lacks_pods(gang)):
            gang.failed_nodes.clear()
        taken = [
            member.pod.uid
            for member in gang.membership.unbound
            if gang.placeholders
            and member.pod.uid not in gang.plan.nodes
            and self._take(gang, member)
        ]
        most = self.reservations.most_absent(gang)
        given_up = placeholders.review(gang, now, self.settings.absent_seconds, most)
        for uid in [uid for uid in gang.plan.nodes if not gang.has(uid)]:
            self.reservations.end(gang, uid, "")
        self._count(gang)
        if taken:
            binding.progress(gang, now)
            self.requeues.call(gang, now)
        return given_up

    def take(self, gang: Gang, newcomer: Member, now: float, place: str = "") -> bool:
        """Give a pod that has come the place held for it, before the next roll call.

        `place`: the placeholder's uid, where it is known.
        """
        if not self._take(gang, newcomer, place):
            return False
        self._count(gang)
        binding.progress(gang, now)
        self.requeues.call(gang, now)
        return True

    def give_back(self, gang: Gang, uid: str) -> None:
        """Hold a member's place for the pod that comes in its stead: it does not exist."""
        kept = placeholders.await_again(gang, gang.members[uid])
        self.reservations.hand_over(gang, uid, kept)
        self._count(gang)

    def _count(self, gang: Gang) -> None:
        """Note that placeholders have come or gone."""
        self.gangs.note_placeholders(gang)
        self.reservations.count_placeholders(gang)

    def _take(self, gang: Gang, newcomer: Member, place: str = "") -> bool:
        """Replace a placeholder by a member that has joined; True if it had a node."""
        uid = place or placeholders.place_for(gang, newcomer)
        node = gang.plan.nodes.get(uid, "")
        if not uid or not ungating.allows(newcomer, node or None):
            return False
        kept = gang.placeholders[uid].member
        placeholders.forget(gang, uid)
        if not node:
            return False
        self.reservations.hand_over(gang, uid, newcomer.pod.uid)
        if kept.role == newcomer.role or self._may_keep(newcomer, node):
            return True
        self.reservations.end(gang, newcomer.pod.uid, "")
        return False

    def _may_keep(self, newcomer: Member, node: str) -> bool:
        """Whether a pod that is not quite what its template declared may have the place held."""
        record = self.books.nodes.get(node)
        is_allowed = record is not None and may_stay(record, newcomer.shape)
        return is_allowed and not room.is_overcommitted(self.books, node)


def _lacks_pods(gang: Gang) -> bool:
    """Whether some pod of a gang has no node, or has not come again since it was lost."""
    is_lost = any(each.instead_of for each in gang.placeholders.values())
    return is_lost or bool(gang.membership.unbound) or gang.membership.vacant > 0
