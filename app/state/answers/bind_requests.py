"""What a request to bind a pod leads to: its binding, a place in its gang's permit, or a refusal.

the watch shows the pod, and it is ordinary   bound, unless it takes what is held or kept for others
a member, on the node planned for it          held until every member came
early: the watch does not show it yet         held for a moment, then one of the others
anything else                                 refused
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.state.answers.filtering.ordinary import OrdinaryPods
from app.state.cache.books import Books
from app.state.effects import Bind, RejectBind
from app.state.gang.gangs import Gangs
from app.state.lifecycle.permit import Permit
from app.state.lifecycle.roll_call import RollCalls
from app.state.pods.arrivals import Arrival, Arrivals
from app.state.pods.assumed_pods import AssumedPods
from app.state.queueing.outbox import Outbox
from app.state.report.messages import gangs as messages
from app.state.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class BindRequests:
    """Decides about requests at /bind."""

    settings: EngineSettings
    books: Books
    arrivals: Arrivals
    assumed_pods: AssumedPods
    ordinary_pods: OrdinaryPods
    gangs: Gangs
    roll_calls: RollCalls
    permit: Permit
    outbox: Outbox

    def take(self, arrival: Arrival, now: float, *, may_be_early: bool = True) -> None:
        """Bind a pod that the watch shows waiting, hold it for its gang, or refuse."""
        uid, node = arrival.uid, arrival.node
        bound = self.books.bound.get(uid)
        if bound is not None and bound.node == node:
            # The answer to an earlier request was lost; the API server confirms it.
            self.outbox.add(Bind(arrival.namespace, arrival.name, uid, node))
            return
        if bound is not None:
            self._refuse(arrival, f"the pod is already bound to node {bound.node}")
            return
        if self.arrivals.is_early(arrival):
            if not (may_be_early and self.arrivals.hold(arrival, now)):
                self._refuse_early(arrival)
            return
        pod = self.arrivals.known(arrival.namespace, arrival.name, uid)
        gang = self.gangs.of_pod(uid)
        if pod is None:
            self._refuse(arrival, messages.another_pod(arrival.namespace, arrival.name))
        elif gang is None:
            is_new = uid not in self.assumed_pods.uids  # else the same request again
            if is_new and self.ordinary_pods.is_kept_from(uid, pod, node):
                self._refuse(arrival, f"node {node} is kept for a gang")
            elif self.assumed_pods.begin(pod, uid, node, now):
                self.outbox.add(Bind(arrival.namespace, arrival.name, uid, node))
            else:
                self._refuse(arrival, f"node {node} is held for a gang")
        else:
            self.roll_calls.review_now(gang, now)
            if gang.plan.nodes.get(uid) == node:
                self.permit.arrive(gang, uid, now)
            else:
                self._refuse(arrival, messages.planned_elsewhere(gang.key))

    def take_due(self, now: float) -> None:
        """Decide about the early requests of whose pods the watch has told since."""
        for arrival in self.arrivals.taken_due():
            self.take(arrival, now, may_be_early=False)

    def expire(self, now: float = math.inf) -> None:
        """Refuse the early requests that the watch does not bear out in time; without one, all."""
        for arrival in self.arrivals.expired(now):
            self._refuse_early(arrival)

    def _refuse(self, arrival: Arrival, sentence: str) -> None:
        self.outbox.add(RejectBind(arrival.uid, sentence))

    def _refuse_early(self, arrival: Arrival) -> None:
        scheduler = self.settings.scheduler_name
        self._refuse(arrival, messages.not_waiting(arrival.namespace, arrival.name, scheduler))
