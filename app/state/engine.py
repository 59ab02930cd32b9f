"""The heart: what happens when. `apply(event, now) -> effects`; the verbs are its siblings.

    watch event ─▶ books and ledger ─▶ roll call of the gang ─▶ plan ─▶ hold ─▶ Wake
    /filter     ─▶ planned: pin · waiting: reject with one stable sentence · ordinary: pass
    /bind       ─▶ ordinary: Bind · member: held until the last one is there, then Bind all
    tick        ─▶ deadlines, refusals that end, gangs that may fit now

No I/O, no clock, no randomness: the same inputs give the same effects, bit for bit. Nothing here
is durable; all of it is rebuilt from nodes, pods, Jobs and topologies after a restart.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

from app import dialects
from app.dialects.membership import Membership
from app.kube.events import Applied, Deleted, Event, Kind, Listed
from app.kube.objects import JobRecord, NodeRecord, PodRecord, Record, TopologyRecord
from app.state import audit, sentences
from app.state.answers import Candidates, Failed, FilterAnswer, Passed, Pinned, Rejected
from app.state.cluster import ALL_NODES, Cluster, is_open
from app.state.earmarks import Earmarks
from app.state.effects import (
    Bind,
    BindFailed,
    BindOutcome,
    Effect,
    Refuse,
    UngateFailed,
    UngateOutcome,
)
from app.state.eligibility import Eligibility, may_host
from app.state.gangs import Gang, Member, Phase
from app.state.ledger import Ledger, not_joining
from app.state.planner import Offer, Planner
from app.state.repair import Failures
from app.state.reservations import Reservations
from app.state.settings import EngineSettings
from app.state.turned_away import TurnedAway
from topology import order
from topology.errors import InvalidTopology
from topology.levels import levels_of

MOST_EARLY = 20_000  # pods rejected in /filter before the watch showed them
EARMARK_SECONDS = 5.0  # between two reviews
SAMPLED_FROM = 100  # nodes below which kube-scheduler never samples


class Engine:
    """One cluster's gangs. Every method is one atomic step; `now` is monotonic seconds."""

    def __init__(self, settings: EngineSettings | None = None) -> None:
        self.settings = settings or EngineSettings()
        self.cluster = Cluster()
        self.eligibility = Eligibility()
        self.planner = Planner(
            self.cluster, self.eligibility, honours_preferred=self.settings.preferred_affinity
        )
        self.ledger = Ledger(self.settings, self.cluster, self.planner)
        self.reservations = Reservations(self.cluster)
        self.turned_away = TurnedAway(self.cluster)
        self.failures = Failures(self.settings)
        self.earmarks = Earmarks(self.settings, self.planner)
        self.topology_records: dict[str, TopologyRecord] = {}
        self.topology_problem = ""  # why a topology is not used; "" if all are
        self.is_draining = False
        self._earmarks_at = 0.0  # when they are reviewed next
        self._listed: set[Kind] = set()
        self._early: OrderedDict[str, str] = OrderedDict()
        self._set_topologies()

    @property
    def is_synced(self) -> bool:
        """Whether every list is in, so that answers are more than guesses."""
        return self._listed.issuperset(self.settings.kinds)

    def gangs_by_phase(self) -> dict[str, int]:
        """How many gangs stand in each phase, for metrics."""
        found = Counter(gang.phase.value for gang in self.ledger.gangs.values())
        return {phase.value: found[phase.value] for phase in Phase}

    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the cluster's topologies, for the operator's log."""
        problem = (self.topology_problem,) if self.topology_problem else ()
        return (*problem, *self.cluster.split_values)

    # -- the watch -----------------------------------------------------------------------------

    def apply(self, event: Event, now: float) -> list[Effect]:
        """Learn what the API server says."""
        if isinstance(event, Listed):
            self._replace_all(event, now)
        elif isinstance(event, Applied):
            self._put(event.record, now)
        elif isinstance(event, Deleted):
            self._drop(event.record, now)
        return self._effects()

    def _replace_all(self, event: Listed, now: float) -> None:
        """A relist says everything of its kind: what it leaves out is gone."""
        match event.kind:
            case "Node":
                named = {record.name for record in event.records}
                for name in [name for name in self.cluster.nodes if name not in named]:
                    self._drop_node(name, now)
            case "Pod":
                listed = {record.uid for record in event.records if isinstance(record, PodRecord)}
                known = [*self.cluster.bound, *self.ledger.gang_of]
                for uid in [uid for uid in dict.fromkeys(known) if uid not in listed]:
                    self._drop_pod(uid, now)
            case "Topology":
                self._replace_topologies(event.records)
            case kind:  # Jobs and the other workloads
                listed = {record.uid for record in event.records if isinstance(record, JobRecord)}
                known = [uid for uid, job in self.ledger.jobs.items() if job.kind == kind]
                for uid in [uid for uid in known if uid not in listed]:
                    self.ledger.drop_job(uid)
        for record in event.records if event.kind != "Topology" else ():
            self._put(record, now)
        self._listed.add(event.kind)
        if self.is_synced and not self.ledger.is_planning:
            self.ledger.is_planning = True
            self.ledger.review_all(now)
            self.ledger.capacity_grew()

    def _put(self, record: Record, now: float) -> None:
        if isinstance(record, PodRecord):
            self._put_pod(record, now)
        elif isinstance(record, NodeRecord):
            self._put_node(record, now)
        elif isinstance(record, JobRecord):
            self.ledger.put_job(record, now)
        else:
            self._replace_topologies((*self.topology_records.values(), record))

    def _drop(self, record: Record, now: float) -> None:
        if isinstance(record, PodRecord):
            self._drop_pod(record.uid, now)
        elif isinstance(record, NodeRecord):
            self._drop_node(record.name, now)
        elif isinstance(record, JobRecord):
            self.ledger.drop_job(record.uid)
        elif self.topology_records.pop(record.name, None):
            self._set_topologies()

    def _replace_topologies(self, records: Iterable[Record]) -> None:
        """Use these all at once: a set that is known already costs no rebuilding."""
        self.topology_records = {
            record.name: record for record in records if isinstance(record, TopologyRecord)
        }
        self._set_topologies()

    def _put_node(self, node: NodeRecord, now: float) -> None:
        before = self.cluster.nodes.get(node.name)
        if before is None or self.cluster.has_moved(before, node):
            self._lose_plans_around(node.name, now)
        self.cluster.put_node(node)
        self.eligibility.put_node(before, node)
        if self.failures.put_node(node, now):
            self.ledger.return_node(node.name, now)
        is_same = before is not None and (
            before.allocatable == node.allocatable
            and before.labels == node.labels
            and before.taints == node.taints
            and is_open(before) == is_open(node)
        )
        if is_same:
            return  # a heartbeat
        self.ledger.capacity_grew()
        if node.name in self.cluster.held_on:
            if not is_open(node):
                self._lose_plans_on(node.name, f"node {node.name} takes no pods any more", now)
            else:
                self._lose_barred(node, now)
                self._lose_overcommitted(node.name, now)
        self.ledger.lose_ending(node.name, now)

    def _drop_node(self, name: str, now: float) -> None:
        if name not in self.cluster.nodes:
            return
        self.cluster.drop_node(name)
        self.eligibility.drop_node(name)
        self.failures.drop_node(name)
        self._lose_plans_on(name, f"node {name} has gone", now)
        if self.settings.replace_failed_nodes:
            self.ledger.lose_node(name, now)
        self.ledger.lose_ending(name, now)

    def _put_pod(self, pod: PodRecord, now: float) -> None:
        if pod.is_finished:
            self._unbook(pod.uid)
        elif pod.node:
            self.turned_away.forget(pod.uid)
            self.reservations.end(pod.uid)
            is_new = self.cluster.bind(pod.uid, pod.node, self.cluster.vector(pod.request))
            if is_new and pod.node in self.cluster.held_on:
                self._lose_overcommitted(pod.node, now)
        claim = dialects.read(pod) if self._is_ours(pod) else None
        if claim is not None:
            self.ledger.put(pod, claim, now, told=self._early.pop(pod.uid, ""))
        elif pod.uid in self.ledger.gang_of:
            self.ledger.drop(pod.uid, now)

    def _drop_pod(self, uid: str, now: float) -> None:
        self._unbook(uid)
        self.ledger.drop(uid, now)
        self._early.pop(uid, None)

    def _unbook(self, uid: str) -> None:
        self.turned_away.forget(uid)
        if self.reservations.end(uid) or self.cluster.unbind(uid) is not None:
            self.ledger.capacity_grew()

    def _is_ours(self, pod: PodRecord) -> bool:
        return self.settings.scheduler_name in ("", pod.scheduler)

    def _set_topologies(self) -> None:
        """Use the cluster's Topology objects where there are any, else the levels set."""
        levels_by_name: dict[str, tuple[str, ...]] = {}
        self.topology_problem = ""
        for record in self.topology_records.values():
            try:
                levels_by_name[record.name] = tuple(levels_of(record.levels))
            except InvalidTopology as error:
                self.topology_problem = f"Topology {record.name}: {error}"
        if not levels_by_name and self.settings.levels:
            levels_by_name["default"] = tuple(levels_of(self.settings.levels))
        self.cluster.set_topologies(levels_by_name)
        self.ledger.capacity_grew()

    # -- plans that no longer hold -------------------------------------------------------------

    def _lose_plans_on(self, node: str, why: str, now: float) -> None:
        for gang in self._gangs_held_on(node):
            self.ledger.lose_plan(gang, why, now)

    def _lose_plans_around(self, node: str, now: float) -> None:
        """A node is in other domains now: so are those who have it, and who was to be with them."""
        keys = dict.fromkeys(gang.key for gang in self._gangs_held_on(node))
        bound = self.cluster.bound_on.get(node, {})
        keys |= dict.fromkeys(
            self.ledger.gang_of[uid] for uid in bound if uid in self.ledger.gang_of
        )
        for gang in [self.ledger.gangs[key] for key in keys]:
            if gang.names_levels and gang.plan.keys() - gang.posted:
                self.ledger.lose_plan(gang, f"node {node} has moved to another domain", now)

    def _lose_barred(self, node: NodeRecord, now: float) -> None:
        """The node's taints or labels may keep off what is planned there."""
        for gang in self._gangs_held_on(node.name):
            planned = (uid for uid, on in gang.plan.items() if on == node.name)
            if not all(may_host(node, gang.member(uid).shape) for uid in planned):
                self.ledger.lose_plan(gang, f"node {node.name} takes its pods no more", now)

    def _lose_overcommitted(self, node: str, now: float) -> None:
        """Somebody took what was held: give up plans there, the youngest first, until it fits."""
        for gang in sorted(self._gangs_held_on(node), key=lambda gang: -gang.moved_at):
            if not self.cluster.is_overcommitted(node):
                return
            self.ledger.lose_plan(gang, f"capacity held on node {node} was taken", now)

    def _gangs_held_on(self, node: str) -> list[Gang]:
        held = self.cluster.held_on.get(node, {})
        keys = dict.fromkeys(self.ledger.gang_of[uid] for uid in held if uid in self.ledger.gang_of)
        for key in self.ledger.expecting:
            if any(uid in held for uid in self.ledger.gangs[key].absent):
                keys[key] = None
        return [self.ledger.gangs[key] for key in keys]

    # -- the verbs -----------------------------------------------------------------------------

    def filter(
        self, pod: PodRecord, candidates: Candidates, now: float
    ) -> tuple[FilterAnswer, list[Effect]]:
        """Which of these nodes the pod may have."""
        claim = dialects.read(pod) if self._is_ours(pod) else None
        if claim is None:
            return self._filter_ordinary(pod, candidates), self._effects()
        if not self.is_synced or self.is_draining:
            return Failed("Corral is not ready: it has not read the whole cluster yet"), []
        gang = self.ledger.gangs.get(self.ledger.gang_of.get(pod.uid, claim.gang))
        if gang is None or pod.uid not in gang.members:
            sentence = (
                sentences.gathering(claim.gang, claim.declared)
                if isinstance(claim, Membership)
                else sentences.mistaken(claim.gang, claim.sentence)
            )
            self._remember_early(pod.uid, sentence)
            return Rejected(sentence), self._effects()
        answer = self._filter_member(gang, gang.members[pod.uid], pod, candidates, now)
        if isinstance(answer, Pinned):
            gang.rejected.pop(pod.uid, None)
            gang.misinformed.pop(pod.uid, None)
            if pod.uid not in gang.answered:  # asking again is no progress
                gang.answered.add(pod.uid)
                gang.moved_at = now
        elif not _is_probe(pod, candidates):
            gang.rejected[pod.uid] = answer.sentence
            gang.misinformed.pop(pod.uid, None)
        return answer, self._effects()

    def _filter_member(
        self, gang: Gang, member: Member, pod: PodRecord, candidates: Candidates, now: float
    ) -> Pinned | Rejected:
        uid = member.pod.uid
        if uid in gang.plan or gang.phase not in (Phase.GATHERING, Phase.WAITING):
            self.ledger.review_now(gang, now)  # also of a newcomer: in excess, or a replacement
        node = gang.plan.get(uid)
        if node is None:
            return Rejected(self._why_not(gang, member))
        if node in candidates:
            return Pinned(node)
        if uid in gang.posted:  # another leader's attempt; ours is at the API server already
            return Rejected(sentences.planned_elsewhere(gang.key))
        if _is_probe(pod, candidates):
            return Rejected(sentences.planned_elsewhere(gang.key))
        if self._is_sample(len(candidates)):
            sentence = sentences.sampled(gang.key)
            self.ledger.tell(gang, "NodesSampled", sentence)
            return Rejected(sentence)
        shaped = (member.pod.request, member.shape)
        offer = Offer(shaped, frozenset(candidates.names()), member.allowed)
        self._remember_refusals(gang, member, offer, now)
        if self.ledger.replan(gang, member, offer, now):
            return Pinned(gang.plan[uid])
        return Rejected(self._why_not(gang, member))

    def _why_not(self, gang: Gang, member: Member) -> str:
        if member.mistake and not gang.roll.problem:
            return sentences.mistaken(gang.key, member.mistake)
        outside = (*gang.roll.excess, *gang.roll.strays)
        if any(each.pod.uid == member.pod.uid for each in outside):
            return not_joining(gang, member)
        return gang.sentence or sentences.gathering(gang.key, member.declared)

    def _remember_refusals(self, gang: Gang, member: Member, offer: Offer, now: float) -> None:
        """Nodes planned for this shape, still unasked for, that kube-scheduler does not offer."""
        until = now + self.settings.refusal_seconds
        for uid, node in gang.plan.items():
            is_same = gang.member(uid).role == member.role and uid not in gang.answered
            if is_same and offer.leaves_out(node):
                self.planner.refusals.add(offer.shaped, node, until)

    def _is_sample(self, offered: int) -> bool:
        nodes = len(self.cluster.nodes)
        wanted = self.settings.percentage_of_nodes_to_score or max(50 - nodes // 125, 5)
        sample = max(nodes * wanted // 100, SAMPLED_FROM)
        return nodes >= SAMPLED_FROM and offered == sample < nodes

    def _remember_early(self, uid: str, sentence: str) -> None:
        self._early[uid] = sentence
        if len(self._early) > MOST_EARLY:
            self._early.popitem(last=False)

    def _filter_ordinary(self, pod: PodRecord, candidates: Candidates) -> Passed:
        """Anything goes but what is held for gangs."""
        request = self.cluster.vector(pod.request)
        if self.reservations.passed(pod.uid, request):
            self.ledger.capacity_grew()
        self.cluster.refresh()
        without = self.cluster.held_without_room(request) | self.earmarks.closed_to(pod)
        self.turned_away.forget(pod.uid)
        if without and len(without) >= len(candidates) and without.issuperset(candidates.names()):
            self.turned_away.add(pod, request)
        return Passed(without)

    def prioritize(self, pod: PodRecord, candidates: Candidates, now: float) -> list[int]:
        """Scores 0..10, in the order of `candidates.names()`: whole domains stay free."""
        self.cluster.refresh()
        named = [name for name in self.cluster.topologies if name != ALL_NODES]
        topology = self.cluster.topologies[named[0] if named else ALL_NODES]
        request = self.cluster.vector(pod.request)
        scores = order.packing_scores(topology.tree, topology.capacity, request).tolist()
        slot_of = topology.tree.slot_of
        return [
            scores[slot] if (slot := slot_of.get(name)) is not None else 0
            for name in candidates.names()
        ]

    def bind_arrived(
        self, namespace: str, name: str, uid: str, node: str, now: float
    ) -> list[Effect]:
        """kube-scheduler wants this pod bound: a member waits for its gang, others go at once."""
        key = self.ledger.gang_of.get(uid)
        if not self.is_synced or self.is_draining:
            refused = "Corral is not ready: it is starting or stopping"
            self.ledger.out.append(Refuse(uid, refused))
        elif key is None:
            if self.reservations.begin(uid, node, now):
                self.ledger.out.append(Bind(namespace, name, uid, node))
            else:
                self.ledger.out.append(Refuse(uid, f"node {node} is held for a gang"))
        else:
            gang = self.ledger.gangs[key]
            self.ledger.review_now(gang, now)
            if gang.plan.get(uid) == node:
                self.ledger.arrive(gang, uid, now)
            elif gang.members[uid].pod.node == node:
                self.ledger.out.append(Bind(namespace, name, uid, node))  # bound: say so again
            else:
                self.ledger.out.append(Refuse(uid, sentences.planned_elsewhere(key)))
        return self._effects()

    def bind_finished(self, uid: str, outcome: BindOutcome, now: float) -> list[Effect]:
        """What became of a Bind. A success is believed from the watch, not from here."""
        key = self.ledger.gang_of.get(uid)
        if isinstance(outcome, BindFailed):
            if key is not None:
                gang = self.ledger.gangs[key]
                self.ledger.bind_failed(gang, uid, is_gone=outcome.is_gone, now=now)
            elif self.reservations.end(uid):
                self.ledger.capacity_grew()
        return self._effects()

    def ungate_finished(self, uid: str, outcome: UngateOutcome, now: float) -> list[Effect]:
        """What became of an Ungate. A success is believed from the watch, not from here."""
        key = self.ledger.gang_of.get(uid)
        if isinstance(outcome, UngateFailed) and key is not None:
            self.ledger.ungate_failed(self.ledger.gangs[key], uid, outcome, now)
        return self._effects()

    # -- time ----------------------------------------------------------------------------------

    def tick(self, now: float) -> list[Effect]:
        """What is due by now."""
        self.cluster.refresh()
        self.ledger.review_all(now)
        self.ledger.expire(now)
        if self.planner.refusals.expire(now) | self.reservations.expire(now):
            self.ledger.capacity_grew()
        for node in self.failures.due(now):
            self.ledger.lose_node(node, now)
        if not self.is_draining:
            self._review_earmarks(now)
            self.ledger.plan_waiting(now)
            self.ledger.wake_misinformed()
            self.ledger.out += self.turned_away.woken(self.ledger.freed_nodes)
            self.ledger.freed_nodes.clear()
        return self._effects()

    def _review_earmarks(self, now: float) -> None:
        """Give domains to gangs that starve, and back what they no longer need."""
        if now < self._earmarks_at or not self.settings.earmarks_per_namespace:
            return
        self._earmarks_at = now + EARMARK_SECONDS
        waiting = [self.ledger.gangs[key] for key in self.ledger.plannable]
        ended = self.earmarks.review((each for each in waiting if not each.has_started), now)
        if ended:
            self.ledger.freed_nodes.update(dict.fromkeys(ended))
            self.ledger.capacity_grew()

    def differences(self) -> list[str]:
        """What of the books is not what the records say; empty unless we have a bug."""
        return audit.differences(self.cluster, self.ledger, self.reservations.uids)

    def heal(self, now: float) -> list[Effect]:
        """Make the books what the records say; what was planned on wrong books is planned anew."""
        self.cluster.recount()
        self.ledger.heal(self.reservations.uids, now)
        return self._effects()

    def drain(self, now: float) -> list[Effect]:
        """We are being stopped: refuse what is held, begin nothing new."""
        self.is_draining = True
        self.ledger.refuse_arrived("Corral is stopping; kube-scheduler tries again")
        return self._effects()

    def _effects(self) -> list[Effect]:
        effects, self.ledger.out = self.ledger.out, []
        return effects


def _is_probe(pod: PodRecord, candidates: Candidates) -> bool:
    """Whether only the nominated node is asked about, which says nothing about others."""
    return len(candidates) == 1 and pod.nominated_node in candidates
