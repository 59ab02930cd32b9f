"""Plans are made and lost, and the gang's phase follows.

    a search finds nodes   their capacity is held, and the members are requeued or ungated
    it finds none          the verdict is reported
    a plan is lost         its capacity is freed, held /bind requests are refused, a back-off begins

Nothing here decides when to search: that is `lifecycle/` and `answers/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from app.state.autoscaling.marks import Marks
from app.state.cache.eligibility.node_refusals import Offer, Shaped
from app.state.fairness.absent_pods import AbsentPods
from app.state.fairness.starvation import Starvation
from app.state.gang.gang import Gang, Phase
from app.state.gang.gangs import Gangs
from app.state.gang.members.member import Member
from app.state.plan.elsewhere.search_on import SearchesOn
from app.state.plan.planner import Planner
from app.state.plan.single_nodes import SingleNodes
from app.state.plan.verdict import CLAIMS_NOT_COUNTED, NOTHING_FOR_PARTS, NoPlan, Plan
from app.state.queueing import ungating
from app.state.queueing.requeue import Requeues
from app.state.report.evictions import Evictions
from app.state.report.messages import gangs as messages
from app.state.report.naming import Naming
from app.state.report.reports import Reports
from app.state.report.starts import Starts
from app.state.reserve import binding, placeholders
from app.state.reserve.reservations import Reservations
from app.state.settings import EngineSettings
from app.state.turns.budget import POD
from app.state.turns.queue import Queue

AWAIT_SECONDS = 300.0  # kube-scheduler itself tries every pod that often, whatever happens
LOOK_SECONDS = 30.0  # between two looks whether a gang that awaits members has a place at all
MOST_IN_VAIN = 64  # kinds of pods that are searched for one alone: there are more of narrowed ones
MOST_YIELDING = 32  # places of pods that do not exist, per search: each takes up to 0.15 ms


@dataclass(frozen=True, slots=True)
class Plans:
    """Searches for gangs, and what their outcomes change."""

    settings: EngineSettings
    gangs: Gangs
    planner: Planner
    searches_on: SearchesOn
    single_nodes: SingleNodes
    queue: Queue
    reservations: Reservations
    absent_pods: AbsentPods
    starvation: Starvation
    requeues: Requeues
    reports: Reports
    evictions: Evictions
    marks: Marks
    naming: Naming
    starts: Starts

    def move(self, gang: Gang, now: float) -> None:
        """Enter the phase that follows from what is known of the gang."""
        was = self.gangs.move(gang, now)
        if was is None:
            return
        if gang.phase is Phase.RUNNING:
            self.queue.reset(gang)
        self.reports.note_phase(gang, was, now)
        self.starts.note_phase(gang, was, now)
        self.marks.note_change(gang)

    # -- made ----------------------------------------------------------------------------------

    def make(self, gang: Gang, now: float, offer: Offer | None = None) -> bool:
        """Search nodes for the unplanned members and reserve them; False if there are none.

        Nor is there any before it is known which bindings by a plan that was given up succeed: the
        others belong beside those, and not beside those that fail; nor where another Corral leads.
        """
        if gang.binding.outdated or not (self.planner.leads or gang.is_settled):
            return False
        if self._owe_placeholders(gang):
            return False
        self.planner.refresh()
        if gang.binding.awaits_members(now):
            self._look(gang, now)
            return False
        absent = placeholders.to_come(gang)
        self.queue.budget.spend(gang.key.namespace, POD * len(absent))
        refusal = self.absent_pods.refusal(gang, absent)
        found = NoPlan(refusal) if refusal is not None else self._planned(gang, offer)
        if isinstance(found, Plan):
            self.use(gang, found, now)
        elif found.is_fault or found.is_put_off:
            self.queue.back_off(gang, now)
        elif gang.has_started and not self._waits_for(gang, found):
            found = self._make_without_absent(gang, now, offer, found)
        if isinstance(found, NoPlan):
            if found.is_pending and gang.reporting.waits_for_room:
                return False  # the last verdict stands until there is another one
            if not found.is_pending:
                self.starts.note_decision(gang, now, is_plan=False)
            self._report_none(gang, found, now)
            return False
        if gang.is_plannable and gang.elastic_spec is not None:
            self.queue.want_turn(gang)  # the rest may have places farther from those that run
        self.hold_spares(gang, now)
        return True

    def _planned(
        self, gang: Gang, offer: Offer | None, members: tuple[Member, ...] | None = None
    ) -> Plan | NoPlan:
        """The answer of a search, which goes on elsewhere if it takes long and /filter waits not.

        It is asked for again by the same call, so the gang has its turn then.
        """
        return self.planner.plan(gang, offer, members, may_go_on=offer is None)

    def _waits_for(self, gang: Gang, found: NoPlan) -> bool:
        """Whether what is found out elsewhere is awaited before anything less is searched for."""
        return found.is_pending and not self.searches_on.has_answer(gang.key)

    def _owe_placeholders(self, gang: Gang) -> bool:
        """Have a roll call taken where more placeholders may be made than at the last one."""
        is_cut = placeholders.is_cut(gang, self.absent_pods.most_for(gang))
        if is_cut:
            self.gangs.owe_review(gang)
        return is_cut

    def _make_without_absent(
        self, gang: Gang, now: float, offer: Offer | None, found: Plan | NoPlan
    ) -> Plan | NoPlan:
        """Search again for the pods that exist, then with the places of the others as well.

        Pods in slices take no such place: it may be that of the rest of their slice.
        """
        present = _present(gang)
        if present and (gang.absent.too_many or len(present) < len(gang.unplanned())):
            found = self._planned(gang, offer, present)
            if isinstance(found, NoPlan) and found.is_pending:
                return found
        if isinstance(found, Plan):
            self.use(gang, found, now)
            return found
        self._make_each(gang, now, offer)
        absent = placeholders.planned(gang)[-MOST_YIELDING:]
        present = _present(gang)
        if not (absent and present) or any(member.slices for member in present):
            return found
        with self.reservations.yielding(gang, absent):
            again = self.planner.plan(gang, offer, present, has_more_room=True)
            if isinstance(again, Plan):
                self.use(gang, again, now)
                found = again
            else:
                self._make_each(gang, now, offer, has_more_room=True)
        self.move(gang, now)
        return found

    def _make_each(
        self, gang: Gang, now: float, offer: Offer | None, *, has_more_room: bool = False
    ) -> None:
        """Search for as many pods as fit, the first ones first, if the gang has no parts.

        Half as many as before where these do not fit together, and twice as many where they do; of
        a kind no more once one alone fits not. A gang that may run without some of its pods has
        been searched a place for any of them.
        """
        present = _present(gang)
        if len(present) < 2 or gang.has_parts or gang.elastic_spec is not None:
            return
        waiting, most, in_vain = self._with_room(gang, present), (len(present) + 1) // 2, 0
        while waiting and in_vain < MOST_IN_VAIN:
            some = waiting[:most]
            found = self.planner.plan(gang, offer, tuple(some), has_more_room=has_more_room)
            if isinstance(found, Plan):
                self.use(gang, found, now)
                waiting, most = waiting[most:], 2 * most
            elif len(some) > 1:
                most = len(some) // 2
            else:
                waiting = [each for each in waiting if _kind(each) != _kind(some[0])]
                in_vain += 1

    def _with_room(self, gang: Gang, members: Iterable[Member]) -> list[Member]:
        """Those that one node at least takes of those that they were narrowed to."""
        takes: dict[Shaped, Mapping[str, int]] = {}
        found = list[Member]()
        for each in members:
            if each.allowed is not None:
                shaped = (each.pod.request, each.shape)
                if shaped not in takes:
                    takes[shaped] = self.planner.pods_by_node(gang, shaped)
                if takes[shaped].keys().isdisjoint(each.allowed):
                    continue
            found.append(each)
        return found

    def _with_holder(self, gang: Gang, found: NoPlan) -> NoPlan:
        """The verdict, with notes on what is held for pods that do not exist, and kept for none."""
        if not found.is_about_cluster:
            return found
        notes = (
            found.note,
            self._in_the_way(gang),
            self.starvation.why_none(gang.key),
            NOTHING_FOR_PARTS if self.planner.serving.is_in_parts(gang) else "",
        )
        return replace(found, note="; ".join(filter(None, notes)))

    def _in_the_way(self, gang: Gang) -> str:
        """For whose absent pods most places are held that the gang could use, as a sentence."""
        found = self.absent_pods.in_the_way(gang)
        if found is None:
            return ""
        key, pods = found
        return messages.places_held(self.naming.of(key, gang.key.namespace), pods)

    def use(self, gang: Gang, found: Plan, now: float) -> None:
        """Reserve a plan, report it, and have kube-scheduler look at its pods."""
        self.reservations.hold(gang, found, now)
        self.move(gang, now)
        self.starts.note_decision(gang, now, is_plan=True)
        self.reports.placed(gang, found.fallback)
        if self.settings.marker_resource:
            self._widen(gang)
        self.requeues.call(gang, now)

    def _widen(self, gang: Gang) -> None:
        """Have members narrowed to domains beside theirs, too.

        Ordinary pods do not ask for the nodes that are held: they may take one, and the rest of the
        domain may be another gang's by then.
        """
        gated = (each for each in gang.planned() if each.is_gated and each.constraint.required)
        if (member := next(gated, None)) is not None:
            node, room = gang.plan.nodes[member.pod.uid], self.settings.narrow_nodes
            ungating.widen(gang, self.single_nodes.beside(gang, member, node, room))

    def make_in_turn(self, gang: Gang, now: float) -> None:
        """Search for a waiting gang whose back-off is over, in the next pass if others wait."""
        if not self.planner.is_ready:
            return
        if gang.is_plannable:
            if not self.queue.is_due(gang, now):
                self.queue.await_end(gang)
            elif self.queue.is_busy(gang.key.namespace):
                self.queue.want_turn(gang)
            else:
                self.make(gang, now)
        elif gang.phase is Phase.RUNNING:
            self.hold_spares(gang, now)

    def hold_spares(self, gang: Gang, now: float) -> None:
        """Reserve a node for each spare placeholder that fits; those that do not are no problem.

        None for a gang that ends as a whole.
        """
        if gang.ending:
            return
        if self._owe_placeholders(gang):
            return
        if gang.unplanned() or gang.binding.outdated:
            return
        self.planner.refresh()
        for member in placeholders.spares(gang):
            if self.queue.budget.is_spent:
                self.queue.want_turn(gang)
                return
            if self.absent_pods.refusal(gang, (member.pod.uid,)) is not None:
                return
            found = self.planner.plan(gang, None, (member,))
            if isinstance(found, NoPlan):
                return
            self.reservations.hold(gang, found, now)

    # -- made again ----------------------------------------------------------------------------

    def replan(self, gang: Gang, member: Member, offer: Offer, now: float) -> None:
        """Plan again, on the nodes offered, the members whose node /filter has not answered with.

        Members that /filter answered with a node keep it. Where the others have no place, and the
        gang needs one of them and has not started, the whole plan is lost.
        """
        again = (
            gang.plan.nodes.keys()
            - gang.binding.posted
            - (gang.binding.answered - {member.pod.uid})
        )
        for uid in sorted(again):
            self.reservations.give_back(gang, uid, messages.planned_elsewhere(gang.key))
        if not self.make(gang, now, offer) and (gang.has_started or gang.is_short):
            self.lose(gang, "kube-scheduler does not offer the planned nodes", now, on="")
        elif self._end_parts(gang):
            self.move(gang, now)

    def wait_for(self, gang: Gang, uids: set[str], now: float) -> None:
        """Plan the gang again only when all these members have come to /filter, or after a time.

        The wait ends earlier if the gang starts, or needs none of those it still awaits.
        """
        binding.wait_for(gang, uids, now + AWAIT_SECONDS)
        self._look_later(gang, now)

    def _look(self, gang: Gang, now: float) -> None:
        """Find out whether a gang that awaits members has a place at all; none is held for it.

        Others may have taken it meanwhile: then kube-scheduler cannot bring pods that are narrowed
        to its nodes, and the verdict says what they wait for.
        """
        self._look_later(gang, now)
        found = self.planner.plan(gang, None)
        if isinstance(found, Plan):
            if gang.reporting.sentence_at is not None:
                self.reports.plan_lost(
                    gang, messages.plan_lost(gang.key, self.why_stuck(gang)), now
                )
        elif not (found.is_fault or found.is_put_off or found.is_pending):
            self._report_none(gang, found, now)

    def _report_none(self, gang: Gang, found: NoPlan, now: float) -> None:
        verdict = self._with_holder(gang, found)
        self.reports.no_place(gang, verdict, now)
        self.evictions.review(gang, verdict, now)
        self.marks.note_verdict(gang, found, now)

    def _look_later(self, gang: Gang, now: float) -> None:
        self.queue.put_off(gang, min(gang.binding.awaited_until, now + LOOK_SECONDS))

    def stop_waiting_for(self, gang: Gang, uid: str, now: float) -> None:
        """Note that a member has come to /filter."""
        if binding.stop_waiting_for(gang, (uid,)):
            self.queue.resume(gang, now)

    def review_wait(self, gang: Gang, now: float) -> None:
        """Stop waiting for members that the gang does not need, or that others would wait for.

        They are gone, bound or in excess, or the gang has started since: kube-scheduler may have
        asked another Corral about those that run. Of a gang that runs each of the others is placed
        without the rest.
        """
        awaited, is_rest = gang.binding.awaited, gang.binding.awaits_rest
        if not awaited:
            return
        unbound = {member.pod.uid for member in gang.membership.unbound}
        if gang.has_started:
            is_over = not (is_rest and unbound <= awaited)
        else:
            is_over = not gang.needs(awaited)
        needless = awaited if is_over else awaited - unbound
        if binding.stop_waiting_for(gang, frozenset(needless)):
            self.queue.resume(gang, now)

    # -- lost ----------------------------------------------------------------------------------

    def why_stuck(self, gang: Gang) -> str:
        """Why a plan is given up whose pods kube-scheduler does not ask about."""
        why = "kube-scheduler did not bring every member in time"
        return f"{why}; {CLAIMS_NOT_COUNTED}" if self.planner.has_claims(gang) else why

    def lose_rest(self, gang: Gang, uids: Iterable[str], now: float) -> None:
        """Give up the places of these members, which the rest of the gang runs without."""
        sentence = messages.plan_lost(gang.key, self.why_stuck(gang))
        for uid in uids:
            self.reservations.end(gang, uid, sentence)
        self._end_parts(gang)
        self.reports.plan_lost(gang, sentence, now)
        self.queue.back_off(gang, now)
        self.move(gang, now)

    def lose(
        self, gang: Gang, why: str, now: float, *, losses: int = 1, on: str | None = None
    ) -> None:
        """Give up what is not being bound yet: reservations end, held /bind requests are refused.

        `losses`: how many losses the back-off counts this one for. `on`: the only node whose
        reservations a gang that has started gives up; its other members need no new nodes. Its
        spares are given up as well, as they are placed after the members that need a node now, and
        so are members whose part of the gang cannot start as a whole without those.
        None: all are given up; that of a member that is being bound ends if its binding fails.
        """
        sentence = messages.plan_lost(gang.key, why)
        is_whole = on is None or not gang.has_started
        for uid in [uid for uid in gang.plan.nodes if uid not in gang.binding.posted]:
            if is_whole or gang.plan.nodes[uid] == on or placeholders.is_spare(gang, uid):
                self.reservations.end(gang, uid, sentence)
        if on is None:
            binding.outdate(gang)
        is_part_lost = self._end_parts(gang)
        self.reports.plan_lost(gang, sentence, now)
        self.queue.back_off(gang, now, losses)
        if is_part_lost:  # its other places were good: no other gang gets them first
            self.queue.resume(gang, now)
        self.move(gang, now)
        self.reservations.capacity_grew()

    def drop_outdated(self, gang: Gang, now: float) -> None:
        """Give up what no longer stands after a roll call, and enter the phase that follows."""
        wanted = gang.may_be_planned()
        for uid in [uid for uid in gang.plan.nodes if uid not in wanted]:
            self.reservations.end(gang, uid, messages.plan_lost(gang.key, "the pod has gone"))
        if gang.plan.nodes and not (gang.has_started or gang.absent.is_between):
            if not gang.membership.is_complete or gang.is_short:
                self.lose(gang, "a member has gone", now)
            elif gang.absent.too_many:
                self.lose(gang, "places may not be held for all pods that have yet to come", now)
        self._end_parts(gang)
        self.move(gang, now)

    def _end_parts(self, gang: Gang) -> bool:
        """Give up places of members whose part of the gang cannot start as a whole.

        True if there were any.
        """
        uids = gang.planned_in_part()
        for uid in uids:
            why = "not all pods that it starts together with have a place"
            self.reservations.end(gang, uid, messages.plan_lost(gang.key, why))
        return bool(uids)


def _kind(member: Member) -> tuple[object, ...]:
    """Equal for members that the same nodes serve."""
    return (member.role, member.constraint, member.allowed, member.narrowed_by)


def _present(gang: Gang) -> tuple[Member, ...]:
    """The pods that exist and have no node, but could get one now."""
    return tuple(each for each in gang.unplanned() if each.pod.uid in gang.members)
