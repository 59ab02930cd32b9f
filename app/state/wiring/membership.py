"""Which pods are in which gang, and when all of them may start."""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.state.isolation import OnFault
from app.state.lifecycle.claims import Claims
from app.state.lifecycle.members import Members
from app.state.lifecycle.passes import Passes
from app.state.lifecycle.permit import Permit
from app.state.lifecycle.roll_call import RollCalls
from app.state.lifecycle.succession import Succession
from app.state.settings import EngineSettings
from app.state.turns.budget import Budget
from app.state.wiring.holding import HoldingParts


class MembershipParts(HoldingParts):
    """Gangs with what is held for them, and with their pods."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        super().__init__(settings, on_fault, dialects)
        self.roll_calls = RollCalls(
            self.objects,
            self.topologies,
            self.gangs,
            self.planner,
            self.last_places,
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
            self.single_nodes,
            self.replacements,
            self.disruptions,
            self.plans,
            self.roll_calls,
            self.reports,
            self.notes,
            self.starts,
            self.nominating,
            self.stray_gates,
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
            self.gangs,
            self.planner,
            self.searches_on,
            self.queue,
            self.plans,
            self.roll_calls,
            self.reports,
            self.evictions,
        )
        self.succession = Succession(
            self.settings,
            self.gangs,
            self.planner,
            self.plans,
            self.reservations,
            self.notes,
            self.reports,
            self.arrivals,
            self.rejected_pods,
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
