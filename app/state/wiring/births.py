"""Gangs that are planned before their pods are stored."""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.state.born.births import Births
from app.state.born.giving_back import GivingBack
from app.state.born.suspended import Suspended
from app.state.isolation import OnFault
from app.state.settings import EngineSettings
from app.state.wiring.room import RoomParts


class BirthParts(RoomParts):
    """Gangs, also those whose pods are not stored yet."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        super().__init__(settings, on_fault, dialects)
        self.births = Births(
            self.settings,
            self.gangs,
            self.planner,
            self.single_nodes,
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
            self.kept_places,
            Suspended(self.objects, self.gangs, self.outbox),
            self.outbox,
            self.reports,
            self.owners,
            self.room_plans.of.__contains__,
        )
