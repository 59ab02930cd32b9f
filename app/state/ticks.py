"""What is due by now: the second storey, on what the watch has shown.

Each step of a tick is confined: an error in one does not keep the others from what is due.
"""

from __future__ import annotations

from app.dialects.registry import Dialects
from app.state.effects import (
    Effect,
    ReadAgain,
    Requeue,
)
from app.state.isolation import OnFault
from app.state.settings import EngineSettings
from app.state.watched import Watched

EARMARK_SECONDS = 5.0  # between two reviews


class Ticking(Watched):
    """An engine whose time goes on."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        super().__init__(settings, on_fault, dialects)
        self._earmarks_at = 0.0  # when they are reviewed next

    def tick(self, now: float) -> list[Effect]:
        """Do what is due by now."""
        self.books.refresh()
        self.budget.begin()
        for step in (
            self._follow_books,
            self.roll_calls.review_all,
            self.permit.expire,
            self.passes.expire,
            self._expire,
            self._settle_bindings,
            self._tell_of_room,
            self._read_pods_again,
            self._review_earmarks,
            self._keep_new_nodes,
            self._ask_for_nodes,
            self._search_on,
            self._begin,
            self._protect_nodes,
            self._make_room,
            self._give_back,
            self._tell_of_domains,
        ):
            try:
                step(now)
            except Exception as error:  # deadlines are kept
                self.on_fault(f"tick, {step.__name__}", error)
        return self._effects()

    def _follow_books(self, _now: float) -> None:
        """Have /prioritize know of some of the bookings, and of all resources, since."""
        self.room_for_usual.catch_up()
        self.usual_requests.catch_up(len(self.books.axis))

    def _expire(self, now: float) -> None:
        """End what is over; repair where nodes were down for long; requeue idle preemptors."""
        if self.refusals.expire(now) | self.assumed_pods.expire(now):
            self.reservations.capacity_grew()
        self.bind_requests.expire(now)
        for uid in self.unseen.expired(now):
            self.members.forget(uid, now)
        self.births.expire(now)
        self.nodes.expire(now)
        for node in self.grants.expire(
            now,
            self.books.bound.__contains__,
            self.occupants.any_terminating,
            self.books.takes_pods,
        ):
            self._end_grant(node)
        for uid in self.grants.idle(now):
            if (pod := self.arrivals.of(uid)) is not None:
                self.outbox.add(Requeue(pod.namespace, pod.name, uid))

    def _settle_bindings(self, now: float) -> None:
        """Claim pods anew that objects named while their binding was under way."""
        self.claims.settle_bindings(now)

    def _tell_of_room(self, now: float) -> None:
        """Have gangs tried where the books gave something back, whether or not that was told."""
        freed, self.books.freed = self.books.freed, {}
        if freed:
            self.planner.capacity_grew(freed.keys())
            self.queue.want_pass()

    def _read_pods_again(self, now: float) -> None:
        """Have the pods listed once more if what was read of them is not enough."""
        if self.pod_lists.is_due(now):
            self.outbox.add(ReadAgain("Pod"))

    def _search_on(self, now: float) -> None:
        """Have the next gang tried whose search is to go on elsewhere."""
        if self.planner.is_ready and not self.is_draining:
            key = self.searches_on.next(now)
            if key is not None:
                self.queue.want_turn(self.gangs.by_key[key])

    def _begin(self, now: float) -> None:
        """Plan gangs that may fit now, and requeue pods that may be scheduled now."""
        if self.is_draining:
            return
        self.passes.plan_waiting(now)
        self.outbox.extend(self.notes.written(self.gangs.by_key, now))
        if self.planner.is_ready:  # else pods have gangs that are not known yet
            self.nominating.correct(self.gangs.by_key, now)
            if self.planner.leads:
                self.stray_gates.review(now)
        self.requeues.requeue_outdated(self.gangs.by_key)
        woken = self.rejected_pods.woken(self.reservations.taken_freed_nodes(), now)
        # Only the request may have told of such a pod, and it may have lied.
        waiting = (
            each for each in woken if self.arrivals.known(each.namespace, each.name, each.uid)
        )
        self.outbox.extend(waiting)

    def _tell_of_domains(self, now: float) -> None:
        """Write what there is to say of domains that objects declare."""
        if self.planner.is_ready and not self.is_draining:
            self.statuses.review(now)
            self.outbox.extend(self.domain_statuses.review(now))

    def _ask_for_nodes(self, now: float) -> None:
        """Mark pods that node autoscalers are to make nodes for, or make requests for them."""
        if not self.is_draining:
            self.marks.review(now)
            if self.planner.is_ready:
                for gang in self.requests.hand_out(now):
                    self.marks.note(gang)  # it is looked whether that comes to be there
                self.requests.audit(now)

    def _protect_nodes(self, now: float) -> None:
        """Have node autoscalers keep the nodes that gangs have places on."""
        if not self.is_draining:
            self.held_nodes.review(now)

    def _make_room(self, now: float) -> None:
        """Find out who would have to go for gangs that have no place."""
        if self.is_draining or not self.planner.leads:
            self.room_plans.end_over(now)
        else:
            self.making_room.review(now)

    def _give_back(self, now: float) -> None:
        """Give pods back that were born where their gang cannot start."""
        if self.planner.is_ready and not self.is_draining:
            self.giving_back.review(now)

    def _review_earmarks(self, now: float) -> None:
        """Earmark domains for gangs that starve, and free those that are not needed any more."""
        if self.is_draining or now < self._earmarks_at or not self.settings.earmarks_per_namespace:
            return
        self._earmarks_at = now + EARMARK_SECONDS
        starting = (
            gang
            for gang in (self.gangs.plannable() if self.planner.leads else ())
            if not (gang.has_started or gang.binding.awaits_members(now))
        )
        ended = self.starvation.review(starting, now)
        if ended:
            self.reservations.capacity_grew(ended)

    def _keep_new_nodes(self, now: float) -> None:
        """Keep nodes that were made for gangs, before others are placed on them."""
        if self.new_nodes.is_due(now) and (ended := self.new_nodes.review(now)):
            self.reservations.capacity_grew(ended)
