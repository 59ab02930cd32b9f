"""The answer to /filter for members of gangs.

    its planned node is a candidate         Pinned to that node, once the watch shows no gates
    it has a planned node, no candidate     members that were not answered yet are planned again
    it has none, or is not known yet        Rejected, with the sentence of its gang

The sentence is remembered: when it does not hold any more, the pod is requeued.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from app.dialects import corral
from app.dialects.spec import Claim
from app.kube.core.objects import PodRecord
from app.state.answers.filtering.sampling import Sampling
from app.state.cache.books import Books
from app.state.cache.eligibility.node_refusals import Offer, Refusals
from app.state.claims.unseen import UnseenPods
from app.state.filter_result import Candidates, Failed, Pinned, Rejected
from app.state.gang.gang import Gang, Phase
from app.state.gang.gangs import Gangs
from app.state.gang.members.member import Member, member_of
from app.state.lifecycle.members import Members
from app.state.lifecycle.roll_call import RollCalls
from app.state.pods.arrivals import Arrivals
from app.state.queueing import requeue, ungating
from app.state.queueing.requeue import Requeues
from app.state.report.messages import gangs as messages
from app.state.report.reports import Reports
from app.state.report.sentences import not_joining
from app.state.reserve import binding, placeholders
from app.state.reserve.plans import Plans
from app.state.settings import EngineSettings

MOST_EARLY = 20_000  # pods rejected before the watch showed them


@dataclass(slots=True)
class Filtering:
    """Answers for members; `_early` has the sentences for pods the watch has not shown yet."""

    settings: EngineSettings
    books: Books
    refusals: Refusals
    arrivals: Arrivals
    gangs: Gangs
    plans: Plans
    roll_calls: RollCalls
    reports: Reports
    members: Members
    unseen: UnseenPods
    requeues: Requeues
    sampling: Sampling
    _early: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def answer(
        self, pod: PodRecord, claim: Claim | None, candidates: Candidates, now: float
    ) -> Pinned | Rejected | Failed:
        """Which of these nodes a pod of a gang may have.

        `claim`: what the request says of a pod that no gang has yet.
        """
        uid = pod.uid
        gang = self.gangs.of_pod(uid)
        if gang is None:
            assert claim is not None
            if not self._takes_place(pod, claim, now):
                return self._gathering(pod, self._reject_early(uid, claim))
            gang = self.gangs.by_key[claim.gang]
        member = gang.members[uid]
        if (member.pod.namespace, member.pod.name) != (pod.namespace, pod.name):
            return Rejected(messages.another_pod(pod.namespace, pod.name))
        if member.pod.gates and not pod.gates:  # it saw our patch before our watch
            _, allowed = corral.own_shape(pod)
            labels = corral.narrowed_labels(pod)
            is_known = labels == member.narrowed_by if labels else allowed in (None, member.allowed)
            if not is_known:
                ungating.narrow(gang, member, allowed, labels)
        self.plans.stop_waiting_for(gang, uid, now)
        answer = self._answer(gang, member, pod, candidates, now)
        if isinstance(answer, Pinned):
            requeue.forget(gang, uid)
            binding.answer(gang, uid, now)
        elif not _is_probe(pod, candidates):
            requeue.reject(gang, uid, answer.sentence)
            if uid not in gang.plan.nodes:
                self.requeues.withdraw(gang, pod)
        if isinstance(answer, Rejected) and gang.phase is Phase.GATHERING:
            return self._gathering(pod, answer)
        return answer

    def _gathering(self, pod: PodRecord, answer: Rejected) -> Rejected | Failed:
        """The answer for a pod whose gang is not complete: autoscalers read what becomes of it."""
        if self.settings.gathering_answer == "rejected" or pod.nominated_node:
            return answer  # a failed one would take away the node that others were evicted from
        return Failed(answer.sentence)

    def _answer(
        self, gang: Gang, member: Member, pod: PodRecord, candidates: Candidates, now: float
    ) -> Pinned | Rejected:
        uid = member.pod.uid
        if uid in gang.plan.nodes or gang.phase not in (Phase.GATHERING, Phase.WAITING):
            self.roll_calls.review_now(gang, now)  # a new pod may be in excess, or a replacement
        node = gang.plan.nodes.get(uid)
        if node is None:
            return Rejected(self._why_not(gang, member))
        if self.arrivals.is_behind(uid):
            return Rejected(messages.still_gated(pod.namespace, pod.name))
        if node in candidates:
            return Pinned(node)
        # Posted: another leader's attempt; ours is at the API server already.
        if uid in gang.binding.posted or _is_probe(pod, candidates):
            return Rejected(messages.planned_elsewhere(gang.key))
        is_sample = self.sampling.is_sample(len(candidates), pod.shape)
        if is_sample:
            if self.requeues.point(gang, pod):
                return Rejected(messages.planned_elsewhere(gang.key))
            if not self.requeues.nominating.nominates(gang):
                sentence = messages.sampled(gang.key, is_wanted=self.settings.nominate_planned)
                self.reports.report(gang, "NodesSampled", sentence)
                return Rejected(sentence)
        if self.requeues.nominating.is_held_up(gang, pod, self.gangs.by_key, now):
            return Rejected(messages.planned_elsewhere(gang.key))
        # Of a sample only that is known: it looked at the node first, and its filters refused it.
        offered = (
            frozenset(self.books.nodes) - {node} if is_sample else frozenset(candidates.names())
        )
        shaped = (member.pod.request, member.shape)
        offer = Offer(shaped, offered, member.allowed)
        self._remember_refusals(gang, member, offer, now)
        self.plans.replan(gang, member, offer, now)
        self.roll_calls.review_now(gang, now)  # else the same question would be answered otherwise
        again = gang.plan.nodes.get(uid)  # None: the gang does without this pod, or has no plan
        if again is not None and again in candidates:
            return Pinned(again)
        return Rejected(self._why_not(gang, member))

    def _remember_refusals(self, gang: Gang, member: Member, offer: Offer, now: float) -> None:
        """Leave nodes out of the next plan that are planned for this shape and no candidates."""
        longest = self.settings.refusal_seconds
        for uid, node in gang.plan.nodes.items():
            is_same = gang.member(uid).role == member.role and uid not in gang.binding.answered
            if is_same and offer.leaves_out(node):
                self.refusals.add(gang.key.namespace, offer.shaped, node, now, longest)

    def _why_not(self, gang: Gang, member: Member) -> str:
        if member.flaw and not gang.membership.problem:
            return messages.mistaken(gang.key, member.flaw)
        uid, membership = member.pod.uid, gang.membership
        for outside, is_excess in ((membership.excess, True), (membership.mismatched, False)):
            if any(each.pod.uid == uid for each in outside):
                return not_joining(gang, member, is_excess=is_excess)
        has_begun = membership.is_complete or membership.bound
        if has_begun and any(each.pod.uid == uid for each in membership.apart):
            return messages.part_gathering(gang.key, member.leaf)
        is_spared = gang.plan.nodes and not gang.is_short
        if is_spared and any(each.pod.uid == uid for each in gang.unplanned()):
            return messages.not_needed(gang.key)
        if membership.spec is None and membership.bound and not membership.is_unread:
            return self.reports.gathering(gang.key, None)  # its sentence is from before it started
        if not self.plans.planner.leads and membership.is_complete:
            return messages.taking_over(gang.key)
        return gang.reporting.sentence or self.reports.gathering(gang.key, member.said.pods)

    # -- pods the watch has not shown yet ------------------------------------------------------

    def _takes_place(self, pod: PodRecord, claim: Claim, now: float) -> bool:
        """Whether a place is held for this very pod: then what the request says of it is enough.

        It is bound only when the watch shows it, and is forgotten if that does not.
        """
        gang = self.gangs.by_key.get(claim.gang)
        if gang is None or gang.birth is None or pod.gates or pod.node:
            return False
        uid = placeholders.place_for(gang, member_of(pod, claim))
        if uid not in gang.plan.nodes or self.unseen.is_full:
            return False
        self.unseen.put(pod.uid, now)
        self.members.put(pod, claim, now, place=uid)
        return True

    def note_unready(self, uid: str, answer: Rejected) -> None:
        """Remember a rejection from before everything was known: it is requeued after that."""
        gang = self.gangs.of_pod(uid)
        if gang is not None:
            requeue.reject(gang, uid, answer.sentence)
        else:
            self._note_early(uid, answer.sentence)

    def _reject_early(self, uid: str, claim: Claim) -> Rejected:
        sentence = (
            messages.mistaken(claim.gang, claim.flaw)
            if claim.flaw
            else self.reports.gathering(claim.gang, claim.said.pods)
        )
        self._note_early(uid, sentence)
        return Rejected(sentence)

    def _note_early(self, uid: str, sentence: str) -> None:
        self._early[uid] = sentence
        if len(self._early) > MOST_EARLY:
            self._early.popitem(last=False)

    def forget_early(self, uid: str) -> str:
        """Forget the sentence for a pod that the watch had not shown; returns it, else ""."""
        return self._early.pop(uid, "")


def _is_probe(pod: PodRecord, candidates: Candidates) -> bool:
    """Whether the nominated node is the only candidate, which says nothing about other nodes."""
    return len(candidates) == 1 and pod.nominated_node in candidates
