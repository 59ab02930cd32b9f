"""The books recomputed from the records: one sentence for each place where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import chain

import numpy as np

from app.kube.core.objects import Amounts
from app.state.cache.books import Booking, Books
from app.state.cache.counting import slots_by_request, summed
from app.state.cache.totals import Totals
from app.state.gang.gang import Gang, phase_of
from app.state.gang.gangs import Gangs
from app.state.turns.pieces import pieces

MOST_NAMED = 10  # nodes in one sentence
# Looked at in one piece: a millisecond, with ten pods on each node or in each gang.
NODES_A_PIECE, GANGS_A_PIECE, PODS_A_PIECE = 256, 128, 4_096

_NOTHING: Mapping[str, Amounts] = {}


def checks(books: Books, gangs: Gangs, others: Collection[str] = ()) -> Iterator[list[str]]:
    """Sentences for the invariants that do not hold, a piece at a time.

    Inputs may come between two pieces, and each piece holds by itself: what is added up together is
    looked at together. A node or a gang that comes meanwhile may be left out.
    `others`: uids of ordinary pods that capacity is reserved for while they are being bound.
    """
    yield from _books(books)
    yield from _gangs(books, gangs)
    yield list(_owners(books, gangs, others))


def differences(books: Books, gangs: Gangs, others: Collection[str] = ()) -> list[str]:
    """One sentence for each invariant that does not hold; call it between inputs only."""
    return list(chain.from_iterable(checks(books, gangs, others)))


def _owners(books: Books, gangs: Gangs, others: Collection[str]) -> Iterator[str]:
    for uid in unowned(books, gangs, others):
        yield f"pod {uid} is held, and is in no plan"


def is_booked(books: Books, uid: str, node: str) -> bool:
    """Whether a pod is held or bound on this node."""
    booking = books.held.get(uid) or books.bound.get(uid)
    return booking is not None and booking.node == node


def unowned(books: Books, gangs: Gangs, others: Collection[str]) -> list[str]:
    """Uids that capacity is reserved for, in no gang's plan and not on their way to a node."""
    found = dict.fromkeys(uid for uid in books.held if uid not in others)
    for gang in gangs.by_key.values() if found else ():
        for uid in found.keys() & gang.plan.nodes.keys():
            del found[uid]
    return list(found)


def _books(books: Books) -> Iterator[list[str]]:
    both = books.bound.keys() & books.held.keys()
    yield [f"pod {uid} is both bound and held" for uid in both]
    yield from _by_node("bound", books.bound, books.bound_on)
    yield from _by_node("held", books.held, books.held_on)
    for name in list(books.topologies):
        yield from _sums(books, name, "used", books.bound_on)
        yield from _sums(books, name, "held", books.held_on)


def _by_node(
    what: str, bookings: Mapping[str, Booking], of_nodes: Mapping[str, Mapping[str, Amounts]]
) -> Iterator[list[str]]:
    """Whether bookings and those by node are the same."""
    pods = sum(map(len, of_nodes.values()))
    is_wrong = pods != len(bookings) or not all(of_nodes.values())
    for nodes in pieces(list(of_nodes), NODES_A_PIECE):
        yield []
        for node in nodes:
            for uid, request in of_nodes.get(node, _NOTHING).items():
                booked = bookings.get(uid)
                is_wrong |= booked is None or (booked.node, booked.request) != (node, request)
    yield [f"{what} pods by node differ from {what} pods"] if is_wrong else []


def _sums(
    books: Books, topology: str, what: str, booked: Mapping[str, Mapping[str, Amounts]]
) -> Iterator[list[str]]:
    """Whether what is `used` or `held` in a topology is what the pods of each node request."""
    wrong: list[str] = []
    first = 0
    while (its := books.topologies.get(topology)) and first < len(its.tree.nodes):
        # Looked up anew: the tree may have been built anew since the last piece.
        nodes = its.tree.nodes[first : first + NODES_A_PIECE]
        there = getattr(its.capacity, what)[:, first : first + len(nodes)]
        places = (
            (at, request)
            for at, node in enumerate(nodes)
            for request in booked.get(node, _NOTHING).values()
        )
        due = summed(slots_by_request(places), books.counted, (len(books.axis), len(nodes)))
        due[: len(there)] -= there
        wrong += [nodes[at] for at in np.flatnonzero(due.any(axis=0)).tolist()]
        first += NODES_A_PIECE
        yield []
    if wrong:
        named = f"{', '.join(wrong[:MOST_NAMED])}{', …' if len(wrong) > MOST_NAMED else ''}"
        where = f"topology {topology or 'of all nodes'}: {what}"
        yield [f"{where} is not the sum of pods in {len(wrong)} slots: {named}"]


def _gangs(books: Books, gangs: Gangs) -> Iterator[list[str]]:
    for uids in pieces(list(gangs.key_of), PODS_A_PIECE):
        yield [
            f"pod {uid} is no member of its gang {key}"
            for uid in uids
            if (key := gangs.key_of.get(uid)) is not None and uid not in gangs.by_key[key].members
        ]
    yield list(_running(gangs))
    for keys in pieces(list(gangs.by_key), GANGS_A_PIECE):
        found = list[str]()
        for gang in filter(None, map(gangs.by_key.get, keys)):
            if gang.key not in gangs.unreviewed:
                found.extend(_reviewed(gang))
            found.extend(_gang(books, gang))
        yield found


def _running(gangs: Gangs) -> Iterator[str]:
    alike = Counter(
        (gang.key.namespace, gang.members[uid].pod.request)
        for gang in gangs.by_key.values()
        for uid in gang.running
    )
    running = Totals()
    for (namespace, request), pods in alike.items():
        running.add(namespace, request, pods)
    if running != gangs.running_in:
        yield "what running members of namespaces request is not the sum of them"


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
        if not is_booked(books, uid, node):
            yield f"gang {gang.key}: pod {uid} is not held on its node {node}"
        booked = books.held.get(uid)
        if booked is not None and gang.has(uid) and booked.request != gang.member(uid).pod.request:
            yield f"gang {gang.key}: what is held for pod {uid} is not what it requests"
