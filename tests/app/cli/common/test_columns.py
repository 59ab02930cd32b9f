"""Rows in columns, and no text that a terminal would act on."""

from __future__ import annotations

from app.cli.common.columns import aligned, on_one_line


def test_each_column_is_as_wide_as_its_widest_cell():
    rows = [("NAME", "PODS", ""), ("a", "12345", "x"), ("longer", "1", "")]
    assert list(aligned(rows, "  ")) == ["NAME    PODS", "a       12345  x", "longer  1"]


def test_what_a_terminal_would_act_on_is_a_space():
    assert on_one_line("a\x1b[2Jb\nc\u202ed") == "a [2Jb c d"
    assert on_one_line("gang näme 漢") == "gang näme 漢"
