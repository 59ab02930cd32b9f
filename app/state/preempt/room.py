"""One gang's question: who would have to go so that it has room? All it depends on is a copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.dialects.spec import GangKey
from app.state.cache.books import Booking
from app.state.effects import RoomAnswer, RoomVictim
from app.state.plan.question.request import SearchRequest
from app.state.preempt.standing import Standing, Unit
from topology.fit.view import Visits
from topology.model.answer import Placement
from topology.model.capacity import Capacity
from topology.model.changed.capacity import as_if
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
    most_pods: int | None = None
    """So many may be evicted: up to that the answer says who, and where the gang would be. None:
    no pod is to be evicted."""

    def answer(self) -> RoomAnswer:
        """Where it would have room: on the topology on which the least is lost for it.

        Raises: as `topology.victims.choose.victims`.
        """
        ending = list(self.standing.ending())
        allowed = self.standing.allowed()
        lower = list(self.standing.units(self.priority, self.gang))
        units = [unit for unit in lower if not unit.is_left_alone]
        left_alone = sum(len(unit.uids) for unit in lower if unit.is_left_alone)
        lasts = self.standing.lasts(units)
        none: RoomAnswer | None = None
        best: tuple[tuple[int, Loss], RoomAnswer] | None = None
        for search in self.searches:
            capacity = _once_ended(search, self.standing, ending)
            table = Table(capacity, self.standing.victims(units, capacity, lasts), lasts)
            found = victims(
                search.tree,
                capacity,
                search.gang,
                search.attempts[0],
                table,
                allowed,
                replace(search.options, visits=Visits()),
            )
            if isinstance(found, Victims):
                gone = [units[int(key)] for key in found.keys]
                cost = (found.priority if gone else LOWEST, found.loss)
                if best is None or cost < best[0]:
                    answer = replace(self._found(search, found, gone, lasts), ending=len(ending))
                    best = cost, answer
            none = none or (_none(found, units) if isinstance(found, NoVictims) else None)
        if best is not None:
            return best[1]
        assert none is not None  # there is at least one topology
        return replace(none, left_alone=left_alone)

    def _found(
        self,
        search: SearchRequest,
        found: Victims,
        gone: Sequence[Unit],
        lasts: Mapping[str, int],
    ) -> RoomAnswer:
        standing, name = self.standing, self.standing.name
        first = sorted(gone, key=lambda unit: (-unit.priority, -len(unit.uids), name(unit)))
        ends = standing.ending_for_good(first, lasts)
        pods = sum(len(unit.uids) for unit in gone)
        answer = RoomAnswer(
            True,
            _domain(search, found.placement),
            tuple((name(unit), unit.priority) for unit in first[:MOST_NAMED]),
            len(gone),
            sum(unit.gang is not None for unit in gone),
            pods,
            is_cut_short=not found.is_proven,
            ends_for_good=sum(ends),
        )
        if self.most_pods is None or pods > self.most_pods:
            return answer
        victims = (
            RoomVictim(
                unit.priority,
                tuple(unit.uids),
                unit.gang,
                is_protected=standing.is_protected(unit),
                ends_for_good=ends_for_good,
            )
            for unit, ends_for_good in zip(first, ends, strict=True)
        )
        return replace(answer, victims=tuple(victims), places=_places(search, found.placement))


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


def _none(why: NoVictims, units: Iterable[Unit]) -> RoomAnswer:
    pods = sum(len(unit.uids) for unit in units)
    return RoomAnswer(False, pods=pods, budgets=why.budgets, is_cut_short=why.is_cut_short)


def _places(search: SearchRequest, placement: Placement) -> tuple[tuple[int, str, int], ...]:
    nodes = search.tree.nodes
    return tuple(
        (int(placed.pod_set), nodes[slot], pods)
        for placed in placement.pod_sets
        for slot, pods in placed.slots
    )


def _domain(search: SearchRequest, placement: Placement) -> str:
    tree = search.tree
    slots = [slot for placed in placement.pod_sets for slot, _ in placed.slots]
    for level in reversed(range(len(tree.levels))):
        domains = {int(tree.domain_of[level][slot]) for slot in slots}
        if len(domains) == 1 and tree.levels[level] != NODE_LEVEL:
            return f"{tree.levels[level]}={'/'.join(tree.path(level, domains.pop()))}"
    return ""
