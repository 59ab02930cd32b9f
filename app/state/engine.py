"""The heart: what happens when. `apply(event, now) -> effects`; the verbs are its siblings.

    watch event ─▶ books, store of gangs ─▶ roll call of the gang ─▶ plan ─▶ hold ─▶ Requeue
    /filter     ─▶ planned: pin · waiting: reject with one stable sentence · ordinary: pass
    /bind       ─▶ ordinary: Bind · member: held until the last one is there, then Bind all
    tick        ─▶ deadlines, refusals that end, gangs that may fit now

No I/O, no clock, no randomness: the same inputs give the same effects, bit for bit. Nothing here
is durable; all of it is rebuilt from nodes, pods, Jobs and topologies after a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from app.dialects.kueue.in_charge import is_kueues
from app.dialects.registry import DIALECTS, Dialects
from app.dialects.spec import Claim
from app.kube.core.objects import NodeRecord, PodRecord, Record
from app.kube.watch.events import Applied, Deleted, Event, Kind, Listed
from app.state.audit import Healing, differences
from app.state.cache.assumed_pods import AssumedPods
from app.state.cache.books import ALL_NODES, Books
from app.state.cache.eligibility import Eligibility
from app.state.cache.node_refusals import Refusals
from app.state.cache.nominations import Nominations
from app.state.cache.objects import Objects
from app.state.cache.rejected_pods import RejectedPods
from app.state.cache.topologies import Topologies
from app.state.effects import (
    Bind,
    BindFailed,
    BindOutcome,
    Effect,
    RejectBind,
    UngateFailed,
    UngateOutcome,
)
from app.state.filter_result import Candidates, Failed, FilterAnswer, Passed
from app.state.filtering import Filtering
from app.state.gang.gang import Phase
from app.state.gang.gangs import Gangs
from app.state.isolation import OnFault, reraise
from app.state.lifecycle.members import Members
from app.state.lifecycle.passes import Passes
from app.state.lifecycle.permit import Permit
from app.state.lifecycle.plans import Plans
from app.state.lifecycle.replacements import Replacements
from app.state.lifecycle.reservations import Reservations
from app.state.lifecycle.roll_call import RollCalls
from app.state.nodes.events import NodeEvents
from app.state.nodes.invalidation import Invalidation
from app.state.nodes.repair import Failures, Repairs
from app.state.plan.planner import Planner
from app.state.plan.queue import Queue
from app.state.plan.starvation import Starvation
from app.state.report import messages
from app.state.report.notes import Notes
from app.state.report.outbox import Outbox
from app.state.report.reports import Reports
from app.state.report.requeue import Requeues
from app.state.report.statuses import Statuses
from app.state.settings import EngineSettings
from topology.fit import order

EARMARK_SECONDS = 5.0  # between two reviews

_T = TypeVar("_T")


class Engine:
    """One cluster's gangs. Every method is one atomic step; `now` is monotonic seconds."""

    def __init__(
        self,
        settings: EngineSettings | None = None,
        on_fault: OnFault = reraise,
        dialects: Dialects = DIALECTS,
    ) -> None:
        self._on_fault = on_fault
        self.settings = settings or EngineSettings()
        self.dialects = dialects.configured(self.settings)
        # cache: the books
        self.books = Books()
        self.objects = Objects(self.dialects)
        self.eligibility = Eligibility()
        self.refusals = Refusals()
        self.nominations = Nominations()
        self.assumed_pods = AssumedPods(self.books)
        self.rejected_pods = RejectedPods(self.books)
        self.topologies = Topologies(self.settings, self.books, self.dialects)
        # gang, plan
        self.gangs = Gangs()
        self.queue = Queue(self.settings)
        self.planner = Planner(
            self.books,
            self.eligibility,
            self.refusals,
            self.nominations,
            honours_preferred=self.settings.preferred_affinity,
            is_balanced=self.settings.balanced_placement,
            on_fault=on_fault,
        )
        self.starvation = Starvation(self.settings, self.books, self.eligibility, self.planner)
        # report
        self.outbox = Outbox()
        self.statuses = Statuses(self.dialects, self.objects)
        self.notes = Notes()
        self.requeues = Requeues(self.settings, self.outbox)
        self.reports = Reports(self.settings, self.outbox, self.requeues, self.statuses)
        # lifecycle
        self.reservations = Reservations(self.books, self.planner, self.queue, self.outbox)
        self.replacements = Replacements(
            self.settings, self.books, self.gangs, self.planner, self.reservations, self.requeues
        )
        self.plans = Plans(
            self.gangs, self.planner, self.queue, self.reservations, self.requeues, self.reports
        )
        self.roll_calls = RollCalls(
            self.objects,
            self.gangs,
            self.planner,
            self.replacements,
            self.plans,
            self.reports,
            self.notes,
        )
        self.members = Members(
            self.objects,
            self.gangs,
            self.planner,
            self.replacements,
            self.plans,
            self.roll_calls,
            self.reports,
            self.notes,
        )
        self.passes = Passes(
            self.gangs, self.planner, self.queue, self.plans, self.roll_calls, self.reports
        )
        self.permit = Permit(
            self.settings,
            self.gangs,
            self.reservations,
            self.plans,
            self.roll_calls,
            self.requeues,
            self.outbox,
        )
        # nodes, and the rest
        self.invalidation = Invalidation(self.books, self.gangs, self.plans)
        self.nodes = NodeEvents(
            self.settings,
            self.books,
            self.eligibility,
            self.reservations,
            self.invalidation,
            Failures(self.settings),
            Repairs(self.books, self.gangs, self.replacements, self.roll_calls),
        )
        self.filtering = Filtering(
            self.settings,
            self.books,
            self.refusals,
            self.gangs,
            self.plans,
            self.roll_calls,
            self.reports,
        )
        self.healing = Healing(
            self.books, self.gangs, self.reservations, self.plans, self.roll_calls
        )
        self.is_draining = False
        self._earmarks_at = 0.0  # when they are reviewed next
        self._listed: set[Kind] = set()
        self.reservations.capacity_grew()

    @property
    def is_synced(self) -> bool:
        """Whether every list is in; before that nothing is planned or answered."""
        return self._listed.issuperset(self.settings.kinds)

    def gangs_by_phase(self) -> dict[str, int]:
        """How many gangs stand in each phase, for metrics."""
        found = Counter(gang.phase.value for gang in self.gangs.by_key.values())
        return {phase.value: found[phase.value] for phase in Phase}

    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the cluster's topologies, for the operator's log."""
        problem = (self.topologies.problem,) if self.topologies.problem else ()
        return (*problem, *self.books.split_values)

    # -- the watch -----------------------------------------------------------------------------

    def apply(self, event: Event, now: float) -> list[Effect]:
        """Apply one event of the watch."""
        if isinstance(event, Listed):
            self._replace_all(event, now)
        elif isinstance(event, Applied):
            self._put(event.record, now)
        elif isinstance(event, Deleted):
            self._drop(event.record, now)
        return self._effects()

    def _replace_all(self, event: Listed, now: float) -> None:
        """Apply a complete list of a kind: an object that it leaves out is gone."""
        match event.kind:
            case "Node":
                named = {record.name for record in event.records}
                gone = [name for name in self.books.nodes if name not in named]
                self._each("Node", gone, lambda name: self.nodes.drop(name, now))
            case "Pod":
                listed = {record.uid for record in event.records if isinstance(record, PodRecord)}
                known = [*self.books.bound, *self.gangs.key_of]
                gone = [uid for uid in dict.fromkeys(known) if uid not in listed]
                self._each("Pod", gone, lambda uid: self._drop_pod(uid, now))
            case kind:  # objects of a vocabulary
                self._replace_objects(kind, event.records)
        self._each(event.kind, event.records, lambda record: self._put(record, now))
        self._listed.add(event.kind)
        if self.is_synced and not self.planner.is_ready:
            self.planner.is_ready = True
            self.roll_calls.review_all(now)
            self.reservations.capacity_grew()

    def _replace_objects(self, kind: Kind, records: Sequence[Record]) -> None:
        listed = {record.uid for record in records}
        gone = [uid for uid in self.objects.of_kind(kind) if uid not in listed]
        self._each(kind, gone, self.members.drop_object)
        if self.topologies.replace(kind, records):
            self.reservations.capacity_grew()

    def _each(self, kind: Kind, objects: Iterable[_T], apply: Callable[[_T], None]) -> None:
        """Apply what a list says; an error in one object does not keep the others from it."""
        for one in objects:
            try:
                apply(one)
            except Exception as error:
                self._on_fault(f"{kind} {getattr(one, 'name', one)} of a list", error)

    def _put(self, record: Record, now: float) -> None:
        if isinstance(record, PodRecord):
            self._put_pod(record, now)
        elif isinstance(record, NodeRecord):
            self.nodes.put(record, now)
        else:
            if self.topologies.put(record):
                self.reservations.capacity_grew()
            self.members.put_object(record, now)

    def _drop(self, record: Record, now: float) -> None:
        if isinstance(record, PodRecord):
            self._drop_pod(record.uid, now)
        elif isinstance(record, NodeRecord):
            self.nodes.drop(record.name, now)
        else:
            if self.topologies.drop(record.uid):
                self.reservations.capacity_grew()
            self.members.drop_object(record.uid)

    def _put_pod(self, pod: PodRecord, now: float) -> None:
        if self.gangs.knows(pod):
            return  # as most events of a member: conditions, container statuses
        if left := self.nominations.put(pod):
            self.reservations.capacity_grew([left])
        if pod.is_finished:
            self._unbook(pod.uid)
        elif pod.node:
            self.rejected_pods.forget(pod.uid)
            self.assumed_pods.end(pod.uid)
            is_new = self.books.bind(pod.uid, pod.node, self.books.vector(pod.request))
            if is_new and pod.node in self.books.held_on:
                self.invalidation.lose_overcommitted(pod.node, now)
        claim = self._claim(pod)
        if claim is not None:
            self.members.put(pod, claim, now, rejected_with=self.filtering.forget_early(pod.uid))
        elif pod.uid in self.gangs.key_of:
            self.members.drop(pod.uid, now)

    def _drop_pod(self, uid: str, now: float) -> None:
        self._unbook(uid)
        self.members.drop(uid, now)
        self.filtering.forget_early(uid)

    def _unbook(self, uid: str) -> None:
        self.rejected_pods.forget(uid)
        if left := self.nominations.drop(uid):
            self.reservations.capacity_grew([left])
        held = self.books.held.get(uid)
        booking = self.books.unbind(uid) or (held if self.assumed_pods.end(uid) else None)
        if booking is not None:
            # kube-scheduler may have seen this before /filter rejected its next pod.
            self.reservations.capacity_grew([booking.node])

    def _claim(self, pod: PodRecord) -> Claim | None:
        """The gang a pod claims to belong to; None if it is ordinary, or another scheduler's."""
        is_ours = self.settings.scheduler_name in ("", pod.scheduler) and not is_kueues(
            pod.labels, pod.annotations, pod.gates, by_queue=self.settings.kueue_manages
        )
        return self.dialects.claim(pod) if is_ours else None

    # -- the verbs -----------------------------------------------------------------------------

    def filter(
        self, pod: PodRecord, candidates: Candidates, now: float
    ) -> tuple[FilterAnswer, list[Effect]]:
        """Which of these nodes the pod may have."""
        claim = self._claim(pod)
        if claim is None:
            return self._filter_ordinary(pod, candidates), self._effects()
        if not self.is_synced or self.is_draining:
            return Failed("Corral is not ready: it has not read the whole cluster yet"), []
        return self.filtering.answer(pod, claim, candidates, now), self._effects()

    def _filter_ordinary(self, pod: PodRecord, candidates: Candidates) -> Passed:
        """Pass every candidate but those where the pod would take capacity held for gangs."""
        request = self.books.vector(pod.request)
        if self.assumed_pods.passed(pod.uid, request):
            self.reservations.capacity_grew()
        self.books.refresh()
        without = self.books.held_without_room(request) | self.starvation.closed_to(pod)
        self.rejected_pods.forget(pod.uid)
        if without and len(without) >= len(candidates) and without.issuperset(candidates.names()):
            self.rejected_pods.add(pod, request)
        return Passed(without)

    def prioritize(self, pod: PodRecord, candidates: Candidates, now: float) -> list[int]:
        """Scores 0..10, in the order of `candidates.names()`: whole domains stay free.

        All are 0 before the first lists are in.
        """
        if not self.is_synced:
            return [0] * len(candidates.names())
        self.books.refresh()
        named = [name for name in self.books.topologies if name != ALL_NODES]
        topology = self.books.topologies[named[0] if named else ALL_NODES]
        request = self.books.vector(pod.request)
        scores = order.packing_scores(topology.tree, topology.capacity, request).tolist()
        slot_of = topology.tree.slot_of
        return [
            scores[slot] if (slot := slot_of.get(name)) is not None else 0
            for name in candidates.names()
        ]

    def bind_arrived(
        self, namespace: str, name: str, uid: str, node: str, now: float
    ) -> list[Effect]:
        """Take a request to bind a pod: a member waits for its gang, other pods do not."""
        gang = self.gangs.of_pod(uid)
        if not self.is_synced or self.is_draining:
            refused = "Corral is not ready: it is starting or stopping"
            self.outbox.add(RejectBind(uid, refused))
        elif gang is None:
            if self.assumed_pods.begin(uid, node, now):
                self.outbox.add(Bind(namespace, name, uid, node))
            else:
                self.outbox.add(RejectBind(uid, f"node {node} is held for a gang"))
        else:
            self.roll_calls.review_now(gang, now)
            if gang.plan.nodes.get(uid) == node:
                self.permit.arrive(gang, uid, now)
            elif gang.members[uid].pod.node == node:
                self.outbox.add(Bind(namespace, name, uid, node))  # bound there already
            else:
                self.outbox.add(RejectBind(uid, messages.planned_elsewhere(gang.key)))
        return self._effects()

    def bind_finished(self, uid: str, outcome: BindOutcome, now: float) -> list[Effect]:
        """Take the outcome of a Bind; that it succeeded is learned from the watch alone."""
        gang = self.gangs.of_pod(uid)
        if isinstance(outcome, BindFailed):
            if gang is not None:
                self.permit.bind_failed(gang, uid, is_gone=outcome.is_gone, now=now)
            elif self.assumed_pods.end(uid):
                self.reservations.capacity_grew()
        return self._effects()

    def ungate_finished(self, uid: str, outcome: UngateOutcome, now: float) -> list[Effect]:
        """Take the outcome of an Ungate; that it succeeded is learned from the watch alone."""
        gang = self.gangs.of_pod(uid)
        if isinstance(outcome, UngateFailed) and gang is not None:
            self.permit.ungate_failed(gang, uid, outcome, now)
        return self._effects()

    # -- time ----------------------------------------------------------------------------------

    def tick(self, now: float) -> list[Effect]:
        """Do what is due by now."""
        self.books.refresh()
        for step in (
            self.roll_calls.review_all,
            self.permit.expire,
            self.passes.expire,
            self._expire,
            self._review_earmarks,
            self._begin,
        ):
            try:
                step(now)
            except Exception as error:  # deadlines are kept, whatever else fails
                self._on_fault(f"tick, {step.__name__}", error)
        return self._effects()

    def _expire(self, now: float) -> None:
        """End refusals and assumed pods whose time is up; repair where nodes were down for long."""
        if self.refusals.expire(now) | self.assumed_pods.expire(now):
            self.reservations.capacity_grew()
        self.nodes.expire(now)

    def _begin(self, now: float) -> None:
        """Plan gangs that may fit now, and requeue pods that may be scheduled now."""
        if self.is_draining:
            return
        self.passes.plan_waiting(now)
        self.outbox.extend(self.notes.written(self.gangs.by_key, now))
        self.requeues.requeue_outdated(self.gangs.by_key)
        self.outbox.extend(self.rejected_pods.woken(self.reservations.taken_freed_nodes()))

    def _review_earmarks(self, now: float) -> None:
        """Earmark domains for gangs that starve, and free those that are not needed any more."""
        if self.is_draining or now < self._earmarks_at or not self.settings.earmarks_per_namespace:
            return
        self._earmarks_at = now + EARMARK_SECONDS
        waiting = [self.gangs.by_key[key] for key in self.gangs.plannable]
        ended = self.starvation.review((each for each in waiting if not each.has_started), now)
        if ended:
            self.reservations.capacity_grew(ended)

    def differences(self) -> list[str]:
        """Where the books differ from the records; empty unless Corral has a bug."""
        return differences(self.books, self.gangs, self.assumed_pods.uids)

    def heal(self, now: float) -> list[Effect]:
        """Correct the books by the records; what was planned on wrong books is planned again."""
        self.healing.heal(self.assumed_pods.uids, now)
        return self._effects()

    def drain(self, now: float) -> list[Effect]:
        """Prepare to stop: refuse held /bind requests, and begin nothing new."""
        self.is_draining = True
        self.permit.refuse_arrived("Corral is stopping; kube-scheduler tries again")
        return self._effects()

    def _effects(self) -> list[Effect]:
        return [*self.outbox.taken(), *self.statuses.taken(self.gangs.by_key)]
