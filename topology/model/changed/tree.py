"""A tree of which a few nodes came, went or moved, made from the one before.

    tree ──slots of nodes that went are cut out──▶ ──each that came is put where it sorts──▶ tree

`tree.build` sorts every node of the cluster and compares each with the next, in Python: half a
second for 100,000 nodes, which is too much for each node that joins. Here the arrays of the tree
before are cut and joined, and only the paths of neighbours are looked at. Both give equal trees.

A level is kept as the marks of the slots that begin a domain, and the domains' names in order:
from these follow starts, ends, parents and the domain of each slot, as arrays.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topology.errors import InvalidTopology
from topology.model.resources import Mask, Rows
from topology.model.tree import Tree, tree_of

GONE = -1  # in place of a slot of the tree before: the node was not there


@dataclass(frozen=True, slots=True)
class ChangedTree:
    """The tree now, and where its nodes were before."""

    tree: Tree
    slots_before: Rows
    """(N,): the slot of each node in the tree before, or GONE."""


def changed(
    tree: Tree, gone: Collection[str], came: Mapping[str, Sequence[str]], generation: int
) -> ChangedTree:
    """The tree without the nodes that are gone, and with those that came: name -> path.

    A node that moved is in both. Those gone have to be in the tree, others must not come.
    Raises: InvalidTopology if a node that came does not have exactly one value per level.
    """
    draft = _Draft(tree)
    draft.cut(np.sort(np.array([tree.slot_of[name] for name in gone], dtype=np.intp)))
    for name, values in came.items():
        if len(values) != len(tree.levels):
            raise InvalidTopology(
                f"node {name}: {len(values)} values for {len(tree.levels)} levels"
            )
        draft.put(name, tuple(values), tree.slot_of.get(name, GONE))
    return ChangedTree(draft.tree(generation), draft.slots_before)


class _Draft:
    """The slots of a tree in the making. Levels here are those above the nodes."""

    def __init__(self, tree: Tree) -> None:
        self._levels = tree.levels
        self._nodes = list(tree.nodes)
        self._values = list(tree.names[-1])  # of each slot at the node level
        self._names = [list(names) for names in tree.names[:-1]]  # of each domain
        self._begins = [_marks(starts, len(tree.nodes)) for starts in tree.starts[:-1]]
        self.slots_before: Rows = np.arange(len(tree.nodes), dtype=np.intp)

    def tree(self, generation: int) -> Tree:
        """What has been made."""
        starts = [np.flatnonzero(begins) for begins in self._begins]
        names = (*map(tuple, self._names), tuple(self._values))
        return tree_of(generation, self._levels, tuple(self._nodes), starts, names)

    def cut(self, slots: Rows) -> None:
        """Take these slots out; ascending."""
        if not slots.size:
            return
        stays = np.ones(len(self._nodes), dtype=np.bool_)
        stays[slots] = False
        for level, begins in enumerate(self._begins):
            domain_of = begins.cumsum() - 1
            left = domain_of[stays]
            self._begins[level] = np.diff(left, prepend=-1) > 0
            still = np.zeros(len(self._names[level]), dtype=np.bool_)
            still[left] = True
            for domain in np.flatnonzero(~still)[::-1].tolist():
                del self._names[level][domain]
        for slot in slots[::-1].tolist():
            del self._nodes[slot], self._values[slot]
        self.slots_before = self.slots_before[stays]

    def put(self, name: str, path: tuple[str, ...], slot_before: int) -> None:
        """Put a node where it sorts."""
        shape = (len(self._begins), len(self._nodes))
        ends = np.array([begins.cumsum() for begins in self._begins], np.intp).reshape(shape)
        slot = bisect_left(
            range(len(self._nodes)),
            (path, name),
            key=lambda each: (self._path(each, ends), self._nodes[each]),
        )
        before = self._path(slot - 1, ends) if slot else ()
        after = self._path(slot, ends) if slot < len(self._nodes) else ()
        for level, begins in enumerate(self._begins):
            here = path[: level + 1]
            is_first, is_last = before[: level + 1] != here, after[: level + 1] != here
            if after:
                begins[slot] = is_last
            if is_first and is_last:
                self._names[level].insert(int(ends[level, slot - 1]) if slot else 0, path[level])
            self._begins[level] = np.insert(begins, slot, is_first)
        self._nodes.insert(slot, name)
        self._values.insert(slot, path[-1])
        self.slots_before = np.insert(self.slots_before, slot, slot_before)

    def _path(self, slot: int, ends: Rows) -> tuple[str, ...]:
        above = (self._names[level][ends[level, slot] - 1] for level in range(len(self._names)))
        return (*above, self._values[slot])


def _marks(starts: Rows, slots: int) -> Mask:
    begins = np.zeros(slots, dtype=np.bool_)
    begins[starts] = True
    return begins
