"""Which nodes a pod's shape allows and prefers, judged for all nodes at once.

    nodes ──▶ a row each; per label key a column of value codes, and one column of taints
    shape ──▶ In, NotIn, Exists, Gt … over whole columns ──▶ an array, in the slot order of a tree

A shape costs a few array operations, so there may be any number of shapes; a tenant can make as
many as it has pods. Columns exist only for keys that some node has and some shape names. The same
for one node, in words, is `eligibility.py`; a test holds the two against each other.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import typing as npt

from app.kube.core.cached import KIB, weight
from app.kube.core.objects import NodeRecord, Requirement, Shape, Taint, Term, Toleration
from app.state.cache.eligibility import (
    AFFINITY,
    NODE_NAME,
    SELECTOR,
    for_good,
    is_tolerated,
    taint_in_words,
    whole_number,
)
from topology.fit.view import Visits
from topology.model.resources import Counts, Mask, Rows
from topology.model.tree import Tree

ABSENT = -1  # the code of a label that a node does not have
MOST_KEPT = 512  # arrays kept, one byte a node for a mask; the least recently used goes first …
MOST_BEARING = 256  # sets of labels of which the nodes are kept
MOST_SHAPE_BYTES = 16 * KIB  # … and none of a shape that weighs more
# What judging all nodes costs, in node visits: per requirement, for so many rows of a column, per
# value that it lists, and per toleration that is held against a set of taints.
REQUIREMENT, ROWS, VALUE, TOLERATION = 100, 20, 5, 7

_Array = npt.NDArray[Any]


@dataclass(slots=True)
class _Column:
    """One value per row as a code, `values[code]`; codes are given in order of appearance."""

    codes: Rows
    values: list[Any] = field(default_factory=list)
    code_of: dict[Any, int] = field(default_factory=dict)
    _numbers: tuple[Mask, Counts] | None = None

    def put(self, row: int, value: object | None) -> None:
        """Set the value of a row; None: it has none."""
        if value is None:
            self.codes[row] = ABSENT
            return
        code = self.code_of.setdefault(value, len(self.values))
        if code == len(self.values):
            self.values.append(value)
            self._numbers = None
        self.codes[row] = code

    @property
    def is_worn(self) -> bool:
        """Whether most of the values are of rows that have others by now."""
        return len(self.values) > 2 * len(self.codes)

    def where(self, holds: Iterable[bool]) -> Mask:
        """The rows whose value is one for which it holds. Shapes: (rows,)."""
        by_code = np.fromiter(holds, np.bool_, len(self.values))
        return self._rows(by_code)

    def among(self, values: Iterable[object]) -> Mask:
        """The rows that have one of these values. Shapes: (rows,)."""
        codes = [code for each in values if (code := self.code_of.get(each)) is not None]
        by_code = np.zeros(len(self.values), dtype=np.bool_)
        by_code[codes] = True
        return self._rows(by_code)

    def compared(self, operator: str, bound: int) -> Mask:
        """The rows whose value is a number above, or below, the bound. Shapes: (rows,)."""
        if self._numbers is None:
            numbers = [whole_number(each) for each in self.values]
            is_number = np.array([each is not None for each in numbers], dtype=np.bool_)
            self._numbers = is_number, np.array([each or 0 for each in numbers], dtype=np.int64)
        is_number, amounts = self._numbers
        return self._rows(is_number & _compared(amounts, operator, bound))

    def _rows(self, by_code: Mask) -> Mask:
        """The rows whose value has a code that is marked. Shapes: (values,), (rows,)."""
        found: Mask = np.append(by_code, False)[self.codes]  # ABSENT is the last one
        return found


def _compared(amounts: Counts, operator: str, bound: int) -> Mask:
    return amounts > bound if operator == "Gt" else amounts < bound


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
    _columns: dict[str, _Column] = field(default_factory=dict)
    _taints: _Column | None = None
    _names: _Column | None = None
    _rows: dict[tuple[str, ...], tuple[int, Rows]] = field(default_factory=dict)  # by levels
    _kept: OrderedDict[tuple[str, Shape, tuple[str, ...]], tuple[int, Any]] = field(
        default_factory=OrderedDict
    )
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

    def _filled(self, value_of: Callable[[NodeRecord], object | None]) -> _Column:
        rows = len(self._row_of) + len(self._free)
        column = _Column(np.full(rows, ABSENT, dtype=np.intp))
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
        allowed = self._affinity(shape)
        found[(found == 0) & ~self._selected(shape)] = reasons.index(SELECTOR)
        found[(found == 0) & ~allowed] = reasons.index(AFFINITY)
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
        if weight(shape, MOST_SHAPE_BYTES) <= MOST_SHAPE_BYTES:
            self._kept[key] = (tree.generation, found)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    def _rows_of(self, tree: Tree) -> Rows:
        """The row of each slot. Shapes: (N,)."""
        known = self._rows.get(tree.levels)
        if known is None or known[0] != tree.generation:
            rows = np.fromiter(map(self._row_of.__getitem__, tree.nodes), np.intp, len(tree.nodes))
            known = self._rows[tree.levels] = (tree.generation, rows)
        return known[1]

    def _cost(self, shape: Shape) -> int:
        """What judging all nodes costs, in node visits."""
        taints = self._taint_column()
        terms = (*shape.terms, *(term for _, term in shape.preferred))
        requirements, values = len(shape.selector) + len(terms), 0
        for term in terms:
            wanted = (*term.expressions, *term.fields)
            requirements += len(wanted)
            values += sum(len(each.values) for each in wanted)
        each_row = REQUIREMENT + len(taints.codes) // ROWS
        tolerated = len(shape.tolerations) * len(taints.values)
        return requirements * each_row + values * VALUE + tolerated * TOLERATION

    # -- judgements by row ---------------------------------------------------------------------

    def _may_host(self, shape: Shape) -> Mask:
        chosen = self._selected(shape) & self._affinity(shape)
        return self._tolerating(shape.tolerations) & chosen

    def _may_stay(self, shape: Shape) -> Mask:
        return self._may_host(shape) & self._tolerating(for_good(shape.tolerations), ("NoExecute",))

    def _preference(self, shape: Shape) -> Counts:
        total = np.zeros(len(self._taint_column().codes), dtype=np.int64)
        for weight_of, term in shape.preferred:
            total += weight_of * self._term(term)
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

    def _selected(self, shape: Shape) -> Mask:
        found = self._all(True)
        for key, value in shape.selector:
            found &= self._labels(key).among((value,))
        return found

    def _affinity(self, shape: Shape) -> Mask:
        if not shape.terms:
            return self._all(True)
        found = self._all(False)
        for term in shape.terms:
            found |= self._term(term)
        return found

    def _term(self, term: Term) -> Mask:
        if not term.expressions and not term.fields:
            return self._all(False)
        found = self._all(True)
        for wanted in term.expressions:
            found &= _where(wanted, self._labels(wanted.key))
        for wanted in term.fields:
            found &= _where(wanted, self._fields(wanted.key))
        return found

    # -- columns -------------------------------------------------------------------------------

    def _all(self, value: bool) -> Mask:
        return np.full(len(self._taint_column().codes), value, dtype=np.bool_)

    def _none(self) -> _Column:
        """The column of a key that no node has."""
        return _Column(np.full(len(self._taint_column().codes), ABSENT, dtype=np.intp))

    def _labels(self, key: str) -> _Column:
        if not self._bearers[key]:
            return self._none()
        if key not in self._columns:
            self._columns[key] = self._filled(lambda node: node.labels.get(key))
        return self._columns[key]

    def _fields(self, key: str) -> _Column:
        if key != NODE_NAME:
            return self._none()
        if self._names is None:
            self._names = self._filled(lambda node: node.name)
        return self._names

    def _taint_column(self) -> _Column:
        if self._taints is None:
            self._taints = self._filled(lambda node: node.taints)
        return self._taints


def _where(wanted: Requirement, column: _Column) -> Mask:
    match wanted.operator:
        case "In":
            return column.among(wanted.values)
        case "NotIn":
            return ~column.among(wanted.values)
        case "Exists":
            return np.not_equal(column.codes, ABSENT)
        case "DoesNotExist":
            return np.equal(column.codes, ABSENT)
        case "Gt" | "Lt":
            bound = whole_number(wanted.values[0]) if wanted.values else None
            if bound is not None:
                return column.compared(wanted.operator, bound)
    return np.zeros(len(column.codes), dtype=np.bool_)


def _first_barring(taints: Iterable[Taint], tolerations: Collection[Toleration]) -> str:
    barring = (each for each in taints if not is_tolerated(each, tolerations))
    return next(map(taint_in_words, barring), "")
