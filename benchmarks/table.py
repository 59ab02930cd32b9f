"""Prints measurements: an aligned table for people, a JSON list for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure."""

    benchmark: str
    case: str
    nodes: int
    value: float
    unit: str
    baseline: float | None = None
    """The same work at its barest, in the same unit and run."""
    ratio: float | None = None
    """value / baseline."""
    target: str = ""
    """The figure to reach."""


def show(rows: Sequence[Any], *, as_json: bool) -> None:
    """Writes rows of one dataclass, `Row` or another, to standard output."""
    if as_json:
        # The figure to reach is for people; machines get numbers.
        plain = [
            {name: value for name, value in asdict(row).items() if name != "target"} for row in rows
        ]
        print(json.dumps(plain, indent=1))
        return
    header = [field.name for field in fields(rows[0] if rows else Row)]
    cells = [header, *([_cell(getattr(row, name)) for name in header] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
