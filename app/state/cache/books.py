"""The books: what every node has, what runs on it, what is held; the only writer of Capacity.

    NodeRecord ──▶ one Tree and one Capacity per named topology
    bound pods ──▶ used      reservations ──▶ held      (in all topologies, in one call)

A node that lacks a level's label is not in that topology's tree. The topology `ALL_NODES` has no
level but the nodes themselves and so always holds every node: it serves gangs that name no level,
and it is where a single node's free capacity is looked up.

Trees are rebuilt lazily, before the next question, and only when nodes came, went or changed
their level labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress

import numpy as np

from app.kube.core.objects import NodeRecord
from topology.model import tree as trees
from topology.model.capacity import Capacity
from topology.model.levels import NODE_LEVEL
from topology.model.resources import ResourceAxis
from topology.model.tree import Tree

ALL_NODES = ""  # the name of the topology without levels
MOST_BOOKED = 2**50  # of one resource for one bound pod; more than any node has, and 6,000 of them
# still add up within an int64. Every user may create a pod that requests 2 EiB on a named node.

MOST_SPLIT_VALUES = 8  # reported per topology: the first few show what is wrong with the labels

Vector = tuple[int, ...]


@dataclass(slots=True)
class TopologyBooks:
    """One named topology over the cluster's nodes."""

    name: str
    levels: tuple[str, ...]  # widest first, NODE_LEVEL last
    tree: Tree
    capacity: Capacity

    def path_of(self, node: NodeRecord) -> tuple[str, ...] | None:
        """The node's value at every level, or None where it lacks one's label."""
        above = [node.labels.get(level, "") for level in self.levels[:-1]]
        return (*above, node.name) if all(above) else None


@dataclass(frozen=True, slots=True)
class Booking:
    """What a pod takes of one node."""

    node: str
    request: Vector


