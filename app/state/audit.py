"""The books recomputed from the records: where they differ, and how that is corrected."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from app.state.cache.books import Booking, Books, TopologyBooks, by_node
from app.state.cache.totals import Totals
from app.state.gang.gang import Gang, phase_of
from app.state.gang.gangs import Gangs
from app.state.lifecycle.roll_call import RollCalls
from app.state.reserve.plans import Plans
from app.state.reserve.reservations import Reservations

MOST_NAMED = 10  # nodes in one sentence


def differences(books: Books, gangs: Gangs, others: Collection[str] = ()) -> list[str]:
    """One sentence for each invariant that does not hold; call it between inputs only.

    `others`: uids of ordinary pods that capacity is reserved for while they are being bound.
    """
    return [*_books(books), *_gangs(books, gangs), *_owners(books, gangs, others)]


@dataclass(frozen=True, slots=True)
class Healing:
    """Makes the books what the records say."""

    books: Books
    gangs: Gangs
    reservations: Reservations
    plans: Plans
    roll_calls: RollCalls

    def heal(self, others: Collection[str], now: float) -> None:
        """Add the books up anew; what was planned on wrong books is planned again."""
        self.books.recount()
        for gang in list(self.gangs.by_key.values()):
            if any(not _is_booked(self.books, uid, node) for uid, node in gang.plan.nodes.items()):
                self.plans.lose(gang, "the books were wrong", now)
        for uid in _unowned(self.books, self.gangs, others):
            self.books.release(uid)
        for gang in list(self.gangs.by_key.values()):
            self.roll_calls.review(gang, now)
        self.reservations.capacity_grew()


def _is_booked(books: Books, uid: str, node: str) -> bool:
    booking = books.held.get(uid) or books.bound.get(uid)
    return booking is not None and booking.node == node


def _owners(books: Books, gangs: Gangs, others: Collection[str]) -> Iterator[str]:
    for uid in _unowned(books, gangs, others):
        yield f"pod {uid} is held, and is in no plan"


def _unowned(books: Books, gangs: Gangs, others: Collection[str]) -> list[str]:
    """Uids that capacity is reserved for, in no gang's plan and not on their way to a node."""
    planned = {uid for gang in gangs.by_key.values() for uid in gang.plan.nodes}
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
            wrong = np.flatnonzero((column != _summed(books, topology, booked, column)).any(axis=0))
            if wrong.size:
                nodes = ", ".join(topology.tree.nodes[slot] for slot in wrong[:MOST_NAMED])
                yield (
                    f"topology {topology.name or 'of all nodes'}: {name} is not the sum of pods in"
                    f" {wrong.size} slots: {nodes}{', …' if wrong.size > MOST_NAMED else ''}"
                )


def _summed(
    books: Books,
    topology: TopologyBooks,
    bookings: dict[str, Booking],
    like: np.typing.NDArray[np.int64],
) -> np.typing.NDArray[np.int64]:
    total = np.zeros_like(like)
    for booking in bookings.values():
        slot = topology.tree.slot_of.get(booking.node)
        if slot is not None:
            counted = books.counted(booking.request)
            total[: len(counted), slot] += counted
    return total


def _gangs(books: Books, gangs: Gangs) -> Iterator[str]:
    for uid, key in gangs.key_of.items():
        if uid not in gangs.by_key[key].members:
            yield f"pod {uid} is no member of its gang {key}"
    running = Totals()
    for gang in gangs.by_key.values():
        for uid in gang.running:
            running.add(gang.key.namespace, gang.members[uid].pod.request)
    if running != gangs.running_in:
        yield "what running members of namespaces request is not the sum of them"
    for gang in gangs.by_key.values():
        if gang.key not in gangs.unreviewed:
            yield from _reviewed(gang)
        yield from _gang(books, gang)


def _reviewed(gang: Gang) -> Iterator[str]:
    """What must hold of a gang that is owed no roll call."""
    if not gang.plan.nodes.keys() <= gang.may_be_planned():
        yield f"gang {gang.key}: the plan covers pods that are not waiting"
    if gang.phase is not phase_of(gang):
        yield f"gang {gang.key} is {gang.phase}, not {phase_of(gang)}"
    if gang.plan.nodes and not gang.has_started and gang.is_short:
        yield f"gang {gang.key}: only a part of it is planned"


def _gang(books: Books, gang: Gang) -> Iterator[str]:
    held, posted = gang.binding.at_bind.keys(), gang.binding.posted
    is_apart = held <= gang.binding.arrived and not held & posted
    if not is_apart or not (gang.binding.arrived | posted) <= gang.plan.nodes.keys():
        yield f"gang {gang.key}: members at /bind differ from planned ones"
    if not gang.binding.outdated <= posted:
        yield f"gang {gang.key}: bindings of an older plan are not under way"
    if (
        not gang.rejections.outdated.keys()
        <= gang.rejections.sentences.keys()
        <= gang.members.keys()
    ):
        yield f"gang {gang.key}: pods are remembered as rejected that are no members"
    for uid, node in gang.plan.nodes.items():
        if not _is_booked(books, uid, node):
            yield f"gang {gang.key}: pod {uid} is not held on its node {node}"
