"""Where there is room: what requests fit beside all that is used and held. Changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from app.kube.core.objects import Amounts
from app.state.cache.books import ALL_NODES, Books
from topology.model.capacity import Capacity
from topology.model.resources import Rows


def fits(
    books: Books,
    node: str,
    request: Amounts,
    *,
    without: Collection[str] = (),
    beside: Iterable[Amounts] = (),
) -> bool:
    """Whether the node takes this request beside all that is used and held.

    `without`: uids of pods there that do not count; `beside`: requests that count as well.
    """
    every = books.topologies[ALL_NODES]
    slot = every.tree.slot_of.get(node)
    if slot is None:
        return False
    more = Counter[int]()
    for uid in without:
        booked = books.bound_on.get(node, {}).get(uid) or books.held_on.get(node, {}).get(uid, ())
        more.update(dict(enumerate(books.counted(booked) if booked else ())))
    for amounts in beside:
        more.subtract(dict(enumerate(books.counted(amounts))))
    return not any(
        amount > _free_at(every.capacity, slot, resource) + more[resource]
        for resource, amount in enumerate(books.vector(request))
        if amount
    )


def held_without_room(
    books: Books, request: Amounts, priority: int | None = None
) -> frozenset[str]:
    """The nodes where something is held and this request does not fit beside it.

    `priority`: what is held for pods of a lower one does not count.
    """
    slots = slots_of(books, books.held_on)
    if not len(slots):
        return frozenset()
    nodes = books.topologies[ALL_NODES].tree.nodes
    slots = slots[_lacks(books, request, slots)]
    lower = _held_below(books, priority) if priority is not None else None
    if lower:
        nothing = Counter[int]()
        more = [lower.get(nodes[slot], nothing) for slot in slots.tolist()]
        slots = slots[_lacks(books, request, slots, more)]
    return frozenset(nodes[slot] for slot in slots.tolist())


def without_room_beside(
    books: Books, request: Amounts, beside: Mapping[str, Iterable[Amounts]]
) -> frozenset[str]:
    """Those of these nodes where the request does not fit beside what is kept of them too."""
    nodes = books.topologies[ALL_NODES].tree.nodes
    slots = slots_of(books, beside)
    counted: dict[tuple[Amounts, ...], Counter[int]] = {}
    kept = []
    for slot in slots.tolist():
        alike = tuple(beside[nodes[slot]])
        if alike not in counted:
            taken = counted[alike] = Counter()
            for amounts in alike:
                taken.subtract(dict(enumerate(books.counted(amounts))))
        kept.append(counted[alike])
    slots = slots[_lacks(books, request, slots, kept)]
    return frozenset(nodes[slot] for slot in slots.tolist())


def _held_below(books: Books, priority: int) -> dict[str, Counter[int]]:
    """What is held for pods of a lower priority, by node: amounts by resource row."""
    found: dict[str, Counter[int]] = {}
    counted: dict[Amounts, dict[int, int]] = {}
    for uid, booking in books.held.items():
        if not _yields(books, uid, priority):
            continue
        amounts = counted.get(booking.request)
        if amounts is None:
            amounts = dict(enumerate(books.counted(booking.request)))
            counted[booking.request] = amounts
        found.setdefault(booking.node, Counter()).update(amounts)
    return found


def held_below(books: Books, node: str, priority: int) -> frozenset[str]:
    """The uids of pods of a lower priority that something is held for on a node."""
    return frozenset(uid for uid in books.held_on.get(node, {}) if _yields(books, uid, priority))


def _yields(books: Books, uid: str, priority: int) -> bool:
    """Whether what is held for a pod gives way to pods of this priority."""
    return books.priority_of.get(uid, 0) < priority


def slots_of(books: Books, nodes: Iterable[str]) -> Rows:
    """Where these nodes stand among all; one that is unknown is left out."""
    slot_of = books.topologies[ALL_NODES].tree.slot_of
    return np.array([slot_of[node] for node in nodes if node in slot_of], dtype=np.intp)


def has_room(books: Books, request: Amounts, closed: Collection[str]) -> bool:
    """Whether some open node takes this request beside all that is used and held.

    `closed`: nodes that are none for it.
    """
    every = books.topologies[ALL_NODES]
    covers = every.capacity.may_cover(every.tree.node_level, books.vector(request))
    covers[slots_of(books, closed)] = False
    return bool(covers.any())


def fits_on_any(books: Books, slots: Rows, request: Amounts) -> bool:
    """Whether one of these nodes takes this request beside all that is used and held."""
    return bool(len(slots)) and not _lacks(books, request, slots).all()


def _lacks(
    books: Books, request: Amounts, slots: Rows, more: Sequence[Mapping[int, int]] = ()
) -> np.typing.NDArray[np.bool_]:
    """On which of these nodes the request does not fit.

    `more`: for each of them what is free besides, by resource row.
    """
    free_now = books.topologies[ALL_NODES].capacity.free_now
    lacks = np.zeros(len(slots), dtype=np.bool_)
    for row, amount in enumerate(books.vector(request)):
        if not amount:
            continue
        is_offered = row < free_now.shape[0]
        free = free_now[row, slots] if is_offered else np.zeros(len(slots), dtype=np.int64)
        for column, amounts in enumerate(more):
            free[column] += amounts.get(row, 0)
        lacks |= free < amount
    return lacks


def is_overcommitted(books: Books, node: str) -> bool:
    """Whether what is held on a node no longer fits beside what is used there."""
    every = books.topologies[ALL_NODES]
    slot = every.tree.slot_of.get(node)
    return slot is None or any(
        amount and _free_at(every.capacity, slot, resource) < 0
        for request in books.held_on.get(node, {}).values()
        for resource, amount in enumerate(books.vector(request))
    )


def _free_at(capacity: Capacity, slot: int, resource: int) -> int:
    if resource >= len(capacity.allocatable):
        return 0  # no node of this tree has any of it
    allocatable, used, held = capacity.allocatable, capacity.used, capacity.held
    return int(allocatable[resource, slot] - used[resource, slot] - held[resource, slot])
