"""What becomes due for gangs as time passes: waiting ones are tried again, placeholders expire."""

from __future__ import annotations

from dataclasses import dataclass

from app.state.gang.gangs import Gangs
from app.state.isolation import confined
from app.state.lifecycle.roll_call import RollCalls
from app.state.plan.elsewhere.search_on import SearchesOn
from app.state.plan.planner import Planner
from app.state.report.evictions import Evictions
from app.state.report.reports import Reports
from app.state.reserve import placeholders
from app.state.reserve.plans import Plans
from app.state.turns.queue import Queue


@dataclass(frozen=True, slots=True)
class Passes:
    """Passes over the gangs that wait, a piece per tick where there are many."""

    gangs: Gangs
    planner: Planner
    searches_on: SearchesOn
    queue: Queue
    plans: Plans
    roll_calls: RollCalls
    reports: Reports
    evictions: Evictions

    def plan_waiting(self, now: float) -> None:
        """Try waiting gangs, until the tick's budget is spent; the rest follow on the next one."""
        if not self.planner.is_ready:
            return
        gangs = self.gangs
        self._let_go(now)
        self.queue.begin_pass(
            gangs.plannable_in,
            gangs.by_key,
            (key for key in gangs.with_placeholders if not gangs.by_key[key].is_plannable),
        )
        for key in self.queue.turns():
            gang = gangs.by_key.get(key)
            if gang is None:
                continue
            self.roll_calls.review_now(gang, now)
            if not gang.is_plannable:
                self.plans.hold_spares(gang, now)
            elif self.queue.is_due(gang, now) and not (
                # An equal gang found no place in this pass, and this one's verdict is recent.
                self.reports.knows_verdict(gang, now) and self.planner.is_unfit(gang)
            ):
                self.plans.make(gang, now)
            self.searches_on.end_turn(key)

    def _let_go(self, now: float) -> None:
        """Have no gang wait for those that were to have their turn first, and need no place now."""
        self.queue.let_late_go(now)
        for key in list(self.queue.first):
            gang = self.gangs.by_key.get(key)
            if gang is None or (
                key not in self.gangs.unreviewed
                and not (gang.is_plannable and self.queue.is_due(gang, now))
            ):
                self.queue.let_go(key)

    def expire(self, now: float) -> None:
        """End placeholders whose time is up, report what is due, retry after back-offs."""
        gangs = self.gangs
        for key in list(gangs.with_placeholders):
            gang = gangs.by_key[key]
            if placeholders.is_due(gang, now):
                with confined(self.planner.on_fault, "roll call of gang {}", key):
                    self.roll_calls.review(gang, now)
        self.reports.report_due(gangs.by_key, now)
        self.evictions.evict_again(gangs.by_key, now)
        self.reports.report_verdicts(gangs.by_key, now)
        self.queue.retry(gangs.plannable(), now)
