"""What every node has of one resource, and which gangs have it: a picture of the whole topology.

    engine ──copied, on the event loop, in steps──▶ Known ──drawn, in a thread──▶ MapPage

Copying is short: arrays of numbers, two dicts, and the pods of some gangs a step. All that takes a
look at each pod is done in the thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from app.dialects.spec import GangKey
from app.explain.topology.map_view import MapEarmarks, MapGang, MapLevel, MapPage, MapShares
from app.explain.topology.usage import Books, NoSuch, unit_of, why_closed
from app.kube.core.turns import turn
from app.state.cache.books import Booking
from app.state.engine import Engine
from topology.model.capacity import Capacity

GANGS_A_STEP = 250  # copied at once: half a millisecond
PODS_A_TURN = 256  # a fifth of a millisecond
MOST_SHARES = 50_000  # of gangs on nodes; 5,000 nodes of eight gangs each have fewer
ACCELERATORS = "gpu"  # what is looked at first, if a resource has that in its name
FALLBACK = "cpu"

May = Callable[[str], bool]
"""Whether the names of this namespace's gangs may be seen."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a map is drawn from, at one moment or nearly so."""

    books: Books
    bound: Mapping[str, Booking]
    """Of pods of gangs alone, as `held`."""
    held: Mapping[str, Booking]
    gangs: Sequence[tuple[GangKey, Sequence[str]]]
    """Each gang with the uids of its pods, placeholders included."""
    earmarks: Sequence[tuple[GangKey, frozenset[str]]]


def copied(engine: Engine, name: str) -> Iterator[Known | None]:
    """Copy what a map needs; others have the loop between two steps. The last is the result.

    `name`: of the topology; "": the first that has levels. Raises: NoSuch.
    """
    books = Books.of(engine, name, ())
    yield None
    # Pods whose gang changes between two steps may be missing: the next map has them.
    bound, held = dict[str, Booking](), dict[str, Booking]()
    gangs: list[tuple[GangKey, Sequence[str]]] = []
    for at, key in enumerate(list(engine.gangs.by_key), 1):
        if (gang := engine.gangs.by_key.get(key)) is not None:
            uids = (*gang.members, *gang.placeholders)
            gangs.append((key, uids))
            # Of a million ordinary pods nothing is told: theirs would take long to copy.
            for taken, there in ((bound, engine.books.bound), (held, engine.books.held)):
                taken.update((uid, there[uid]) for uid in uids if uid in there)
        if at % GANGS_A_STEP == 0:
            yield None
    planner = engine.planner
    each = chain(planner.earmarked.items(), planner.new_nodes.items())
    yield Known(books, bound, held, gangs, [(key, nodes) for key, (nodes, _) in each])


# -- in a thread -----------------------------------------------------------------------------------


def drawn(known: Known, resource: str, may: May) -> MapPage:
    """The map of one resource; "": of accelerators if nodes have some, else of cpu. Raises: NoSuch.

    `may`: of which namespaces gangs are told by name.
    """
    books, tree, capacity = known.books, known.books.tree, known.books.capacity
    resources = _offered(books.resources, capacity)
    if not resource:
        resource = _first(resources)  # where no node is in the topology, none has it
    elif resource not in resources:
        raise NoSuch(f"resource: {resource}: nodes have {', '.join(resources) or 'none'}")
    row, unit = books.resources.index(resource), unit_of(resource)
    names = _Names(may)
    shares, is_cut_short = _shares(known, resource, names)
    earmarks = _earmarks(known, names)
    state, states = _states(books)
    return MapPage(
        name=books.name,
        levels=tree.levels,
        topologies=books.topologies,
        resource=resource,
        resources=resources,
        domains=tuple(
            MapLevel(level=level, names=names_, starts=tuple(starts.tolist()))
            for level, names_, starts in zip(
                tree.levels[:-1], tree.names, tree.starts, strict=False
            )
        ),
        nodes=tree.nodes,
        allocatable=tuple((capacity.allocatable[row] / unit).tolist()),
        used=tuple((capacity.used[row] / unit).tolist()),
        reserved=tuple((capacity.held[row] / unit).tolist()),
        state=state,
        states=states,
        gangs=tuple(names.all),
        shares=shares,
        earmarks=earmarks,
        unlabelled=len(books.nodes) - len(tree.nodes),
        is_cut_short=is_cut_short,
    )


def _offered(names: Sequence[str], capacity: Capacity) -> tuple[str, ...]:
    of_devices = capacity.axis.of_devices
    has = enumerate(capacity.allocatable)
    return tuple(names[row] for row, its in has if its.any() and row not in of_devices)


def _first(resources: Sequence[str]) -> str:
    return next((each for each in resources if ACCELERATORS in each), FALLBACK)


class _Names:
    """The gangs that a map tells of, each with its index."""

    def __init__(self, may: May) -> None:
        self._may = may
        self._index: dict[MapGang, int] = {}

    @property
    def all(self) -> Sequence[MapGang]:
        """In the order of their indexes."""
        return list(self._index)

    def index(self, key: GangKey) -> int:
        """Of this gang, or of those that have no names here."""
        gang = gang_of(key, self._may)
        return self._index.setdefault(gang, len(self._index))


def gang_of(key: GangKey, may: May) -> MapGang:
    """The gang as it is told to a client."""
    if not may(key.namespace):
        return MapGang(namespace="", name="", source="")
    return MapGang(namespace=key.namespace, name=key.name, source=key.source)


def _shares(known: Known, resource: str, names: _Names) -> tuple[MapShares, bool]:
    """What gangs take of nodes, and whether some are left out."""
    slot_of, unit = known.books.tree.slot_of, unit_of(resource)
    most_gangs = len(known.gangs) + 1
    found: dict[int, list[int]] = {}  # by slot and gang in one number, which sorts ten times faster
    for key, uids in known.gangs:
        gang = -1
        for at, uid in enumerate(uids):
            if at % PODS_A_TURN == 0:
                turn()
            for column, booking in enumerate((known.bound.get(uid), known.held.get(uid))):
                amount = dict(booking.request).get(resource) if booking is not None else 0
                slot = slot_of.get(booking.node, -1) if booking is not None else -1
                if slot >= 0 and amount:
                    gang = names.index(key) if gang < 0 else gang
                    found.setdefault(slot * most_gangs + gang, [0, 0])[column] += amount
    turn()
    every = sorted(found)
    told = every[:MOST_SHARES]
    shares = MapShares(
        node=tuple(each // most_gangs for each in told),
        gang=tuple(each % most_gangs for each in told),
        used=tuple(found[each][0] / unit for each in told),
        reserved=tuple(found[each][1] / unit for each in told),
    )
    return shares, len(told) < len(every)


def _earmarks(known: Known, names: _Names) -> MapEarmarks:
    slot_of = known.books.tree.slot_of
    found = sorted(
        (slot_of[node], names.index(key))
        for key, nodes in known.earmarks
        for node in nodes
        if node in slot_of
    )
    return MapEarmarks(node=tuple(slot for slot, _ in found), gang=tuple(gang for _, gang in found))


def _states(books: Books) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Of each slot the index of its state, and the states; the first is that of open nodes."""
    states, of_slot = {"": 0}, [0] * len(books.tree.nodes)
    for slot in np.flatnonzero(~books.capacity.is_open).tolist():
        node = books.nodes.get(books.tree.nodes[slot])
        why = why_closed(node) if node is not None else ""
        of_slot[slot] = states.setdefault(why, len(states))
    return tuple(of_slot), tuple(states)
