"""Everything that an engine is made of, wired once.

Each part is handed what it may change or call, so its parameters say who it depends on: a part
further down depends on those above it, never the other way round. What happens when is
`engine.py`'s.
"""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.kube.core.objects import PodRecord
from app.state.answers.bind_requests import BindRequests
from app.state.answers.filtering import Filtering
from app.state.answers.hypothetical import Hypothetical
from app.state.answers.kept_nodes import KeptNodes
from app.state.answers.ordinary import OrdinaryPods
from app.state.answers.preempting import Preempting
from app.state.answers.room_for_usual import RoomForUsual
from app.state.answers.sampling import Sampling
from app.state.answers.scoring import Scoring
from app.state.audit import Healing
from app.state.autoscaling.held_nodes import HeldNodes
from app.state.autoscaling.marks import Marks
from app.state.autoscaling.new_nodes import NewNodes
from app.state.autoscaling.requests import Requests
from app.state.born.births import Births
from app.state.born.giving_back import GivingBack
from app.state.born.kept_places import KeptPlaces
from app.state.born.suspended import Suspended
from app.state.cache.books import Books
from app.state.cache.device_parts import DeviceParts
from app.state.cache.node_refusals import Refusals
from app.state.cache.node_table import NodeTable
from app.state.cache.part_counted import PartCounted
from app.state.claims.claim_reader import ClaimReader
from app.state.claims.named_pods import NamedPods
from app.state.claims.unseen import UnseenPods
from app.state.domains.statuses import DomainStatuses
from app.state.domains.topologies import Topologies
from app.state.fairness.absent_pods import AbsentPods
from app.state.fairness.owed_places import OwedPlaces
from app.state.fairness.run_times import RunTimes
from app.state.fairness.starvation import Starvation
from app.state.gang.gangs import Gangs
from app.state.gang.owners import Owners
from app.state.isolation import OnFault
from app.state.lifecycle.claims import Claims
from app.state.lifecycle.disruption import Disruptions
from app.state.lifecycle.members import Members
from app.state.lifecycle.passes import Passes
from app.state.lifecycle.permit import Permit
from app.state.lifecycle.roll_call import RollCalls
from app.state.nodes.events import NodeEvents
from app.state.nodes.invalidation import Invalidation
from app.state.nodes.repair import Failures, Repairs
from app.state.objects.budgets import Budgets
from app.state.objects.declared import Objects
from app.state.objects.kept_keys import KeptKeys
from app.state.objects.pod_lists import PodLists
from app.state.objects.pools import Pools
from app.state.plan.planner import Planner
from app.state.pods.arrivals import EARLY_SECONDS, Arrivals
from app.state.pods.assumed_pods import AssumedPods
from app.state.pods.grants import Grants
from app.state.pods.nominations import Nominations
from app.state.pods.occupants import Occupants
from app.state.pods.rejected_pods import RejectedPods
from app.state.pods.usual_requests import UsualRequests
from app.state.preempt.left_alone import LeftAlone
from app.state.preempt.making_room import MakingRoom
from app.state.preempt.room_plans import RoomPlans
from app.state.queueing.nominating import Nominating
from app.state.queueing.outbox import Outbox
from app.state.queueing.requeue import Requeues
from app.state.report.notes import Notes
from app.state.report.reports import Reports
from app.state.report.starts import Starts
from app.state.report.statuses import Statuses
from app.state.reserve.plans import Plans
from app.state.reserve.replacements import Replacements
from app.state.reserve.reservations import Reservations
from app.state.settings import EngineSettings
from app.state.turns.budget import Budget
from app.state.turns.queue import Queue
from topology.model.request import DomainOrder


