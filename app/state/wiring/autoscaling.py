"""What autoscalers are asked for, and what their new nodes are kept for."""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.state.autoscaling.held_nodes import HeldNodes
from app.state.autoscaling.marks import Marks
from app.state.autoscaling.new_nodes import NewNodes
from app.state.autoscaling.requests import Requests
from app.state.isolation import OnFault
from app.state.settings import EngineSettings
from app.state.wiring.reporting import ReportingParts


class AutoscalingParts(ReportingParts):
    """Gangs, and nodes that are made for them."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        super().__init__(settings, on_fault, dialects)
        self.requests = Requests(self.settings, self.gangs, self.planner, self.reports, self.outbox)
        self.marks = Marks(
            self.settings, self.gangs, self.planner, self.reports, self.requests, self.outbox
        )
        self.new_nodes = NewNodes(
            self.settings, self.books, self.gangs, self.planner, self.marks, self.reports
        )
        self.held_nodes = HeldNodes(self.settings, self.books, self.planner, self.outbox)
