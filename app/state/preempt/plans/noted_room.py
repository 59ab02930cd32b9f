"""What pods of a gang that waits say, so that it is known after a restart.

the place that is kept for it      from before the first pod goes, until it is there or not
pods that were to go, and did not  from then on, until the gang has a place
"""

from __future__ import annotations

from dataclasses import dataclass

from app.dialects import corral
from app.dialects.spec import GangKey
from app.state.cache.books import Books
from app.state.pods.occupants import Occupants
from app.state.preempt.left_alone import LeftAlone
from app.state.preempt.plans.in_vain import InVain, Needed
from app.state.preempt.plans.room_plan import RoomPlan
from app.state.report.notes import Notes


@dataclass(frozen=True, slots=True)
class NotedRoom:
    """Has it noted, and reads back what is not known any more."""

    notes: Notes
    in_vain: InVain
    left_alone: LeftAlone
    books: Books
    occupants: Occupants

    def note(self, key: GangKey, plan: RoomPlan, now: float) -> None:
        """A place is kept for the gang."""
        stuck = self.in_vain.stuck(key, plan.needed)
        self.notes.note_room(key, corral.room_text(plan.where, plan.seats, stuck), now)

    def note_none(self, key: GangKey, needed: Needed, now: float) -> None:
        """No place is kept for it; some may have been in vain."""
        stuck = self.in_vain.stuck(key, needed)
        self.notes.note_room(key, corral.room_text("", (), stuck) if stuck else "", now)

    def learn_stuck(self, key: GangKey, needed: Needed, text: str, now: float) -> None:
        """Know again which pods a note names that still do not end."""
        for uids in corral.stuck_from_text(text):
            left = [
                uid
                for uid in uids
                if uid in self.books.bound and self.occupants.any_terminating((uid,))
            ]
            if left:
                self.left_alone.note_stuck(left)
                self.in_vain.note_stuck(key, needed, left, now)
