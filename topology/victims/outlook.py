"""Which domains could take the gang without some of the victims, and what goes there at least.

From sums alone, so nothing here is an answer: a domain that is left out cannot take the gang, and
in one that is not the bound or more goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import typing as npt

from topology.model.resources import Counts, Mask, Rows
from topology.nested.subtree import Subtree, subtree_of, whole
from topology.victims.trial import Problem
from topology.victims.victim import Loss

GANG = 1_000  # pods that breaking one gang more is worth, where victims are ordered

Costs = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prospect:
    """One domain that could take the gang."""

    subtree: Subtree
    bound: Loss
    """At least that goes."""
    ones: Sequence[int]
    """Who is in the way there, those first that look cheapest for the room they give."""


class Outlook:
    """What could come of some victims, in every domain of the level that takes the whole gang."""

    def __init__(self, problem: Problem, ones: Rows) -> None:
        self._problem = problem
        table, nodes = problem.table, len(problem.tree.nodes)
        self._entries = table.entries(ones)
        self._owners = table.changes.owners[self._entries]
        self._slots = table.changes.slots[self._entries]
        self._freed = problem.freed(self._entries)
        self._is_alone = ~table.is_gang[self._owners]
        self._alone = problem.pods(self._without(self._is_alone))
        self._every = problem.pods(self._without(np.ones_like(self._is_alone)))
        # A gang on several nodes is a part of a gang on each.
        weight = (table.pods + GANG * table.is_gang) / np.maximum(table.end - table.first, 1)
        spent = np.bincount(self._slots, weight[self._owners], minlength=nodes)
        gained = np.zeros(nodes)
        for before, after, (_, needed) in zip(
            problem.now, self._every, problem.demand, strict=True
        ):
            gained += (after - before) / max(needed, 1)
        self._gains = gained > 0
        dearness = np.full(nodes, np.inf)
        np.divide(spent, gained, out=dearness, where=self._gains)
        self._place_of: Rows = np.empty(nodes, dtype=np.intp)
        self._place_of[np.argsort(dearness, kind="stable")] = np.arange(nodes)

    def _without(self, is_gone: Mask) -> Counts:
        """What nodes have left once some entries are gone. Shapes: (E,) -> (rows, N)."""
        left = self._problem.free.copy()
        for left_of, freed_of in zip(left, self._freed, strict=True):
            np.add.at(left_of, self._slots[is_gone], freed_of[is_gone])
        return left

    def prospects(self) -> Iterator[Prospect]:
        """The domains that could take the gang, those with the lowest bounds first."""
        tree, level = self._problem.tree, self._problem.level
        is_enough_alone = self._takes(self._alone)
        room = [self._by(counts) for counts in self._every]
        feasible = np.flatnonzero(self._takes(self._every))
        ones_in = self._by_domain(feasible)
        gangs_in, pods_in = np.zeros_like(room[0]), np.zeros_like(room[0])
        places = np.zeros((len(room), room[0].size), dtype=np.int64)
        for domain in feasible[~is_enough_alone[feasible]].tolist():
            gangs_in[domain], pods_in[domain], places[:, domain] = self._least_gangs(
                domain, ones_in.get(domain, ())
            )
        pods_in += self._least_pods(places, at_least=gangs_in == 0)
        found = [
            (
                int(gangs_in[domain]),
                int(pods_in[domain]),
                sum(int(sums[domain]) for sums in room),
                domain,
            )
            for domain in feasible.tolist()
        ]
        for gangs, pods, _, domain in sorted(found):
            subtree = whole(tree) if level < 0 else subtree_of(tree, level, domain)
            ones = ones_in.get(domain, ())
            bound = Loss(0, gangs, pods, self._least_work(ones, gangs or pods, is_gang=gangs > 0))
            yield Prospect(subtree, bound, ones)

    def _takes(self, pods: Sequence[Counts]) -> Mask:
        """Which domains may take the gang. Shapes: per kind (N,) -> (D,)."""
        enough = [
            self._by(counts) >= needed
            for counts, (_, needed) in zip(pods, self._problem.demand, strict=True)
        ]
        takes: Mask = np.logical_and.reduce(enough)
        return takes

    def _by(self, counts: Counts) -> Counts:
        """Sums by domain. Shapes: (N,) -> (D,)."""
        level = self._problem.level
        if level < 0 or not counts.size:
            total: Counts = counts.sum(keepdims=True)
            return total
        sums: Counts = np.add.reduceat(counts, self._problem.tree.starts[level])
        return sums

    def _by_domain(self, domains: Rows) -> dict[int, Sequence[int]]:
        """Who is where it would help, in order."""
        tree, level = self._problem.tree, self._problem.level
        keep = self._gains[self._slots]
        where = np.zeros(self._slots.size, dtype=np.intp)
        if level >= 0:
            where = tree.domain_of[level][self._slots]
            is_wanted = np.zeros(tree.starts[level].size, dtype=np.bool_)
            is_wanted[domains] = True
            keep &= is_wanted[where]
        owners, slots, where = self._owners[keep], self._slots[keep], where[keep]
        order = np.lexsort((owners, self._place_of[slots], where))
        owners, where = owners[order], where[order]
        cuts = np.flatnonzero(np.diff(where)) + 1
        if not where.size:
            return {}
        found: list[int] = where[np.append(0, cuts)].tolist()
        return dict(zip(found, map(_distinct, np.split(owners, cuts)), strict=True))

    # -- what goes at least ----------------------------------------------------------------------

    def _least_gangs(self, domain: int, ones: Sequence[int]) -> tuple[int, int, list[int]]:
        """How many gangs go at least, and pods with them; by kind, places they make at most.

        With whatever else goes on the nodes that these gangs are on.
        """
        table, level = self._problem.table, self._problem.level
        tree = self._problem.tree
        inside = slice(0, len(tree.nodes)) if level < 0 else tree.slots(level, domain)
        gangs = [one for one in ones if table.is_gang[one]]
        slots = [table.changes.slots[table.first[one] : table.end[one]] for one in gangs]
        here = [its[(its >= inside.start) & (its < inside.stop)] - inside.start for its in slots]

        def gains(after: Counts, before: Counts) -> list[int]:
            more = after[inside] - before[inside]
            return sorted((int(more[its].sum()) for its in here), reverse=True)

        least, kinds = 1, self._problem.demand
        for alone, every, (_, needed) in zip(self._alone, self._every, kinds, strict=True):
            lacks = needed - int(alone[inside].sum())
            enough = np.cumsum(gains(every, alone)).searchsorted(lacks) + 1
            least = max(least, min(int(enough), len(gangs)))
        places = [
            sum(gains(every, now)[:least])
            for every, now in zip(self._every, self._problem.now, strict=True)
        ]
        return least, sum(sorted(table.pods[gangs].tolist())[:least]), places

    def _least_work(self, ones: Sequence[int], number: int, *, is_gang: bool) -> int:
        """The least that is lost with so many gangs, or with so many pods in none."""
        table, chosen = self._problem.table, np.array(ones, dtype=np.intp)
        works = table.work[chosen[table.is_gang[chosen] == is_gang]]
        return int(np.sort(works)[:number].sum())

    def _least_pods(self, places: Counts, at_least: Mask) -> Counts:
        """How many pods go at least that are in no gang. Shapes: (kinds, D), (D,) -> (D,).

        A place on a node takes at least as many pods as the largest there would, and a pod makes
        no more places than the node gains in all; the cheapest places come first. `places`: so many
        are there without them, of each kind. `at_least`: where one goes at least.
        """
        problem = self._problem
        slots, freed = self._slots[self._is_alone], self._freed[:, self._is_alone]
        # Whole numbers like what is freed: `at` of mixed types takes thirty times as long.
        largest = np.zeros_like(problem.free)
        for largest_of, freed_of in zip(largest, freed, strict=True):
            np.maximum.at(largest_of, slots, freed_of)
        least = at_least.astype(np.float64)
        for (kind, needed), now, alone, made in zip(
            problem.demand, problem.now, self._alone, places, strict=True
        ):
            gained = alone - now
            price = 1 / np.maximum(gained, 1)
            for at, row in enumerate(problem.rows):
                amount = kind[0][row] if row < len(kind[0]) else 0
                # For one place more; each further one there lacks no less.
                lacks = np.maximum((now + 1) * amount - problem.free[at], 0)
                np.maximum(price, lacks / np.where(largest[at] > 0, largest[at], np.inf), out=price)
            filled = self._filled(price, gained, needed - self._by(now) - made)
            np.maximum(least, np.ceil(filled - 1e-9), out=least)
        return least.astype(np.int64)

    def _filled(self, price: Costs, gained: Counts, missing: Counts) -> Costs:
        """What the missing places cost in each domain, the cheapest first.

        Shapes: (N,), (N,), (D,) -> (D,).
        """
        tree, level = self._problem.tree, self._problem.level
        domain_of = tree.domain_of[level] if level >= 0 else np.zeros(price.size, dtype=np.intp)
        starts = tree.starts[level] if level >= 0 else np.zeros(1, dtype=np.intp)
        order = np.lexsort((price, domain_of))
        where, places = domain_of[order], gained[order]
        before = np.cumsum(places) - places
        before -= before[starts][where]
        taken = np.clip(missing[where] - before, 0, places)
        filled: Costs = np.add.reduceat(taken * price[order], starts)
        return filled


def _distinct(ones: Rows) -> list[int]:
    """Each once, where it comes first."""
    return list(dict.fromkeys(ones.tolist()))
