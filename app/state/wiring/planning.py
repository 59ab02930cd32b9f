"""Which gangs there are, and where they are planned."""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.state.fairness.absent_pods import AbsentPods
from app.state.fairness.owed_places import OwedPlaces
from app.state.fairness.run_times import RunTimes
from app.state.fairness.starvation import Starvation
from app.state.gang.gangs import Gangs
from app.state.gang.last_places import LastPlaces
from app.state.isolation import OnFault
from app.state.plan.elsewhere.search_on import SearchesOn
from app.state.plan.planner import Planner
from app.state.plan.searches import Searches
from app.state.plan.single_nodes import SingleNodes
from app.state.queueing.outbox import Outbox
from app.state.settings import EngineSettings
from app.state.turns.budget import Budget
from app.state.turns.queue import Queue
from app.state.wiring.cluster import ClusterParts
from topology.model.request import DomainOrder


class PlanningParts(ClusterParts):
    """The cluster, and gangs that are planned in it."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        super().__init__(settings, on_fault, dialects)
        self.gangs = Gangs()
        self.budget = Budget(self.settings.visits_per_tick)
        self.queue = Queue(self.settings, self.budget)
        self.outbox = Outbox()
        self.searches_on = SearchesOn(self.gangs, self.outbox.add)
        self.last_places = LastPlaces()
        self.planner = Planner(
            self.books,
            self.node_table,
            self.refusals,
            self.nominations,
            self.budget,
            self._searches(),
            is_balanced=self.settings.balanced_placement,
            on_fault=on_fault,
        )
        self.single_nodes = SingleNodes(self.books, self.nominations, self.planner.families)
        self.run_times = RunTimes(self.settings.backfill, self.gangs, self.objects.deadline_of)
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

    def _searches(self) -> Searches:
        return Searches(
            self.books,
            self.node_table,
            self.refusals,
            self.searches_on,
            self.last_places,
            most_visits=self.settings.visits_per_search,
            order=DomainOrder.FEWEST if self.settings.fewest_domains else DomainOrder.TIGHTEST,
            packing=self.settings.packing,
            honours_preferred=self.settings.preferred_affinity,
        )
