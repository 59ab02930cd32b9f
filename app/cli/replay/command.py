"""`corral replay`: its options, and what its exit code means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.gangs import options

DIFFERENT = 1


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A journal, of corral serve --journal or of corral record; with --load a"
            " cluster-snapshot/v1",
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Say whether the journal shows every promise kept")
    ] = False,
    output: Annotated[
        options.Output, typer.Option("--output", "-o", help="How a result is written")
    ] = options.Output.TABLE,
) -> None:
    """Answer every decision of a journal again, and compare bit for bit.

    --check judges instead what the journal says has happened: no pod bound twice, nothing that does
    not fit, every gang whole and in its domains.

    \b
    corral replay incident.journal.gz
    corral replay --check -o json incident.journal.gz

    Exit code 0: every answer is the same, every promise was kept. 1: not so. 2: wrong options, or a
    file that cannot be read.
    """
    from app.cli.replay import checking, comparing
    from app.cli.serve import USAGE_ERROR
    from app.errors import DecodeError

    try:
        if check:
            found = checking.checked(file)
            checking.show(found, output)
            is_good = not found.broken
        else:
            is_good = comparing.compare(file)
    except (OSError, DecodeError) as error:
        typer.echo(f"corral: journal {file}: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from error
    if not is_good:
        raise typer.Exit(DIFFERENT)
