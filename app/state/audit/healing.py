"""Corrects the books where they differ from the records."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from app.state.audit.differences import is_booked, unowned
from app.state.cache.books import Books
from app.state.gang.gangs import Gangs
from app.state.lifecycle.roll_call import RollCalls
from app.state.reserve.plans import Plans
from app.state.reserve.reservations import Reservations


@dataclass(frozen=True, slots=True)
class Healing:
    """Makes the books what the records say."""

    books: Books
    gangs: Gangs
    reservations: Reservations
    plans: Plans
    roll_calls: RollCalls

    def heal(self, others: Collection[str], now: float) -> None:
        """Add the books up anew; what was planned on wrong books is planned again."""
        self.books.recount()
        for gang in list(self.gangs.by_key.values()):
            if any(not is_booked(self.books, uid, node) for uid, node in gang.plan.nodes.items()):
                self.plans.lose(gang, "the books were wrong", now)
            for uid in gang.plan.nodes:
                if gang.has(uid):
                    self.books.resize_hold(uid, gang.member(uid).pod.request)
        for uid in unowned(self.books, self.gangs, others):
            self.books.release(uid)
        for gang in list(self.gangs.by_key.values()):
            self.roll_calls.review(gang, now)
        self.reservations.capacity_grew()
