"""What the commands of `corral topology` have in common: options and levels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated

import typer

from app.cli.common.options import FAILED, Context, Kubeconfig, failures, note, usage

MOST_NAMED = 20  # nodes that lack a label: a level that is misspelt is on none of them

NodesFile = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE",
        help="Nodes as `kubectl get nodes -o json` (or yaml) writes them, - for stdin; "
        "none: from the API server",
    ),
]
Levels = Annotated[
    str | None,
    typer.Option("--levels", metavar="KEY,KEY,…", help="Node labels, widest first, or a preset"),
]
Topograph = Annotated[
    bool, typer.Option("--topograph", help="The levels that NVIDIA topograph has written")
]


def check_stdin(*files: str | None) -> None:
    """Raises: typer.Exit if more than one file is to be read from stdin."""
    if files.count("-") > 1:
        raise usage("only one file can be stdin (-)")


def given_levels(text: str | None) -> tuple[str, ...]:
    """The label keys above the node level that `--levels` means; () if it is not given.

    Raises: typer.Exit.
    """
    from app.dialects.presets import label_levels

    if text is None:
        return ()
    try:
        return label_levels(tuple(key.strip() for key in text.split(",")))
    except ValueError as error:
        raise usage(f"--levels: {error}") from error


def topograph_levels(nodes: Collection[Mapping[str, str]]) -> tuple[str, ...]:
    """The levels that topograph's labels are; says what it leaves out.

    Raises: DecodeError if there are none; typer.Exit if they are too many.
    """
    from app.dialects.topograph import levels_on
    from app.errors import DecodeError

    levels, notes = levels_on(nodes)
    for each in notes:
        note(each)
    if not levels:
        raise DecodeError("--topograph: no node has a label of topograph")
    return given_levels(",".join(levels))


def note_lacking(lacking: Mapping[str, Sequence[str]]) -> None:
    """Say which nodes lack a label; of many the first, and what lists them all."""
    for level, nodes in lacking.items():
        shown, more = ", ".join(nodes[:MOST_NAMED]), len(nodes) - MOST_NAMED
        others = f" and {more:,} others: kubectl get nodes -l '!{level}'" if more > 0 else ""
        note(f"without label {level}, and in no domain of it: {shown}{others}")


# What every command has, beside what is above.
__all__ = [
    "FAILED",
    "Context",
    "Kubeconfig",
    "Levels",
    "NodesFile",
    "Topograph",
    "check_stdin",
    "failures",
    "given_levels",
    "note",
    "note_lacking",
    "topograph_levels",
    "usage",
]
