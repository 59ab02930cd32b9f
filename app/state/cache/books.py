"""The books: what every node has, what runs on it, what is held; the only writer of Capacity.

    NodeRecord ──▶ one Tree and one Capacity per named topology
    bound pods ──▶ used      reservations ──▶ held      (in all topologies, in one call)

A node that lacks a level's label is not in that topology's tree. The topology `ALL_NODES` has no
level but the nodes themselves and so always holds every node: it serves gangs that name no level,
and it is where a single node's free capacity is looked up.

A resource has a row from when a node first offers it (`resource_rows.py`), and what running pods
take of it is counted from then on.

Trees are rebuilt lazily, before the next question, and only when nodes came, went or changed
their level labels (`topology_books.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from app.dialects import autoscalers
from app.kube.core.objects import Amounts, NodeRecord
from app.kube.core.turns import turn
from app.state.cache.counting import (
    SlotsOf,
    Vector,
    is_countable,
    slots_by_request,
    summed,
)
from app.state.cache.resource_rows import ResourceRows
from app.state.cache.topology_books import NO_VALUES, TopologyBooks, Values
from topology.model import tree as trees
from topology.model.capacity import Capacity
from topology.model.levels import NODE_LEVEL
from topology.model.resources import ResourceAxis
from topology.model.tree import Tree

ALL_NODES = ""  # the name of the topology without levels
KEPT = 2**31  # the priority of what gives way to no pod: above all that Kubernetes has
MOST_ALIKE = 4_096  # pods that are counted at once


@dataclass(frozen=True, slots=True)
class Booking:
    """What a pod takes of one node."""

    node: str
    request: Amounts


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Nodes as they were at one moment."""

    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    domains: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """As `Books.domains_of`, by node; none for a node that is not here."""


