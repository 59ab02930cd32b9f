"""`corral replay`: play a journal again, and see where this Corral decides differently."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

DIFFERENT = 1
MOST_DIFFERENCES = 20  # one leads to others: after the first few they say nothing new


def replay(
    journal: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `corral serve --journal FILE` has written")
    ],
) -> None:
    """Play a journal again, and see where this Corral decides differently.

    \b
    Example:
      corral replay journal.jsonl

    \b
    Exit code 0: every answer and effect is the same
              1: one is not
              2: the file cannot be read
    """
    from app.cli.options import USAGE_ERROR
    from app.errors import DecodeError
    from app.state.journal import replay as replaying

    lines = 0
    found = 0
    try:
        with journal.open("rb") as file:

            def counted() -> Iterator[bytes]:
                nonlocal lines
                for line in file:
                    lines += 1
                    yield line

            for difference in replaying.replay(counted(), note=typer.echo):
                typer.echo(f"differs: {difference}")
                found += 1
                if found == MOST_DIFFERENCES:
                    typer.echo("… and perhaps more")
                    break
    except (OSError, DecodeError) as error:
        typer.echo(f"corral: journal {journal}: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from error
    if found:
        raise typer.Exit(DIFFERENT)
    typer.echo(f"equal: {lines} lines")
