"""What goes out: reports, statuses, and pods that kube-scheduler is to try again."""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.state.gang.owners import Owners
from app.state.isolation import OnFault
from app.state.objects.pools import Pools
from app.state.queueing.nominating import Nominating
from app.state.queueing.requeue import Requeues
from app.state.queueing.stray_gates import StrayGates
from app.state.report.evictions import Evictions
from app.state.report.notes import Notes
from app.state.report.reports import Reports
from app.state.report.starts import Starts
from app.state.report.statuses import Statuses
from app.state.settings import EngineSettings
from app.state.wiring.planning import PlanningParts


class ReportingParts(PlanningParts):
    """Gangs, and what is written about them."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        super().__init__(settings, on_fault, dialects)
        self.pools = Pools(self.dialects)
        self.statuses = Statuses(
            self.dialects, self.objects, self.pools, on_fault, self.planner.serving.nearness
        )
        self.notes = Notes()
        self.nominating = Nominating(self.settings, self.outbox, self._is_preemptor)
        self.requeues = Requeues(self.settings, self.outbox, self.nominating)
        self.stray_gates = StrayGates(self.outbox)
        self.starts = Starts()
        self.owners = Owners(self.dialects, self.objects.by_uid)
        self.reports = Reports(
            self.settings, self.outbox, self.requeues, self.statuses, self.naming
        )
        self.evictions = Evictions(self.settings, self.outbox, self.owners, self.reports)

    def _is_preemptor(self, uid: str, node: str) -> bool:
        """Whether pods end on the node for this one; after a restart, whether any end there."""
        ends = self.occupants.any_terminating(self.books.bound_on.get(node, ()))
        return uid in self.grants.of or ends
