"""What the commands of `corral topology` have in common: options, levels, and how they fail."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from app.cli.serve import USAGE_ERROR

FAILED = 1  # what was read cannot be used, or the API server did not answer

NodesFile = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE",
        help="Nodes as `kubectl get nodes -o json` (or yaml) writes them, - for stdin; "
        "none: from the API server",
    ),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        envvar="KUBECONFIG",
        help="How to reach the cluster; none: ~/.kube/config, else in-cluster",
    ),
]
Levels = Annotated[
    str | None,
    typer.Option("--levels", metavar="KEY,KEY,…", help="Node labels, widest first, or a preset"),
]
Topograph = Annotated[
    bool, typer.Option("--topograph", help="The levels that NVIDIA topograph has written")
]


def usage(problem: str) -> typer.Exit:
    """Say what is wrong with the options, and the end of the command for it."""
    typer.echo(f"corral: {problem}", err=True)
    return typer.Exit(USAGE_ERROR)


def note(text: str) -> None:
    """Say something beside the output."""
    typer.echo(f"corral: {text}", err=True)


def check_stdin(*files: str | None) -> None:
    """Raises: typer.Exit if more than one file is to be read from stdin."""
    if files.count("-") > 1:
        raise usage("only one file can be stdin (-)")


@contextmanager
def failures() -> Iterator[None]:
    """End the command with one sentence for what goes wrong while something is read."""
    from app.errors import CorralError, SettingsError

    try:
        yield
    except (SettingsError, OSError) as error:
        raise usage(str(error)) from error
    except CorralError as error:
        note(str(error))
        raise typer.Exit(FAILED) from error


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
    """Say which nodes lack a label."""
    for level, nodes in lacking.items():
        note(f"without label {level}, and in no domain of it: {', '.join(nodes)}")
