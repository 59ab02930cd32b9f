"""Text for a terminal: rows in columns, and values that are a tenant's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def aligned(rows: Sequence[Sequence[str]], gap: str) -> Iterator[str]:
    """A line for each row, with every column as wide as its widest cell."""
    widths = widths_of(rows)
    return (line_of(row, widths, gap) for row in rows)


def widths_of(rows: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """How wide the widest cell of each column is."""
    return tuple(max(map(len, column)) for column in zip(*rows, strict=True))


def line_of(row: Sequence[str], widths: Sequence[int], gap: str) -> str:
    """One row in columns so wide; a cell that is wider moves the rest of its line."""
    return gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def on_one_line(text: str) -> str:
    """The text without what a terminal would act on: values may be a tenant's."""
    return "".join(each if each.isprintable() else " " for each in text)