@dataclass(slots=True)
class Books:
    """Nodes, the pods bound to them, and the capacity held for pods that are planned.

    Invariants: a pod uid is in `bound` or in `held`, never in both; `lasting` is in `bound`, and
    `priority_of` in `held`;
    `bound_on` and `held_on` are `bound` and `held` by node; each topology's `used` and `held` are
    their sums.
    """

    rows: ResourceRows = field(default_factory=ResourceRows)
    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    bound: dict[str, Booking] = field(default_factory=dict)
    held: dict[str, Booking] = field(default_factory=dict)
    lasting: dict[str, None] = field(default_factory=dict)
    """Uids of pods that do not end by themselves: as a set they take thrice as long to copy."""
    priority_of: dict[str, int] = field(default_factory=dict)  # by uid: of holds that have any
    bound_on: dict[str, dict[str, Amounts]] = field(default_factory=dict)  # see `bound_now`
    held_on: dict[str, dict[str, Amounts]] = field(default_factory=dict)
    topologies: dict[str, TopologyBooks] = field(default_factory=dict)
    generation: int = 0
    holds_changed: int = 0  # so often something was held or given back
    freed: dict[str, None] = field(default_factory=dict)
    """Nodes where something was given back since the last tick, which takes them out."""
    rebooked: dict[str, None] | None = None
    """Nodes that have changed, or what is booked there, for who takes them out; None: no one."""
    booked_at: dict[str, int] = field(default_factory=dict)
    """The same of nodes that there are, by the number of that change among all."""
    changes: int = 0
    _lent: set[str] = field(default_factory=set)  # nodes whose part of `bound_on` a copy has too
    _counts_later: bool = False  # bookings are counted together in a moment
    _lacking: dict[str, None] = field(default_factory=dict)  # booked, and request what has no row
    _offering: Counter[str] = field(default_factory=Counter)  # nodes that have some of a resource
    _claimable: frozenset[str] = frozenset()  # as of `set_claimable`

    def __post_init__(self) -> None:
        if not self.topologies:
            self.set_topologies({})

    @property
    def axis(self) -> ResourceAxis:
        """The resources that are counted, in the order of their rows."""
        return self.rows.axis

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The resources that there is no row for, in a sentence for the operator, or nothing."""
        return self.rows.uncounted

    def vector(self, amounts: Amounts) -> Vector:
        """A request as `ResourceAxis.request` has it; equal ones share one object."""
        return self.rows.vector(amounts)

    def counted(self, amounts: Amounts) -> Vector:
        """What a booked pod is counted with: what nodes offer, at most MOST_BOOKED of each."""
        return self.rows.counted(amounts)

    def _add_rows(self, allocatable: Amounts) -> None:
        """Make rows for what a node is the first to offer, with what booked pods take of it."""
        rows = len(self.axis)
        if not self.rows.add(allocatable):
            return
        for uid in list(self._lacking):
            booking = self.bound.get(uid) or self.held[uid]
            gained = (*(0,) * rows, *self._booked(uid, booking)[rows:])
            for capacity, slot in self._columns(booking.node):
                (capacity.use if uid in self.bound else capacity.hold)(slot, gained)

    def _booked(self, uid: str, booking: Booking) -> Vector:
        """What the booking counts with now; notes whether that is all it requests."""
        request, axis = booking.request, self.axis
        lacks_row = len(self.rows.vector(request)) > len(axis)
        if lacks_row or (axis.claimed and axis.lacks_row(request)):
            self._lacking[uid] = None
        elif self._lacking:
            self._lacking.pop(uid, None)
        return self.rows.counted(request)

    def set_claimable(self, names: frozenset[str]) -> bool:
        """Learn what kube-scheduler takes from drivers where a node has none of it.

        As long as some node has it, it is counted by node. Returns whether other resources are
        counted by now.
        """
        self._claimable = names
        return self._settle_claimed()

    def _settle_claimed(self) -> bool:
        return self.rows.claim(
            frozenset(name for name in self._claimable if not self._offering[name])
        )

    def _note_offered(self, before: NodeRecord | None, after: NodeRecord | None) -> None:
        """Follow which resources some node has."""
        has, had = (() if each is None else each.allocatable for each in (after, before))
        if has == had:
            return
        self._offering.update(name for name, amount in has if amount)
        self._offering.subtract(name for name, amount in had if amount)
        if self._claimable:
            self._settle_claimed()

    # -- topologies ----------------------------------------------------------------------------

    def set_topologies(
        self,
        levels_by_name: Mapping[str, tuple[str, ...]],
        values_by_name: Mapping[str, Values] = NO_VALUES,
    ) -> None:
        """Replace the named topologies; `ALL_NODES` is always among them.

        `values_by_name`: of those whose domains are not in the labels of nodes.
        """
        wanted = {ALL_NODES: (NODE_LEVEL,), **levels_by_name}
        before, self.topologies = self.topologies, {}
        for name, levels in sorted(wanted.items()):
            values, known = values_by_name.get(name), before.get(name)
            if known is None or (known.levels, known.values) != (levels, values):
                known = self._empty(name, levels, values)
            self.topologies[name] = known

    def known_levels(self) -> tuple[str, ...]:
        """Every level key of every topology, in order of first appearance."""
        keys = (level for topology in self.topologies.values() for level in topology.levels[:-1])
        return (*dict.fromkeys(keys), NODE_LEVEL)

    def refresh(self) -> None:
        """Rebuild the trees if nodes came, went or moved; capacity moves along by columns."""
        stale = [topology for topology in self.topologies.values() if topology.is_stale]
        if not stale:
            return
        self.generation += 1
        for topology in stale:
            self._rebuild(topology)

    @property
    def split_values(self) -> tuple[str, ...]:
        """Levels that do not nest, in sentences for the operator; of the trees as they are."""
        return tuple(chain.from_iterable(each.split_values for each in self.topologies.values()))

    @property
    def is_stale(self) -> bool:
        """Whether some tree has to be rebuilt."""
        return any(topology.is_stale for topology in self.topologies.values())

    def outdate(self, *, only_explicit: bool = False) -> None:
        """Have the trees rebuilt before the next question.

        `only_explicit`: those whose domains are not in the labels of nodes.
        """
        for topology in self.topologies.values():
            if topology.values is not None or not only_explicit:
                topology.outdate()

    def _outdate_for(self, node: str) -> None:
        for topology in self.topologies.values():
            topology.outdate(node)

    def _empty(self, name: str, levels: tuple[str, ...], values: Values | None) -> TopologyBooks:
        tree = trees.build(levels, {}, generation=self.generation)
        return TopologyBooks(name, levels, tree, Capacity(self.axis, tree), values)

    def _rebuild(self, topology: TopologyBooks) -> None:
        rebuilt = topology.rebuilt(self.nodes, self.generation)
        tree = rebuilt.tree
        if len(rebuilt.added) > len(topology.tree.slot_of):  # the first list
            capacity = self._counted(tree)
        else:
            capacity = topology.capacity.move(tree, rebuilt.slots_before)
            for name in rebuilt.added:
                turn()  # of a copy, beside the loop
                self._count_node(capacity, tree.slot_of[name], self.nodes[name])
        topology.replace(tree, capacity)

    def _count_node(self, capacity: Capacity, slot: int, node: NodeRecord) -> None:
        """Count a node and all that is booked there; nothing was before."""
        capacity.set_node(slot, self.rows.offered(node.allocatable), is_open=is_open(node))
        for booked, add in ((self.bound_on, capacity.use), (self.held_on, capacity.hold)):
            for request, pods in Counter(booked.get(node.name, {}).values()).items():
                counted = self.rows.counted(request)
                # One pod too many must not keep the others of its cluster from being counted.
                with suppress(ValueError):
                    for first in range(0, pods, MOST_ALIKE):
                        add(slot, counted, min(pods - first, MOST_ALIKE))

    # -- nodes ---------------------------------------------------------------------------------

    def put_node(self, node: NodeRecord) -> None:
        """Add or replace a node."""
        before = self.nodes.get(node.name)
        self.nodes[node.name] = node
        self._note_offered(before, node)
        if before is None:
            self._outdate_for(node.name)
        else:
            for name in self.moved_in(before, node):
                self.topologies[name].outdate(node.name)
        self._note_rebooked(node.name)
        self._add_rows(node.allocatable)
        # Also for a new node whose name is still in the trees: it was deleted and came back.
        allocatable = self.rows.offered(node.allocatable)
        for topology in self.topologies.values():
            slot = topology.tree.slot_of.get(node.name)
            if slot is not None:
                topology.capacity.set_node(slot, allocatable, is_open=is_open(node))

    def drop_node(self, name: str) -> None:
        """Forget a node; pods bound there stay booked until they are deleted themselves."""
        node = self.nodes.pop(name, None)
        if node is not None:
            self._note_offered(node, None)
            self._outdate_for(name)
            self._note_rebooked(name)
            self.booked_at.pop(name, None)

    def has_moved(self, before: NodeRecord, after: NodeRecord) -> bool:
        """Whether a node, under the same name, is in another domain of some topology."""
        return bool(self.moved_in(before, after))

    def moved_in(self, before: NodeRecord, after: NodeRecord) -> Collection[str]:
        """The topologies of labels in which a node, under the same name, is in another domain."""
        # Most updates are heartbeats, and a node's domains follow from its labels.
        if before.labels == after.labels:
            return ()
        return [
            name
            for name, topology in self.topologies.items()
            if topology.path_of(before) != topology.path_of(after)
        ]

    def domains_of(self, node: str) -> Mapping[str, str]:
        """Level -> the node's domain, of topologies whose domains are not in labels of nodes."""
        return {
            level: domain
            for each in self.topologies.values()
            if each.values is not None
            for level, domain in zip(each.levels, each.values(node), strict=False)
        }

    def largest(self) -> Mapping[str, int]:
        """The most that one node has of each resource."""
        allocatable = self.topologies[ALL_NODES].capacity.allocatable
        return dict(zip(self.axis.names, allocatable.max(axis=1, initial=0).tolist(), strict=False))

    @property
    def snapshot(self) -> Snapshot:
        """All nodes, and what they are in beside what their labels say, as it is now."""
        is_explicit = any(each.values is not None for each in self.topologies.values())
        domains = {name: self.domains_of(name) for name in self.nodes} if is_explicit else {}
        return Snapshot(dict(self.nodes), domains)

    # -- pods ----------------------------------------------------------------------------------

    def bind(self, uid: str, node: str, request: Amounts, *, lasts: bool = False) -> bool:
        """Count a pod as running on a node and end its hold; False if it was counted there.

        `lasts`: it does not end by itself.
        """
        booking = Booking(node, request)
        if uid in self.held:
            was_freed = node in self.freed
            if self.release(uid) == booking and not was_freed:
                del self.freed[node]  # what was held for the pod is what it takes
        if self.bound.get(uid) == booking:
            return False
        self.unbind(uid)
        self.bound[uid] = booking
        if lasts:
            self.lasting[uid] = None
        self._own_bound_on(node)[uid] = request
        counted = self._booked(uid, booking)
        for capacity, slot in self._columns(node):
            capacity.use(slot, counted)
        return True

    def unbind(self, uid: str) -> Booking | None:
        """Stop counting a bound pod; returns what it took, or None if it was not bound."""
        booking = self.bound.pop(uid, None)
        if booking is not None:
            self._own_bound_on(booking.node)
            _drop(self.bound_on, booking.node, uid)
            self.lasting.pop(uid, None)
            self._lacking.pop(uid, None)
            self.freed[booking.node] = None
            counted = self.rows.counted(booking.request)
            for capacity, slot in self._columns(booking.node):
                capacity.unuse(slot, counted)
        return booking

    def bound_now(self) -> Mapping[str, Mapping[str, Amounts]]:
        """`bound_on` as it is now, and stays in the copy; may be read in another thread.

        Only its nodes are copied now, 0.1 ms for 5,000, and each node's pods when they change next:
        all of 150,000 pods at once take 3 ms and more.
        """
        self._lent = set(self.bound_on)
        return dict(self.bound_on)

    def _own_bound_on(self, node: str) -> dict[str, Amounts]:
        """What is bound on a node, to be changed: no copy has it."""
        of_node = self.bound_on.setdefault(node, {})
        if node in self._lent:
            self._lent.discard(node)
            of_node = self.bound_on[node] = dict(of_node)
        return of_node

    def hold(self, uid: str, node: str, request: Amounts, priority: int = 0) -> None:
        """Hold a node's capacity for a pod that is planned there.

        `priority`: pods of a higher one may take it.
        Raises: ValueError if the pod is bound or held already.
        """
        self._hold((uid,), Booking(node, request), priority)

    def hold_all(self, bookings: Iterable[tuple[str, str, Amounts, int]]) -> None:
        """Hold what several pods request: (uid, node, request, priority) each.

        Equal ones are added at once.
        Raises: ValueError if one of the pods is bound or held already.
        """
        alike: dict[tuple[str, Amounts, int], list[str]] = {}
        for uid, node, request, priority in bookings:
            alike.setdefault((node, request, priority), []).append(uid)
        for (node, request, priority), uids in alike.items():
            self._hold(uids, Booking(node, request), priority)

    def takes_pods(self, node: str) -> bool:
        """Whether there is such a node, and it is ready and schedulable."""
        record = self.nodes.get(node)
        return record is not None and is_open(record)

    def keep(self, uid: str) -> None:
        """Have a hold give way to no pod: its binding may take place at any time."""
        if uid in self.held:
            self.priority_of[uid] = KEPT

    def yield_again(self, uid: str, priority: int) -> None:
        """Have a hold give way to pods of a higher priority again: its binding has failed."""
        if uid in self.held:
            self.priority_of[uid] = priority

    def _hold(self, uids: Sequence[str], booking: Booking, priority: int) -> None:
        for uid in uids:
            if uid in self.bound or uid in self.held:
                raise ValueError(f"pod {uid} is booked already")
        held_on = self.held_on.setdefault(booking.node, {})
        self.holds_changed += 1
        for uid in uids:
            self.held[uid] = booking
            held_on[uid] = booking.request
            counted = self._booked(uid, booking)
        if priority:
            self.priority_of.update(dict.fromkeys(uids, priority))
        for capacity, slot in self._columns(booking.node):
            capacity.hold(slot, counted, len(uids))

    def release(self, uid: str) -> Booking | None:
        """End a hold; returns what was held, or None."""
        booking = self.held.pop(uid, None)
        if booking is not None:
            self.holds_changed += 1
            _drop(self.held_on, booking.node, uid)
            self._lacking.pop(uid, None)
            self.priority_of.pop(uid, None)
            self.freed[booking.node] = None
            counted = self.rows.counted(booking.request)
            for capacity, slot in self._columns(booking.node):
                capacity.release(slot, counted)
        return booking

    def resize_hold(self, uid: str, request: Amounts) -> str:
        """Have a hold be for what the pod requests by now; returns its node, "" if it was before.

        There may be no room for it.
        """
        known = self.held.get(uid)
        if known is None or known.request == request:
            return ""
        priority = self.priority_of.get(uid, 0)
        self.release(uid)
        self.hold(uid, known.node, request, priority)
        return known.node

    def recount(self) -> None:
        """Add everything up again from the bookings; changes nothing unless Corral has a bug."""
        self.bound_on, self.held_on = by_node(self.bound), by_node(self.held)
        self._count_all()

    @contextmanager
    def counted_together(self) -> Iterator[None]:
        """Have what is booked inside counted at the end: a list may bring 150,000 bound pods."""
        self._counts_later = True
        try:
            yield
        finally:
            self._counts_later = False
            self._count_all()

    def _count_all(self) -> None:
        self.refresh()
        for topology in self.topologies.values():
            topology.capacity = self._counted(topology.tree)

    def _counted(self, tree: Tree) -> Capacity:
        """All that the nodes of a tree have, and all that is booked there, counted anew."""
        capacity, shape = Capacity(self.axis, tree), (len(self.axis), len(tree.nodes))
        slots_of = [self._slots_by_request(tree, each) for each in (self.bound, self.held)]
        if not all(is_countable(each, self.rows.counted) for each in slots_of):
            # Some node may have more than can be counted: each pod as far as it can be.
            for name, slot in tree.slot_of.items():
                self._count_node(capacity, slot, self.nodes[name])
            return capacity
        used, held = (summed(each, self.rows.counted, shape) for each in slots_of)
        offered = slots_by_request(
            (slot, self.nodes[name].allocatable) for name, slot in tree.slot_of.items()
        )
        allocatable = summed(offered, self.rows.offered, shape)
        opens = (is_open(self.nodes[name]) for name in tree.nodes)
        capacity.set_all(allocatable, np.fromiter(opens, np.bool_, shape[1]), used, held)
        return capacity

    @staticmethod
    def _slots_by_request(tree: Tree, booked: Mapping[str, Booking]) -> SlotsOf:
        slot_of = tree.slot_of
        return slots_by_request(
            (slot_of[each.node], each.request) for each in booked.values() if each.node in slot_of
        )

    def _note_rebooked(self, node: str) -> None:
        if node in self.nodes:
            self.changes += 1
            self.booked_at[node] = self.changes
        if self.rebooked is not None:
            self.rebooked[node] = None

    def _columns(self, node: str) -> Sequence[tuple[Capacity, int]]:
        self._note_rebooked(node)
        if self._counts_later:
            return ()
        return [
            (topology.capacity, slot)
            for topology in self.topologies.values()
            if (slot := topology.tree.slot_of.get(node)) is not None
        ]


def is_open(node: NodeRecord) -> bool:
    """Whether the node takes new pods at all."""
    return node.is_ready and not (node.is_unschedulable or node.problem or is_leaving(node))


def is_leaving(node: NodeRecord) -> bool:
    """Whether a node autoscaler is about to remove the node."""
    return any(taint.key in autoscalers.LEAVING for taint in node.taints)


def by_node(bookings: dict[str, Booking]) -> dict[str, dict[str, Amounts]]:
    """The same bookings as requests by node and pod."""
    found: dict[str, dict[str, Amounts]] = {}
    for uid, booking in bookings.items():
        found.setdefault(booking.node, {})[uid] = booking.request
    return found


def _drop(bookings: dict[str, dict[str, Amounts]], node: str, uid: str) -> None:
    """Remove one booking of a node, and the node's row with its last one."""
    of_node = bookings[node]
    del of_node[uid]
    if not of_node:
        del bookings[node]
