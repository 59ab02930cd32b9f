"""Of several Corrals one decides where gangs go; the others follow what it has decided.

    leads      plans every gang that is complete
    follows    plans only gangs that run, or whose pods are narrowed: these cannot go elsewhere

A gang that is behind its gates when the Corral that led ends goes anywhere. Were a place held for
it here meanwhile, it could be the one that the other Corral has narrowed another gang's pods to,
and these would wait for ever: a pod without gates is narrowed for good.
Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/
"""

from __future__ import annotations

from dataclasses import dataclass

from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.plan.planner import Planner
from app.state.pods.arrivals import Arrivals
from app.state.pods.rejected_pods import RejectedPods
from app.state.queueing import requeue
from app.state.report.notes import Notes
from app.state.report.reports import Reports
from app.state.reserve.plans import Plans
from app.state.reserve.reservations import Reservations
from app.state.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class Succession:
    """Makes a Corral one that leads, or one that follows."""

    settings: EngineSettings
    gangs: Gangs
    planner: Planner
    plans: Plans
    reservations: Reservations
    notes: Notes
    reports: Reports
    arrivals: Arrivals
    rejected_pods: RejectedPods

    def start(self, now: float) -> None:
        """Begin once everything has been read; kube-scheduler may have asked a Corral before."""
        self.reservations.taken_freed_nodes()  # nothing was freed: they were read
        self._take_ordinary_for_rejected()
        self.begin(now)

    def begin(self, now: float) -> None:
        """Have every gang planned that waits, those first that cannot go elsewhere."""
        self.reservations.capacity_grew()
        self.plans.queue.let_first(
            (
                gang
                for gang in self.gangs.by_key.values()
                if gang.is_settled and not gang.has_started
            ),
            now,
        )

    def _take_up(self) -> None:
        """Go on with what the Corral before this one may have begun, or not have come to."""
        for gang in self.gangs.by_key.values():
            if not gang.has_started:
                for member in gang.members.values():
                    self.notes.find_room(gang.key, member.pod)
            if self.settings.scheduler_lives_on:
                self._take_for_rejected(gang)
            if gang.reporting.outside:
                self.reports.forget_outside(gang)
                self.gangs.owe_review(gang)
        if self.settings.scheduler_lives_on:
            self._take_ordinary_for_rejected()

    def _take_for_rejected(self, gang: Gang) -> None:
        """Have pods woken, once they have a node, that the Corral before may have rejected."""
        for uid, member in gang.members.items():
            is_asked_about = member.is_live and not (member.pod.node or member.pod.gates)
            if is_asked_about and uid not in gang.rejections.sentences:
                requeue.reject(gang, uid, "")

    def _take_ordinary_for_rejected(self) -> None:
        """Have pods outside gangs woken where something is freed, as if they were rejected.

        Not those that are nominated: these wait for one node, and are woken for that.
        """
        for uid in self.arrivals.uids:
            pod = self.arrivals.of(uid)
            if pod is None or pod.is_gated or pod.nominated_node:
                continue
            if uid not in self.gangs.key_of:
                self.rejected_pods.suppose(uid, pod)

    def lead(self, *, is_leading: bool, now: float) -> None:
        """Have all gangs planned from now on, or leave that to another Corral."""
        if is_leading == self.planner.leads:
            return
        self.planner.leads = is_leading
        if is_leading:
            self._take_up()
            self.begin(now)
            return
        for key in list(self.gangs.planned):
            gang = self.gangs.by_key[key]
            if gang.plan.nodes and not gang.is_settled:
                self.plans.lose(gang, "another Corral leads now", now, losses=0)
                self.plans.queue.resume(gang, now)  # at once, should this one lead again
