"""Whether a journal shows every promise kept."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from app.cli.common.columns import on_one_line
from app.cli.common.options import Output, write
from app.cli.replay.reading import journal_of
from app.state.journal.checking.check import check
from app.state.journal.checking.findings import Checked

MOST_SHOWN = 100


def checked(path: Path) -> Checked:
    """What the journal shows. Raises: OSError, DecodeError."""
    with journal_of(path) as lines:
        return check(lines)


def show(found: Checked, output: Output) -> None:
    """Write it down."""
    if output is Output.NAME:
        for about in dict.fromkeys(each.about for each in found.broken):
            typer.echo(on_one_line(about))
        return
    if output is not Output.TABLE:
        write(_plain(found), output)
        return
    for each in found.broken[:MOST_SHOWN]:
        typer.echo(on_one_line(str(each)))
    if len(found.broken) > MOST_SHOWN:
        typer.echo(f"… and {len(found.broken) - MOST_SHOWN} more")
    for why, times in sorted(found.unjudged.items()):
        typer.echo(f"not judged, {times} times: {on_one_line(why)}")
    word = f"{len(found.broken)} promises were broken" if found.broken else "every promise was kept"
    typer.echo(
        f"{word}: {found.gangs_started} gangs started, {found.pods_bound} pods bound,"
        f" {found.domains} times pods that are required to be together"
    )


def _plain(found: Checked) -> Any:
    return {**asdict(found), "unjudged": dict(found.unjudged)}