@dataclass(slots=True)
class Books:
    """Nodes, the pods bound to them, and the capacity held for pods that are planned.

    Invariants: a pod uid is in `bound` or in `held`, never in both; `bound_on` and `held_on` are
    `bound` and `held` by node; each topology's `used` and `held` are their sums.
    """

    axis: ResourceAxis = field(default_factory=ResourceAxis)
    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    bound: dict[str, Booking] = field(default_factory=dict)
    held: dict[str, Booking] = field(default_factory=dict)
    bound_on: dict[str, dict[str, Vector]] = field(default_factory=dict)
    held_on: dict[str, dict[str, Vector]] = field(default_factory=dict)
    topologies: dict[str, TopologyBooks] = field(default_factory=dict)
    generation: int = 0
    is_stale: bool = False  # nodes or levels changed since the trees were built
    split_values: tuple[str, ...] = ()  # levels that do not nest, in sentences for the operator
    _vectors: dict[tuple[tuple[str, int], ...], Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.topologies:
            self.set_topologies({})

    def vector(self, amounts: tuple[tuple[str, int], ...]) -> Vector:
        """The request as a vector over the resource axis; equal requests share one object."""
        known = self._vectors.get(amounts)
        if known is None:
            known = self._vectors[amounts] = self.axis.vector(amounts)
        return known

    # -- topologies ----------------------------------------------------------------------------

    def set_topologies(self, levels_by_name: Mapping[str, tuple[str, ...]]) -> None:
        """Replace the named topologies; `ALL_NODES` is always among them."""
        wanted = {ALL_NODES: (NODE_LEVEL,), **levels_by_name}
        if {name: topology.levels for name, topology in self.topologies.items()} == wanted:
            return
        self.topologies = {
            name: self._empty(name, levels) for name, levels in sorted(wanted.items())
        }
        self.is_stale = True

    def known_levels(self) -> tuple[str, ...]:
        """Every level key of every topology, in order of first appearance."""
        keys = (level for topology in self.topologies.values() for level in topology.levels[:-1])
        return (*dict.fromkeys(keys), NODE_LEVEL)

    def refresh(self) -> None:
        """Rebuild the trees if nodes came, went or moved; capacity moves along by columns."""
        if not self.is_stale:
            return
        self.generation += 1
        for topology in self.topologies.values():
            self._rebuild(topology)
        self.split_values = tuple(
            f"topology {topology.name}: {split.level}={split.value} stands under several parents"
            f" and is several domains: {_paths(split)}"
            for topology in self.topologies.values()
            for split in trees.levels_that_do_not_nest(topology.tree)[:MOST_SPLIT_VALUES]
        )
        self.is_stale = False

    def _empty(self, name: str, levels: tuple[str, ...]) -> TopologyBooks:
        tree = trees.build(levels, {}, generation=self.generation)
        return TopologyBooks(name, levels, tree, Capacity(self.axis, tree))

    def _rebuild(self, topology: TopologyBooks) -> None:
        paths = {
            name: path
            for name, node in self.nodes.items()
            if (path := topology.path_of(node)) is not None
        }
        known = topology.tree.slot_of
        tree = trees.build(topology.levels, paths, generation=self.generation)
        capacity = topology.capacity.move(tree)
        for name in paths.keys() - known.keys():
            slot = tree.slot_of[name]
            node = self.nodes[name]
            capacity.set_node(slot, self.vector(node.allocatable), is_open=is_open(node))
            for request in self.bound_on.get(name, {}).values():
                capacity.use(slot, request)
            for request in self.held_on.get(name, {}).values():
                capacity.hold(slot, request)
        topology.tree, topology.capacity = tree, capacity

    # -- nodes ---------------------------------------------------------------------------------

    def put_node(self, node: NodeRecord) -> None:
        """Add or replace a node."""
        before = self.nodes.get(node.name)
        self.nodes[node.name] = node
        if before is None or self.has_moved(before, node):
            self.is_stale = True
        # Also for a new node whose name is still in the trees: it was deleted and came back.
        allocatable = self.vector(node.allocatable)
        for topology in self.topologies.values():
            slot = topology.tree.slot_of.get(node.name)
            if slot is not None:
                topology.capacity.set_node(slot, allocatable, is_open=is_open(node))

    def drop_node(self, name: str) -> None:
        """Forget a node; pods bound there stay booked until they are deleted themselves."""
        if self.nodes.pop(name, None) is not None:
            self.is_stale = True

    def has_moved(self, before: NodeRecord, after: NodeRecord) -> bool:
        """Whether a node, under the same name, is in another domain of some topology."""
        # Most updates are heartbeats, and a node's domains follow from its labels.
        return before.labels != after.labels and any(
            topology.path_of(before) != topology.path_of(after)
            for topology in self.topologies.values()
        )

    # -- pods ----------------------------------------------------------------------------------

    def bind(self, uid: str, node: str, request: Vector) -> bool:
        """Count a pod as running on a node and end its hold; False if it was counted there."""
        self.release(uid)
        if max(request, default=0) > MOST_BOOKED:
            request = tuple(min(amount, MOST_BOOKED) for amount in request)
        booking = Booking(node, request)
        if self.bound.get(uid) == booking:
            return False
        self.unbind(uid)
        self.bound[uid] = booking
        self.bound_on.setdefault(node, {})[uid] = request
        for capacity, slot in self._columns(node):
            capacity.use(slot, request)
        return True

    def unbind(self, uid: str) -> Booking | None:
        """Stop counting a bound pod; returns what it took, or None if it was not bound."""
        booking = self.bound.pop(uid, None)
        if booking is not None:
            _drop(self.bound_on, booking.node, uid)
            for capacity, slot in self._columns(booking.node):
                capacity.unuse(slot, booking.request)
        return booking

    def hold(self, uid: str, node: str, request: Vector) -> None:
        """Hold a node's capacity for a pod that is planned there.

        Raises: ValueError if the pod is bound or held already.
        """
        if uid in self.bound or uid in self.held:
            raise ValueError(f"pod {uid} is booked already")
        self.held[uid] = Booking(node, request)
        self.held_on.setdefault(node, {})[uid] = request
        for capacity, slot in self._columns(node):
            capacity.hold(slot, request)

    def release(self, uid: str) -> Booking | None:
        """End a hold; returns what was held, or None."""
        booking = self.held.pop(uid, None)
        if booking is not None:
            _drop(self.held_on, booking.node, uid)
            for capacity, slot in self._columns(booking.node):
                capacity.release(slot, booking.request)
        return booking

    def recount(self) -> None:
        """Add everything up again from the bookings; changes nothing unless Corral has a bug."""
        self.refresh()
        self.bound_on, self.held_on = by_node(self.bound), by_node(self.held)
        for topology in self.topologies.values():
            capacity = topology.capacity = Capacity(self.axis, topology.tree)
            for name, node in self.nodes.items():
                slot = topology.tree.slot_of.get(name)
                if slot is not None:
                    capacity.set_node(slot, self.vector(node.allocatable), is_open=is_open(node))
            for bookings, add in ((self.bound, capacity.use), (self.held, capacity.hold)):
                for booking in bookings.values():
                    slot = topology.tree.slot_of.get(booking.node)
                    if slot is not None:
                        add(slot, booking.request)

    def fits(self, node: str, request: Vector) -> bool:
        """Whether the node takes this request beside all that is used and held."""
        every = self.topologies[ALL_NODES]
        slot = every.tree.slot_of.get(node)
        return slot is not None and not any(
            amount > _free_at(every.capacity, slot, resource)
            for resource, amount in enumerate(request)
            if amount
        )

    def held_without_room(self, request: Vector) -> frozenset[str]:
        """The nodes where something is held and this request does not fit beside it."""
        every = self.topologies[ALL_NODES]
        nodes = [node for node in self.held_on if node in every.tree.slot_of]
        if not nodes:
            return frozenset()
        slots = np.fromiter(map(every.tree.slot_of.__getitem__, nodes), np.intp, len(nodes))
        rows = [row for row, amount in enumerate(request) if amount]
        asked = np.array([request[row] for row in rows], dtype=np.int64)
        lacks = np.any(every.capacity.free(rows, slots) < asked[:, np.newaxis], axis=0)
        return frozenset(compress(nodes, lacks.tolist()))

    def is_overcommitted(self, node: str) -> bool:
        """Whether what is held on a node no longer fits beside what is used there."""
        every = self.topologies[ALL_NODES]
        slot = every.tree.slot_of.get(node)
        return slot is None or any(
            amount and _free_at(every.capacity, slot, resource) < 0
            for request in self.held_on.get(node, {}).values()
            for resource, amount in enumerate(request)
        )

    def _columns(self, node: str) -> list[tuple[Capacity, int]]:
        return [
            (topology.capacity, slot)
            for topology in self.topologies.values()
            if (slot := topology.tree.slot_of.get(node)) is not None
        ]


def is_open(node: NodeRecord) -> bool:
    """Whether the node takes new pods at all."""
    return node.is_ready and not node.is_unschedulable and not node.problem


def _paths(split: trees.SplitValue) -> str:
    shown = ["/".join(path) for path in split.paths[:4]]
    return ", ".join(shown + (["…"] if len(split.paths) > 4 else []))


def by_node(bookings: dict[str, Booking]) -> dict[str, dict[str, Vector]]:
    """The same bookings as requests by node and pod."""
    found: dict[str, dict[str, Vector]] = {}
    for uid, booking in bookings.items():
        found.setdefault(booking.node, {})[uid] = booking.request
    return found


def _free_at(capacity: Capacity, slot: int, resource: int) -> int:
    if resource >= len(capacity.allocatable):
        return 0  # the axis grew since: no node of this tree has any of it
    allocatable, used, held = capacity.allocatable, capacity.used, capacity.held
    return int(allocatable[resource, slot] - used[resource, slot] - held[resource, slot])


def _drop(bookings: dict[str, dict[str, Vector]], node: str, uid: str) -> None:
    """Remove one booking of a node, and the node's row with its last one."""
    of_node = bookings[node]
    del of_node[uid]
    if not of_node:
        del bookings[node]
