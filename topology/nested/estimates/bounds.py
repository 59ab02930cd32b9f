"""Which domains certainly do not take a group, found out for all domains at once.

A group is placed member by member, and that it has no room is seen only when one of the last has
none. Thousands of domains may be tried so in vain; what is here refuses most of them before.
False is certain: no domain is left out that could take the group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from topology.fit.view import View
from topology.model.resources import Counts, Mask, Rows
from topology.nested.estimates.headroom import Headroom
from topology.nested.parts import Demand, Part
from topology.nested.subtree import Subtree, domains_in
from topology.nested.unplaced import has_kept
from topology.pod_set.unplaced import Kept


class Bounds:
    """What all nodes of a domain have for a group together."""

    __slots__ = ("_alikes", "_headroom", "_kept", "_view")

    def __init__(self, view: View, headroom: Headroom, kept: Mapping[str, Kept]) -> None:
        self._view = view
        self._kept = kept
        self._headroom = headroom
        self._alikes: dict[int, dict[tuple[int, object], tuple[int, Part]]] = {}

    def hold_sums(self, part: Part, subtree: Subtree, level: int) -> Mask:
        """Whether domains have as much free in all as a part requests, wherever it is free.

        Shapes: a narrower level's domains in the subtree.
        """
        slots: Rows = np.arange(*subtree.slots)
        wanted = _wanted(part.demand)
        free = self._view.free(list(wanted), slots)
        is_open = self._view.capacity.is_open[slots]
        sums = (np.where(is_open, np.maximum(left, 0), 0) for left in free)
        return self._hold(wanted, sums, subtree, level)

    def hold_all(self, part: Part, subtree: Subtree, level: int) -> Mask:
        """Whether domains have as much free on nodes that take some of a part as it requests.

        Of a node counts what the pods of the part can use there, each kind as if it were alone.
        Each kind may fit into a domain where all of them together do not.
        Shapes: a narrower level's domains in the subtree.
        """
        wanted = _wanted(part.demand)
        usable = self._usable(wanted, part.demand, np.arange(*subtree.slots), is_once=True)
        return self._hold(wanted, usable, subtree, level)

    def _hold(
        self, wanted: dict[int, int], amounts: Iterable[Counts], subtree: Subtree, level: int
    ) -> Mask:
        first, end = domains_in(self._view.tree, subtree, level)
        starts = self._view.tree.starts[level][first:end] - subtree.slots[0]
        held = np.ones(starts.size, dtype=np.bool_)
        for amount, here in zip(wanted.values(), amounts, strict=True):
            held &= np.add.reduceat(here, starts) >= amount
        return held

    def _usable(
        self, wanted: dict[int, int], demand: Demand, slots: Rows, *, is_once: bool
    ) -> Iterator[Counts]:
        """Of each resource, what pods of these kinds can use on each node.

        `is_once`: no more pods of a kind than are demanded. Shapes: each (len(slots),).
        """
        nodes = self._view.tree.node_level
        takes = [(kind[0], self._headroom.pods(kind, nodes)[slots], pods) for kind, pods in demand]
        for row, left in zip(wanted, self._view.free(list(wanted), slots), strict=True):
            used = np.zeros(slots.size, dtype=np.int64)
            for request, most, pods in takes:
                if row < len(request) and request[row]:
                    # No kind uses more than is free, so that no sum leaves an int64.
                    used += (np.minimum(most, pods) if is_once else most) * request[row]
                    np.minimum(used, left, out=used)
            yield np.maximum(used, 0)

    # Groups that each require a narrower domain of their own

    def requires_narrower(self, part: Part, level: int) -> bool:
        """Whether there is something for `hold_each` to look at."""
        return any(inner > level for inner, _ in self._alike(part))

    def narrower(self, part: Part) -> list[Part]:
        """The members of a part that each require one domain, the first of those that are alike."""
        return [member for _, member in self._alike(part).values()]

    def hold_each(self, part: Part, subtree: Subtree, level: int) -> Mask:
        """Whether domains have enough narrower ones for the members that each require one.

        Of members that are alike a narrower domain takes at most as many as it would take pods of
        each kind alone, and as what they request in all is there.
        Shapes: a narrower level's domains in the subtree.
        """
        tree = self._view.tree
        start, end = domains_in(tree, subtree, level)
        slots: Rows = np.arange(*subtree.slots)
        held = np.ones(end - start, dtype=np.bool_)
        for (inner, _), (groups, member) in self._alike(part).items():
            if inner <= level:
                continue
            demand = member.demand
            first, last = domains_in(tree, subtree, inner)
            starts = tree.starts[inner][first:last]
            takes = np.minimum.reduce(
                [self._headroom.pods(kind, inner)[first:last] // pods for kind, pods in demand]
            )
            if len(demand) > 1:
                wanted = _wanted(demand)
                usable = self._usable(wanted, demand, slots, is_once=groups == 1)
                for amount, here in zip(wanted.values(), usable, strict=True):
                    sums = np.add.reduceat(here, starts - slots[0])
                    np.minimum(takes, sums // amount, out=takes)
            counts = np.bincount(tree.domain_of[level][starts] - start, takes, end - start)
            held &= counts >= groups
        return held

    def _alike(self, part: Part) -> dict[tuple[int, object], tuple[int, Part]]:
        """How many members of a part require one domain of each level and request the same.

        Alike are those that request the same of the same nodes; the first stands for all.
        """
        found = self._alikes.get(id(part))
        if found is None:
            found = self._alikes[id(part)] = {}
            for each in self._requiring(part):
                alike = tuple(
                    (request, id(self._view.masks.get(shape)), pods)
                    for (request, shape), pods in each.demand
                )
                groups, first = found.get((each.levels[-1], alike), (0, each))
                found[each.levels[-1], alike] = groups + 1, first
        return found

    def _requiring(self, part: Part, around: int = -1) -> Iterator[Part]:
        """The members below a part that it needs and that require a domain narrower than `around`.

        One that requires no narrower domain than the one around it is there with that one already.
        Those with pods that stay are left out: these say which domain.
        """
        if part.needed < len(part.members):
            return  # which of them it needs is open
        for member in part.members:
            if member.is_optional:
                continue
            level = around
            if member.demand and not member.may_spread and member.levels[-1] > around:
                level = member.levels[-1]
                if not has_kept(member, self._kept):
                    yield member
            yield from self._requiring(member, level)


def _wanted(demand: Demand) -> dict[int, int]:
    return together((request, pods) for (request, _), pods in demand)


def together(requests: Iterable[tuple[Sequence[int], int]]) -> dict[int, int]:
    """What so many pods of each request ask of each resource, by row; nothing else is in it."""
    asked: Counter[int] = Counter()
    for request, pods in requests:
        for row, amount in enumerate(request):
            asked[row] += amount * pods
    return {row: amount for row, amount in asked.items() if amount}
