"""Which nodes would be enough for a gang, now and once what ends there has ended.

    Fit      of one pod set: how many of its pods each node takes now, and would take empty
    Sought   of a gang: its pod sets, and the domains that could take all of it
    Lasting  what nodes have left beside pods that do not end by themselves

Nothing here keeps a node for a gang: that is `starvation.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.kube.core.objects import Amounts
from app.state.cache.books import Books
from app.state.fairness.expected_room import fitting, take
from app.state.gang.gang import Gang
from topology.model.resources import Counts
from topology.model.tree import Tree

ANYWHERE = -1  # the level of a gang that requires none


@dataclass(frozen=True, slots=True)
class Fit:
    """Pods of one pod set: how many to place, fit on each node now, and would fit on it empty."""

    pods: int
    request: Amounts
    tree: Tree
    now: Counts
    empty: Counts

    def least_nodes(self, slots: range) -> int:
        """How many of these nodes it needs at least; more than there are if all are too few."""
        empty = np.sort(self.empty[slots.start : slots.stop])[::-1]
        return int(np.searchsorted(np.cumsum(empty), self.pods)) + 1

    def fits_in(self, slots: range, lasting: Lasting) -> bool:
        """Whether these nodes could take it once what ends there has ended."""
        return sum(self.once_free(slot, lasting) for slot in slots) >= self.pods

    def once_free(self, slot: int, lasting: Lasting) -> int:
        """How many pods the node could take then."""
        if not self.empty[slot]:
            return 0
        left = lasting.left_on(self.tree.nodes[slot])
        return fitting(left, self.request)


@dataclass(frozen=True, slots=True)
class Sought:
    """What a gang needs. `level`: of its domain; `is_whole`: all of a domain is kept."""

    gang: Gang
    fits: Sequence[Fit]
    tree: Tree
    level: int
    is_whole: bool

    @property
    def is_for_absent(self) -> bool:
        """Whether some of its pods do not exist."""
        return any(each.pod.uid in self.gang.placeholders for each in self.gang.unplanned())

    def domains(self) -> Iterator[tuple[range, int]]:
        """The slots of those that could take all of it, and how many of its pods fit there now.

        Those first where most do. ANYWHERE is not measured.
        """
        if self.level == ANYWHERE:
            yield range(len(self.tree.nodes)), 0
            return
        starts = self.tree.starts[self.level]
        is_large_enough = np.ones(len(starts), dtype=np.bool_)
        fit_now = np.zeros(len(starts), dtype=np.int64)
        for each in self.fits:
            is_large_enough &= np.add.reduceat(each.empty, starts) >= each.pods
            fit_now += np.minimum(np.add.reduceat(each.now, starts), each.pods)
        found = np.argsort(-fit_now, kind="stable")
        for domain in found[is_large_enough[found]].tolist():
            slots = self.tree.slots(self.level, domain)
            yield range(slots.start, slots.stop), int(fit_now[domain])


@dataclass(slots=True)
class Lasting:
    """What nodes have left beside pods that do not end by themselves; reads only so many nodes."""

    books: Books
    most_nodes: int
    _left: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def is_spent(self) -> bool:
        return len(self._left) >= self.most_nodes

    def left_on(self, node: str) -> Mapping[str, int]:
        """Amounts by resource; nothing for a node that is one too many."""
        if node in self._left or self.is_spent:
            return self._left.get(node, {})
        left = self._left[node] = dict(self.books.nodes[node].allocatable)
        for uid, request in self.books.bound_on.get(node, {}).items():
            if uid in self.books.lasting:
                take(left, request)
        return left


def fewest(fits: Sequence[Fit], slots: range, lasting: Lasting) -> Sequence[int]:
    """Nodes of a domain, those with most room now first, as few as could take all; none if none.

    No two pod sets share a node: what one leaves of it may be too little for the other.
    """
    chosen: set[int] = set()
    for each in fits:
        left = each.pods
        by_room = np.lexsort(
            (-each.empty[slots.start : slots.stop], -each.now[slots.start : slots.stop])
        )
        for slot in (by_room + slots.start).tolist():
            if slot not in chosen and (pods := each.once_free(slot, lasting)):
                chosen.add(slot)
                left -= pods
                if left <= 0:
                    break
        if left > 0:
            return ()
    return sorted(chosen)
