"""Members come and go, as the watch shows them.

put, drop ──▶ store of gangs ──▶ a roll call is owed
    └──▶ what cannot wait for it: the plan is lost, a lost member's node is kept
"""

from __future__ import annotations

from dataclasses import dataclass

from app.dialects import corral
from app.dialects.spec import Claim, GangKey
from app.kube.core.objects import PodRecord
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.gang.members.member import Member, is_same_claim, member_of
from app.state.lifecycle.disruption import Disruptions
from app.state.lifecycle.roll_call import RollCalls
from app.state.objects.declared import Objects
from app.state.plan.planner import Planner
from app.state.plan.single_nodes import SingleNodes
from app.state.queueing import requeue, ungating
from app.state.queueing.nominating import Nominating
from app.state.queueing.stray_gates import StrayGates
from app.state.report.messages import gangs as messages
from app.state.report.notes import Notes
from app.state.report.reports import Reports
from app.state.report.starts import Starts
from app.state.reserve import binding
from app.state.reserve.plans import Plans
from app.state.reserve.replacements import Replacements


@dataclass(frozen=True, slots=True)
class Members:
    """Follows the pods of gangs."""

    objects: Objects
    gangs: Gangs
    planner: Planner
    single_nodes: SingleNodes
    replacements: Replacements
    disruptions: Disruptions
    plans: Plans
    roll_calls: RollCalls
    reports: Reports
    notes: Notes
    starts: Starts
    nominating: Nominating
    stray_gates: StrayGates

    # -- pods ----------------------------------------------------------------------------------

    def put(
        self,
        pod: PodRecord,
        claim: Claim,
        now: float,
        *,
        rejected_with: str = "",
        was_tried: bool = False,
        place: str = "",
    ) -> None:
        """Add a member or replace what is known of it.

        `rejected_with`: the sentence of /filter, where it was called before the watch showed the
        pod. `was_tried`: kube-scheduler may have tried the pod before it was a member. `place`: the
        uid of the placeholder that it takes over, where that is known.
        """
        other = self.gangs.of_pod(pod.uid)
        if other is not None and other.key != claim.gang:
            was_tried = was_tried or pod.uid in other.rejections.sentences
            self.drop(pod.uid, now)
        gang = self.gangs.by_key.get(claim.gang)
        if gang is None:
            gang = self.gangs.add(claim.gang)
            self.reports.note_new(claim.gang, now)
        member = member_of(pod, claim)
        before = self.gangs.put(gang, member)
        self._note_success(gang, before, member)
        is_coming = before is None and gang.birth is not None
        if is_coming and self.replacements.take(gang, member, now, place):
            self.gangs.owe_review(gang, is_pressing=False)
        else:
            self._owe_review(gang, before, member)
        self._follow(gang, before, member, now)
        self.nominating.note_member(gang, None if before is None else before.pod, pod, now)
        if before is None:
            self.stray_gates.forget(pod.uid)
            self.starts.note_pod(gang, now)
            # Before the first lists are in, the Corral before this one may have rejected the pod.
            was_tried = was_tried or not (self.planner.is_ready or pod.node or pod.gates)
            if rejected_with or was_tried:
                requeue.reject(gang, pod.uid, rejected_with)
            self._welcome(gang, member, claim, now)
        if not self.planner.is_ready:
            self.notes.find_room(gang.key, pod)

    def _owe_review(self, gang: Gang, before: Member | None, member: Member) -> None:
        """Have a roll call taken if the change matters to the gang."""
        pod = member.pod
        if before is None or not is_same_claim(before, member):
            self.gangs.owe_review(gang)
        elif before.pod.node != pod.node:
            is_as_planned = gang.has_started and gang.plan.nodes.get(pod.uid) == pod.node
            self.gangs.owe_review(gang, is_pressing=not is_as_planned)
        elif before.pod.gates != pod.gates:  # ungated pods come first where there are too many
            self.gangs.owe_review(gang, is_pressing=False)

    def _note_success(self, gang: Gang, before: Member | None, member: Member) -> None:
        """Remember that a pod has succeeded, and what other Corrals have noted of that.

        A pod that first ends while it is being deleted was stopped, however it has ended, and may
        be replaced.
        """
        pod, is_starting = member.pod, not self.planner.is_ready
        is_known = pod.uid in gang.succeeded.present
        if member.has_succeeded and (is_starting or is_known or not pod.is_terminating):
            gang.succeeded.note(pod.uid, member.pod_set)
        else:
            member.was_stopped = member.has_succeeded
        text = pod.annotations.get(corral.SUCCEEDED, "")
        is_new = before is None or before.pod.annotations.get(corral.SUCCEEDED, "") != text
        if text and is_new:
            gang.succeeded.learn(text)
            self.gangs.owe_review(gang)

    def _follow(self, gang: Gang, before: Member | None, member: Member, now: float) -> None:
        """Change the gang's plan as a member's new record requires."""
        pod = member.pod
        if ungating.has_seen(gang, before, member):
            binding.progress(gang, now)
        if not ungating.allows(member, gang.plan.nodes.get(pod.uid)) and not gang.has_started:
            self.plans.lose(gang, f"pod {pod.name} is narrowed to other nodes", now)
        was_live = not pod.is_finished if before is None else before.is_live
        if pod.is_preempted and not member.is_live and was_live:
            self.disruptions.follow(gang, member, was_known=before is not None)
        is_lost = (pod.is_finished and not member.is_done) or self.replacements.is_stranded(member)
        if before is not None and is_lost and self._had_place(before):
            self.replacements.keep(gang, before, now)
        if member.is_done:
            self.replacements.end(gang, member)
        if pod.uid in gang.plan.nodes and not member.is_live:
            self._give_up_place(gang, member, now)
        elif self._is_elsewhere(gang, before, member):
            # Bound by a plan that is not ours: the other members have to follow it.
            self.roll_calls.review(gang, now)
            self.plans.lose(gang, f"pod {pod.name} was bound to another node", now)

    def _had_place(self, before: Member) -> bool:
        """Whether a member that is lost now used its node until then, and was not lost before.

        The kubelet says how a pod that is deleted has ended before the pod is gone.
        Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase
        """
        return not (before.pod.is_finished or self.replacements.is_stranded(before))

    def _is_elsewhere(self, gang: Gang, before: Member | None, member: Member) -> bool:
        """Whether a member runs now where our plan, its own or that of its pod set, is not."""
        pod = member.pod
        if pod.node and pod.uid in gang.plan.nodes:
            return gang.plan.nodes[pod.uid] != pod.node
        is_news = pod.node and (before is None or not before.pod.node)
        return bool(is_news) and any(
            not self.single_nodes.is_beside(
                gang, gang.member(uid), node, lambda: [(member, pod.node)]
            )
            for uid, node in gang.plan.nodes.items()
        )

    def _welcome(self, gang: Gang, member: Member, claim: Claim, now: float) -> None:
        """Take the roll call at once if this member may complete the gang, or makes it invalid."""
        pods = claim.said.pods
        if pods is None:
            spec = self.objects.spec(gang.key)
            pods = None if spec is None else spec.pods
        is_full = len(gang.members) == pods
        if is_full or (claim.flaw and not gang.membership.problem):
            self.roll_calls.review(gang, now)

    def forget(self, uid: str, now: float) -> None:
        """Forget a pod that a request told of and that does not exist."""
        gang = self.gangs.of_pod(uid)
        if gang is not None and gang.birth is not None and uid in gang.plan.nodes:
            self.replacements.give_back(gang, uid)
        self.drop(uid, now)

    def drop(self, uid: str, now: float) -> None:
        """Forget a pod that is gone."""
        gang = self.gangs.of_pod(uid)
        if gang is None:
            return
        member = self.gangs.drop(gang, uid)
        if gang.succeeded.drop(uid):
            self.notes.hurry(gang, now)
        if member.is_live:  # else it was seen to end
            self.disruptions.follow(gang, member, was_known=True)
        if not member.pod.is_finished:
            self.replacements.keep(gang, member, now)
        ungating.forget(gang, uid)
        requeue.forget(gang, uid)
        self.gangs.owe_review(gang)
        if uid in gang.plan.nodes:
            self._give_up_place(gang, member, now)
        elif not gang.members:
            self.roll_calls.review(gang, now)

    def _give_up_place(self, gang: Gang, member: Member, now: float) -> None:
        """End the reservation of a planned member that is gone, or will be.

        A gang that has not started may lose its whole plan with it. One that has keeps the rest, so
        that its roll call can wait: a thousand members deleted together would cost as many.
        """
        if gang.has_started and gang.members and not member.pod.node:
            sentence = messages.plan_lost(gang.key, "the pod has gone")
            self.plans.reservations.end(gang, member.pod.uid, sentence)
            self.gangs.owe_review(gang)
        else:
            self.roll_calls.review(gang, now)

    # -- objects of the vocabularies -----------------------------------------------------------

    def review(self, key: GangKey, now: float) -> None:
        """Have a gang's roll call taken, since its objects declare something else now."""
        self.roll_calls.review_soon(self.gangs.by_key[key], now)
        self.reports.note_object(key)
