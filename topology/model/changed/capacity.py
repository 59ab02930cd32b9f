"""The books as they would be if some occupants left, or some nodes were back.

Changes are numbered, and any of them may be made together. Nothing here is written to: every
question gets books and masks of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topology.model.answer import Pairs
from topology.model.capacity import Capacity
from topology.model.resources import Counts, Mask, Rows

Masks = Mapping[Hashable, Mask]


@dataclass(frozen=True, slots=True)
class Occupant:
    """What leaves as one: a pod, or all pods of a gang that does not run in part."""

    key: str
    pods: tuple[tuple[int, tuple[int, ...]], ...]
    """(slot, request) of each, as counted in `used` or `held`."""
    rank: int = 0
    """Its priority, as a rule: the highest rank of those that go is as low as it can be."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What each change frees, and where; or which node it opens."""

    number: int
    """How many changes there are."""
    owners: Rows
    """(E,) ascending: the change of each entry. A change has at most one entry per slot."""
    slots: Rows
    """(E,) where."""
    freed: Counts
    """(R, E) what leaves there."""
    masks: Masks | None = None
    """Entries open their nodes, where these masks hold from then on. None: they open none."""

    def books(self, capacity: Capacity, chosen: Sequence[int]) -> Capacity:
        """The books after some changes."""
        entries = self._entries(chosen)
        taken = capacity.used + capacity.held
        is_open = capacity.is_open
        if self.masks is None:
            for row in np.flatnonzero(self.freed[:, entries].any(axis=1)):
                np.subtract.at(taken[row], self.slots[entries], self.freed[row, entries])
        else:
            is_open = is_open.copy()
            is_open[self.slots[entries]] = True
        return as_if(capacity, taken, is_open)

    def allowed(self, masks: Masks, chosen: Sequence[int]) -> Masks:
        """The masks after some changes."""
        if self.masks is None or self.masks is masks:
            return masks
        slots = self.slots[self._entries(chosen)]
        allowed = {shape: mask.copy() for shape, mask in masks.items()}
        for shape, mask in allowed.items():
            mask[slots] = self.masks[shape][slots]
        return allowed

    def within(self, domain_of: Rows, domain: int) -> set[int]:
        """The changes that reach into a domain. Shapes: domain_of (N,)."""
        return set(self.owners[domain_of[self.slots] == domain].tolist())

    def _entries(self, chosen: Sequence[int]) -> Rows:
        happens = np.zeros(self.number, dtype=np.bool_)
        happens[np.array(chosen, dtype=np.intp)] = True
        return np.flatnonzero(happens[self.owners])


def as_if(capacity: Capacity, taken: Counts, is_open: Mask) -> Capacity:
    """Books that share what nodes offer, with so much taken. Shapes: (R, N), (N,)."""
    books = Capacity(capacity.axis, capacity.tree)
    books.allocatable = capacity.allocatable
    books.used, books.held = taken, np.zeros_like(taken)
    books.is_open = is_open
    books.free_now = capacity.allocatable - taken
    books.free_by_domain = books.counted_by_domain()
    return books


def emptied(capacity: Capacity, is_open: Mask) -> Capacity:
    """Books in which nothing is taken. Shapes: (N,)."""
    return as_if(capacity, np.zeros_like(capacity.used), is_open)


def arrived(capacity: Capacity, arriving: Iterable[tuple[Sequence[int], Pairs]]) -> Capacity:
    """Books in which these pods, (request, slots) each, are there already."""
    taken = capacity.used + capacity.held
    for request, slots in arriving:
        column = np.zeros(len(taken), dtype=np.int64)
        column[: len(request)] = request[: len(taken)]
        for slot, pods in slots:
            taken[:, slot] += pods * column
    return as_if(capacity, taken, capacity.is_open)


def returning(
    capacity: Capacity, slots: Sequence[int], masks: Masks, masks_back: Masks | None
) -> Changes:
    """Each of these nodes is back, and from then on what `masks_back` says of it holds.

    A node that is open now keeps what it may host now.
    Raises: ValueError for a slot that is not in the tree.
    """
    for slot in slots:
        _check_slot(capacity, "away", slot)
    if masks_back is not None:
        masks = {
            shape: masks_back.get(shape, mask) | (mask & capacity.is_open)
            for shape, mask in masks.items()
        }
    return Changes(
        number=len(slots),
        owners=np.arange(len(slots), dtype=np.intp),
        slots=np.array(slots, dtype=np.intp),
        freed=np.zeros((capacity.used.shape[0], len(slots)), dtype=np.int64),
        masks=masks,
    )


def leaving(capacity: Capacity, occupants: Sequence[Occupant]) -> Changes:
    """Each of these has left.

    Raises: ValueError for a slot that is not in the tree, or if together they take more of a
        node than is used and held there.
    """
    pods = [
        (index, slot, request)
        for index, occupant in enumerate(occupants)
        for slot, request in occupant.pods
    ]
    number_of = {request: at for at, request in enumerate(dict.fromkeys(one for _, _, one in pods))}
    taken = _by_request(capacity, number_of, occupants)
    for index, on, _ in pods:
        if not 0 <= on < len(capacity.tree.nodes):
            _check_slot(capacity, f"occupant {occupants[index].key}", on)
    owners = np.array([index for index, _, _ in pods], dtype=np.intp)
    slots = np.array([slot for _, slot, _ in pods], dtype=np.intp)
    requests = np.array([number_of[request] for _, _, request in pods], dtype=np.intp)
    # Pods of one occupant on one node are one entry.
    keys, entry_of = np.unique(
        owners * max(1, len(capacity.tree.nodes)) + slots, return_inverse=True
    )
    freed = np.zeros((taken.shape[0], keys.size), dtype=np.int64)
    for row in np.flatnonzero(taken.any(axis=1)).tolist():
        np.add.at(freed[row], entry_of, taken[row, requests])
    first = np.zeros(keys.size, dtype=np.intp)
    first[entry_of] = np.arange(owners.size)
    changes = Changes(
        number=len(occupants),
        owners=owners[first],
        slots=slots[first],
        freed=freed,
    )
    left = changes.books(capacity, range(len(occupants))).used
    for row, slot in np.argwhere(left < 0).tolist():
        raise ValueError(
            f"occupants: node {capacity.tree.nodes[slot]} has {-left[row, slot]} less of "
            f"{capacity.axis.names[row]} taken than they take"
        )
    return changes


def _by_request(
    capacity: Capacity, number_of: Mapping[tuple[int, ...], int], occupants: Sequence[Occupant]
) -> Counts:
    """What each request takes, by its number. Shapes: (R, requests). Raises: ValueError."""
    rows = capacity.used.shape[0]
    taken = np.zeros((rows, len(number_of)), dtype=np.int64)
    for request, number in number_of.items():
        for row, amount in enumerate(request):
            if amount < 0 or (amount and row >= rows):
                keys = (each.key for each in occupants if request in (one for _, one in each.pods))
                raise ValueError(
                    f"occupant {next(keys)}: request row {row} is {amount}, and no node "
                    "has that taken"
                )
        taken[: len(request), number] = request[:rows]
    return taken


def _check_slot(capacity: Capacity, owner: str, slot: int) -> None:
    if not 0 <= slot < len(capacity.tree.nodes):
        raise ValueError(f"{owner}: slot {slot} is not one of {len(capacity.tree.nodes)} nodes")
