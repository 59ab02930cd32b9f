"""Every recorded answer again, and where this Corral decides differently."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from app.cli.common.columns import on_one_line
from app.cli.replay.reading import journal_of
from app.state.journal.replay import replay

MOST_DIFFERENCES = 20  # one leads to others: after the first few they say nothing new
MOST_NOTES = 20  # of what could not be compared


def compare(path: Path) -> bool:
    """Play a journal and say what differs. Raises: OSError, DecodeError."""
    lines, found, notes = 0, 0, 0
    answers = 0

    def note(sentence: str) -> None:
        nonlocal notes
        notes += 1
        if notes <= MOST_NOTES:
            typer.echo(on_one_line(sentence))

    with journal_of(path) as file:

        def counted() -> Iterator[bytes]:
            nonlocal lines, answers
            for line in file:
                lines += 1
                answers += line.startswith(b'{"line":"out"')
                yield line

        for difference in replay(counted(), note=note):
            typer.echo(on_one_line(f"differs: {difference}"))
            found += 1
            if found == MOST_DIFFERENCES:
                typer.echo("… and perhaps more")
                break
    if notes > MOST_NOTES:
        typer.echo(f"… and {notes - MOST_NOTES} more that could not be compared")
    if not found:
        nothing = (
            "" if answers else ", none of them with an answer to compare: corral record adds them"
        )
        typer.echo(f"equal: {lines} lines{nothing}")
    return not found
