"""What kube-scheduler is answered, and the audit that compares the books with the records."""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.state.answers.bind_requests import BindRequests
from app.state.answers.filtering.members import Filtering
from app.state.answers.filtering.ordinary import OrdinaryPods
from app.state.answers.filtering.sampling import Sampling
from app.state.answers.hypothetical import Hypothetical
from app.state.answers.kept_nodes import KeptNodes
from app.state.answers.preempting import Preempting
from app.state.answers.room_for_usual import RoomForUsual
from app.state.answers.scoring import Scoring
from app.state.audit.healing import Healing
from app.state.isolation import OnFault
from app.state.settings import EngineSettings
from app.state.wiring.births import BirthParts


class EngineParts(BirthParts):
    """All parts of an engine."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        super().__init__(settings, on_fault, dialects)
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
            self.settings, self.books, self.topologies, self.nominations, self.room_for_usual
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
            self.naming,
        )
        self.bind_requests = BindRequests(
            self.settings,
            self.books,
            self.arrivals,
            self.assumed_pods,
            self.ordinary_pods,
            self.gangs,
            self.roll_calls,
            self.permit,
            self.outbox,
        )
        self.healing = Healing(
            self.books, self.gangs, self.reservations, self.plans, self.roll_calls
        )
