"""What becomes of a gang when kube-scheduler ends one of its pods for a pod of higher priority.

    single   the pod is lost like any other: its gang keeps the rest and waits for a replacement
    all      the others are evicted, nothing is held for those that are lost, the gang waits whole

Decided when the first pod is seen to end, not when /preempt is answered: kube-scheduler may not do
what it asked about. A gang whose owner would give up for good keeps the rest. After a restart a pod
that still ends says the same, unless all that runs was made or bound since: its gang has started
again, and the pod may take hours to end. One that has ended, or is gone, says nothing any more.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.dialects import corral
from app.kube.core.objects import PodRecord
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.gang.members.member import Member
from app.state.gang.owners import Owners
from app.state.plan.planner import Planner
from app.state.report.evictions import Evictions
from app.state.report.messages import gangs as messages
from app.state.report.reports import Reports
from app.state.reserve import placeholders
from app.state.reserve.plans import Plans
from app.state.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class Disruptions:
    """Ends gangs that end as a whole."""

    settings: EngineSettings
    gangs: Gangs
    planner: Planner
    plans: Plans
    reports: Reports
    evictions: Evictions
    owners: Owners

    def follow(self, gang: Gang, member: Member, *, was_known: bool) -> None:
        """Take note of a member that ends, or is gone, for a pod of higher priority."""
        if member.pod.is_preempted and member.pod.node:
            gang.preempted, gang.is_preempted_unseen = member, not was_known
            self.gangs.owe_review(gang)

    def review(self, gang: Gang, now: float) -> None:
        """End a gang that lost such a member, and note when its last one has ended."""
        if not self.planner.is_ready:
            self.gangs.owe_review(gang)  # some members may not have been read yet
            return
        preempted, gang.preempted = gang.preempted, None
        if not gang.membership.bound:
            gang.ending = ""
        elif preempted is not None and not gang.ending and not _has_restarted(gang, preempted):
            self._end(gang, preempted, now)

    def _end(self, gang: Gang, preempted: Member, now: float) -> None:
        """End the gang that lost this pod, if it ends as a whole and its owner starts it again."""
        if not (preempted.said.ends_together or self.ends_whole(gang)):
            return
        if self.owners.give_up(gang, gang.membership.bound):
            self.reports.not_evicted(gang)
            return
        self._lose_all(gang, messages.ends_whole(gang.key, preempted.pod), now)
        self.evictions.end_whole(gang, now)

    def _lose_all(self, gang: Gang, sentence: str, now: float) -> None:
        gang.ending = sentence
        placeholders.forget_lost(gang)
        self.plans.lose(gang, "it ends as a whole", now)

    # -- gangs that go for a waiting one ---------------------------------------------------------

    def ends_whole(self, gang: Gang) -> bool:
        """Whether all its pods are to end with the first."""
        return gang.ends_together(self.settings.disruption)

    def end_for(self, gang: Gang, sentence: str, now: float) -> None:
        """Note that all its pods are being evicted, and say why."""
        self._lose_all(gang, sentence, now)
        self.reports.gives_way_whole(gang, sentence)

    def end_rest(self, gang: Gang, now: float) -> None:
        """Have those of its pods that still run evicted: it ends as a whole."""
        self.evictions.end_whole(gang, now)

    def keep(self, gang: Gang) -> None:
        """Note that those of its pods that still run are not evicted after all."""
        gang.ending = ""
        self.gangs.owe_review(gang)


def _has_restarted(gang: Gang, preempted: Member) -> bool:
    """Whether all that runs was made after a member began to end that was not known before."""
    since = preempted.pod.preempted_at
    is_told = gang.is_preempted_unseen and bool(since)
    return is_told and all(_begun(each.pod) >= since for each in gang.membership.bound)


def _begun(pod: PodRecord) -> str:
    """A time after which the pod was bound."""
    return max(pod.created, pod.annotations.get(corral.AFTER, ""))
