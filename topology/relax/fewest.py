"""Which few of many nodes that are away make a gang fit once they are back.

    all together ─▶ in each domain: the first that are enough ─▶ those that are used
                                                                        │
         each in turn is left out, if it can ◀── of the domain where they are fewest

The search alone says what fits. How many pods of the gang a node would take decides only in which
order domains and nodes are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import typing as npt

from topology.fit.view import View
from topology.model.answer import Placement
from topology.model.changed.capacity import Changes
from topology.model.resources import Rows
from topology.nested.estimates.headroom import Headroom
from topology.nested.parts import Kind, Part, root_of
from topology.relax.feasibility import Feasibility

DOMAINS = 8  # of the level that must take the whole gang, in which changes are looked for

Costs = npt.NDArray[np.float64]
Demand = tuple[tuple[Kind, int], ...]


def fewest(feasibility: Feasibility, changes: Changes) -> list[int] | None:
    """A few of these nodes with which the gang fits, ascending; None if there are none.

    Each was needed when it was tried, beside those that stay. That others would do of which there
    are fewer is not ruled out.
    """
    return _Choice(feasibility, changes).run() if changes.number else None


@dataclass(slots=True, eq=False)
class _Choice:
    feasibility: Feasibility
    changes: Changes

    def run(self) -> list[int] | None:
        feasibility, everything = self.feasibility, list(range(self.changes.number))
        if self._place(everything) is None:
            return None
        outlook = _Outlook(feasibility, self.changes, everything)
        best: list[int] | None = None
        for ones in outlook.domains():
            few = self._few(ones)
            if few is not None and (best is None or len(few) < len(best)):
                best = few
        if best is None:
            best = self._few(outlook.ordered)
        # The last are left out first: those that looked least useful.
        return None if best is None else sorted(feasibility.thinned(best, self._place))

    def _place(self, chosen: Sequence[int]) -> Placement | None:
        feasibility, changes = self.feasibility, self.changes
        books = changes.books(feasibility.capacity, chosen)
        return feasibility.place(capacity=books, masks=changes.allowed(feasibility.masks, chosen))

    def _few(self, ones: list[int]) -> list[int] | None:
        """The first of them that are enough, without those whose nodes are not used there."""
        found = self.feasibility.first(ones, self._place)
        if found is None:
            return None
        chosen, place = found
        few = self._used(chosen, place)
        is_enough = 0 < len(few) < len(chosen) and self._place(few) is not None
        return few if is_enough else chosen

    def _used(self, chosen: Iterable[int], place: Placement) -> list[int]:
        """Those whose node is used by a place that was found."""
        used = {slot for placed in place.pod_sets for slot, _ in placed.slots}
        return [one for one in chosen if int(self.changes.slots[one]) in used]


class _Outlook:
    """How many changes it may take, per node and domain, until so many more pods are taken."""

    ordered: list[int]
    """The changes, those first that look cheapest for what they give."""

    def __init__(self, feasibility: Feasibility, changes: Changes, ones: list[int]) -> None:
        tree, options = feasibility.tree, feasibility.options
        self._tree, self._changes = tree, changes
        self._root = root_of(tree, feasibility.gang, options.unconstrained)
        demand = Counter[Kind]()
        for leaf in self._root.leaves():
            demand.update(dict(leaf.demand))
        kinds = list(demand)
        self._now = Headroom(View(tree, feasibility.capacity, feasibility.masks, options), kinds)
        books, masks = (
            changes.books(feasibility.capacity, ones),
            changes.allowed(feasibility.masks, ones),
        )
        then, level = Headroom(View(tree, books, masks, options), kinds), tree.node_level
        self._gains = {
            kind: np.maximum(0, then.pods(kind, level) - self._now.pods(kind, level))
            for kind in kinds
        }
        self._spent = np.bincount(changes.slots, minlength=len(tree.nodes))
        gained = np.zeros(len(tree.nodes))
        for kind, pods in demand.items():
            gained += self._gains[kind] / pods
        self._dearness = np.full(gained.size, np.inf)
        np.divide(self._spent, gained, out=self._dearness, where=gained > 0)
        self.ordered = self._in_order(ones)

    def domains(self) -> Iterator[list[int]]:
        """The changes in each of the domains worth a try, if one domain must take everything."""
        level = _shared_level(self._root)
        if level < 0:
            return
        costs = self._costs(level, self._root.demand)
        domains = np.argsort(costs, kind="stable")
        for domain in domains[np.isfinite(costs[domains])][:DOMAINS].tolist():
            here = self._changes.within(self._tree.domain_of[level], domain)
            yield [one for one in self.ordered if one in here]

    def _in_order(self, ones: list[int]) -> list[int]:
        """By the cost of the inner domain, if part of the gang must share one, then of the node."""
        keys: list[npt.NDArray[np.generic]] = [self._dearness]
        inner = min(_inner(self._root, _shared_level(self._root)), key=_level, default=None)
        if inner is not None:
            level, demand = inner
            domain_of = self._tree.domain_of[level]
            keys += [domain_of, self._costs(level, demand)[domain_of]]
        place_of: Rows = np.empty(len(self._tree.nodes), dtype=np.intp)
        place_of[np.lexsort(keys)] = np.arange(place_of.size)
        places = place_of[self._changes.slots]
        return sorted(ones, key=lambda one: (places[one], one))

    def _costs(self, level: int, demand: Demand) -> Costs:
        """Changes until a domain takes the pods, if they could be cut; inf: never. Shapes: (D,)."""
        tree = self._tree
        domain_of, starts = tree.domain_of[level], tree.starts[level]
        order = np.lexsort((self._dearness, domain_of))
        is_enough = np.ones(order.size, dtype=np.bool_)
        has_room = np.ones(starts.size, dtype=np.bool_)
        for kind, pods in demand:
            lacks = pods - self._now.pods(kind, level)
            is_enough &= self._running(self._gains[kind][order], level) >= lacks[domain_of]
            has_room &= lacks <= 0
        spent = np.where(is_enough, self._running(self._spent[order], level), np.inf)
        return np.where(has_room, 0.0, np.minimum.reduceat(spent, starts))

    def _running(self, amounts: npt.NDArray[np.generic], level: int) -> Costs:
        """Running sums that begin anew in each domain. Shapes: (N,), by domain -> (N,)."""
        sums: Costs = np.cumsum(amounts, dtype=np.float64)
        before = np.concatenate([[0.0], sums])[self._tree.starts[level]]
        restarted: Costs = sums - before[self._tree.domain_of[level]]
        return restarted


def _shared_level(part: Part) -> int:
    """The level of which one domain must take everything; -1: there is none."""
    if not part.may_spread:
        return part.levels[-1]
    return _shared_level(part.members[0]) if len(part.members) == 1 else -1


def _inner(part: Part, around: int) -> Iterator[tuple[int, Demand]]:
    """Narrower levels of which one domain must take a part, and what that is."""
    if not part.may_spread and part.levels[-1] > around:
        yield part.levels[-1], part.demand
    if part.floor is not None and part.floor.workers.slices:
        workers, layers = part.floor.workers, part.floor.layers
        yield layers.level, (((workers.request, workers.shape), layers.size),)
    for member in part.members:
        yield from _inner(member, around)


def _level(inner: tuple[int, Demand]) -> int:
    return inner[0]
