"""The answer to /preempt: on which of kube-scheduler's nodes an ordinary pod may have victims.

    a member of a gang                          none: one node makes no room for a gang
    its last grant is not used up               none: nobody else goes for the same pod
    one gang that waits at /bind would do       none: its binding is refused, and no pod ends
    else                                        one node, with kube-scheduler's own victims

Of the nodes left the one is answered where least is lost: a gang that loses one pod may have to
start again as a whole. The victims of a node are never chosen anew: ports, volumes and affinity
are what kube-scheduler knows. An empty answer is the only way to keep it from preempting: a node
that /filter refuses makes it take the next victim.
Source: kubernetes v1.36 pkg/scheduler/framework/preemption/preemption.go, callExtenders and
pickOneNodeForPreemption.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.kube.core.objects import Amounts, PodRecord
from app.state.cache.books import Books
from app.state.fairness.starvation import Starvation
from app.state.filter_result import Victims
from app.state.gang import minimum
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.pods.arrivals import Arrivals
from app.state.pods.claim_reader import ClaimReader
from app.state.pods.grants import Grants
from app.state.pods.nominations import Nomination, Nominations
from app.state.pods.occupants import SYSTEM_PRIORITY, Occupants
from app.state.report import messages
from app.state.report.reports import Reports
from app.state.reserve.plans import Plans
from app.state.settings import EngineSettings

Cost = tuple[object, ...]
MOST_JUDGED = 4_096  # victims of one request, the fewest of a node first: 3 us each
MOST_DIGITS = 32  # characters of a time; the API server writes 20
_BASE = 2**31  # kube-scheduler's: so that each victim adds to a sum, whatever its priority


@dataclass(frozen=True, slots=True)
class _Choice:
    """A node, who would go there, and what that costs."""

    node: str
    victims: tuple[str, ...]  # uids, the most important first
    pdb_violations: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class _Preemptor:
    uid: str
    name: str  # with its namespace
    priority: int
    request: Amounts
    nominated_node: str


@dataclass(frozen=True, slots=True)
class Preempting:
    """Decides about requests at /preempt."""

    settings: EngineSettings
    books: Books
    arrivals: Arrivals
    claim_reader: ClaimReader
    occupants: Occupants
    nominations: Nominations
    grants: Grants
    gangs: Gangs
    starvation: Starvation
    plans: Plans
    reports: Reports

    def names_gangs(self, nodes: Iterable[str]) -> bool:
        """Whether members of gangs run on one of these nodes, as far as is known."""
        return any(
            uid in self.gangs.key_of for node in nodes for uid in self.books.bound_on.get(node, ())
        )

    def answer(
        self, pod: PodRecord, offered: Mapping[str, Victims], now: float
    ) -> Mapping[str, Victims]:
        """One of the nodes offered with its victims, or none."""
        if pod.uid in self.gangs.key_of or self.claim_reader.claim(pod) is not None:
            return {}
        known = self.arrivals.known(pod.namespace, pod.name, pod.uid)
        said = pod if known is None else known
        by = _Preemptor(
            pod.uid,
            f"{pod.namespace}/{pod.name}",
            said.priority,
            said.request,
            said.nominated_node,
        )
        if self._has_room_coming(by) or self.grants.is_stopped(by.uid, now):
            return {}
        self.books.refresh()
        choices = list(self._choices(by, pod, offered)) or list(
            self._choices(by, pod, offered, parts=True)
        )
        if not choices:
            return {}
        best = min(choices, key=lambda choice: choice.cost)
        if self._wait_at_bind(best):
            self._refuse_binds(best, by, now)
            return {}
        if known is not None:  # else the watch would never tell of its end
            nomination = Nomination(best.node, by.request, by.priority)
            self.grants.make(by.uid, nomination, frozenset(best.victims), now)
        self._tell(best, by)
        return {best.node: Victims(best.victims, best.pdb_violations)}

    # -- whether to answer at all ----------------------------------------------------------------

    def _has_room_coming(self, by: _Preemptor) -> bool:
        """Whether pods go for this one already, or went and what is held keeps it off its node."""
        grant = self.grants.of.get(by.uid)
        if grant is None:
            # As after a restart: its nominated node and those that end there tell.
            on_node = self.books.bound_on.get(by.nominated_node, ())
            lower = self.occupants.lower(on_node, by.priority)
            return self.occupants.any_terminating(lower)
        if grant.is_refused or any(uid in self.books.bound for uid in grant.victims):
            return True
        self.grants.end(by.uid)  # all are gone, and kube-scheduler's own filters refuse the node
        return False

    # -- which nodes -----------------------------------------------------------------------------

    def _choices(
        self, by: _Preemptor, pod: PodRecord, offered: Mapping[str, Victims], *, parts: bool = False
    ) -> Iterator[_Choice]:
        """What the nodes offered cost, where victims may go and make room.

        `parts`: of victims that are not all on their node those that are; kube-scheduler 1.37
        names all pods of a group, wherever they run.
        """
        closed = self.starvation.closed_to(pod)
        judged = 0
        for node in sorted(offered, key=lambda node: _size(offered[node])):
            victims = offered[node]
            here = tuple(uid for uid in victims.uids if self._is_on(uid, node))
            judged += len(victims.uids)
            if judged > MOST_JUDGED:
                return
            if here and node not in closed and (parts or here == victims.uids):
                choice = self._choice(by, node, here, victims.pdb_violations)
                if choice is not None:
                    yield choice

    def _is_on(self, uid: str, node: str) -> bool:
        booking = self.books.bound.get(uid) or self.books.held.get(uid)
        return booking is not None and booking.node == node

    def _choice(
        self, by: _Preemptor, node: str, uids: tuple[str, ...], pdb_violations: int
    ) -> _Choice | None:
        """What it costs to have these victims; None if they may not go, or that is no use."""
        if not all(self._may_go(uid, by.priority) for uid in uids):
            return None
        if not self._makes_room(by, node, uids):
            return None
        gangs = self._gangs_of(uids)
        if gangs and self.settings.gangs_as_victims == "never":
            return None
        broken = sum(self._is_whole(gang) for gang in gangs)
        highest = max(self._importance(uid) for uid in uids)
        rest = (
            self._lost_with(uids, gangs),
            sum(self._priority(uid) + _BASE for uid in uids),
            -min(_when(self._created(uid)) for uid in uids if self._importance(uid) == highest),
            node,
        )
        first = (broken, highest) if self.settings.gangs_as_victims == "last" else (highest, broken)
        by_importance = sorted(uids, key=lambda uid: (-self._priority(uid), self._created(uid)))
        return _Choice(node, tuple(by_importance), pdb_violations, (pdb_violations, *first, *rest))

    def _may_go(self, uid: str, priority: int) -> bool:
        occupant = self.occupants.by_uid.get(uid)
        if occupant is not None and (occupant.is_terminating or not occupant.may_go):
            return False
        return self._importance(uid) < min(priority, SYSTEM_PRIORITY)

    def _makes_room(self, by: _Preemptor, node: str, uids: tuple[str, ...]) -> bool:
        """Whether the pod fits once they are gone, and what is held for lower ones with them."""
        gone = {*uids, *self.books.held_below(node, by.priority)}
        others = self.nominations.on(node, by.priority, (by.uid,), self.books.held)
        return self.books.fits(node, by.request, without=gone, beside=others)

    def _lost_with(self, uids: Collection[str], gangs: Iterable[Gang]) -> int:
        """How many pods end if these do: all of a gang that ends or starts again as a whole."""
        whole = [
            each.running
            for each in gangs
            if each.restarts_together or each.ends_together(self.settings.disruption)
        ]
        return len(set(uids).union(*whole))

    def _gangs_of(self, uids: Iterable[str]) -> list[Gang]:
        return [self.gangs.by_key[key] for key in self.gangs.keys_of(uids)]

    def _priority(self, uid: str) -> int:
        occupant = self.occupants.by_uid.get(uid)
        return self.books.priority_of.get(uid, 0) if occupant is None else occupant.priority

    def _importance(self, uid: str) -> int:
        """The pod's priority; for a member the highest of its gang."""
        gang = self.gangs.of_pod(uid)
        return max(self._priority(uid), gang.highest_priority if gang is not None else 0)

    def _created(self, uid: str) -> str:
        occupant = self.occupants.by_uid.get(uid)
        return occupant.created if occupant is not None else ""

    def _is_whole(self, gang: Gang) -> bool:
        """Whether a gang has all it needs now, and none of it goes already."""
        spec = gang.membership.spec
        needed = len(gang.members) if spec is None else minimum.least_pods(spec)
        going = any(self.grants.is_victim(uid) for uid in gang.members) if self.grants.of else False
        return len(gang.running) >= needed and not going

    # -- what follows ----------------------------------------------------------------------------

    def _wait_at_bind(self, choice: _Choice) -> bool:
        """Whether all victims are members whose binding is held: they can still be refused."""
        gangs = {uid: self.gangs.of_pod(uid) for uid in choice.victims}
        return all(gang is not None and uid in gang.binding.at_bind for uid, gang in gangs.items())

    def _refuse_binds(self, choice: _Choice, by: _Preemptor, now: float) -> None:
        """Have kube-scheduler forget these members: that wakes the preemptor, and no pod ends."""
        why = f"capacity held on node {choice.node} was taken by {_words(by)}"
        for gang in self._gangs_of(choice.victims):
            self.plans.lose(gang, why, now, losses=0, on=choice.node)

    def _tell(self, choice: _Choice, by: _Preemptor) -> None:
        """Tell the owners of gangs that lose members."""
        for gang in self._gangs_of(choice.victims):
            going = [uid for uid in choice.victims if uid in gang.members]
            pod = gang.members[going[0]].pod
            sentence = messages.gives_way(
                f"{pod.namespace}/{pod.name}",
                len(going),
                _words(by, over=gang.highest_priority),
                choice.node,
                len(gang.running - set(going)),
                len(gang.running),
            )
            self.reports.gives_way(gang, sentence)


def _size(victims: Victims) -> tuple[int, int]:
    return victims.pdb_violations, len(victims.uids)


def _when(created: str) -> int:
    """A time as the API server writes it, as a number that grows with it."""
    return int("".join(filter(str.isdecimal, created[:MOST_DIGITS])) or "0")


def _words(by: _Preemptor, over: int | None = None) -> str:
    ranks = str(by.priority) if over is None else f"{by.priority} over {over}"
    return f"pod {by.name} (priority {ranks})"
