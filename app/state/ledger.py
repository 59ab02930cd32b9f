"""What changes a gang: members come and go, plans are made, held, lost and bound.

Every method leaves the invariants of `gangs.py` intact and appends to `out` what the cluster must
be told. A roll call sorts all members, so it is not taken on every event but when it can matter:
at once when the last declared member appears or a planned one goes, else on the next tick.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from app import dialects
from app.dialects import corral
from app.dialects.membership import Declared, GangKey, Membership, Mistake
from app.kube.objects import JobRecord, PodRecord
from app.state import absent, gates, sentences
from app.state.cluster import Cluster, is_open
from app.state.effects import (
    Bind,
    Delete,
    Effect,
    Evict,
    ObjectRef,
    Refuse,
    Report,
    UngateFailed,
    Wake,
)
from app.state.eligibility import may_stay
from app.state.gangs import Gang, Member, Phase, member_of, phase_of, roll_call
from app.state.planner import NoPlan, Offer, Plan, Planner, in_order
from app.state.settings import SENTENCE_SECONDS, EngineSettings

MOST_PLANS_PER_TICK = 200  # searches before the verbs are answered again
MOST_CORRECTED_PER_TICK = 4  # wakes only to say something else: 40 a second of the 200 there are
EVICT_AGAIN_SECONDS = 60.0  # a disruption budget may allow later what it refuses now
SETTLE_SECONDS = 1.0  # nodes that fail together are told of one after the other
PUSH_SECONDS = 1.0  # between two looks for gates that are still there
PLANNABLE = (Phase.WAITING, Phase.REPAIRING)


@dataclass(slots=True)
class Ledger:
    """All gangs. `gang_of` and `gangs` agree on who is a member of what."""

    settings: EngineSettings
    cluster: Cluster
    planner: Planner
    gangs: dict[GangKey, Gang] = field(default_factory=dict)
    gang_of: dict[str, GangKey] = field(default_factory=dict)
    jobs: dict[str, JobRecord] = field(default_factory=dict)
    jobs_of: dict[GangKey, dict[str, JobRecord]] = field(default_factory=dict)
    out: list[Effect] = field(default_factory=list)
    is_planning: bool = False  # false until every list is in: no plan from half a picture
    unreviewed: dict[GangKey, None] = field(default_factory=dict)  # a set that keeps its order
    plannable: dict[GangKey, None] = field(default_factory=dict)
    planned: dict[GangKey, None] = field(default_factory=dict)
    expecting: dict[GangKey, None] = field(default_factory=dict)  # gangs with places kept
    gathering: dict[GangKey, float] = field(default_factory=dict)  # since when, until reported
    unsaid: dict[GangKey, float] = field(default_factory=dict)  # verdicts, and when to report them
    misinformed: dict[GangKey, None] = field(default_factory=dict)  # gangs with such members
    freed_nodes: dict[str, None] = field(default_factory=dict)  # where holds ended since last tick
    _queue: list[GangKey] = field(default_factory=list)  # the rest of the pass under way
    _wants_pass: bool = False
    _retry_at: float = math.inf  # when the first gang's back-off is over

    # -- members -------------------------------------------------------------------------------

    def put(
        self,
        pod: PodRecord,
        claim: Membership | Mistake,
        now: float,
        *,
        told: str = "",
    ) -> None:
        """Add a member or replace what is known of it.

        `told`: what /filter answered where kube-scheduler asked before the watch showed the pod.
        """
        known_in = self.gang_of.get(pod.uid)
        if known_in is not None and known_in != claim.gang:
            self.drop(pod.uid, now)
        gang = self.gangs.get(claim.gang)
        if gang is None:
            gang = self.gangs[claim.gang] = Gang(claim.gang)
            self.gathering[claim.gang] = now
        before = gang.members.get(pod.uid)
        member = gang.members[pod.uid] = member_of(pod, claim)
        if gates.has_seen(gang, before, member):
            gang.moved_at = now
        if not gates.allows(member, gang.plan.get(pod.uid)) and not gang.has_started:
            self.lose_plan(gang, f"pod {pod.name} is narrowed to other nodes", now)
        is_lost = (pod.is_finished and not member.is_done) or self._is_stranded(member)
        if before is not None and before.is_live and is_lost:
            self._keep_place(gang, before, now)
        self.gang_of[pod.uid] = claim.gang
        self.unreviewed[claim.gang] = None
        if pod.uid in gang.plan and not member.is_live:
            self.review(gang, now)
        elif pod.node and gang.plan.get(pod.uid, pod.node) != pod.node:
            # Bound by a plan that is not ours: the rest has to follow it, not our own.
            self.review(gang, now)
            self.lose_plan(gang, f"pod {pod.name} was bound to another node", now)
        if before is None:
            if told or not (self.is_planning or pod.node or pod.gates):
                gang.rejected[pod.uid] = told  # before our first list: perhaps told no by our past
            declared = self._declared(gang, claim)
            is_full = declared is not None and len(gang.members) == declared.members
            if is_full or (isinstance(claim, Mistake) and not gang.roll.problem):
                self.review(gang, now)

    def drop(self, uid: str, now: float) -> None:
        """Forget a pod that is gone."""
        key = self.gang_of.pop(uid, None)
        if key is None:
            return
        gang = self.gangs[key]
        member = gang.members.pop(uid)
        if not member.pod.is_finished:
            self._keep_place(gang, member, now)
        gang.ungating.pop(uid, None)
        gang.unnarrowed.discard(uid)
        gang.rejected.pop(uid, None)
        gang.misinformed.pop(uid, None)
        self.unreviewed[key] = None
        if uid in gang.plan or not gang.members:
            self.review(gang, now)

    def _keep_place(self, gang: Gang, lost: Member, now: float) -> None:
        """A member is lost while others run: hold its node for whoever replaces it."""
        others = [
            member
            for uid, member in gang.members.items()
            if uid != lost.pod.uid and member.is_live and member.pod.node
        ]
        if not (lost.pod.node and others and self.is_planning and self.settings.owed_seconds):
            return
        until = now + self.settings.owed_seconds
        for place in gang.absent.values():
            if place.instead_of == lost.pod.uid:
                place.until = until  # its node had failed before: there is another one for it
                return
        uid = absent.keep_place(gang, lost, until)
        self.expecting[gang.key] = None
        member = gang.absent[uid].member
        spot = self.planner.place(member, lost.pod.node)
        beside = [each.pod.node for each in others if each.pod_set == lost.pod_set]
        may_stay = self.planner.may_have(member, lost.pod.node) and self.planner.is_beside(
            member, lost.pod.node, beside
        )
        if spot is not None and may_stay:
            self._hold(gang, Plan({uid: lost.pod.node}, {uid: spot[0]}, {uid: spot[1]}), now)
        else:
            absent.use_spare(gang, uid)

    def _is_stranded(self, member: Member) -> bool:
        """Whether a member ends on a node that would not take it again."""
        if not (member.pod.is_terminating and self.settings.replace_failed_nodes):
            return False
        node = self.cluster.nodes.get(member.pod.node)
        return node is None or not is_open(node) or not may_stay(node, member.shape)

    def lose_ending(self, node: str, now: float) -> None:
        """A node takes no pods any more: what ends there is lost already, and may never be gone."""
        for uid in self.cluster.bound_on.get(node, {}):
            gang = self.gangs[self.gang_of[uid]] if uid in self.gang_of else None
            if gang is not None and self._is_stranded(gang.members[uid]):
                self._keep_place(gang, gang.members[uid], now)
                self.unreviewed[gang.key] = None

    def lose_node(self, node: str, now: float) -> None:
        """A node has failed under members that the API server still shows: look for another."""
        for gang in self._gangs_on(node):
            for member in gang.roll.bound:
                known = any(each.instead_of == member.pod.uid for each in gang.absent.values())
                if member.pod.node == node and not known and len(gang.roll.bound) > 1:
                    absent.use_spare(gang, absent.keep_place(gang, member, math.inf))
            self.review(gang, now)

    def return_node(self, node: str, now: float) -> None:
        """A failed node is back: who still runs there is not lost."""
        for gang in self._gangs_on(node):
            for uid, place in list(gang.absent.items()):
                lost = gang.members.get(place.instead_of)
                if lost is not None and lost.is_live and lost.pod.node == node:
                    del gang.absent[uid]
            self.review(gang, now)

    def _gangs_on(self, node: str) -> list[Gang]:
        """The gangs of which a member runs on a node."""
        uids = self.cluster.bound_on.get(node, {})
        keys = dict.fromkeys(self.gang_of[uid] for uid in uids if uid in self.gang_of)
        for key in keys:
            if key in self.unreviewed:
                self.review(self.gangs[key], self.gangs[key].moved_at)
        return [self.gangs[key] for key in keys if key in self.gangs]

    def heal(self, others: Collection[str], now: float) -> None:
        """Bring plans and holds together again; `others` are held for pods of no gang."""
        for gang in list(self.gangs.values()):
            wrong = [
                uid
                for uid, node in gang.plan.items()
                if (booking := self.cluster.held.get(uid) or self.cluster.bound.get(uid)) is None
                or booking.node != node
            ]
            if wrong:
                self.lose_plan(gang, "the books were wrong", now)
        owned = {uid for gang in self.gangs.values() for uid in gang.plan}
        for uid in [uid for uid in self.cluster.held if uid not in owned and uid not in others]:
            self.cluster.release(uid)
        for gang in list(self.gangs.values()):
            self.review(gang, now)
        self.capacity_grew()

    def put_job(self, job: JobRecord, now: float) -> None:
        """Learn what a Job declares now."""
        self.jobs[job.uid] = job
        for key in dialects.keys_of(job):
            self.jobs_of.setdefault(key, {})[job.uid] = job
            if key in self.gangs:
                self.review(self.gangs[key], now)

    def drop_job(self, uid: str) -> None:
        """Forget a Job that is gone; its pods tell the rest."""
        job = self.jobs.pop(uid, None)
        for key in dialects.keys_of(job) if job else ():
            owners = self.jobs_of[key]
            del owners[uid]
            if key in self.gangs:
                self.unreviewed[key] = None
            if not owners:
                del self.jobs_of[key]

    def _declared(self, gang: Gang, claim: Membership | Mistake) -> Declared | None:
        if isinstance(claim, Membership) and claim.declared:
            return claim.declared
        return self._from_job(gang)

    def _from_job(self, gang: Gang) -> Declared | None:
        return dialects.declared_by(gang.key, self.jobs_of.get(gang.key, {}).values())

    # -- the roll call and what follows from it ------------------------------------------------

    def review_all(self, now: float) -> None:
        """Take every roll call that is owed."""
        for key in list(self.unreviewed):
            if key in self.gangs:
                self.review(self.gangs[key], now)
        self.unreviewed.clear()

    def review_now(self, gang: Gang, now: float) -> None:
        """Take this gang's roll call if it is owed."""
        if gang.key in self.unreviewed:
            self.review(gang, now)

    def review(self, gang: Gang, now: float) -> None:
        """Sort the members out again, drop what of the plan no longer stands, move the phase."""
        self.unreviewed.pop(gang.key, None)
        gang.asked = None
        gang.roll = roll_call(gang.members.values(), self._from_job(gang))
        self._review_places(gang, now)
        wanted = {member.pod.uid for member in gang.roll.unbound} | gang.absent.keys()
        for uid in [uid for uid in gang.plan if uid not in wanted]:
            self._end_plan_of(gang, uid, sentences.plan_lost(gang.key, "the pod has gone"))
        if gang.plan and not gang.has_started and (not gang.roll.is_complete or gang.unplanned()):
            self.lose_plan(gang, "a member has gone", now)
        if not gang.members:
            self._move(gang, Phase.DONE, now)
            del self.gangs[gang.key]
            self.gathering.pop(gang.key, None)
            return
        self._move(gang, phase_of(gang), now)
        self._tell_gathering(gang)
        if self.is_planning and gang.key in self.plannable and now >= gang.not_before:
            if self._wants_pass or self._queue:
                self._wants_pass = True
            else:
                self._plan(gang, now)
        elif self.is_planning and gang.phase is Phase.RUNNING:
            self._place_spares(gang, now)

    def _review_places(self, gang: Gang, now: float) -> None:
        """Newcomers take the places that were kept; the rest follows from the roll call."""
        if not gang.has_started:  # nobody is left whom a replacement would join
            absent.forget_lost(gang)
        taken = [
            member.pod.uid
            for member in gang.roll.unbound
            if gang.absent and member.pod.uid not in gang.plan and self._take_place(gang, member)
        ]
        absent.review(gang, now)
        _keep(self.expecting, gang.key, bool(gang.absent))
        if taken:
            gang.moved_at = gang.woken_at = now
            self.wake(gang)
            self.out.extend(gates.ungate(gang, self.settings, now))

    def _take_place(self, gang: Gang, member: Member) -> bool:
        """Give a kept place to a member that has joined; True if it came with a node."""
        uid = absent.place_for(gang, member)
        node = gang.plan.get(uid, "")
        if not uid or not gates.allows(member, node or None):
            return False
        del gang.absent[uid]
        if not node:
            return False
        plan = Plan(
            {member.pod.uid: node},
            {member.pod.uid: gang.domains[uid]},
            {member.pod.uid: gang.spots[uid]},
        )
        self.cluster.release(uid)
        gang.forget_plan_of(uid)
        self._hold(gang, plan, now=gang.moved_at)
        return True

    def _move(self, gang: Gang, phase: Phase, now: float) -> None:
        was = gang.phase
        if not gang.move_to(phase):
            return
        if was is Phase.GATHERING:
            gang.complete_at = now
            self.gathering.pop(gang.key, None)
        if phase is Phase.RUNNING:
            gang.plans_lost = 0
        if phase is Phase.GATHERING:
            self.gathering[gang.key] = now
        _keep(self.plannable, gang.key, phase in PLANNABLE)
        _keep(self.planned, gang.key, phase in (Phase.PLACED, Phase.BINDING))

    def _tell_gathering(self, gang: Gang) -> None:
        roll = gang.roll
        if roll.problem:
            gang.sentence = sentences.mistaken(gang.key, roll.problem)
            self.tell(gang, "GangMistaken", gang.sentence)
            self._note_misinformed(gang, gang.members.values(), gang.sentence)
        elif gang.phase is Phase.GATHERING:
            gang.sentence = sentences.gathering(gang.key, roll.declared)
            gang.sentence_at, gang.told = None, ""
            self._note_misinformed(gang, roll.unbound, gang.sentence)
        for member in gang.members.values() if not roll.problem else ():
            if member.mistake and member.is_live and not member.pod.node:
                self._tell_pod(gang, member.pod, member.mistake)
        for member in (*roll.excess, *roll.strays):
            sentence = not_joining(gang, member)
            is_first = self._tell_pod(gang, member.pod, sentence)
            self._note_misinformed(gang, (member,), sentence)
            if is_first and self.settings.delete_excess_pods and member in roll.excess:
                pod = member.pod
                self.out.append(Delete(pod.namespace, pod.name, pod.uid, sentence))

    # -- plans ---------------------------------------------------------------------------------

    def capacity_grew(self) -> None:
        """Something may fit now that did not before."""
        self.planner.begin_pass()
        self._wants_pass = True

    def plan_waiting(self, now: float) -> None:
        """Try waiting gangs, in order; a long queue is continued on the next tick."""
        if not self.is_planning:
            return
        if not self._queue and self._wants_pass:
            self._wants_pass = False
            self._queue = [gang.key for gang in in_order(self.gangs[key] for key in self.plannable)]
            self._queue += [key for key in self.expecting if key not in self.plannable]
            self._queue.reverse()
        for _ in range(min(len(self._queue), MOST_PLANS_PER_TICK)):
            gang = self.gangs.get(self._queue.pop())
            if gang is None:
                continue
            if gang.key not in self.plannable:
                self._place_spares(gang, now)
            elif now >= gang.not_before and not self._is_known_unfit(gang, now):
                self._plan(gang, now)

    def _is_known_unfit(self, gang: Gang, now: float) -> bool:
        """Whether an equal gang found no place in this pass, and this one was told why lately."""
        return (
            gang.sentence_at is not None
            and now < gang.sentence_at + SENTENCE_SECONDS
            and self.planner.is_unfit(gang)
        )

    def _plan(self, gang: Gang, now: float, offer: Offer | None = None) -> bool:
        """Search nodes for the unplanned members and hold them; False if there are none."""
        self.cluster.refresh()
        found = self.planner.plan(gang, offer)
        if isinstance(found, NoPlan) and gang.has_started:
            # A pod that is there does not wait for the place of one that is not.
            present = tuple(each for each in gang.unplanned() if each.pod.uid in gang.members)
            if 0 < len(present) < len(gang.unplanned()):
                found = self.planner.plan(gang, offer, present)
            if isinstance(found, NoPlan) and len(present) > 1 and not gang.has_parts:
                self._plan_singly(gang, present, offer, now)
        if isinstance(found, NoPlan):
            self._tell_no_place(gang, found, now)
            return False
        self._hold(gang, found, now)
        self._planned(gang, found, now)
        self._place_spares(gang, now)
        return True

    def _plan_singly(
        self, gang: Gang, members: tuple[Member, ...], offer: Offer | None, now: float
    ) -> None:
        """Of a gang that runs, whoever finds a place need not wait for the others."""
        for member in members:
            found = self.planner.plan(gang, offer, (member,))
            if isinstance(found, Plan):
                self._hold(gang, found, now)
                self._planned(gang, found, now)

    def _planned(self, gang: Gang, found: Plan, now: float) -> None:
        """A plan is held: tell those it is for, and have kube-scheduler ask for them."""
        self._move(gang, phase_of(gang), now)
        if gang.told:
            self.tell(gang, "GangPlaced", sentences.placed(gang.key, len(gang.plan)), warn=False)
            gang.told = ""
        for pod_set, why in found.fallback:
            self.tell_once(gang, "RanksNotUsed", sentences.ranks_not_used(gang.key, pod_set, why))
        gang.sentence, gang.sentence_at = sentences.planned_elsewhere(gang.key), None
        gang.woken_at = now
        self.wake(gang)
        self.out.extend(gates.ungate(gang, self.settings, now))

    def _place_spares(self, gang: Gang, now: float) -> None:
        """Hold what spare places there is room for; nobody hears of those there is none for."""
        self.cluster.refresh()
        for member in absent.spares(gang) if not gang.unplanned() else ():
            found = self.planner.plan(gang, None, (member,))
            if isinstance(found, NoPlan):
                return
            self._hold(gang, found, now)

    def _hold(self, gang: Gang, plan: Plan, now: float) -> None:
        gang.asked = None
        for uid, node in plan.nodes.items():
            self.cluster.hold(uid, node, self.cluster.vector(gang.member(uid).pod.request))
        gang.plan.update(plan.nodes)
        gang.domains.update(plan.domains)
        gang.spots.update(plan.spots)
        gang.moved_at = now

    def _tell_no_place(self, gang: Gang, verdict: NoPlan, now: float) -> None:
        kind = f"{len(gang.unplanned()) if gang.roll.bound else ''} {verdict.kind}"
        # The numbers in a verdict follow the cluster; a text that changed would wake every member.
        is_known = gang.sentence_at is not None and kind == gang.verdict
        if not is_known or gang.sentence_at is None or now >= gang.sentence_at + SENTENCE_SECONDS:
            gang.sentence = self._verdict(gang, verdict)
            gang.sentence_at = now
        if not is_known:  # other numbers are no news, another verdict is
            self._note_misinformed(gang, gang.roll.unbound, gang.sentence)
            gang.verdict = kind
            self.unsaid[gang.key] = now + (SETTLE_SECONDS if gang.roll.bound else 0.0)
        self._say_verdict(gang, now)
        if self.settings.fail_fast and gang.roll.bound and not verdict.is_mistake:
            self._give_up(gang, verdict.sentence, now)

    def _say_verdict(self, gang: Gang, now: float) -> None:
        """Report the last verdict; on a gang that runs only when no more members are being lost."""
        if now < self.unsaid.get(gang.key, math.inf):
            return
        del self.unsaid[gang.key]
        if gang.phase in PLANNABLE:
            is_mistake = gang.sentence.startswith(sentences.mistaken(gang.key, ""))
            self.tell(gang, "GangMistaken" if is_mistake else "GangNotPlaced", gang.sentence)

    def _give_up(self, gang: Gang, why: str, now: float) -> None:
        """Have what runs of a gang evicted, so that its owner can start it again as a whole."""
        if now < gang.given_up_at + EVICT_AGAIN_SECONDS:
            return
        gang.given_up_at = now
        sentence = sentences.given_up(gang.key, why)
        self.tell(gang, "GangEvicted", sentence)
        for member in gang.roll.bound:
            pod = member.pod
            self.out.append(Evict(pod.namespace, pod.name, pod.uid, sentence))

    def _verdict(self, gang: Gang, verdict: NoPlan) -> str:
        if verdict.is_mistake:
            return sentences.mistaken(gang.key, verdict.sentence)
        if gang.roll.bound:
            missing = len(gang.unplanned())
            return sentences.not_repaired(gang.key, missing, verdict.sentence)
        return sentences.no_place(gang.key, verdict.sentence)

    def lose_plan(self, gang: Gang, why: str, now: float) -> None:
        """Give up what is not being bound yet: holds end, held /bind requests are refused."""
        sentence = sentences.plan_lost(gang.key, why)
        for uid in [uid for uid in gang.plan if uid not in gang.posted]:
            self._end_plan_of(gang, uid, sentence)
        gang.bind_deadline = None
        gang.sentence, gang.sentence_at = sentence, None
        backoff = self.settings.retry_seconds * 2.0**gang.plans_lost
        gang.not_before = now + min(backoff, self.settings.retry_seconds_most)
        gang.plans_lost = min(gang.plans_lost + 1, 16)
        self._retry_at = min(self._retry_at, gang.not_before)
        self._move(gang, phase_of(gang), now)
        self.capacity_grew()

    def _end_plan_of(self, gang: Gang, uid: str, sentence: str) -> None:
        if uid in gang.arrived:
            self.out.append(Refuse(uid, sentence))
        booking = self.cluster.release(uid)
        if booking is not None:
            self.freed_nodes[booking.node] = None
            self.capacity_grew()
        gang.forget_plan_of(uid)

    # -- the two verbs that concern a member ---------------------------------------------------

    def replan(self, gang: Gang, member: Member, offer: Offer, now: float) -> bool:
        """Plan again what kube-scheduler has not been told yet, on the nodes it offers.

        Members already pinned keep their node. False: the whole plan is lost.
        """
        again = gang.plan.keys() - gang.posted - (gang.answered - {member.pod.uid})
        for uid in sorted(again):
            if self.cluster.release(uid) is not None:
                self.freed_nodes[gang.plan[uid]] = None
            gang.forget_plan_of(uid)
        if self._plan(gang, now, offer):
            return True
        self.lose_plan(gang, "kube-scheduler does not offer the planned nodes", now)
        return False

    def arrive(self, gang: Gang, uid: str, now: float) -> None:
        """A planned member is at /bind; the last one opens the way for all."""
        gang.moved_at = now
        if uid not in gang.posted:
            gang.arrived.add(uid)
        if uid in gang.posted:
            self.out.append(self._bind_effect(gang, uid))
        elif gang.has_started or (len(gang.arrived) == gang.awaited and not gang.unplanned()):
            for ready in sorted(gang.arrived):
                self.out.append(self._bind_effect(gang, ready))
            gang.asked = None
            gang.posted |= gang.arrived
            gang.arrived.clear()
            gang.bind_deadline = None
            self._move(gang, phase_of(gang), now)
        elif gang.bind_deadline is None:
            gang.bind_deadline = now + self.settings.gang_bind_seconds

    def bind_failed(self, gang: Gang, uid: str, *, is_gone: bool, now: float) -> None:
        """A member's binding did not happen: its slot stays owed, unless the pod is gone."""
        gang.asked = None
        gang.posted.discard(uid)
        gang.answered.discard(uid)
        node = gang.plan.get(uid, "")
        record = self.cluster.nodes.get(node)
        is_lost = record is None or not is_open(record) or self.cluster.is_overcommitted(node)
        if uid in gang.plan and (is_gone or is_lost):
            self._end_plan_of(gang, uid, "")
        self.review(gang, now)

    def _bind_effect(self, gang: Gang, uid: str) -> Bind:
        pod = gang.members[uid].pod
        annotations = ((corral.GANG, str(gang.key)), (corral.DOMAIN, gang.domains[uid]))
        return Bind(pod.namespace, pod.name, uid, gang.plan[uid], annotations)

    # -- deadlines -----------------------------------------------------------------------------

    def expire(self, now: float) -> None:
        """End barriers and holds that took too long; wake members that may have missed a call."""
        for key in list(self.planned):
            gang = self.gangs[key]
            if gang.bind_deadline is not None and now >= gang.bind_deadline:
                self.lose_plan(gang, "not every member reached its binding in time", now)
            elif not gang.has_started and now >= gang.moved_at + self.settings.hold_seconds:
                self.lose_plan(gang, "kube-scheduler did not ask for every member in time", now)
            else:
                self._push(gang, now)
        for key in [key for key in self.expecting if key in self.gangs]:
            if any(place.until <= now for place in self.gangs[key].absent.values()):
                self.review(self.gangs[key], now)
        self._tell_incomplete(now)
        for key in list(self.unsaid):
            if key in self.gangs:
                self._say_verdict(self.gangs[key], now)
            else:
                del self.unsaid[key]
        if now >= self._retry_at:
            later = (self.gangs[key].not_before for key in self.plannable)
            self._retry_at = min((at for at in later if at > now), default=math.inf)
            self._wants_pass = True

    def _push(self, gang: Gang, now: float) -> None:
        """Wake and ungate again where a call or a patch may have been missed."""
        if gang.rejected and now >= gang.woken_at + self.settings.rewake_seconds:
            gang.woken_at = now
            self.wake(gang)
        if now >= gang.pushed_at + PUSH_SECONDS:
            gang.pushed_at = now
            self.out.extend(gates.ungate(gang, self.settings, now))

    def ungate_failed(self, gang: Gang, uid: str, failure: UngateFailed, now: float) -> None:
        """A gate was not taken off: soon again, in another way if this one is forbidden."""
        if failure.is_gone:
            if not gang.has_started:
                self.lose_plan(gang, "a member has gone", now)
            elif uid in gang.plan:
                self._end_plan_of(gang, uid, "")
                self.review(gang, now)
            return
        gates.has_failed(gang, uid, is_forbidden=failure.is_forbidden)
        if failure.is_forbidden:
            self.out.extend(gates.ungate(gang, self.settings, now))

    def refuse_arrived(self, sentence: str) -> None:
        """Answer every held /bind with an error; the plans stay."""
        for key in self.planned:
            gang = self.gangs[key]
            self.out.extend(Refuse(uid, sentence) for uid in sorted(gang.arrived))
            gang.arrived.clear()
            gang.bind_deadline = None

    # -- telling -------------------------------------------------------------------------------

    def wake(self, gang: Gang) -> None:
        """Have kube-scheduler look again at rejected members that have a node now."""
        for uid in sorted(gang.rejected.keys() & gang.plan.keys()):
            self._wake(gang.members[uid].pod)

    def wake_misinformed(self) -> None:
        """Have kube-scheduler ask again for members that were told what holds no longer.

        Their owner would read it for as long as nothing else happens in the cluster.
        """
        budget = MOST_CORRECTED_PER_TICK
        for key in list(self.misinformed):
            gang = self.gangs.get(key)
            while budget and gang is not None and gang.misinformed:
                pod = gang.members[gang.misinformed.popitem()[0]].pod
                if pod.uid not in gang.plan and not pod.node:
                    self._wake(pod)
                    budget -= 1
            if not budget:
                return
            del self.misinformed[key]

    def _wake(self, pod: PodRecord) -> None:
        self.out.append(Wake(pod.namespace, pod.name, pod.uid))

    def _note_misinformed(self, gang: Gang, members: Iterable[Member], sentence: str) -> None:
        for member in members:
            uid = member.pod.uid
            if gang.rejected.get(uid, "") not in ("", sentence):
                gang.misinformed[uid] = None
                self.misinformed[gang.key] = None

    def _tell_incomplete(self, now: float) -> None:
        """Report gangs whose members are still missing after a while."""
        for key, since in list(self.gathering.items()):
            if now < since + self.settings.gather_seconds:
                return  # in the order of time
            del self.gathering[key]
            roll = self.gangs[key].roll
            if roll.declared is not None and not roll.problem and not roll.bound:
                members = sum(member.is_ready for member in roll.joining)
                sentence = sentences.incomplete(key, members, roll.declared)
                self.tell(self.gangs[key], "GangIncomplete", sentence)

    def tell(self, gang: Gang, reason: str, sentence: str, *, warn: bool = True) -> None:
        """Report about the gang to its owner, once per sentence."""
        if gang.told == sentence or not gang.members:
            return
        gang.told = sentence
        pod = min((member.pod for member in gang.members.values()), key=lambda pod: pod.name)
        self.out.append(Report(owner_of(pod), reason, sentence, is_warning=warn))

    def tell_once(self, gang: Gang, reason: str, sentence: str) -> None:
        """Report what is worth knowing and keeps nobody waiting, once in the gang's life."""
        if reason not in gang.told_once:
            gang.told_once.add(reason)
            pod = min((member.pod for member in gang.members.values()), key=lambda pod: pod.name)
            self.out.append(Report(owner_of(pod), reason, sentence, is_warning=True))

    def _tell_pod(self, gang: Gang, pod: PodRecord, sentence: str) -> bool:
        """Report about one pod, once; True if this is the time."""
        if pod.uid in gang.told_pods:
            return False
        gang.told_pods.add(pod.uid)
        self.out.append(Report(_itself(pod), "PodNotInGang", sentence, is_warning=True))
        return True


def not_joining(gang: Gang, member: Member) -> str:
    """Why a live member is not part of its gang."""
    roll = gang.roll
    assert roll.declared is not None  # nobody is in excess of nothing
    if roll.is_over:
        return sentences.over(gang.key, member.pod)
    if member in roll.strays and member.declared is not None:
        return sentences.stray(gang.key, member.pod, member.declared, roll.declared)
    return sentences.in_excess(gang.key, member.pod, roll.declared)


def owner_of(pod: PodRecord) -> ObjectRef:
    """Whom to tell about a pod's gang: its controller, or the pod where it has none."""
    owner = pod.owner
    if owner is None:
        return _itself(pod)
    return ObjectRef(owner.api_version, owner.kind, pod.namespace, owner.name, owner.uid)


def _itself(pod: PodRecord) -> ObjectRef:
    return ObjectRef("v1", "Pod", pod.namespace, pod.name, pod.uid)


def _keep(keys: dict[GangKey, None], key: GangKey, wanted: bool) -> None:
    if wanted:
        keys[key] = None
    else:
        keys.pop(key, None)
