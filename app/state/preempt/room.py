"""One gang's question: who would have to go so that it has room? All it depends on is a copy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.dialects.spec import GangKey
from app.state.cache.books import Booking
from app.state.effects import RoomAnswer
from app.state.plan.request import SearchRequest
from app.state.preempt.standing import Standing, Unit
from topology.fit.view import Visits
from topology.model.answer import Placement
from topology.model.capacity import Capacity
from topology.model.changed_capacity import as_if
from topology.model.levels import NODE_LEVEL
from topology.victims.choose import victims
from topology.victims.table import Table
from topology.victims.victim import Loss, NoVictims, Victims

LOWEST = -(2**31)  # of all priorities
MOST_NAMED = 8  # victims of an answer, in words and in a journal's line


@dataclass(frozen=True, slots=True)
class RoomRequest:
    """A gang that waits, searched on every topology that may serve it."""

    gang: GangKey
    priority: int
    """Of its least important pod."""
    searches: tuple[SearchRequest, ...]
    standing: Standing

    def answer(self) -> RoomAnswer:
        """Where it would have room: on the topology on which the least is lost for it.

        Raises: as `topology.victims.choose.victims`.
        """
        ending = list(self.standing.ending())
        units = list(self.standing.units(self.priority, self.gang))
        none: RoomAnswer | None = None
        best: tuple[tuple[int, Loss], RoomAnswer] | None = None
        for search in self.searches:
            capacity = _once_ended(search, self.standing, ending)
            table = Table(capacity, self.standing.victims(units, capacity))
            found = victims(
                search.tree,
                capacity,
                search.gang,
                search.attempts[0],
                table,
                self.standing.budgets.allowed,
                replace(search.options, visits=Visits()),
            )
            if isinstance(found, Victims):
                gone = [units[int(key)] for key in found.keys]
                cost = (found.priority if gone else LOWEST, found.loss)
                if best is None or cost < best[0]:
                    answer = _found(search, found, self.standing, gone)
                    best = cost, replace(answer, ending=len(ending))
            none = none or (_none(found, units) if isinstance(found, NoVictims) else None)
        if best is not None:
            return best[1]
        assert none is not None  # there is at least one topology
        return none


def _once_ended(search: SearchRequest, standing: Standing, ending: Iterable[Booking]) -> Capacity:
    """The books without what ends already."""
    capacity = search.capacity
    taken = capacity.used + capacity.held
    slot_of, rows = search.tree.slot_of, len(taken)
    for booking in ending:
        slot = slot_of.get(booking.node)
        if slot is not None:
            counted = standing.counted(booking.request, rows)
            taken[: len(counted), slot] -= counted
    return as_if(capacity, taken, capacity.is_open)


def _found(
    search: SearchRequest, found: Victims, standing: Standing, gone: Sequence[Unit]
) -> RoomAnswer:
    name = standing.name
    first = sorted(gone, key=lambda unit: (-unit.priority, -len(unit.uids), name(unit)))
    return RoomAnswer(
        True,
        _domain(search, found.placement),
        tuple((name(unit), unit.priority) for unit in first[:MOST_NAMED]),
        len(gone),
        sum(unit.gang is not None for unit in gone),
        sum(len(unit.uids) for unit in gone),
        is_cut_short=not found.is_proven,
    )


def _none(why: NoVictims, units: Iterable[Unit]) -> RoomAnswer:
    pods = sum(len(unit.uids) for unit in units)
    return RoomAnswer(False, pods=pods, budgets=why.budgets, is_cut_short=why.is_cut_short)


def _domain(search: SearchRequest, placement: Placement) -> str:
    tree = search.tree
    slots = [slot for placed in placement.pod_sets for slot, _ in placed.slots]
    for level in reversed(range(len(tree.levels))):
        domains = {int(tree.domain_of[level][slot]) for slot in slots}
        if len(domains) == 1 and tree.levels[level] != NODE_LEVEL:
            return f"{tree.levels[level]}={'/'.join(tree.path(level, domains.pop()))}"
    return ""


def copied(search: SearchRequest) -> SearchRequest:
    """The same request on books of its own; trees and masks never change once they are made."""
    return replace(search, capacity=search.capacity.copy())
