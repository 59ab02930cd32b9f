"""What nodes have free, and what gets free there when: read once for all gangs that starve.

    what runs on a node ──read──▶ its ends, and what is free from each on
    readings of all nodes ──▶ one table ──a request──▶ how many such pods fit where, from when on

The table is that of one review, and gangs whose pods request the same share what follows from it. A
reading is kept from review to review, until what is booked on its node changes or READ_SECONDS have
passed. A review reads so many nodes at most, and the next one goes on: first with those that were
never read, then with those whose reading is oldest, which count as they were read until then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
from numpy import typing as npt

from app.state.cache.books import ALL_NODES, Books
from app.state.cache.counting import Vector
from app.state.fairness.run_times import RunTimes
from topology.model.resources import Counts, Mask, Rows
from topology.model.tree import Tree

MOST_READ = 512  # nodes in one review: 30 us for one with 30 pods that end
MOST_VISITS = 16_384  # nodes in one review that are put into a table, or looked at there: 2 us
PER_VISIT = 4  # nodes that a gang picks out of what all share
MOST_KEPT = 16_384  # nodes; then those go that were read first
READ_SECONDS = 120.0  # what is said of ends changes without a booking
READ, VISIT = 64, 4  # of the tick's budget, where a node is read, and looked at

Times = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Reading:
    """One node. Shapes: ends (E,), free (E, R).

    From each end on so much is free; the first one is -infinity. In order.
    """

    booked_at: int  # as the books count
    at: float
    until: float
    ends: Times
    free: Counts


@dataclass(frozen=True, slots=True)
class _Table:
    """The readings of a tree's nodes in a row. Shapes: slots, ends (M,), free (R, M)."""

    tree: Tree
    nodes: int
    slots: Rows
    ends: Times
    free: Counts


@dataclass(frozen=True, slots=True)
class Growth:
    """More pods that fit: on which slot, from when on, and how many. Shapes: all (K,)."""

    slots: Rows
    when: Times
    more: Counts

    def of(self, rows: Rows | Mask | slice) -> Growth:
        """These rows alone."""
        return Growth(self.slots[rows], self.when[rows], self.more[rows])


@dataclass(slots=True)
class Endings:
    """The readings of nodes; of one review how much of its work is done."""

    books: Books
    run_times: RunTimes
    seconds: float
    """What gets free later than in so long counts as never free."""
    now: float = 0.0
    read: int = 0
    """Nodes, in this review."""
    visits: int = 0
    _of: dict[str, _Reading] = field(default_factory=dict)
    _table: _Table | None = None  # of this review, and of all that was read
    _grown: dict[Vector, Growth] = field(default_factory=dict)  # by request, from the table

    @property
    def is_spent(self) -> bool:
        """Whether no further gang is sought a place for in this review."""
        return self.visits >= MOST_VISITS

    @property
    def cost(self) -> int:
        """What was done in this review, as the tick's budget counts it."""
        return READ * self.read + VISIT * self.visits

    def begin(self, now: float) -> None:
        """A review begins."""
        self.now, self.read, self.visits, self._table = now, 0, 0, None
        self._grown.clear()
        for node in self._of.keys() - self.books.nodes.keys():
            del self._of[node]

    def forget(self) -> None:
        """No gang starves."""
        self._of.clear()
        self._grown.clear()
        self._table = None

    def have_read(self, nodes: Sequence[str]) -> bool:
        """Read some of these nodes; returns whether all of them were, now or before."""
        self.visits += 1 + len(nodes) // PER_VISIT
        rows = len(self.books.axis)
        new, old = [], []
        for node in nodes:
            known = self._of.get(node)
            if known is None or known.free.shape[1] != rows:
                new.append(node)
            elif known.until <= self.now or known.booked_at != self.books.booked_at.get(node):
                old.append(node)
        old.sort(key=lambda node: self._of[node].at)
        left = MOST_READ - self.read
        for node in [*new, *old][:left]:
            self._read(node)
        for node in list(self._of)[: max(0, len(self._of) - MOST_KEPT)]:
            del self._of[node]
        return len(new) <= left

    def _read(self, node: str) -> None:
        self.read += 1
        self._table = None
        latest, ends = self.now + self.seconds, list[tuple[float, Vector]]()
        for uid, request in self.books.bound_on.get(node, {}).items():
            end = self.run_times.end_of(uid, self.now)
            if end <= latest:
                ends.append((end, self.books.counted(request)))
        ends.sort(key=itemgetter(0))
        capacity = self.books.topologies[ALL_NODES].capacity
        amounts = np.zeros((len(ends) + 1, len(self.books.axis)), dtype=np.int64)
        if (slot := capacity.tree.slot_of.get(node)) is not None:
            slots = np.array([slot], dtype=np.intp)
            amounts[0] = capacity.free(range(len(self.books.axis)), slots)[:, 0]
        if ends:
            amounts[1:] = [vector for _, vector in ends]
        self._of.pop(node, None)  # the last one that was read
        self._of[node] = _Reading(
            self.books.booked_at.get(node, 0),
            self.now,
            min([self.now + READ_SECONDS, *(end for end, _ in ends[:1])]),
            np.array([-math.inf, *(end for end, _ in ends)]),
            np.cumsum(amounts, axis=0),
        )

    def growth(self, tree: Tree, request: Vector) -> Growth:
        """How many such pods fit on nodes that were read: now, and more of them later."""
        if self._table is None or self._table.tree is not tree:
            self._table = self._made(tree)
            self._grown.clear()
        if request not in self._grown:
            self._grown[request] = _grown(self._table, request)
            self.visits += self._table.nodes
        return self._grown[request]

    def _made(self, tree: Tree) -> _Table:
        rows = len(self.books.axis)
        known = sorted(
            (slot, each)
            for node, each in self._of.items()
            if (slot := tree.slot_of.get(node)) is not None and each.free.shape[1] == rows
        )
        self.visits += len(known)
        if not known:
            none = np.zeros(0, dtype=np.intp)
            return _Table(tree, 0, none, np.zeros(0), np.zeros((rows, 0), dtype=np.int64))
        lengths = [len(each.ends) for _, each in known]
        return _Table(
            tree,
            len(known),
            np.repeat(np.array([slot for slot, _ in known], dtype=np.intp), lengths),
            np.maximum(np.concatenate([each.ends for _, each in known]), self.now),
            np.ascontiguousarray(np.concatenate([each.free for _, each in known]).T),
        )


def _grown(table: _Table, request: Vector) -> Growth:
    fits = np.full(len(table.slots), np.iinfo(np.int64).max)
    for row, amount in enumerate(request):
        if amount and row < len(table.free):
            np.minimum(fits, table.free[row] // amount, out=fits)
        elif amount:
            fits[:] = 0
    np.maximum(fits, 0, out=fits)
    is_first = np.diff(table.slots, prepend=-1) != 0
    more = np.where(is_first, fits, np.diff(fits, prepend=0))
    return Growth(table.slots, table.ends, more).of(more > 0)
