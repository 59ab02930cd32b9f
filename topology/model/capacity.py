"""What the nodes of one tree have, and what is taken: the only object here that changes.

    free = allocatable - used - held          each (R, N): one row per resource, one column per node

It has one writer. Every change goes through a method, which also brings the sums per
domain up to date: a handful of additions, however large the cluster is.

`free_by_domain` counts what open nodes still have. A node that is over-committed
counts as 0 there, not as a debt: what its neighbours have is real. Each node counts with
at most `counted_max`, so that no sum can leave an int64. These sums promise too much
(the remainders of two nodes make no place for one pod), so they screen domains
that cannot fit and never give an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from topology.model.resources import AMOUNT_MAX, Counts, Mask, ResourceAxis, Rows
from topology.model.tree import Tree

_INT64_MAX = 2**63 - 1
TAKEN_MAX = 3 * AMOUNT_MAX  # used plus held on one node: free stays an int64, whatever is offered


class Capacity:
    """Allocatable, used and held amounts over one tree's slots; free may be negative."""

    __slots__ = (
        "allocatable",
        "axis",
        "free_by_domain",
        "free_now",
        "generation",
        "held",
        "is_open",
        "offers",
        "tree",
        "used",
    )

    axis: ResourceAxis
    tree: Tree
    generation: int
    """The generation of `tree`."""
    allocatable: Counts
    """(R, N), C order. From the node's status."""
    used: Counts
    """(R, N) >= 0. Sum of the requests of bound, unfinished pods, ours or not."""
    held: Counts
    """(R, N) >= 0. Sum of the reservations that are not bound yet."""
    is_open: Mask
    """(N,) Ready and schedulable. A mask, so that cordoning never rebuilds the tree."""
    offers: int
    """How often what nodes have, or which of them are open, was written."""
    free_now: Counts
    """(R, N) What `free` is of all nodes, kept current: a search reads it and never writes it."""
    free_by_domain: list[Counts]
    """Per level (R, D): clip(free, 0, counted_max) summed over the open nodes of a domain."""

    def __init__(self, axis: ResourceAxis, tree: Tree) -> None:
        """Every node empty and closed, until `set_node` says otherwise."""
        shape = (len(axis), len(tree.nodes))
        self.axis = axis
        self.tree = tree
        self.generation = tree.generation
        self.allocatable = np.zeros(shape, dtype=np.int64)
        self.used = np.zeros(shape, dtype=np.int64)
        self.held = np.zeros(shape, dtype=np.int64)
        self.is_open = np.zeros(shape[1], dtype=np.bool_)
        self.offers = 0
        self.free_now = np.zeros(shape, dtype=np.int64)
        self.free_by_domain = [
            np.zeros((shape[0], starts.size), dtype=np.int64) for starts in tree.starts
        ]

    @property
    def counted_max(self) -> int:
        """The most one node adds to a sum of `free_by_domain`."""
        return _INT64_MAX // max(1, len(self.tree.nodes))

    # What changes

    def set_node(self, slot: int, allocatable: Sequence[int], is_open: bool) -> None:
        """Replaces what a node offers; rows the vector does not have become 0."""
        self._grow(len(allocatable))
        rows = self.allocatable.shape[0]
        self.allocatable[:, slot] = (*allocatable, *(0,) * (rows - len(allocatable)))
        self.is_open[slot] = is_open
        self.offers += 1
        self._recount(slot, range(rows))

    def set_all(self, allocatable: Counts, is_open: Mask, used: Counts, held: Counts) -> None:
        """Replaces the books of every node.

        Shapes: (R, N), (N,), (R, N), (R, N); at least as many rows as there are.
        Raises: ValueError if the arrays are of other shapes, or a sum is below 0 or leaves no
            room in an int64.
        """
        shape = (len(allocatable), len(self.tree.nodes))
        if not allocatable.shape == used.shape == held.shape == shape or is_open.shape != shape[1:]:
            raise ValueError(f"books of {shape} expected, and {used.shape}, {held.shape} given")
        if min(used.min(initial=0), held.min(initial=0)) < 0:
            raise ValueError("what is used or held is below 0")
        if (used > TAKEN_MAX - held).any():
            raise ValueError(f"some node has more than {TAKEN_MAX} of a resource taken")
        self.allocatable, self.is_open = allocatable, is_open
        self.offers += 1
        self.used, self.held = used, held
        self.free_now = self.free()
        self.free_by_domain = self.counted_by_domain()

    def use(self, slot: int, request: Sequence[int], pods: int = 1) -> None:
        """Counts bound pods. Raises: as `_add`."""
        self._grow(len(request))
        self._add(self.used, slot, request, pods)

    def unuse(self, slot: int, request: Sequence[int], pods: int = 1) -> None:
        """Takes back what `use` counted. Raises: as `_add`."""
        self._grow(len(request))
        self._add(self.used, slot, request, -pods)

    def hold(self, slot: int, request: Sequence[int], pods: int = 1) -> None:
        """Reserves capacity for pods that are placed and not bound. Raises: as `_add`."""
        self._grow(len(request))
        self._add(self.held, slot, request, pods)

    def release(self, slot: int, request: Sequence[int], pods: int = 1) -> None:
        """Takes back what `hold` reserved. Raises: as `_add`."""
        self._grow(len(request))
        self._add(self.held, slot, request, -pods)

    def move(self, tree: Tree, slots_before: Rows | None = None) -> Capacity:
        """The same books over another tree: nodes that stay keep their column.

        Nodes the other tree does not have are dropped with all that is on them; nodes
        that are new there are empty and closed.
        Shapes: slots_before (N,), where each node was in this tree, -1: nowhere; None: look it up.
        """
        moved = Capacity(self.axis, tree)
        moved._grow(self.allocatable.shape[0])
        columns = slots_before
        if columns is None:
            known = self.tree.slot_of
            columns = np.array([known.get(name, -1) for name in tree.nodes], dtype=np.intp)
        stays = columns >= 0
        rows = self.allocatable.shape[0]
        for source, target in (
            (self.allocatable, moved.allocatable),
            (self.used, moved.used),
            (self.held, moved.held),
        ):
            target[:rows, stays] = source[:, columns[stays]]
        moved.is_open[stays] = self.is_open[columns[stays]]
        moved.free_now = moved.free()
        moved.free_by_domain = moved.counted_by_domain()
        return moved

    def copy(self) -> Capacity:
        """The same books over the same tree, which change no more with these."""
        copy = Capacity(self.axis, self.tree)
        copy.allocatable, copy.used = self.allocatable.copy(), self.used.copy()
        copy.held, copy.is_open = self.held.copy(), self.is_open.copy()
        copy.free_now = self.free_now.copy()
        copy.free_by_domain = [sums.copy() for sums in self.free_by_domain]
        return copy

    def part(self, tree: Tree, slots: slice) -> Capacity:
        """The same books for some slots alone, which `tree` is of: views, to be read only."""
        part = Capacity(self.axis, tree)
        part.allocatable = self.allocatable[:, slots]
        part.used = self.used[:, slots]
        part.held = self.held[:, slots]
        part.is_open = self.is_open[slots]
        part.free_now = self.free_now[:, slots]
        part.free_by_domain = part.counted_by_domain()
        return part

    # What is read

    def free(self, rows: Sequence[int] | None = None, slots: Rows | None = None) -> Counts:
        """Allocatable minus used minus held, computed anew as a new array.

        Shapes: (R, N); with rows and slots given, (len(rows), len(slots)) of just those.
            A row of which no node has offered anything yet is 0.
        """
        wanted = range(self.allocatable.shape[0]) if rows is None else rows
        columns = slice(None) if slots is None else slots
        width = len(self.tree.nodes) if slots is None else slots.size
        free = np.zeros((len(wanted), width), dtype=np.int64)
        for index, row in enumerate(wanted):
            if row < self.allocatable.shape[0]:
                np.subtract(
                    self.allocatable[row, columns], self.used[row, columns], out=free[index]
                )
                free[index] -= self.held[row, columns]
        return free

    def may_cover(self, level: int, demand: Sequence[int]) -> Mask:
        """Which domains have, summed over their nodes, at least the demand.

        False is certain: the demand does not fit there. True is not an answer, since the
        sum may be made of remainders.
        Shapes: demand, any number of rows, each any size -> (D,).
        """
        counted = self.free_by_domain[level]
        covers = np.ones(counted.shape[1], dtype=np.bool_)
        for row, amount in enumerate(demand):
            if amount > 0:
                # A node may hold more than it counts for, so asking for more proves nothing.
                enough = min(amount, self.counted_max)
                covers &= counted[row] >= enough if row < counted.shape[0] else False
        return covers

    def counted_by_domain(self) -> list[Counts]:
        """`free_by_domain` computed anew from the matrices. Shapes: per level (R, D)."""
        counted = np.clip(self.free(), 0, self.counted_max)
        counted[:, ~self.is_open] = 0
        if counted.shape[1] == 0:
            return [counted.copy() for _ in self.tree.levels]
        return [np.add.reduceat(counted, starts, axis=1) for starts in self.tree.starts]

    # Bookkeeping: a few cells per change, in Python's integers, which cannot overflow

    def _add(self, books: Counts, slot: int, request: Sequence[int], pods: int) -> None:
        """Adds (pods < 0: takes back) the request of some pods on one node.

        Raises: ValueError, with nothing changed, if the books would fall below 0 (more
            taken back than added) or the node's used and held pass TAKEN_MAX.
        """
        changes: list[tuple[int, int]] = []
        for row, amount in enumerate(request):
            if amount == 0:
                continue
            before = int(books[row, slot])
            after = before + pods * amount
            taken = int(self.used[row, slot]) + int(self.held[row, slot]) - before + after
            if after < 0 or taken > TAKEN_MAX:
                raise ValueError(
                    f"node {self.tree.nodes[slot]}: {self.axis.names[row]} would go from {before} "
                    f"to {after}, with {taken} taken in all; the range is 0 to {TAKEN_MAX}"
                )
            changes.append((row, after))
        for row, after in changes:
            books[row, slot] = after
        self._recount(slot, [row for row, _ in changes])

    def _recount(self, slot: int, rows: Iterable[int]) -> None:
        """Brings `free_by_domain` up to date after a change on one node. O(rows x levels)."""
        is_open, counted_max = bool(self.is_open[slot]), self.counted_max
        domains = [int(domain_of[slot]) for domain_of in self.tree.domain_of]
        for row in rows:
            taken = int(self.used[row, slot]) + int(self.held[row, slot])
            free = int(self.allocatable[row, slot]) - taken
            counted = min(max(free, 0), counted_max) if is_open else 0
            # At the node level the sum over a domain is what this node counted so far.
            self.free_now[row, slot] = free
            change = counted - int(self.free_by_domain[-1][row, slot])
            if change:
                for sums, domain in zip(self.free_by_domain, domains, strict=True):
                    sums[row, domain] += change

    def _grow(self, rows: int) -> None:
        """Adds rows of zeros for resources named since; never fewer rows than there are."""
        missing = rows - self.allocatable.shape[0]
        if missing <= 0:
            return
        self.allocatable, self.used, self.held, self.free_now, *self.free_by_domain = (
            np.pad(amounts, ((0, missing), (0, 0)))
            for amounts in (
                self.allocatable,
                self.used,
                self.held,
                self.free_now,
                *self.free_by_domain,
            )
        )
