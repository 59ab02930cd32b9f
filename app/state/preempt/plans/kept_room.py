"""Whether the place that is kept for a gang is still enough, and who has taken it if not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.dialects.spec import GangKey
from app.kube.core.objects import Amounts
from app.state.cache import room
from app.state.cache.books import Books
from app.state.cache.eligibility.one_node import may_host
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.pods.grants import Grants
from app.state.pods.nominations import Nominations
from app.state.pods.occupants import Occupants
from app.state.preempt.left_alone import LeftAlone
from app.state.preempt.plans.room_plan import RoomPlan

MOST_LOOKED_AT = 32  # of a place's nodes in one tick: 20 us each
MOST_OF_SLOW = 1  # the same of a place whose pods take long to end: of these there may be many


@dataclass(frozen=True, slots=True)
class KeptRoom:
    """Looks at the nodes of places as the books have them now."""

    books: Books
    occupants: Occupants
    nominations: Nominations
    grants: Grants
    gangs: Gangs
    left_alone: LeftAlone
    going: dict[str, GangKey]
    """By uid: the gang that a pod goes for."""

    def leaving(self, nodes: Iterable[str]) -> Iterator[str]:
        """The pods on these nodes that count as gone already, but for those that are stuck."""
        for node in nodes:
            for uid in self.books.bound_on.get(node, ()):
                if self.is_leaving(uid) and uid not in self.left_alone.stuck:
                    yield uid

    def is_leaving(self, uid: str) -> bool:
        """Whether a pod ends, or goes for others."""
        its = self.gangs.of_pod(uid)
        return (
            uid in self.going
            or self.occupants.any_terminating((uid,))
            or self.grants.is_victim(uid)
            or (its is not None and bool(its.ending))
        )

    def held_for_victims(self, plan: RoomPlan) -> set[str]:
        """The uids that places are held for which end with the gangs that go."""
        gangs = [self.gangs.by_key.get(each.gang) for each in plan.victims if each.gang]
        return {uid for gang in gangs if gang is not None for uid in gang.plan.nodes}

    def has_room(self, gang: Gang, plan: RoomPlan) -> bool:
        """Look at the next few nodes of a place: False if one is not enough any more.

        Since the question was asked nodes may have been closed, tainted or moved, and pods of a
        higher priority or of a scheduler that does not ask may have been bound there, or are on
        their way.
        """
        plan.unseen = plan.unseen or list(plan.on)
        ending, most = self.held_for_victims(plan), MOST_OF_SLOW if plan.is_slow else MOST_LOOKED_AT
        for _ in range(min(len(plan.unseen), most)):
            node = plan.unseen.pop()
            leaving = self._gone_by_then(plan, node, ending)
            # Once some go, the others do too, though a gang of higher priority has the place by now
            on_their_way = self.nominations.on(node, plan.priority, plan.places, self.books.held)
            others = [] if plan.begun else on_their_way
            fits = self.books.takes_pods(node) and self._fit(node, plan.on[node], leaving, others)
            if not fits or self._is_barred(node, gang, plan):
                return False
        plan.is_seen = plan.is_seen or not plan.unseen
        return True

    def taker(self, plan: RoomPlan, node: str, ending: Collection[str]) -> str:
        """The first pod that came to a node with which the gang's do not fit there; "": none."""
        here = self.books.bound_on.get(node, ())
        came = [uid for uid in here if uid not in plan.there and uid in self.occupants.by_uid]
        gone, requests = self._gone_by_then(plan, node, ending), plan.on[node]
        if not came or not self._fit(node, requests, [*gone, *came], ()):
            return ""  # it is lost without them
        for number, uid in enumerate(came, 1):
            if not self._fit(node, requests, [*gone, *came[number:]], ()):
                return uid
        return ""

    def _gone_by_then(self, plan: RoomPlan, node: str, ending: Collection[str]) -> list[str]:
        """What is on a node, and is not once the gang gets its place."""
        leaving = [uid for uid in self.leaving((node,)) if uid in plan.awaited]
        return leaving + [uid for uid in self.books.held_on.get(node, ()) if uid in ending]

    def _is_barred(self, name: str, gang: Gang, plan: RoomPlan) -> bool:
        """Whether a node has moved since, or takes the gang's pods no more."""
        (before, domains), node = plan.asked_of[name], self.books.nodes[name]
        now = self.books.domains_of(name)
        if domains != now and any(domains.get(level) != now.get(level) for level in gang.levels):
            return True
        if before.labels == node.labels and before.taints == node.taints:
            return False
        if gang.levels and self.books.has_moved(before, node):
            return True
        here = [uid for uid, place in plan.places.items() if place.node == name]
        return not all(may_host(node, gang.member(uid).shape) for uid in here)

    def _fit(
        self,
        node: str,
        requests: Sequence[Amounts],
        leaving: Collection[str],
        others: Sequence[Amounts],
    ) -> bool:
        """Whether these requests fit on a node all together, and beside others on their way there.

        `leaving`: uids of pods there that are gone by then.
        """
        for request in dict.fromkeys(requests):
            beside = [*others, *requests]
            beside.remove(request)
            if not room.fits(self.books, node, request, without=leaving, beside=beside):
                return False
        return True
