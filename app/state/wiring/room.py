"""How gangs make room, and what follows when nodes change."""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.state.born.kept_places import KeptPlaces
from app.state.isolation import OnFault
from app.state.nodes.events import NodeEvents
from app.state.nodes.invalidation import Invalidation
from app.state.nodes.repair import Failures, Repairs
from app.state.preempt.left_alone import LeftAlone
from app.state.preempt.making_room import MakingRoom
from app.state.preempt.plans.room_plans import RoomPlans
from app.state.settings import EngineSettings
from app.state.wiring.membership import MembershipParts


class RoomParts(MembershipParts):
    """Gangs that make room and follow their nodes."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        super().__init__(settings, on_fault, dialects)
        self.kept_places = KeptPlaces(
            self.gangs, self.nominations, self.reservations, self.absent_pods
        )
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
            self.naming,
            LeftAlone(self.settings),
            self.kept_places.end,
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
        self.invalidation = Invalidation(self.books, self.gangs, self.plans, self.naming)
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
