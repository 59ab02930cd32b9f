"""What each that preempts needs in a storm, found apart from the engine from what runs then.

All sets of gangs in all racks are tried, and the fewest single pods beside each: the least that
would have to go. And whether the victims that were chosen for a gang are what was promised.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from tests.records import GPU

if TYPE_CHECKING:
    from tests.app.state.preempt.storm import Storm

GPUS = 8  # of a node
LABEL = "app"


@dataclass(frozen=True)
class Unit:
    """What goes as one: the pods of a gang that run, or one pod."""

    name: str
    priority: int
    pods: tuple[str, ...]  # uids
    is_gang: bool
    held: tuple[tuple[str, int], ...] = ()
    """What is held for its pods that do not run yet, which goes with it: node, GPUs."""


@dataclass
class Plan:
    """One gang's victims, as they were chosen."""

    gang: str
    priority: int
    chosen: tuple[int, int, int]  # highest priority, gangs, pods
    needed: tuple[int, int, int]
    victims: frozenset[str]  # uids
    units: tuple[tuple[str, ...], ...]  # of uids
    is_proven: bool
    evicted: int = 0


@dataclass(frozen=True)
class Needs:
    """What is needed in this storm, at the moment that is asked."""

    storm: Storm

    @property
    def pods(self) -> dict:
        """The pods of the storm, by uid."""
        return self.storm.pods

    def judge(self, name: str, answer, needed, units: list[Unit], free) -> None:
        chosen = (max(v.priority for v in answer.victims), answer.gangs, answer.pods)
        uids = frozenset(uid for victim in answer.victims for uid in victim.uids)
        its = tuple(tuple(victim.uids) for victim in answer.victims)
        mine = next(r for k, r in self.storm.engine.room_plans.of.items() if k.name == name)
        plan = Plan(
            name, mine.priority, chosen, needed or chosen, uids, its, not answer.is_cut_short
        )
        if needed is None:
            self.storm.problems.append(f"P3: {name} has no room, whoever goes")
        rack = self.storm.rack_of[next(iter(mine.nodes))]
        size, gpus = self._shape(name)
        gone = [each for each in units if uids.issuperset(each.pods)]
        whole = self._pods_in(rack, free, gone, gpus)
        if whole < size:
            self.storm.problems.append(f"P3: {name} of {size} has room for {whole} in {rack}")
        for each in gone:
            others = [other for other in gone if other is not each]
            if self._pods_in(rack, free, others, gpus) >= size:
                self.storm.problems.append(f"P4: {name} does not need {each.name}")
        for each in units:
            if each.is_gang and uids & set(each.pods) and not set(each.pods) <= uids:
                self.storm.problems.append(f"P6: {name} takes a part of {each.name}")
        for victim in answer.victims:
            if victim.priority >= plan.priority:
                self.storm.problems.append(f"P1: {name} takes {victim}")
        self.storm.plans.append(plan)
        self.storm.live[name] = plan

    def _shape(self, name: str) -> tuple[int, int]:
        """How many pods of a gang wait, and the GPUs of each."""
        waiting = [
            each
            for each in self.pods.values()
            if whose(each) == name and not each.node and not each.is_terminating
        ]
        return len(waiting), gpus_of(waiting[0])

    def units(self) -> list[Unit]:
        """All that run and do not end, nor go for another already."""
        going = self.storm.engine.room_plans.going
        by_gang: dict[str, list] = defaultdict(list)
        found = []
        for each in self.pods.values():
            if not each.node or each.is_terminating or each.uid in going:
                continue
            if name := whose(each):
                by_gang[name].append(each)
            else:
                found.append(Unit(each.name, each.priority, (each.uid,), is_gang=False))
        for name, pods in by_gang.items():
            priority = max(each.priority for each in pods)
            uids = tuple(each.uid for each in pods)
            found.append(Unit(name, priority, uids, is_gang=True, held=self._held_for(name)))
        return found

    def _held_for(self, name: str) -> tuple[tuple[str, int], ...]:
        gang = next(
            each for key, each in self.storm.engine.gangs.by_key.items() if key.name == name
        )
        held = self.storm.engine.books.held
        return tuple(
            (held[uid].node, dict(held[uid].request).get(GPU, 0))
            for uid in gang.plan.nodes
            if uid in held
        )

    def free_for(self, name: str, priority: int) -> dict[str, int]:
        """GPUs of each node that a gang may count on: all that ends is gone, what is kept is not.

        Held for gangs of its own priority or a higher one, or of lower ones that have a place.
        """
        going = self.storm.engine.room_plans.going
        free = dict(self.storm.free)
        for on, uids in self.storm.on_node.items():
            for uid in uids:
                if self.pods[uid].is_terminating or uid in going:
                    free[on] += gpus_of(self.pods[uid])
        for key, room in self.storm.engine.room_plans.of.items():
            if key.name != name and room.priority >= priority:
                for each in room.places.values():
                    free[each.node] -= dict(each.request)[GPU]
        for uid in self.storm.preemptors:
            one = self.pods.get(uid)
            if one is not None and one.nominated_node and not one.node and one.priority >= priority:
                free[one.nominated_node] -= gpus_of(one)
        for booking in self.storm.engine.books.held.values():
            free[booking.node] -= dict(booking.request).get(GPU, 0)
        return free

    def _frees(self, unit: Unit) -> Iterator[tuple[str, int]]:
        """What is free once a unit is gone: nodes, with GPUs."""
        yield from ((self.pods[uid].node, gpus_of(self.pods[uid])) for uid in unit.pods)
        yield from unit.held

    def _pods_in(self, rack: str, free: dict[str, int], gone: list[Unit], gpus: int) -> int:
        """For how many pods a rack has room once these are gone."""
        room = {on: free[on] for on, its in self.storm.rack_of.items() if its == rack}
        for each in gone:
            for on, freed in self._frees(each):
                if on in room:
                    room[on] += freed
        return sum(max(0, gpus_left) // gpus for gpus_left in room.values())

    def needs(self, name: str, units: list[Unit]) -> tuple[int, int, int] | None:
        """The least that would have to go for a gang: (highest priority, gangs, pods).

        All sets of gangs in all racks, and the fewest single pods beside each: those of a node in
        the order of their size, over nodes by the fewest pods for each number of places.
        """
        size, gpus = self._shape(name)
        priority = min(p.priority for p in self.pods.values() if whose(p) == name)
        free = self.free_for(name, priority)
        lower = [
            each
            for each in units
            if each.priority < priority and each.name != name and self._is_allowed(each)
        ]
        best = None
        for threshold in sorted({each.priority for each in lower}):
            able = [each for each in lower if each.priority <= threshold]
            for rack in set(self.storm.rack_of.values()):
                found = self._least(rack, free, able, size, gpus)
                if found is not None and (best is None or found < best):
                    best = found
            if best is not None:
                return threshold, *best
        return None

    def _is_allowed(self, unit: Unit) -> bool:
        label = self.pods[unit.pods[0]].labels.get(LABEL)
        return label is None or self.storm.disruptions_allowed[label] >= len(unit.pods)

    def _least(self, rack, free, able: list[Unit], size: int, gpus: int):
        """The fewest (gangs, pods) of one rack; None if all of them are not enough."""
        here = {on for on, its in self.storm.rack_of.items() if its == rack}
        gangs = [u for u in able if u.is_gang and any(self.pods[p].node in here for p in u.pods)]
        singles = defaultdict(list)
        for each in able:
            on = self.pods[each.pods[0]].node
            if not each.is_gang and on in here:
                singles[on].append(gpus_of(self.pods[each.pods[0]]))
        for number in range(len(gangs) + 1):
            found = []
            for chosen in combinations(gangs, number):
                room = {on: free[on] for on in here}
                for each in chosen:
                    for on, freed in self._frees(each):
                        if on in here:
                            room[on] += freed
                pods = _fewest(room, singles, size, gpus)
                if pods is not None:
                    found.append((number, sum(len(each.pods) for each in chosen) + pods))
            if found:
                return min(found)
        return None


def _fewest(room: dict[str, int], singles, size: int, gpus: int) -> int | None:
    """The fewest single pods that have to go so that there is room for so many."""
    least = {0: 0}  # places -> pods
    for on, free in room.items():
        options: dict[int, int] = {max(0, free) // gpus: 0}
        for number, freed in enumerate(sorted(singles.get(on, ()), reverse=True), 1):
            free += freed
            options.setdefault(max(0, free) // gpus, number)
        merged: dict[int, int] = {}
        for places, pods in least.items():
            for more, others in options.items():
                total = min(size, places + more)
                merged[total] = min(merged.get(total, 10**9), pods + others)
        least = merged
    return least.get(size)


def gpus_of(each) -> int:
    return dict(each.request)[GPU]


def whose(each) -> str:
    """The gang of a pod, by its name; "": it is in none."""
    name, dash, _ = each.name.partition("-")
    return name if dash else ""
