"""A tree of domains as text, in the columns of kubectl and with the lines of `tree`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEADER = ("DOMAIN", "LEVEL", "NODES")
GAP = "   "  # between two columns, as kubectl has it


@dataclass(frozen=True, slots=True)
class Branch:
    """One domain and those inside it, in the order in which they are shown."""

    name: str
    level: str
    nodes: int
    branches: Sequence[Branch] = ()


def lines_of(root: Branch) -> list[str]:
    """The lines of the table, with its header."""
    rows = [HEADER, (root.name, root.level, str(root.nodes)), *_rows(root.branches, "")]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [
        GAP.join((row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2])).rstrip()
        for row in rows
    ]


def _rows(branches: Sequence[Branch], indent: str) -> Iterator[tuple[str, str, str]]:
    for at, branch in enumerate(branches):
        is_last = at == len(branches) - 1
        name = f"{indent}{'└── ' if is_last else '├── '}{branch.name}"
        yield name, branch.level, str(branch.nodes)
        yield from _rows(branch.branches, indent + ("    " if is_last else "│   "))
