"""The devices of each node that pods share, by what is booked there: for /prioritize alone.

    a booking of a node changes ──▶ `Books.rebooked` ──▶ catch_up ──▶ `devices`, in slot order

Which pods are where is known; which device each has is not, see `topology.fragments.devices`.
Nodes are looked at a hundred at a time, at every tick too; one that has not been yet counts as
though it had no devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np

from app.state.cache.books import Books
from topology.fragments.devices import MOST_DEVICES, Devices, left
from topology.model.resources import Counts
from topology.model.tree import Tree

NODES_AT_ONCE = 100  # of 10 to 20 µs each


@dataclass(slots=True)
class DeviceParts:
    """What is left of each device. Only `catch_up` changes what it says."""

    books: Books
    parts: Mapping[str, int]
    """Resource -> parts to a device."""
    _left: dict[str, dict[str, Sequence[int]]] = field(default_factory=dict)
    """By node and resource; of nodes that have such devices."""
    _most: int = 1  # devices that a node has had: what is computed with
    _tree: Tree | None = None  # that `_by_slot` is of
    _by_slot: dict[str, Counts] = field(default_factory=dict)  # resource -> as `Devices.left`

    def __post_init__(self) -> None:
        if self.parts:
            self.books.rebooked = {}

    def catch_up(self) -> None:
        """Look at some of the nodes whose bookings have changed."""
        rebooked = self.books.rebooked or {}
        for name in list(islice(rebooked, NODES_AT_ONCE)):
            del rebooked[name]
            if found := self._look(name):
                self._left[name] = found
                self._most = max(self._most, *map(len, found.values()))
            else:
                self._left.pop(name, None)
            if self._tree is not None and (slot := self._tree.slot_of.get(name)) is not None:
                self._fill(slot, found)

    def devices(self, tree: Tree) -> tuple[Devices, ...]:
        """Those of every resource that some node has offered."""
        if self._tree is not tree:
            shape = (MOST_DEVICES + 1, len(tree.nodes))
            self._tree = tree
            self._by_slot = {resource: np.zeros(shape, dtype=np.int64) for resource in self.parts}
            for name, found in self._left.items():
                if (slot := tree.slot_of.get(name)) is not None:
                    self._fill(slot, found)
        axis = self.books.axis
        return tuple(
            Devices(axis.row(resource), parts, self._by_slot[resource][: self._most + 1])
            for resource, parts in self.parts.items()
            if resource in axis
        )

    def _look(self, name: str) -> dict[str, Sequence[int]]:
        """What is left of each device of a node; nothing if it has none that are shared."""
        node = self.books.nodes.get(name)
        has = {} if node is None else dict(node.allocatable)
        found: dict[str, Sequence[int]] = {}
        for resource, parts in self.parts.items():
            devices = has.get(resource, 0) // parts
            if 0 < devices <= MOST_DEVICES:
                booked = self.books.bound_on.get(name, {}), self.books.held_on.get(name, {})
                taken = [
                    amount
                    for request in chain.from_iterable(each.values() for each in booked)
                    for named, amount in request
                    if named == resource
                ]
                found[resource] = left(devices, parts, taken)
        return found

    def _fill(self, slot: int, found: Mapping[str, Sequence[int]]) -> None:
        for resource, by_slot in self._by_slot.items():
            of_node = found.get(resource, ())
            by_slot[:, slot] = (*of_node, *(0,) * (MOST_DEVICES + 1 - len(of_node)))
