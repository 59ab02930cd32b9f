"""The answer to /filter for members of gangs.

    it has a node, which is offered       Pinned to that node
    it has one that is not offered        what kube-scheduler was not told yet is planned again
    it has none, or is not known yet      Rejected, with the sentence its gang is told now

What a member was told is remembered: once it holds no longer, the pod is woken.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from app.dialects import corral
from app.dialects.spec import Claim
from app.kube.core.objects import PodRecord
from app.state.cache.books import Books
from app.state.cache.node_refusals import Offer, Refusals
from app.state.filter_result import Candidates, Pinned, Rejected
from app.state.gang.gang import Gang, Phase
from app.state.gang.gangs import Gangs
from app.state.gang.membership import Member
from app.state.lifecycle import binding
from app.state.lifecycle.plans import Plans
from app.state.lifecycle.roll_call import RollCalls
from app.state.report import messages, requeue, ungating
from app.state.report.reports import Reports, not_joining
from app.state.settings import EngineSettings

MOST_EARLY = 20_000  # pods rejected before the watch showed them
SAMPLED_FROM = 100  # nodes below which kube-scheduler never samples


@dataclass(slots=True)
class Filtering:
    """What members are told, also those the watch has not shown yet."""

    settings: EngineSettings
    books: Books
    refusals: Refusals
    gangs: Gangs
    plans: Plans
    roll_calls: RollCalls
    reports: Reports
    _early: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def answer(
        self, pod: PodRecord, claim: Claim, candidates: Candidates, now: float
    ) -> Pinned | Rejected:
        """Which of these nodes a pod may have that claims to belong to a gang."""
        uid = pod.uid
        gang = self.gangs.by_key.get(self.gangs.key_of.get(uid, claim.gang))
        if gang is None or uid not in gang.members:
            return self._reject_early(uid, claim)
        member = gang.members[uid]
        _, allowed = corral.own_shape(pod)
        if allowed is not None and member.allowed != allowed:
            ungating.narrow(gang, member, allowed)  # kube-scheduler saw our patch before our watch
        self.plans.hear(gang, uid, now)
        answer = self._answer(gang, member, pod, candidates, now)
        if isinstance(answer, Pinned):
            requeue.forget(gang, uid)
            binding.answer(gang, uid, now)
        elif not _is_probe(pod, candidates):
            requeue.reject(gang, uid, answer.sentence)
        return answer

    def _answer(
        self, gang: Gang, member: Member, pod: PodRecord, candidates: Candidates, now: float
    ) -> Pinned | Rejected:
        uid = member.pod.uid
        if uid in gang.plan.nodes or gang.phase not in (Phase.GATHERING, Phase.WAITING):
            self.roll_calls.review_now(gang, now)  # also of a newcomer: in excess, or a replacement
        node = gang.plan.nodes.get(uid)
        if node is None:
            return Rejected(_why_not(gang, member))
        if node in candidates:
            return Pinned(node)
        # Posted: another leader's attempt; ours is at the API server already.
        if uid in gang.binding.posted or _is_probe(pod, candidates):
            return Rejected(messages.planned_elsewhere(gang.key))
        if self._is_sample(len(candidates)):
            sentence = messages.sampled(gang.key)
            self.reports.report(gang, "NodesSampled", sentence)
            return Rejected(sentence)
        shaped = (member.pod.request, member.shape)
        offer = Offer(shaped, frozenset(candidates.names()), member.allowed)
        self._remember_refusals(gang, member, offer, now)
        if self.plans.replan(gang, member, offer, now) and gang.plan.nodes[uid] in candidates:
            return Pinned(gang.plan.nodes[uid])
        return Rejected(_why_not(gang, member))

    def _remember_refusals(self, gang: Gang, member: Member, offer: Offer, now: float) -> None:
        """Nodes planned for this shape, still unasked for, that kube-scheduler does not offer."""
        longest = self.settings.refusal_seconds
        for uid, node in gang.plan.nodes.items():
            is_same = gang.member(uid).role == member.role and uid not in gang.binding.answered
            if is_same and offer.leaves_out(node):
                self.refusals.add(offer.shaped, node, now, longest)

    def _is_sample(self, offered: int) -> bool:
        nodes = len(self.books.nodes)
        wanted = self.settings.percentage_of_nodes_to_score or max(50 - nodes // 125, 5)
        sample = max(nodes * wanted // 100, SAMPLED_FROM)
        return nodes >= SAMPLED_FROM and offered == sample < nodes

    # -- pods the watch has not shown yet ------------------------------------------------------

    def _reject_early(self, uid: str, claim: Claim) -> Rejected:
        sentence = (
            messages.mistaken(claim.gang, claim.flaw)
            if claim.flaw
            else messages.gathering(claim.gang, claim.said.pods)
        )
        self._early[uid] = sentence
        if len(self._early) > MOST_EARLY:
            self._early.popitem(last=False)
        return Rejected(sentence)

    def forget_early(self, uid: str) -> str:
        """Forget what a pod was told before the watch showed it; returns it, "" if nothing."""
        return self._early.pop(uid, "")


def _why_not(gang: Gang, member: Member) -> str:
    if member.flaw and not gang.membership.problem:
        return messages.mistaken(gang.key, member.flaw)
    uid, membership = member.pod.uid, gang.membership
    for outside, is_excess in ((membership.excess, True), (membership.mismatched, False)):
        if any(each.pod.uid == uid for each in outside):
            return not_joining(gang, member, is_excess=is_excess)
    return gang.reporting.sentence or messages.gathering(gang.key, member.said.pods)


def _is_probe(pod: PodRecord, candidates: Candidates) -> bool:
    """Whether only the nominated node is asked about, which says nothing about others."""
    return len(candidates) == 1 and pod.nominated_node in candidates
