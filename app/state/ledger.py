"""What changes a gang: members come and go, plans are made, held, lost and bound.

Every method leaves the invariants of `gangs.py` intact and appends to `out` what the cluster must
be told. A roll call sorts all members, so it is not taken on every event but when it can matter:
at once when the last declared member appears or a planned one goes, else on the next tick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from app import dialects
from app.dialects import corral
from app.dialects.membership import Declared, GangKey, Membership, Mistake
from app.kube.objects import JobRecord, PodRecord
from app.state import sentences
from app.state.cluster import Cluster
from app.state.effects import Bind, Effect, ObjectRef, Refuse, Report, Wake
from app.state.gangs import Gang, Member, Phase, member_of, phase_of, roll_call
from app.state.planner import NoPlan, Offer, Plan, Planner, in_order
from app.state.settings import SENTENCE_SECONDS, EngineSettings

MOST_PLANS_PER_TICK = 200  # searches before the verbs are answered again
MOST_CORRECTED_PER_TICK = 4  # wakes only to say something else: 40 a second of the 200 there are
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
    misinformed: dict[GangKey, None] = field(default_factory=dict)  # gangs with such members
    freed_nodes: dict[str, None] = field(default_factory=dict)  # where holds ended since last tick
    _queue: list[GangKey] = field(default_factory=list)  # the rest of the pass under way
    _wants_pass: bool = False
    _retry_at: float = math.inf  # when the first gang's back-off is over

    # -- members -------------------------------------------------------------------------------

    def put(
        self, pod: PodRecord, claim: Membership | Mistake, now: float, *, told: str = ""
    ) -> None:
        """Add a member or replace what is known of it.

        `told`: what /filter answered where kube-scheduler asked before the watch showed the pod.
        """
        known_in = self.gang_of.get(pod.uid)
        if known_in is not None and known_in != claim.gang:
            self.drop(pod.uid, now)
        gang = self.gangs.setdefault(claim.gang, Gang(claim.gang))
        is_added = pod.uid not in gang.members
        gang.members[pod.uid] = member_of(pod, claim)
        self.gang_of[pod.uid] = claim.gang
        self.unreviewed[claim.gang] = None
        if is_added:
            if told or (not self.is_planning and not pod.node):
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
        del gang.members[uid]
        gang.rejected.pop(uid, None)
        gang.misinformed.pop(uid, None)
        self.unreviewed[key] = None
        if gang.plan or not gang.members:
            self.review(gang, now)

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
        gang.roll = roll_call(gang.members.values(), self._from_job(gang))
        unbound = {member.pod.uid for member in gang.roll.unbound}
        for uid in [uid for uid in gang.plan if uid not in unbound]:
            self._end_plan_of(gang, uid, sentences.plan_lost(gang.key, "the pod has gone"))
        if gang.plan and not gang.has_started and not gang.roll.is_complete:
            self.lose_plan(gang, "a member has gone", now)
        if not gang.members:
            self._move(gang, Phase.DONE, now)
            del self.gangs[gang.key]
            return
        self._move(gang, phase_of(gang), now)
        self._tell_gathering(gang)
        if self.is_planning and gang.key in self.plannable and now >= gang.not_before:
            if self._wants_pass or self._queue:
                self._wants_pass = True
            else:
                self._plan(gang, now)

    def _move(self, gang: Gang, phase: Phase, now: float) -> None:
        was = gang.phase
        if not gang.move_to(phase):
            return
        if was is Phase.GATHERING:
            gang.complete_at = now
        if phase is Phase.RUNNING:
            gang.plans_lost = 0
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
        for member in roll.excess:
            assert roll.declared is not None  # nobody is in excess of nothing
            sentence = sentences.in_excess(gang.key, member.pod, roll.declared)
            self._tell_pod(gang, member.pod, sentence)
            self._note_misinformed(gang, (member,), sentence)

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
            self._queue.reverse()
        for _ in range(min(len(self._queue), MOST_PLANS_PER_TICK)):
            gang = self.gangs.get(self._queue.pop())
            if gang is None or gang.key not in self.plannable:
                continue
            if now >= gang.not_before:
                self._plan(gang, now)

    def _plan(self, gang: Gang, now: float, offer: Offer | None = None) -> bool:
        """Search nodes for the unplanned members and hold them; False if there are none."""
        self.cluster.refresh()
        found = self.planner.plan(gang, offer)
        if isinstance(found, NoPlan):
            self._tell_no_place(gang, found, now)
            return False
        self._hold(gang, found, now)
        self._move(gang, phase_of(gang), now)
        if gang.told:
            self.tell(gang, "GangPlaced", sentences.placed(gang.key, len(gang.plan)), warn=False)
            gang.told = ""
        gang.sentence, gang.sentence_at = sentences.planned_elsewhere(gang.key), None
        gang.woken_at = now
        self.wake(gang)
        return True

    def _hold(self, gang: Gang, plan: Plan, now: float) -> None:
        for uid, node in plan.nodes.items():
            self.cluster.hold(uid, node, self.cluster.vector(gang.members[uid].pod.request))
        gang.plan.update(plan.nodes)
        gang.domains.update(plan.domains)
        gang.moved_at = now

    def _tell_no_place(self, gang: Gang, verdict: NoPlan, now: float) -> None:
        tell = sentences.mistaken if verdict.is_mistake else sentences.no_place
        sentence = tell(gang.key, verdict.sentence)
        # The numbers in a verdict follow the cluster; a text that changed would wake every member.
        if gang.sentence_at is not None and now < gang.sentence_at + SENTENCE_SECONDS:
            sentence = gang.sentence
        else:
            if gang.sentence_at is None:  # other numbers are no news, another verdict is
                self._note_misinformed(gang, gang.roll.unbound, sentence)
            gang.sentence_at = now
        gang.sentence = sentence
        self.tell(gang, "GangMistaken" if verdict.is_mistake else "GangNotPlaced", sentence)

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
        for uid in [uid for uid in gang.plan if uid not in gang.answered or uid == member.pod.uid]:
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
        elif gang.has_started or (len(gang.arrived) == len(gang.plan) and not gang.unplanned()):
            for ready in sorted(gang.arrived):
                self.out.append(self._bind_effect(gang, ready))
            gang.posted |= gang.arrived
            gang.arrived.clear()
            gang.bind_deadline = None
            self._move(gang, phase_of(gang), now)
        elif gang.bind_deadline is None:
            gang.bind_deadline = now + self.settings.gang_bind_seconds

    def bind_failed(self, gang: Gang, uid: str, *, is_gone: bool, now: float) -> None:
        """A member's binding did not happen: its slot stays owed, unless the pod is gone."""
        gang.posted.discard(uid)
        gang.answered.discard(uid)
        if is_gone:
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
            elif gang.rejected and now >= gang.woken_at + self.settings.rewake_seconds:
                gang.woken_at = now
                self.wake(gang)
        if now >= self._retry_at:
            later = (self.gangs[key].not_before for key in self.plannable)
            self._retry_at = min((at for at in later if at > now), default=math.inf)
            self._wants_pass = True

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

    def tell(self, gang: Gang, reason: str, sentence: str, *, warn: bool = True) -> None:
        """Report about the gang to its owner, once per sentence."""
        if gang.told == sentence or not gang.members:
            return
        gang.told = sentence
        pod = min((member.pod for member in gang.members.values()), key=lambda pod: pod.name)
        self.out.append(Report(owner_of(pod), reason, sentence, is_warning=warn))

    def _tell_pod(self, gang: Gang, pod: PodRecord, sentence: str) -> None:
        if pod.uid not in gang.told_pods:
            gang.told_pods.add(pod.uid)
            self.out.append(Report(_itself(pod), "PodNotInGang", sentence, is_warning=True))


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