class EngineParts:
    """The parts of an engine, from the books to what is written: each is given those above it."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        self.on_fault = on_fault
        self.settings = settings
        self.dialects = dialects.configured(self.settings)
        # cache: the books
        self.books = Books()
        shared = self.settings.device_parts if self.settings.fewest_fragments else ()
        self.device_parts = DeviceParts(self.books, dict(shared))
        self.kept_keys = KeptKeys(self.dialects)
        self.part_counted = PartCounted(self.books.axis)
        self.pod_lists = PodLists(self.kept_keys, self.part_counted)
        self.objects = Objects(self.dialects, self.kept_keys)
        self.named_pods = NamedPods(self.settings, self.dialects, self.objects)
        self.claim_reader = ClaimReader(self.settings, self.dialects, self.named_pods)
        self.node_table = NodeTable()
        self.refusals = Refusals()
        self.nominations = Nominations()
        self.budgets = Budgets(self.dialects, self.kept_keys)
        self.occupants = Occupants(self.settings.unpreemptible_in, self._is_managed)
        self.grants = Grants(self.nominations)
        self.assumed_pods = AssumedPods(self.books, self.nominations)
        self.rejected_pods = RejectedPods(self.books)
        self.unseen = UnseenPods()
        self.usual_requests = UsualRequests(self.books.largest)
        self.arrivals = Arrivals(min(EARLY_SECONDS, self.settings.gang_bind_seconds))
        self.topologies = Topologies(self.settings, self.books, self.dialects)
        self.domain_statuses = DomainStatuses(self.dialects, self.objects, self.topologies)
        # gang, plan
        self.gangs = Gangs()
        self.budget = Budget(self.settings.visits_per_tick)
        self.queue = Queue(self.settings, self.budget)
        self.planner = Planner(
            self.books,
            self.node_table,
            self.refusals,
            self.nominations,
            budget=self.budget,
            honours_preferred=self.settings.preferred_affinity,
            is_balanced=self.settings.balanced_placement,
            order=DomainOrder.FEWEST if self.settings.fewest_domains else DomainOrder.TIGHTEST,
            packing=self.settings.packing,
            on_fault=on_fault,
        )
        self.run_times = RunTimes(self.settings.backfill, self.gangs)
        self.planner.expected_seconds = self.run_times.seconds_of_gang
        self.starvation = Starvation(
            self.settings,
            self.books,
            self.node_table,
            self.nominations,
            self.planner,
            self.run_times,
        )
        self.absent_pods = AbsentPods(self.settings, self.books, self.dialects)
        self.owed_places = OwedPlaces(self.gangs, self.absent_pods)
        # report
        self.outbox = Outbox()
        self.pools = Pools(self.dialects)
        self.statuses = Statuses(
            self.dialects, self.objects, self.pools, on_fault, self.planner.nearness
        )
        self.notes = Notes()
        self.nominating = Nominating(self.settings, self.outbox, self._is_preemptor)
        self.requeues = Requeues(self.settings, self.outbox, self.nominating)
        self.starts = Starts()
        self.owners = Owners(self.dialects, self.objects.by_uid)
        self.reports = Reports(
            self.settings, self.outbox, self.requeues, self.statuses, self.owners
        )
        # autoscaling
        self.requests = Requests(self.settings, self.gangs, self.planner, self.reports, self.outbox)
        self.marks = Marks(
            self.settings, self.gangs, self.planner, self.reports, self.requests, self.outbox
        )
        self.new_nodes = NewNodes(
            self.settings, self.books, self.gangs, self.planner, self.marks, self.reports
        )
        self.held_nodes = HeldNodes(self.settings, self.books, self.planner, self.outbox)
        # lifecycle
        self.reservations = Reservations(
            self.books,
            self.planner,
            self.queue,
            self.absent_pods,
            self.owed_places,
            self.held_nodes,
            self.outbox,
        )
        self.replacements = Replacements(
            self.settings, self.books, self.gangs, self.planner, self.reservations, self.requeues
        )
        self.plans = Plans(
            self.settings,
            self.gangs,
            self.planner,
            self.queue,
            self.reservations,
            self.absent_pods,
            self.starvation,
            self.requeues,
            self.reports,
            self.marks,
            self.starts,
        )
        self.disruptions = Disruptions(
            self.settings, self.gangs, self.planner, self.plans, self.reports, self.owners
        )
        self.roll_calls = RollCalls(
            self.objects,
            self.topologies,
            self.gangs,
            self.planner,
            self.replacements,
            self.disruptions,
            self.plans,
            self.reports,
            self.notes,
            Budget(self.settings.visits_per_tick),
        )
        self.members = Members(
            self.objects,
            self.gangs,
            self.planner,
            self.replacements,
            self.disruptions,
            self.plans,
            self.roll_calls,
            self.reports,
            self.notes,
            self.starts,
            self.nominating,
        )
        self.claims = Claims(
            self.named_pods,
            self.objects,
            self.assumed_pods,
            self.gangs,
            self.members,
            self.plans,
            self.claim_reader,
            self.nominations,
            on_fault,
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
        # preempt
        self.room_plans = RoomPlans(
            self.settings,
            self.books,
            self.occupants,
            self.nominations,
            self.grants,
            self.gangs,
            self.planner,
            self.reservations,
            self.disruptions,
            self.outbox,
            self.reports,
            self.notes,
            LeftAlone(self.settings),
        )
        self.making_room = MakingRoom(
            self.settings,
            self.books,
            self.budgets,
            self.owners,
            self.occupants,
            self.grants,
            self.gangs,
            self.planner,
            self.outbox,
            self.reports,
            self.room_plans,
        )
        # nodes, and the rest
        self.invalidation = Invalidation(self.books, self.gangs, self.plans)
        self.nodes = NodeEvents(
            self.settings,
            self.books,
            self.topologies,
            self.node_table,
            self.reservations,
            self.invalidation,
            Failures(self.settings),
            Repairs(self.books, self.gangs, self.replacements, self.roll_calls),
        )
        self.kept_nodes = KeptNodes(self.starvation, self.new_nodes)
        sampling = Sampling(self.settings, self.books)
        self.filtering = Filtering(
            self.settings,
            self.books,
            self.refusals,
            self.arrivals,
            self.gangs,
            self.plans,
            self.roll_calls,
            self.reports,
            self.members,
            self.unseen,
            self.requeues,
            sampling,
        )
        self.births = Births(
            self.settings,
            self.gangs,
            self.planner,
            self.queue,
            self.absent_pods,
            self.reservations,
            self.plans,
            self.roll_calls,
            self.unseen,
            self.owners,
        )
        self.giving_back = GivingBack(
            self.settings,
            self.gangs,
            self.planner,
            self.queue,
            self.births,
            KeptPlaces(self.gangs, self.nominations, self.reservations),
            Suspended(self.objects, self.gangs, self.outbox),
            self.outbox,
            self.reports,
            self.owners,
            self.room_plans.of.__contains__,
        )
        self.ordinary_pods = OrdinaryPods(
            self.books,
            self.arrivals,
            self.assumed_pods,
            self.rejected_pods,
            self.grants,
            self.nominations,
            self.kept_nodes,
            self.reservations,
            sampling,
        )
        self.room_for_usual = RoomForUsual(self.books, self.usual_requests, self.device_parts)
        self.scoring = Scoring(
            self.settings,
            self.books,
            self.topologies,
            self.nominations,
            self.room_for_usual,
        )
        self.hypothetical = Hypothetical(
            self.books,
            self.claim_reader,
            self.gangs,
            self.planner,
            self.nominations,
            self.kept_nodes,
            self.scoring,
        )
        self.preempting = Preempting(
            self.settings,
            self.books,
            self.arrivals,
            self.claim_reader,
            self.occupants,
            self.nominations,
            self.grants,
            self.gangs,
            self.kept_nodes,
            self.plans,
            self.reports,
        )
        self.bind_requests = BindRequests(
            self.settings,
            self.books,
            self.arrivals,
            self.assumed_pods,
            self.gangs,
            self.roll_calls,
            self.permit,
            self.outbox,
        )
        self.healing = Healing(
            self.books, self.gangs, self.reservations, self.plans, self.roll_calls
        )

    def _is_preemptor(self, uid: str, node: str) -> bool:
        """Whether pods end on the node for this one; after a restart, whether any end there."""
        ends = self.occupants.any_terminating(self.books.bound_on.get(node, ()))
        return uid in self.grants.of or ends

    def _is_managed(self, pod: PodRecord) -> bool:
        """Whether Kueue, where it runs, keeps for itself what the pod takes."""
        return self.settings.kueue_manages and self.dialects.is_managed(
            pod.labels, pod.annotations, pod.gates
        )
