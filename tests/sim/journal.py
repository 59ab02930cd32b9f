"""The journals of a simulated history: one file for each life of each Corral, played again.

python -m tests.sim --seed 3 --journal FILE     writes FILE.corral-0.1, FILE.corral-0.2, …
python -m tests.sim --replay FILE               plays all of them again, or FILE itself
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from app.errors import DecodeError
from app.state.journal.replay import Difference, replay
from tests.sim.mode import USUAL, Mode
from tests.sim.world import Outcome, World


@dataclass(frozen=True, slots=True)
class Played:
    """What became of one journal."""

    path: Path
    lines: int
    difference: Difference | None  # the first
    notes: tuple[str, ...]


def record(
    seed: int,
    journal: Path,
    *,
    mode: Mode = USUAL,
    on_line: Callable[[str], None] | None = None,
) -> Outcome:
    """Play a seed and keep the journal of every life of every Corral; earlier ones make way."""
    for path in _of_lives(journal):
        path.unlink()
    with ExitStack() as stack:

        def opened(name: str, incarnation: int) -> Callable[[bytes], object]:
            path = journal.with_name(f"{journal.name}.{name}.{incarnation}")
            return stack.enter_context(path.open("wb")).write

        world = World(seed, mode=mode, on_line=on_line)
        for corral in world.corrals:
            corral.keep_journals(opened)
        return world.run()


def journals(journal: Path) -> list[Path]:
    """The files that `record` wrote; the file of this very name, where there is one."""
    if journal.is_file():
        return [journal]
    return _of_lives(journal)


def _of_lives(journal: Path) -> list[Path]:
    return sorted(journal.parent.glob(f"{glob.escape(journal.name)}.corral-*.*"))


def play_again(path: Path) -> Played:
    """Replay one file, as far as the first difference.

    Raises: DecodeError.
    """
    notes: list[str] = []
    lines = 0

    def counted() -> Iterator[bytes]:
        nonlocal lines
        for line in file:
            lines += 1
            yield line

    with path.open("rb") as file:
        difference = next(replay(counted(), note=notes.append), None)
    return Played(path, lines, difference, tuple(notes))


def show_replay(journal: Path) -> int:
    """Replay and print; 0 if every file is equal, 1 otherwise."""
    paths = journals(journal)
    if not paths:
        print(f"{journal}: there is no such journal")
    code = 0 if paths else 1
    for path in paths:
        try:
            played = play_again(path)
        except DecodeError as error:
            print(f"{path.name}: {error}")
            code = 1
            continue
        for sentence in played.notes:
            print(f"{path.name}: {sentence}")
        if played.difference is not None:
            print(f"{path.name}: differs: {played.difference}")
            code = 1
        else:
            print(f"{path.name}: equal, {played.lines} lines")
    return code
