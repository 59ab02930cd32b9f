"""What is held for gangs: reservations, replacements, plans; and what disruptions do to them."""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.state.isolation import OnFault
from app.state.lifecycle.disruption import Disruptions
from app.state.reserve.plans import Plans
from app.state.reserve.replacements import Replacements
from app.state.reserve.reservations import Reservations
from app.state.settings import EngineSettings
from app.state.wiring.autoscaling import AutoscalingParts


class HoldingParts(AutoscalingParts):
    """Gangs with what is held for them."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        super().__init__(settings, on_fault, dialects)
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
            self.settings,
            self.books,
            self.gangs,
            self.planner,
            self.single_nodes,
            self.reservations,
            self.requeues,
        )
        self.plans = Plans(
            self.settings,
            self.gangs,
            self.planner,
            self.searches_on,
            self.single_nodes,
            self.queue,
            self.reservations,
            self.absent_pods,
            self.starvation,
            self.requeues,
            self.reports,
            self.evictions,
            self.marks,
            self.naming,
            self.starts,
        )
        self.disruptions = Disruptions(
            self.settings,
            self.gangs,
            self.planner,
            self.plans,
            self.reports,
            self.evictions,
            self.owners,
        )
