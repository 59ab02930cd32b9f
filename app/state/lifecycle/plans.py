"""Plans are made and lost, and the gang's phase follows.

    a search finds nodes   their capacity is held, and the members are requeued or ungated
    it finds none          the verdict is reported
    a plan is lost         its capacity is freed, held /bind requests are refused, a back-off begins

Nothing here decides when to search: that is `roll_call.py`, `passes.py` and `filtering.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.state.cache.node_refusals import Offer
from app.state.gang.gang import Gang, Phase
from app.state.gang.gangs import Gangs
from app.state.gang.membership import Member
from app.state.lifecycle import binding, placeholders
from app.state.lifecycle.reservations import Reservations
from app.state.plan.planner import Planner
from app.state.plan.queue import Queue
from app.state.plan.verdict import NoPlan, Plan
from app.state.report import messages
from app.state.report.reports import Reports
from app.state.report.requeue import Requeues


@dataclass(frozen=True, slots=True)
class Plans:
    """Searches for gangs, and what their outcomes change."""

    gangs: Gangs
    planner: Planner
    queue: Queue
    reservations: Reservations
    requeues: Requeues
    reports: Reports

    def move(self, gang: Gang, now: float) -> None:
        """Enter the phase that follows from what is known of the gang."""
        was = self.gangs.move(gang, now)
        if was is None:
            return
        if gang.phase is Phase.RUNNING:
            self.queue.reset(gang)
        self.reports.note_phase(gang, was, now)

    # -- made ----------------------------------------------------------------------------------

    def make(self, gang: Gang, now: float, offer: Offer | None = None) -> bool:
        """Search nodes for the unplanned members and reserve them; False if there are none."""
        self.planner.refresh()
        found = self.planner.plan(gang, offer)
        if isinstance(found, NoPlan) and found.is_fault:
            self.queue.back_off(gang, now)
        elif isinstance(found, NoPlan) and gang.has_started:
            found = self._make_without_absent(gang, now, offer, found)
        if isinstance(found, NoPlan):
            self.reports.no_place(gang, found, now)
            return False
        self._use(gang, found, now)
        self.hold_spares(gang, now)
        return True

    def _make_without_absent(
        self, gang: Gang, now: float, offer: Offer | None, found: Plan | NoPlan
    ) -> Plan | NoPlan:
        """Search again without placeholders, then for each pod alone if the gang has no parts."""
        present = tuple(each for each in gang.unplanned() if each.pod.uid in gang.members)
        if 0 < len(present) < len(gang.unplanned()):
            found = self.planner.plan(gang, offer, present)
        if isinstance(found, NoPlan) and len(present) > 1 and not gang.has_parts:
            for member in present:
                single = self.planner.plan(gang, offer, (member,))
                if isinstance(single, Plan):
                    self._use(gang, single, now)
        return found

    def _use(self, gang: Gang, found: Plan, now: float) -> None:
        """Reserve a plan, report it, and have kube-scheduler look at its pods."""
        self.reservations.hold(gang, found, now)
        self.move(gang, now)
        self.reports.placed(gang, found.fallback)
        self.requeues.call(gang, now)

    def make_in_turn(self, gang: Gang, now: float) -> None:
        """Search for a waiting gang whose back-off is over, in the next pass if others wait."""
        if not self.planner.is_ready:
            return
        if gang.key in self.gangs.plannable and self.queue.is_due(gang, now):
            if self.queue.is_busy():
                self.queue.want_pass()
            else:
                self.make(gang, now)
        elif gang.phase is Phase.RUNNING:
            self.hold_spares(gang, now)

    def hold_spares(self, gang: Gang, now: float) -> None:
        """Reserve a node for each spare placeholder that fits; those that do not are no problem."""
        self.planner.refresh()
        for member in placeholders.spares(gang) if not gang.unplanned() else ():
            found = self.planner.plan(gang, None, (member,))
            if isinstance(found, NoPlan):
                return
            self.reservations.hold(gang, found, now)

    # -- made again ----------------------------------------------------------------------------

    def replan(self, gang: Gang, member: Member, offer: Offer, now: float) -> bool:
        """Plan again, on the nodes offered, the members whose node /filter has not answered with.

        Members that /filter answered with a node keep it. False: the others have no place, and
        unless the gang has started the whole plan is lost.
        """
        again = (
            gang.plan.nodes.keys()
            - gang.binding.posted
            - (gang.binding.answered - {member.pod.uid})
        )
        for uid in sorted(again):
            self.reservations.give_back(gang, uid, messages.planned_elsewhere(gang.key))
        if self.make(gang, now, offer):
            return True
        self.lose(gang, "kube-scheduler does not offer the planned nodes", now, on="")
        return False

    def wait_for(self, gang: Gang, uids: set[str], until: float) -> None:
        """Plan the gang again only when all these members have come to /filter, or after a time."""
        binding.wait_for(gang, uids)
        self.queue.put_off(gang, until)

    def stop_waiting_for(self, gang: Gang, uid: str, now: float) -> None:
        """Note that a member has come to /filter, or is gone."""
        if binding.stop_waiting_for(gang, uid):
            self.queue.resume(gang, now)

    # -- lost ----------------------------------------------------------------------------------

    def lose(
        self, gang: Gang, why: str, now: float, *, losses: int = 1, on: str | None = None
    ) -> None:
        """Give up what is not being bound yet: reservations end, held /bind requests are refused.

        `losses`: how many losses the back-off counts this one for. `on`: the only node whose
        reservations a gang that has started gives up; its other members need no new nodes. Its
        spares are given up as well: they are placed after the members that need a node now.
        """
        sentence = messages.plan_lost(gang.key, why)
        is_whole = on is None or not gang.has_started
        for uid in [uid for uid in gang.plan.nodes if uid not in gang.binding.posted]:
            if is_whole or gang.plan.nodes[uid] == on or placeholders.is_spare(gang, uid):
                self.reservations.end(gang, uid, sentence)
        self.reports.plan_lost(gang, sentence)
        self.queue.back_off(gang, now, losses)
        self.move(gang, now)
        self.reservations.capacity_grew()

    def drop_outdated(self, gang: Gang, now: float) -> None:
        """Give up what no longer stands after a roll call, and enter the phase that follows."""
        wanted = gang.may_be_planned()
        for uid in [uid for uid in gang.plan.nodes if uid not in wanted]:
            self.reservations.end(gang, uid, messages.plan_lost(gang.key, "the pod has gone"))
        if (
            gang.plan.nodes
            and not gang.has_started
            and (not gang.membership.is_complete or gang.unplanned())
        ):
            self.lose(gang, "a member has gone", now)
        self.move(gang, now)
