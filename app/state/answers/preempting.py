"""The answer to /preempt: on which of kube-scheduler's nodes an ordinary pod may have victims.

    a member of a gang                          none: one node makes no room for a gang
    before the first lists are in               as asked, but for nodes where gangs run
    its last grant is not used up               none: no other goes for the same pod
    pods that wait at /bind would do            none: their bindings are refused, no pod ends;
                                                once the watch shows the pod, where it does not yet
    else                                        one node, with kube-scheduler's own victims

Of the nodes left the one is answered where least is lost: a gang that loses one pod may have to
start again as a whole. The victims of a node are never chosen anew: ports, volumes and affinity
are what kube-scheduler knows. An empty answer is the only way to keep it from preempting: a node
that /filter refuses makes it take the next victim.
Source: kubernetes v1.36 pkg/scheduler/framework/preemption/preemption.go, callExtenders and
pickOneNodeForPreemption.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.kube.core.objects import Amounts, PodRecord
from app.state.answers.kept_nodes import KeptNodes
from app.state.answers.victim_cost import Cost, VictimCosts
from app.state.cache import room
from app.state.cache.books import Books
from app.state.claims.claim_reader import ClaimReader
from app.state.filter_result import Victims
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.pods.arrivals import Arrivals, WaitingPod
from app.state.pods.grants import UNHEARD_SECONDS, Grants
from app.state.pods.nominations import Nomination, Nominations
from app.state.pods.occupants import Occupants
from app.state.report.messages import preemption as messages
from app.state.report.naming import Naming
from app.state.report.reports import Reports
from app.state.reserve.plans import Plans
from app.state.settings import EngineSettings

# Victims of one request, those of the nodes with the fewest first: 5 us each that may go, and 1 us
# for each beside them.
MOST_JUDGED = 4_096
MOST_LOOKED_AT = 32_768
MOST_UNSHOWN = 64  # requests remembered until the watch shows their pods, the latest


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
    namespace: str
    name: str
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
    kept_nodes: KeptNodes
    plans: Plans
    reports: Reports
    naming: Naming
    _unshown: dict[str, Mapping[str, Victims]] = field(default_factory=dict)
    """By uid, pods that are not known yet: the node where bindings would be refused for them."""

    def answer_unready(
        self, pod: PodRecord, offered: Mapping[str, Victims]
    ) -> Mapping[str, Victims]:
        """What kube-scheduler has chosen, if no gang runs there as far as is known."""
        left = {node: victims for node, victims in offered.items() if victims.uids}
        return {} if self._is_member(pod) or self._names_gangs(left) else left

    def _names_gangs(self, nodes: Iterable[str]) -> bool:
        return any(
            uid in self.gangs.key_of for node in nodes for uid in self.books.bound_on.get(node, ())
        )

    def _is_member(self, pod: PodRecord) -> bool:
        return pod.uid in self.gangs.key_of or self.claim_reader.claim(pod) is not None

    def answer(
        self, pod: PodRecord, offered: Mapping[str, Victims], now: float
    ) -> Mapping[str, Victims]:
        """One of the nodes offered with its victims, or none."""
        if self._is_member(pod):
            return {}
        if pod.uid in self.books.bound or pod.uid in self.books.held:
            return {}  # it has a node, and kube-scheduler does not know yet
        known = self.arrivals.known(pod.namespace, pod.name, pod.uid)
        by = _preemptor(pod.uid, pod if known is None else known)
        if self._has_room_coming(by, offered, now):
            return {}
        if self.grants.is_stopped(by.uid, now):
            if known is not None and self.grants.is_untold(by.uid):
                self.reports.preemption_stopped(pod)
            return {}
        costs = self._costs()
        choices = self._choices(pod, by, offered, costs)
        if not choices:
            return {}
        # A binding that is refused ends no pod.
        held = [choice for choice in choices if self._waits_at_bind(choice)]
        best = min(held or choices, key=lambda choice: choice.cost)
        if held and known is None:
            # No gang loses its plan by what only a request says.
            self._remember(pod.uid, best.node, offered[best.node])
            return {}
        if held:
            self._refuse_binds(best, by, now)
            return {}
        if known is not None:  # else the watch would never tell of its end
            self._grant(best, by, best.victims, now)
        self._tell(best, by, costs)
        return {best.node: Victims(best.victims, best.pdb_violations)}

    def _remember(self, uid: str, node: str, victims: Victims) -> None:
        self._unshown.pop(uid, None)
        self._unshown[uid] = {node: victims}
        if len(self._unshown) > MOST_UNSHOWN:
            del self._unshown[next(iter(self._unshown))]

    def show(self, pod: PodRecord, now: float) -> None:
        """Refuse the bindings that give way to a pod that the watch shows only now.

        That makes kube-scheduler try it again. A patch would not, where its own filters have
        rejected the pod.
        Source: kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go, `Update`.
        """
        offered = self._unshown.pop(pod.uid, None)
        if offered is None or self.arrivals.of(pod.uid) is None:
            return
        if not pod.preempts or self._is_member(pod):
            return
        by = _preemptor(pod.uid, pod)
        for choice in self._choices(pod, by, offered, self._costs()):
            if self._waits_at_bind(choice):
                self._refuse_binds(choice, by, now)

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._unshown.pop(uid, None)

    # -- whether to answer at all ----------------------------------------------------------------

    def _has_room_coming(self, by: _Preemptor, offered: Mapping[str, Victims], now: float) -> bool:
        """Whether pods go for this one already, or went and what is held keeps it off its node."""
        grant = self.grants.of.get(by.uid)
        if grant is None:
            # As after a restart: its nominated node and those that end there tell.
            node = by.nominated_node
            lower = self.occupants.lower(self.books.bound_on.get(node, ()), by.priority)
            return self.books.takes_pods(node) and self.occupants.any_terminating(lower)
        if grant.is_refused or any(uid in self.books.bound for uid in grant.victims):
            return True
        if not grant.victims and now < grant.made_at + UNHEARD_SECONDS:
            return True  # its node is free as soon as kube-scheduler has heard of the refusals
        asked = offered.get(grant.node)
        if asked is not None and not grant.victims.isdisjoint(asked.uids):
            return True  # kube-scheduler has not seen them go yet
        # All are gone, and kube-scheduler's own filters refuse the node.
        self.plans.reservations.capacity_grew([self.grants.end(by.uid)])
        return False

    # -- which nodes -----------------------------------------------------------------------------

    def _costs(self) -> VictimCosts:
        self.books.refresh()
        return VictimCosts(self.settings, self.books, self.occupants, self.grants, self.gangs)

    def _choices(
        self,
        pod: PodRecord,
        by: _Preemptor,
        offered: Mapping[str, Victims],
        costs: VictimCosts,
    ) -> list[_Choice]:
        """The nodes where all victims are, with what they cost; else those where some are."""
        closed = self.kept_nodes.closed_to(pod)
        whole = list(self._worked_out(by, closed, offered, costs))
        return whole or list(self._worked_out(by, closed, offered, costs, parts=True))

    def _worked_out(
        self,
        by: _Preemptor,
        closed: Container[str],
        offered: Mapping[str, Victims],
        costs: VictimCosts,
        *,
        parts: bool = False,
    ) -> Iterator[_Choice]:
        """What the nodes offered cost, where victims may go and make room.

        `parts`: of victims that are not all on their node those that are; kube-scheduler 1.37
        names all pods of a group, wherever they run.
        """
        looked_at = judged = 0
        for node in sorted(offered, key=lambda node: _size(offered[node])):
            victims = offered[node]
            looked_at += len(victims.uids)
            if looked_at > MOST_LOOKED_AT or judged > MOST_JUDGED:
                return
            here = tuple(uid for uid in victims.uids if self._is_on(uid, node))
            if not here or node in closed or not (parts or here == victims.uids):
                continue
            if not all(costs.may_go(uid, by.priority) for uid in here):
                continue
            if self.settings.gangs_as_victims == "never" and costs.gangs_of(costs.live(here)):
                continue
            judged += len(here)
            if self._makes_room(by, node, here):
                cost = costs.of(node, here, victims.pdb_violations)
                yield _Choice(node, costs.by_importance(here), victims.pdb_violations, cost)

    def _is_on(self, uid: str, node: str) -> bool:
        booking = self.books.bound.get(uid) or self.books.held.get(uid)
        return booking is not None and booking.node == node

    def _makes_room(self, by: _Preemptor, node: str, uids: tuple[str, ...]) -> bool:
        """Whether the pod fits once they are gone, and what is held for lower ones with them."""
        gone = {*uids, *room.held_below(self.books, node, by.priority)}
        others = self.nominations.on(node, by.priority, (by.uid,), self.books.held)
        return room.fits(self.books, node, by.request, without=gone, beside=others)

    # -- what follows ----------------------------------------------------------------------------

    def _waits_at_bind(self, choice: _Choice) -> bool:
        """Whether all victims are members whose binding is held: they can still be refused."""
        gangs = {uid: self.gangs.of_pod(uid) for uid in choice.victims}
        return all(gang is not None and uid in gang.binding.at_bind for uid, gang in gangs.items())

    def _grant(self, choice: _Choice, by: _Preemptor, victims: Iterable[str], now: float) -> None:
        nomination = Nomination(choice.node, by.request, by.priority)
        self.grants.make(by.uid, nomination, frozenset(victims), now)

    def _refuse_binds(self, choice: _Choice, by: _Preemptor, now: float) -> None:
        """Have kube-scheduler forget these members: that wakes the preemptor, and no pod ends."""
        self._grant(choice, by, (), now)
        for key in self.gangs.keys_of(choice.victims):
            gang = self.gangs.by_key[key]
            why = f"capacity held on node {choice.node} was taken by {self._words(by, gang)}"
            self.plans.lose(gang, why, now, losses=0, on=choice.node)

    def _tell(self, choice: _Choice, by: _Preemptor, costs: VictimCosts) -> None:
        """Tell the owners of gangs that lose members."""
        live = costs.live(choice.victims)
        for gang in costs.gangs_of(live):
            going = [uid for uid in live if uid in gang.members]
            pod = gang.members[going[0]].pod
            sentence = messages.gives_way(
                f"{pod.namespace}/{pod.name}",
                len(going),
                self._words(by, gang, over=gang.highest_priority),
                choice.node,
                len(gang.running - set(going)),
                len(gang.running),
            )
            self.reports.gives_way(gang, sentence)

    def _words(self, by: _Preemptor, gang: Gang, over: int | None = None) -> str:
        """The preemptor, as the gang is told of it."""
        ranks = str(by.priority) if over is None else f"{by.priority} over {over}"
        pod = self.naming.pod(by.namespace, by.name, gang.key.namespace)
        return f"{pod} (priority {ranks})"


def _preemptor(uid: str, pod: PodRecord | WaitingPod) -> _Preemptor:
    return _Preemptor(uid, pod.namespace, pod.name, pod.priority, pod.request, pod.nominated_node)


def _size(victims: Victims) -> tuple[int, int]:
    return victims.pdb_violations, len(victims.uids)
