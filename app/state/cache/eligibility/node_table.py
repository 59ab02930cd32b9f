"""Which nodes a pod's shape allows and prefers, judged for all nodes at once.

    nodes ──▶ a row each; per label key a column of value codes, and one column of taints
    shape ──▶ In, NotIn, Exists, Gt … over whole columns ──▶ an array, in the slot order of a tree

A shape costs a few array operations, so there may be any number of shapes; a tenant can make as
many as it has pods. What holds for all nodes or for none, such as a requirement on a label that no
node has, costs no array. Columns exist only for keys that some node has and some shape names. The
same for one node, in words, is `one_node.py`; a test holds the two against each other.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import typing as npt

from app.kube.core.cached import KIB, weight
from app.kube.core.objects import NodeRecord, Shape, Taint, Term, Toleration
from app.state.cache.eligibility.columns import ABSENT, Column, Where, both_hold, where_holds
from app.state.cache.eligibility.one_node import (
    AFFINITY,
    NODE_NAME,
    SELECTOR,
    for_good,
    is_tolerated,
    taint_in_words,
)
from topology.fit.view import Visits
from topology.model.resources import Counts, Mask, Rows
from topology.model.tree import Tree

MOST_KEPT = 512  # arrays kept, one byte a node for a mask; the least recently used goes first …
MOST_BEARING = 256  # sets of labels of which the nodes are kept
MOST_SHAPE_BYTES = 1024 * KIB  # … none of a shape that weighs more …
MOST_KEPT_BYTES = 8 * 1024 * KIB  # … and so much in all shapes together
# What judging all nodes costs, in node visits: per requirement on what some node has, for so many
# rows of a column, per value that it lists, per requirement on what no node has, and per toleration
# that is held against a set of taints.
REQUIREMENT, ROWS, VALUE, UNKNOWN, TOLERATION = 100, 20, 5, 20, 7

_Array = npt.NDArray[Any]


@dataclass(slots=True)
class NodeTable:
    """Labels and taints of every node by column, and what shapes make of them.

    Arrays handed out are in the slot order of a tree, all of whose nodes are known here, and must
    not be written to. Invariant: a free row has no label and no taint in any column.
    """

    visits: Visits = field(default_factory=Visits)
    """Where it counts what judging costs; a shape has as many terms as its tenant likes."""
    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    _row_of: dict[str, int] = field(default_factory=dict)
    _free: list[int] = field(default_factory=list)
    _bearers: Counter[str] = field(default_factory=Counter)  # nodes with a label of this key
    _columns: dict[str, Column] = field(default_factory=dict)
    _taints: Column | None = None
    _names: Column | None = None
    _rows: dict[tuple[str, ...], tuple[int, Rows]] = field(default_factory=dict)  # by levels
    _kept: OrderedDict[tuple[str, Shape, tuple[str, ...]], tuple[int, Any, int]] = field(
        default_factory=OrderedDict
    )
    """With the generation of the tree, and what the shape weighs."""
    _kept_bytes: int = 0
    _bearing: dict[tuple[tuple[str, str], ...], frozenset[str]] = field(default_factory=dict)

    # -- nodes ---------------------------------------------------------------------------------

    def put_node(self, node: NodeRecord) -> None:
        """Add a node or replace what is known of it; a heartbeat changes nothing here."""
        before = self.nodes.get(node.name)
        self.nodes[node.name] = node
        if before and before.labels == node.labels and before.taints == node.taints:
            return
        self._bearers.update(node.labels.keys())
        if before is None:
            self._add_row(node.name)
        else:
            self._discount(before.labels)
        self._set_row(self._row_of[node.name], node)

    def drop_node(self, name: str) -> None:
        """Forget a node."""
        node = self.nodes.pop(name, None)
        if node is None:
            return
        self._discount(node.labels)
        row = self._row_of.pop(name)
        self._set_row(row, None)
        self._free.append(row)

    def _discount(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._bearers[key] -= 1
            if not self._bearers[key]:
                del self._bearers[key]

    def _add_row(self, name: str) -> None:
        if self._free:
            self._row_of[name] = self._free.pop()
        else:
            self._row_of[name] = len(self._row_of)
            self._columns.clear()  # they are too short
            self._taints = self._names = None

    def _set_row(self, row: int, node: NodeRecord | None) -> None:
        self._kept.clear()
        self._kept_bytes = 0
        self._bearing.clear()
        for key, column in list(self._columns.items()):
            column.put(row, None if node is None else node.labels.get(key))
            if column.is_worn or not self._bearers[key]:
                del self._columns[key]
        if self._taints is not None:
            self._taints.put(row, () if node is None else node.taints)
            self._taints = None if self._taints.is_worn else self._taints
        if self._names is not None:
            self._names.put(row, None if node is None else node.name)
            self._names = None if self._names.is_worn else self._names

    def _filled(self, value_of: Callable[[NodeRecord], object | None]) -> Column:
        rows = len(self._row_of) + len(self._free)
        column = Column(np.full(rows, ABSENT, dtype=np.intp))
        for name, row in self._row_of.items():
            column.put(row, value_of(self.nodes[name]))
        return column

    @property
    def columns(self) -> frozenset[str]:
        """The label keys that there are columns for."""
        return frozenset(self._columns)

    @property
    def most_values(self) -> int:
        """The most values that a column knows, those included that no node has any more."""
        columns = (*self._columns.values(), self._taints, self._names)
        return max((len(each.values) for each in columns if each is not None), default=0)

    @property
    def kept(self) -> int:
        """How many arrays are kept."""
        return len(self._kept)

    @property
    def kept_bytes(self) -> int:
        """What the shapes weigh of which arrays are kept."""
        return self._kept_bytes

    def bearing(self, labels: tuple[tuple[str, str], ...]) -> frozenset[str]:
        """The nodes that have all of these labels."""
        known = self._bearing.get(labels)
        if known is None:
            known = frozenset(
                name
                for name, node in self.nodes.items()
                if all(node.labels.get(key) == value for key, value in labels)
            )
            if len(self._bearing) >= MOST_BEARING:
                self._bearing.clear()
            self._bearing[labels] = known
        return known

    # -- questions -----------------------------------------------------------------------------

    def mask(self, shape: Shape, tree: Tree) -> Mask:
        """Where kube-scheduler's own filters let a pod of the shape go. Shapes: (N,)."""
        return self._once("mask", self._may_host, shape, tree)

    def lasting(self, shape: Shape, tree: Tree) -> Mask:
        """The same without nodes that would evict the pod after a while. Shapes: (N,)."""
        return self._once("lasting", self._may_stay, shape, tree)

    def scores(self, shape: Shape, tree: Tree) -> Counts:
        """The preference of the shape for each node. Shapes: (N,)."""
        return self._once("scores", self._preference, shape, tree)

    def why_not(self, shape: Shape, tree: Tree) -> tuple[Rows, tuple[str, ...]]:
        """The first reason that keeps a pod of the shape off each node, as an index into reasons.

        The first of the reasons is "", for none. Shapes: (N,).
        """
        taints = self._taint_column()
        first = [_first_barring(each, shape.tolerations) for each in taints.values]
        reasons = ("", *dict.fromkeys(each for each in first if each), SELECTOR, AFFINITY)
        by_code = np.array([reasons.index(each) for each in first] + [0], dtype=np.intp)
        found = by_code[taints.codes]
        for holds, reason in ((self._selected, SELECTOR), (self._affinity, AFFINITY)):
            found[(found == 0) & ~self._rows_where(holds(shape))] = reasons.index(reason)
        return found[self._rows_of(tree)], reasons

    def _once(
        self, name: str, judged: Callable[[Shape], _Array], shape: Shape, tree: Tree
    ) -> _Array:
        key = (name, shape, tree.levels)
        kept = self._kept.get(key)
        if kept is not None and kept[0] == tree.generation:
            self._kept.move_to_end(key)
            found: _Array = kept[1]
            return found
        found = judged(shape)[self._rows_of(tree)]
        self.visits.total += self._cost(shape)
        self._keep(key, tree.generation, found)
        return found

    def _keep(
        self, key: tuple[str, Shape, tuple[str, ...]], generation: int, found: _Array
    ) -> None:
        """Keep an array, and none of those that were asked for longest ago."""
        before = self._kept.pop(key, None)
        self._kept_bytes -= before[2] if before else 0
        shape_bytes = weight(key[1], MOST_SHAPE_BYTES)
        if shape_bytes > MOST_SHAPE_BYTES:
            return
        self._kept[key] = generation, found, shape_bytes
        self._kept_bytes += shape_bytes
        while len(self._kept) > MOST_KEPT or self._kept_bytes > MOST_KEPT_BYTES:
            _, (_, _, freed) = self._kept.popitem(last=False)
            self._kept_bytes -= freed

    def _rows_of(self, tree: Tree) -> Rows:
        """The row of each slot. Shapes: (N,)."""
        known = self._rows.get(tree.levels)
        if known is None or known[0] != tree.generation:
            rows = np.fromiter(map(self._row_of.__getitem__, tree.nodes), np.intp, len(tree.nodes))
            known = self._rows[tree.levels] = (tree.generation, rows)
        return known[1]

    def _cost(self, shape: Shape) -> int:
        """What judging all nodes costs at most, in node visits."""
        taints = self._taint_column()
        terms = (*shape.terms, *(term for _, term in shape.preferred))
        known, unknown, values = 0, len(terms), 0
        for key, _ in shape.selector:
            known += self._has(key)
            unknown += 1
        for term in terms:
            unknown += len(term.expressions) + len(term.fields)
            known += sum(self._has(each.key) for each in term.expressions)
            known += sum(each.key == NODE_NAME for each in term.fields)
            values += sum(len(each.values) for each in (*term.expressions, *term.fields))
        each_row = REQUIREMENT + len(taints.codes) // ROWS
        tolerated = len(shape.tolerations) * len(taints.values)
        return known * each_row + unknown * UNKNOWN + values * VALUE + tolerated * TOLERATION

    # -- judgements by row ---------------------------------------------------------------------

    def _may_host(self, shape: Shape) -> Mask:
        tolerating = self._tolerating(shape.tolerations)
        for holds in (self._selected, self._affinity):
            where = holds(shape)
            if where is False:
                return self._rows_where(where)
            tolerating &= where
        return tolerating

    def _may_stay(self, shape: Shape) -> Mask:
        return self._may_host(shape) & self._tolerating(for_good(shape.tolerations), ("NoExecute",))

    def _preference(self, shape: Shape) -> Counts:
        total = np.zeros(len(self._taint_column().codes), dtype=np.int64)
        for weight_of, term in shape.preferred:
            where = self._term(term)
            if where is not False:
                total += weight_of * where
        return total

    def _tolerating(
        self, tolerations: Collection[Toleration], effects: Collection[str] | None = None
    ) -> Mask:
        """The rows whose taints, of all effects or these, are tolerated."""
        taints = self._taint_column()
        return taints.where(
            all(
                is_tolerated(taint, tolerations)
                for taint in each
                if effects is None or taint.effect in effects
            )
            for each in taints.values
        )

    def _selected(self, shape: Shape) -> Where:
        found: Where = True
        for key, value in shape.selector:
            column = self._labels(key)
            found = both_hold(found, False if column is None else column.among((value,)))
            if found is False:
                break
        return found

    def _affinity(self, shape: Shape) -> Where:
        found: Where = not shape.terms
        for term in shape.terms:
            where = self._term(term)
            if where is True:
                return True
            if where is not False:
                found = where if found is False else found | where
        return found

    def _term(self, term: Term) -> Where:
        found: Where = bool(term.expressions or term.fields)
        for lines, column_of in ((term.expressions, self._labels), (term.fields, self._fields)):
            for wanted in lines:
                found = both_hold(found, where_holds(wanted, column_of(wanted.key)))
                if found is False:
                    return False
        return found

    # -- columns -------------------------------------------------------------------------------

    def _rows_where(self, where: Where) -> Mask:
        """The same as an array. Shapes: (rows,)."""
        if isinstance(where, bool):
            return np.full(len(self._taint_column().codes), where, dtype=np.bool_)
        return where

    def _has(self, key: str) -> bool:
        """Whether some node has a label of this key."""
        return key in self._bearers

    def _labels(self, key: str) -> Column | None:
        """The values of a label; None: no node has it."""
        if not self._has(key):
            return None
        if key not in self._columns:
            self._columns[key] = self._filled(lambda node: node.labels.get(key))
        return self._columns[key]

    def _fields(self, key: str) -> Column | None:
        if key != NODE_NAME:
            return None
        if self._names is None:
            self._names = self._filled(lambda node: node.name)
        return self._names

    def _taint_column(self) -> Column:
        if self._taints is None:
            self._taints = self._filled(lambda node: node.taints)
        return self._taints


def _first_barring(taints: Iterable[Taint], tolerations: Collection[Toleration]) -> str:
    barring = (each for each in taints if not is_tolerated(each, tolerations))
    return next(map(taint_in_words, barring), "")
