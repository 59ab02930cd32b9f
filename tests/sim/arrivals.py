"""Who came to /bind with the reservation it has now, as the simulator saw it.

A gang may start once that is every member; coming again is no progress of a gang that has not.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.state.gang.gang import Gang
from tests.sim.life import Life
from tests.sim.told import key_of
from tests.sim.violation import require


def has_arrived(life: Life, uid: str) -> bool:
    """Whether the pod came once while this very reservation stood; a booking is made once."""
    return uid in life.arrived and life.arrived[uid] is life.engine.books.held.get(uid)


def waits_at_bind(life: Life, uid: str, node: str) -> bool:
    """Whether a request to bind the pod to this node is held now.

    It may have come before the reservation: while the watch is late it is held for a moment.
    """
    return uid in life.desk and life.desk[uid].node == node


def arrived_of(life: Life, gang: Gang) -> set[str]:
    """The planned members that have come once, and have no gate as far as the watch shows."""
    return {
        uid
        for uid, node in gang.plan.nodes.items()
        if uid in gang.members and not gang.members[uid].pod.gates
        if has_arrived(life, uid) or waits_at_bind(life, uid, node)
    }


@dataclass(slots=True)
class Arrivals:
    """Compares a gang before and after a pod of it comes to /bind."""

    _before: tuple[Gang, dict[str, str], float, bool] | None = None  # of one that comes again

    def arriving(self, life: Life, uid: str, node: str) -> None:
        """Remember what a member that comes again must not change."""
        key = key_of(life, uid)
        self._before = None
        if key is not None and has_arrived(life, uid) and life.arrived[uid].node == node:
            gang = life.engine.gangs.by_key[key]
            runs = bool(gang.membership.bound)
            self._before = (gang, dict(gang.plan.nodes), gang.binding.moved_at, runs)

    def arrived(self, life: Life, uid: str, node: str) -> None:
        """Raises: Violation."""
        booking = life.engine.books.held.get(uid)
        if booking is not None and booking.node == node:
            life.arrived[uid] = booking
        if self._before is None:
            return
        gang, plan, moved_at, ran = self._before
        # The roll call that this one has had may have found that no other member runs any more: the
        # start of the rest as a whole begins there.
        has_begun_anew = ran and not gang.membership.bound
        require(
            has_begun_anew or gang.plan.nodes != plan or gang.binding.moved_at == moved_at,
            f"I3: {uid} comes to /bind again, and gang {gang.key} counts that as progress",
        )

    def was_early(self, life: Life, uid: str) -> None:
        """The watch did not show in time that the pod may be bound: it has not arrived."""
        life.arrived.pop(uid, None)
