"""The values of all nodes under one key, and where a requirement on them holds: no node by node.

A value is a code, so that nodes are compared by whole columns. What holds for all nodes or for none
is no array.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.kube.core.objects import Requirement
from app.state.cache.eligibility.one_node import whole_number
from topology.model.resources import Counts, Mask, Rows

ABSENT = -1  # the code of a label that a node does not have
Where = Mask | bool
"""Rows; True: all of them, False: none."""


@dataclass(slots=True)
class Column:
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

    def among(self, values: Iterable[object]) -> Where:
        """The rows that have one of these values. Shapes: (rows,)."""
        codes = [code for each in values if (code := self.code_of.get(each)) is not None]
        if not codes:
            return False
        if len(codes) == 1:
            return np.equal(self.codes, codes[0])
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


def both_hold(one: Where, other: Where) -> Where:
    """The rows of both; False, not an array, where there are none."""
    if one is True or other is False:
        return other
    if other is True or one is False:
        return one
    both: Mask = one & other
    return both if both.any() else False


def where_holds(wanted: Requirement, column: Column | None) -> Where:
    """The rows whose value is as required; `column`: None if no node has the key."""
    if column is None:
        return wanted.operator in ("NotIn", "DoesNotExist")
    match wanted.operator:
        case "In":
            return column.among(wanted.values)
        case "NotIn":
            among = column.among(wanted.values)
            return not among if isinstance(among, bool) else ~among
        case "Exists":
            return np.not_equal(column.codes, ABSENT)
        case "DoesNotExist":
            return np.equal(column.codes, ABSENT)
        case "Gt" | "Lt":
            bound = whole_number(wanted.values[0]) if wanted.values else None
            if bound is not None:
                return column.compared(wanted.operator, bound)
    return False
