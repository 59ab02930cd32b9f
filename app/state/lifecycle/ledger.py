"""What changes a gang: members come and go, plans are made and lost.

    put, drop ──▶ unreviewed ──roll call──▶ phase ──▶ plannable ──pass──▶ plan, held

Every method leaves the invariants of `gang/gang.py` intact and reports what follows. A roll call
sorts all members, so it is not taken on every event but when it can matter: at once when the last
declared member appears or a planned one goes, before a verb about the gang is answered if somebody
has come, gone or changed, and else on a tick. Of a large gang not on every tick: then its roll
calls would be all that we do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.dialects.spec import Claim, GangKey, GangSpec, Said
from app.kube.core.objects import ObjectRecord, PodRecord
from app.state.cache.node_refusals import Offer
from app.state.cache.objects import Objects
from app.state.gang.gang import PLANNABLE, Gang, Phase, phase_of
from app.state.gang.membership import Member, is_same_claim, member_of, membership_status
from app.state.lifecycle.replacements import Replacements
from app.state.lifecycle.reservations import Reservations
from app.state.plan.planner import Planner, in_order
from app.state.plan.verdict import NoPlan, Plan
from app.state.report import messages, ungating
from app.state.report.reports import Reports
from app.state.report.requeue import Requeues
from app.state.report.statuses import Statuses
from app.state.settings import EngineSettings

MOST_PLANS_PER_TICK = 200  # searches before the verbs are answered again
REST_SECONDS = 1e-4  # per member, between two roll calls of ticks: one takes 4e-6 …
LONG_REST_SECONDS = 1e-3  # … where no other member's place depends on it


@dataclass(slots=True)
class Ledger:
    """All gangs. `gang_of` and `gangs` agree on who is a member of what.

    `plannable` and `planned` are sets that keep their order. `unreviewed` are the gangs that are
    owed a roll call, and whether the verbs have to wait for it.
    """

    settings: EngineSettings
    objects: Objects
    planner: Planner
    reservations: Reservations
    replacements: Replacements
    requeues: Requeues
    reports: Reports
    statuses: Statuses
    gangs: dict[GangKey, Gang] = field(default_factory=dict)
    gang_of: dict[str, GangKey] = field(default_factory=dict)
    unreviewed: dict[GangKey, bool] = field(default_factory=dict)
    plannable: dict[GangKey, None] = field(default_factory=dict)
    planned: dict[GangKey, None] = field(default_factory=dict)
    _queue: list[GangKey] = field(default_factory=list)  # the rest of the pass under way
    _retry_at: float = math.inf  # when the first gang's back-off is over

    # -- members -------------------------------------------------------------------------------

    def put(
        self,
        pod: PodRecord,
        claim: Claim,
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
            self.reports.note_new(claim.gang, now)
        before = gang.members.get(pod.uid)
        member = gang.members[pod.uid] = member_of(pod, claim)
        self.gang_of[pod.uid] = claim.gang
        if pod.node and member.is_live:
            gang.running.add(pod.uid)
        else:
            gang.running.discard(pod.uid)
        if before is None or not is_same_claim(before, member):
            self.owe_review(gang)
        elif before.pod.node != pod.node:
            is_as_planned = gang.has_started and gang.plan.get(pod.uid) == pod.node
            self.owe_review(gang, is_pressing=not is_as_planned)
        elif before.pod.gates != pod.gates:  # those without come first where there are too many
            self.owe_review(gang, is_pressing=False)
        self._follow(gang, before, member, now)
        if before is None:
            if told or not (self.planner.is_ready or pod.node or pod.gates):
                gang.rejected[pod.uid] = told  # before our first list: perhaps told no by our past
            is_full = len(gang.members) == self._pods(gang, claim)
            if is_full or (claim.flaw and not gang.membership.problem):
                self.review(gang, now)

    def _follow(self, gang: Gang, before: Member | None, member: Member, now: float) -> None:
        """What follows for the gang's plan from how a member is now."""
        pod = member.pod
        if ungating.has_seen(gang, before, member):
            gang.moved_at = now
        if not ungating.allows(member, gang.plan.get(pod.uid)) and not gang.has_started:
            self.lose_plan(gang, f"pod {pod.name} is narrowed to other nodes", now)
        is_lost = (pod.is_finished and not member.is_done) or self.replacements.is_stranded(member)
        if before is not None and before.is_live and is_lost:
            self.replacements.keep(gang, before, now)
        if member.is_done:
            self.replacements.end(gang, member)
        if pod.uid in gang.plan and not member.is_live:
            self.review(gang, now)
        elif self._is_elsewhere(gang, before, member):
            # Bound by a plan that is not ours: the rest has to follow it, not our own.
            self.review(gang, now)
            self.lose_plan(gang, f"pod {pod.name} was bound to another node", now)

    def _is_elsewhere(self, gang: Gang, before: Member | None, member: Member) -> bool:
        """Whether a member runs now where our plan, its own or that of its pod set, is not."""
        pod = member.pod
        if pod.node and pod.uid in gang.plan:
            return gang.plan[pod.uid] != pod.node
        is_news = pod.node and (before is None or not before.pod.node)
        return bool(is_news) and any(
            not self.planner.is_beside(gang, gang.member(uid), node, lambda: [(member, pod.node)])
            for uid, node in gang.plan.items()
        )

    def drop(self, uid: str, now: float) -> None:
        """Forget a pod that is gone."""
        key = self.gang_of.pop(uid, None)
        if key is None:
            return
        gang = self.gangs[key]
        member = gang.members.pop(uid)
        gang.running.discard(uid)
        if not member.pod.is_finished:
            self.replacements.keep(gang, member, now)
        gang.ungating.pop(uid, None)
        gang.unnarrowed.discard(uid)
        gang.rejected.pop(uid, None)
        gang.misinformed.pop(uid, None)
        self.hear(gang, uid, now)
        self.owe_review(gang)
        if uid in gang.plan or not gang.members:
            self.review(gang, now)

    def hear(self, gang: Gang, uid: str, now: float) -> None:
        """kube-scheduler asks for a member, or it is gone: there is hope once all were heard of."""
        if uid in gang.unheard:
            gang.unheard.discard(uid)
            if not gang.unheard:
                gang.not_before = now
                self.reservations.wants_pass = True

    def put_object(self, record: ObjectRecord, now: float) -> None:
        """Learn what an object of a vocabulary declares now."""
        for key in self.objects.put(record):
            if key in self.gangs:
                self.review(self.gangs[key], now)
                self.statuses.note(key)

    def drop_object(self, uid: str) -> None:
        """Forget an object that is gone; its pods tell the rest."""
        for key in self.objects.drop(uid):
            if key in self.gangs:
                self.owe_review(self.gangs[key])

    def keys_of(self, uids: Iterable[str]) -> dict[GangKey, None]:
        """The gangs of these pods, in the order of the pods; ordinary ones have none."""
        return dict.fromkeys(self.gang_of[uid] for uid in uids if uid in self.gang_of)

    def _pods(self, gang: Gang, claim: Claim) -> int | None:
        """How many pods the gang has, as far as this newcomer or an object says."""
        if claim.said.pods is not None:
            return claim.said.pods
        spec = self._spec(gang.key, (), ())
        return None if spec is None else spec.pods

    def _spec(self, key: GangKey, said: Sequence[Said], ended: Sequence[Said]) -> GangSpec | None:
        return self.objects.dialects.spec(key, self.objects.of(key), said, ended)

    # -- the roll call and what follows from it ------------------------------------------------

    def owe_review(self, gang: Gang, *, is_pressing: bool = True) -> None:
        """Have the members sorted out again, before the next verb about them if that is pressing.

        What is not leaves every other member's place as it is.
        """
        self.unreviewed[gang.key] = is_pressing or self.unreviewed.get(gang.key, False)

    def review_all(self, now: float) -> None:
        """Take the roll calls that are owed, but those of large gangs that had one just now."""
        for key in list(self.unreviewed):
            gang = self.gangs.get(key)
            if gang is None:
                del self.unreviewed[key]
            elif self._is_rested(gang, now):
                try:
                    self.review(gang, now)
                except Exception as error:
                    self.planner.on_fault(f"roll call of gang {key}", error)

    def _is_rested(self, gang: Gang, now: float) -> bool:
        if len(gang.running) == len(gang.members):
            return True  # nobody is left to wait for
        rest = REST_SECONDS if self.unreviewed[gang.key] else LONG_REST_SECONDS
        return now >= gang.reviewed_at + rest * len(gang.members)

    def review_now(self, gang: Gang, now: float) -> None:
        """Take this gang's roll call if it is owed and pressing."""
        if self.unreviewed.get(gang.key):
            self.review(gang, now)

    def review(self, gang: Gang, now: float) -> None:
        """Sort the members out again, drop what of the plan no longer stands, move the phase."""
        self.unreviewed.pop(gang.key, None)
        if self.planner.is_ready:  # when that begins every gang is sorted out once more
            gang.reviewed_at = now
        gang.asked = None
        gang.membership = membership_status(
            gang.members.values(), lambda said, ended: self._spec(gang.key, said, ended)
        )
        self.replacements.review(gang, now)
        wanted = gang.may_be_planned()
        for uid in [uid for uid in gang.plan if uid not in wanted]:
            self.reservations.end(gang, uid, messages.plan_lost(gang.key, "the pod has gone"))
        if (
            gang.plan
            and not gang.has_started
            and (not gang.membership.is_complete or gang.unplanned())
        ):
            self.lose_plan(gang, "a member has gone", now)
        self.move(gang, now)
        if not gang.members:
            del self.gangs[gang.key]
            self.reports.forget(gang.key)
            return
        self.reports.roll_call(gang)
        if not self.planner.is_ready:
            return
        if gang.key in self.plannable and now >= gang.not_before:
            if self.reservations.wants_pass or self._queue:
                self.reservations.wants_pass = True
            else:
                self._plan(gang, now)
        elif gang.phase is Phase.RUNNING:
            self.replacements.hold_spares(gang, now)

    def move(self, gang: Gang, now: float) -> None:
        """Enter the phase that follows from what is known of the gang."""
        was, phase = gang.phase, phase_of(gang)
        if not gang.move_to(phase):
            return
        if was is Phase.GATHERING:
            gang.complete_at = now
        if phase is Phase.RUNNING:
            gang.plans_lost = 0
        self.reports.note_phase(gang, was, now)
        _keep(self.plannable, gang.key, phase in PLANNABLE)
        is_planned = phase in (Phase.PLACED, Phase.BINDING)
        _keep(self.planned, gang.key, is_planned or bool(gang.at_bind))

    # -- plans ---------------------------------------------------------------------------------

    def plan_waiting(self, now: float) -> None:
        """Try waiting gangs, in order; a long queue is continued on the next tick."""
        if not self.planner.is_ready:
            return
        if not self._queue and self.reservations.wants_pass:
            self.reservations.wants_pass = False
            self._queue = [gang.key for gang in in_order(self.gangs[key] for key in self.plannable)]
            self._queue += [key for key in self.replacements.expecting if key not in self.plannable]
            self._queue.reverse()
        for _ in range(min(len(self._queue), MOST_PLANS_PER_TICK)):
            gang = self.gangs.get(self._queue.pop())
            if gang is None:
                continue
            self.review_now(gang, now)
            if gang.key not in self.plannable:
                self.replacements.hold_spares(gang, now)
            elif now >= gang.not_before and not (
                # An equal gang found no place in this pass, and this one was told why lately.
                self.reports.knows_verdict(gang, now) and self.planner.is_unfit(gang)
            ):
                self._plan(gang, now)

    def replan(self, gang: Gang, member: Member, offer: Offer, now: float) -> bool:
        """Plan again what kube-scheduler has not been told yet, on the nodes it offers.

        Members already pinned keep their node. False: there is no place for the others, and unless
        the gang has started the whole plan is lost.
        """
        again = gang.plan.keys() - gang.posted - (gang.answered - {member.pod.uid})
        for uid in sorted(again):
            self.reservations.give_back(gang, uid, messages.planned_elsewhere(gang.key))
        if self._plan(gang, now, offer):
            return True
        self.lose_plan(gang, "kube-scheduler does not offer the planned nodes", now, on="")
        return False

    def lose_plan(
        self, gang: Gang, why: str, now: float, *, losses: int = 1, on: str | None = None
    ) -> None:
        """Give up what is not being bound yet: holds end, held /bind requests are refused.

        `losses`: for how many the back-off counts this one. `on`: the only node whose places a gang
        that has started gives up; the other members need no new ones.
        """
        sentence = messages.plan_lost(gang.key, why)
        is_whole = on is None or not gang.has_started
        for uid in [uid for uid in gang.plan if uid not in gang.posted]:
            if is_whole or gang.plan[uid] == on:
                self.reservations.end(gang, uid, sentence)
        self.reports.plan_lost(gang, sentence)
        self._back_off(gang, now, losses)
        self.move(gang, now)
        self.reservations.capacity_grew()

    def _back_off(self, gang: Gang, now: float, losses: int = 1) -> None:
        gang.plans_lost = min(gang.plans_lost + losses, 16)
        backoff = self.settings.retry_seconds * 2.0 ** (gang.plans_lost - 1)
        gang.not_before = now + min(backoff, self.settings.retry_seconds_most)
        self._retry_at = min(self._retry_at, gang.not_before)

    def _plan(self, gang: Gang, now: float, offer: Offer | None = None) -> bool:
        """Search nodes for the unplanned members and hold them; False if there are none."""
        self.planner.books.refresh()
        found = self.planner.plan(gang, offer)
        if isinstance(found, NoPlan) and found.is_fault:
            self._back_off(gang, now)
        elif isinstance(found, NoPlan) and gang.has_started:
            # A pod that is there does not wait for the place of one that is not.
            present = tuple(each for each in gang.unplanned() if each.pod.uid in gang.members)
            if 0 < len(present) < len(gang.unplanned()):
                found = self.planner.plan(gang, offer, present)
            if isinstance(found, NoPlan) and len(present) > 1 and not gang.has_parts:
                self._plan_singly(gang, present, offer, now)
        if isinstance(found, NoPlan):
            self.reports.no_place(gang, found, now)
            return False
        self._use(gang, found, now)
        self.replacements.hold_spares(gang, now)
        return True

    def _plan_singly(
        self, gang: Gang, members: tuple[Member, ...], offer: Offer | None, now: float
    ) -> None:
        """Of a gang that runs, whoever finds a place need not wait for the others."""
        for member in members:
            found = self.planner.plan(gang, offer, (member,))
            if isinstance(found, Plan):
                self._use(gang, found, now)

    def _use(self, gang: Gang, found: Plan, now: float) -> None:
        """Hold a plan, tell those it is for, and have kube-scheduler ask for them."""
        self.reservations.hold(gang, found, now)
        self.move(gang, now)
        self.reports.placed(gang, found.fallback)
        self.requeues.call(gang, now)

    # -- time ----------------------------------------------------------------------------------

    def expire(self, now: float) -> None:
        """End places kept long enough, report what is due, try again whose back-off is over."""
        for key in [key for key in self.replacements.expecting if key in self.gangs]:
            if any(place.until <= now for place in self.gangs[key].placeholders.values()):
                self.review(self.gangs[key], now)
        self.reports.report_due(self.gangs, now)
        if now >= self._retry_at:
            later = (self.gangs[key].not_before for key in self.plannable)
            self._retry_at = min((at for at in later if at > now), default=math.inf)
            self.reservations.wants_pass = True


def _keep(keys: dict[GangKey, None], key: GangKey, wanted: bool) -> None:
    if wanted:
        keys[key] = None
    else:
        keys.pop(key, None)
