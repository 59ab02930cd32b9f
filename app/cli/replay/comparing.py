"""Every recorded answer again, and where this Corral decides differently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import typer

from app.cli.common.columns import on_one_line
from app.cli.common.options import Output, write
from app.cli.replay.reading import journal_of
from app.state.journal.replay import replay

MOST_DIFFERENCES = 20  # one leads to others: after the first few they say nothing new
MOST_NOTES = 20  # of what could not be compared


@dataclass(slots=True)
class Compared:
    """What a replay came to. Written by `compared` alone."""

    lines: int = 0
    answers: int = 0
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What could not be compared; the first of these, and `more_notes` others."""
    more_notes: int = 0

    @property
    def may_differ_more(self) -> bool:
        """The rest was not played: enough differs."""
        return len(self.differences) == MOST_DIFFERENCES


def compared(path: Path) -> Compared:
    """Play a journal, and note what differs. Raises: OSError, DecodeError."""
    found = Compared()

    def note(sentence: str) -> None:
        if len(found.notes) < MOST_NOTES:
            found.notes.append(sentence)
        else:
            found.more_notes += 1

    with journal_of(path) as file:

        def counted() -> Iterator[bytes]:
            for line in file:
                found.lines += 1
                found.answers += line.startswith(b'{"line":"out"')
                yield line

        for difference in replay(counted(), note=note):
            found.differences.append(str(difference))
            if found.may_differ_more:
                break
    return found


def show(found: Compared, output: Output) -> None:
    """Write it down; with -o name a line for each difference."""
    if output in (Output.JSON, Output.YAML):
        write(asdict(found), output)
        return
    if output is Output.NAME:
        for each in found.differences:
            typer.echo(on_one_line(each))
        return
    for each in found.notes:
        typer.echo(on_one_line(each))
    for each in found.differences:
        typer.echo(on_one_line(f"differs: {each}"))
    if found.may_differ_more:
        typer.echo("… and perhaps more")
    if found.more_notes:
        typer.echo(f"… and {found.more_notes} more that could not be compared")
    if not found.differences:
        nothing = (
            ""
            if found.answers
            else ", none of them with an answer to compare: corral record adds them"
        )
        typer.echo(f"equal: {found.lines} lines{nothing}")
