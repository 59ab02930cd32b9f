"""A tree of domains as text, in the columns of kubectl and with the lines of `tree`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.cli.common.columns import aligned

HEADER = ("DOMAIN", "LEVEL", "NODES")
GAP = "   "  # between two columns, as kubectl has it


@dataclass(frozen=True, slots=True)
class Branch:
    """One domain and those inside it, in the order in which they are shown."""

    name: str
    level: str
    nodes: int
    branches: Sequence[Branch] = ()
    cells: tuple[str, ...] = ()
    """Of the columns behind those that every tree has."""


def lines_of(root: Branch, more: tuple[str, ...] = ()) -> list[str]:
    """The lines of the table, with its header. `more`: the columns of `cells`."""
    rows = [(*HEADER, *more), _row(root.name, root), *_rows(root.branches, "")]
    return list(aligned(rows, GAP))


def _row(name: str, branch: Branch) -> tuple[str, ...]:
    return (name, branch.level, str(branch.nodes), *branch.cells)


def _rows(branches: Sequence[Branch], indent: str) -> Iterator[tuple[str, ...]]:
    for at, branch in enumerate(branches):
        is_last = at == len(branches) - 1
        yield _row(f"{indent}{'└── ' if is_last else '├── '}{branch.name}", branch)
        yield from _rows(branch.branches, indent + ("    " if is_last else "│   "))
