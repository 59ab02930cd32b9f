"""The books recomputed from the records: what differs, which is nothing unless we have a bug."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from app.state.cache.books import Booking, Books, TopologyBooks, by_node
from app.state.gang.gang import Gang, phase_of
from app.state.lifecycle.ledger import Ledger

MOST_NAMED = 10  # nodes in one sentence


def differences(books: Books, ledger: Ledger, others: Collection[str] = ()) -> list[str]:
    """Every sentence is one invariant that does not hold; call it between inputs only.

    `others`: ordinary pods on their way to a node, for which something is held too.
    """
    return [*_books(books), *_gangs(books, ledger), *_owners(books, ledger, others)]


def heal(books: Books, ledger: Ledger, others: Collection[str], now: float) -> None:
    """Make the books what the records say; what was planned on wrong books is planned anew."""
    books.recount()
    for gang in list(ledger.gangs.values()):
        if any(not _is_booked(books, uid, node) for uid, node in gang.plan.items()):
            ledger.lose_plan(gang, "the books were wrong", now)
    for uid in _unowned(books, ledger, others):
        books.release(uid)
    for gang in list(ledger.gangs.values()):
        ledger.review(gang, now)
    ledger.reservations.capacity_grew()


def _is_booked(books: Books, uid: str, node: str) -> bool:
    booking = books.held.get(uid) or books.bound.get(uid)
    return booking is not None and booking.node == node


def _owners(books: Books, ledger: Ledger, others: Collection[str]) -> Iterator[str]:
    for uid in _unowned(books, ledger, others):
        yield f"pod {uid} is held, and nobody plans with it"


def _unowned(books: Books, ledger: Ledger, others: Collection[str]) -> list[str]:
    """Pods that are held for nobody."""
    planned = {uid for gang in ledger.gangs.values() for uid in gang.plan}
    return [uid for uid in books.held if uid not in planned and uid not in others]


def _books(books: Books) -> Iterator[str]:
    for uid in books.bound.keys() & books.held.keys():
        yield f"pod {uid} is both bound and held"
    if by_node(books.bound) != books.bound_on:
        yield "bound pods by node differ from bound pods"
    if by_node(books.held) != books.held_on:
        yield "held pods by node differ from held pods"
    for topology in books.topologies.values():
        for name, booked, column in (
            ("used", books.bound, topology.capacity.used),
            ("held", books.held, topology.capacity.held),
        ):
            wrong = np.flatnonzero((column != _summed(topology, booked, column)).any(axis=0))
            if wrong.size:
                nodes = ", ".join(topology.tree.nodes[slot] for slot in wrong[:MOST_NAMED])
                yield (
                    f"topology {topology.name or 'of all nodes'}: {name} is not the sum of pods in"
                    f" {wrong.size} slots: {nodes}{', …' if wrong.size > MOST_NAMED else ''}"
                )


def _summed(
    topology: TopologyBooks, bookings: dict[str, Booking], like: np.typing.NDArray[np.int64]
) -> np.typing.NDArray[np.int64]:
    total = np.zeros_like(like)
    for booking in bookings.values():
        slot = topology.tree.slot_of.get(booking.node)
        if slot is not None:
            total[: len(booking.request), slot] += booking.request
    return total


def _gangs(books: Books, ledger: Ledger) -> Iterator[str]:
    for uid, key in ledger.gang_of.items():
        if uid not in ledger.gangs[key].members:
            yield f"pod {uid} is no member of its gang {key}"
    for gang in ledger.gangs.values():
        yield from _gang(books, ledger, gang)


def _gang(books: Books, ledger: Ledger, gang: Gang) -> Iterator[str]:
    if gang.key not in ledger.unreviewed:
        if not gang.plan.keys() <= gang.may_be_planned():
            yield f"gang {gang.key}: the plan covers pods that are not waiting"
        if gang.phase is not phase_of(gang):
            yield f"gang {gang.key} is {gang.phase}, not {phase_of(gang)}"
        if gang.plan and not gang.has_started and gang.unplanned():
            yield f"gang {gang.key}: only a part of it is planned"
    held, posted = gang.at_bind.keys(), gang.posted
    is_apart = held <= gang.arrived and not held & posted
    if not is_apart or not (gang.arrived | posted) <= gang.plan.keys():
        yield f"gang {gang.key}: members at /bind differ from planned ones"
    if not gang.misinformed.keys() <= gang.rejected.keys() <= gang.members.keys():
        yield f"gang {gang.key}: pods are remembered as told no that are no members"
    for uid, node in gang.plan.items():
        if not _is_booked(books, uid, node):
            yield f"gang {gang.key}: pod {uid} is not held on its node {node}"
