"""A journal played again: the same inputs to a fresh engine, and every outcome that differs.

The engine has no clock and no randomness, so the same inputs give the same answers and effects,
bit for bit; their digests are compared. There is no I/O here: lines come from where the caller has
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from app.dialects.registry import DIALECTS, Dialects
from app.errors import DecodeError
from app.state.effects import Bound, Ungated
from app.state.engine import Engine
from app.state.filter_result import Candidates
from app.state.inputs import Inputs
from app.state.journal.lines import (
    LINE,
    Decoders,
    In,
    Names,
    Out,
    args_of,
    decoded,
    decoders_of,
    event_of,
    out_of,
    settings_of,
)
from app.state.settings import EngineSettings

MOST_SHOWN = 1000  # characters of what an engine gave, in the sentence about a difference


@dataclass(frozen=True, slots=True)
class Difference:
    """An input with another outcome than was recorded; later ones may differ because of it.

    `recorded` and `replayed` are a digest or an exception's name, "" for nothing.
    """

    line: int  # the input's, counted from 1
    call: str
    now: float
    recorded: str
    replayed: str
    given: str  # what the engine gave this time

    def __str__(self) -> str:
        return (
            f"line {self.line}, {self.call} at {self.now!r}: recorded {self.recorded or 'nothing'},"
            f" replayed {self.replayed or 'nothing'}: {self.given[:MOST_SHOWN]}"
        )


def replay(
    lines: Iterable[bytes],
    *,
    note: Callable[[str], None] | None = None,
    build: Callable[[EngineSettings], Inputs] | None = None,
    on_time: Callable[[float], None] | None = None,
    dialects: Dialects = DIALECTS,
) -> Iterator[Difference]:
    """Play a journal on a fresh engine: every input with another outcome, none if all are equal.

    `note` gets a sentence for what could not be compared: an input without an answer (after a
    crash), a last line that is torn; and for each fault that the engine isolated. `build` makes the
    engine, where it is to be a changed or watched one; `on_time` gets each input's time; `dialects`
    are those of the recorded engine.

    Raises: DecodeError naming the invalid line.
    """
    say = note or (lambda sentence: None)

    def fresh(settings: EngineSettings) -> Engine:
        return Engine(settings, lambda what, error: say(f"{what}: {error!r}"), dialects)

    numbered = enumerate(lines, start=1)
    settings = settings_of(next(numbered, (1, b""))[1])
    inputs = (build or fresh)(settings)
    player = _Player(inputs, decoders_of(dialects.configured(settings)))
    asked: tuple[int, In, Out, str] | None = None
    for number, line in _lines(numbered, say):
        if isinstance(line, In):
            if asked is not None:
                say(f"line {asked[0]}: no answer is recorded, so none is compared")
            if on_time is not None:
                on_time(line.now)
            asked = (number, line, *player.play(number, line))
        elif asked is None:
            raise DecodeError(f"journal line {number}: an answer without an input before it")
        else:
            at, step, out, given = asked
            asked = None
            if out != line:
                sides = (line.raised or line.digest, out.raised or out.digest)
                yield Difference(at, step.call, step.now, *sides, given)
    if asked is not None:
        say(f"line {asked[0]}: no answer is recorded, so none is compared")


class _Player:
    """A fresh engine, and the candidates that later lines may refer to."""

    def __init__(self, inputs: Inputs, decoders: Decoders) -> None:
        self._inputs = inputs
        self._decoders = decoders
        self._offered = Offered(())
        self._offered_line = 0

    def play(self, number: int, step: In) -> tuple[Out, str]:
        """Give the engine one input; its outcome as a digest, and in words."""
        args = self._args(number, step)
        try:
            given = getattr(self._inputs, step.call)(*args, step.now)
        except Exception as error:  # the recorded engine may have failed on it as well
            return Out(raised=type(error).__name__), repr(error)
        return out_of(given), repr(given)

    def _args(self, number: int, step: In) -> Sequence[object]:
        args = args_of(number, step)
        match step.call:
            case "apply":
                return (event_of(number, args[0], self._decoders),)
            case "filter" | "prioritize":
                return (args[0], self._candidates(number, args[1]))
            case "bind_finished":
                return (args[0], args[1] or Bound())
            case "ungate_finished":
                return (args[0], args[1] or Ungated())
        return tuple(args)

    def _candidates(self, number: int, names: Names) -> Candidates:
        if isinstance(names, list):
            self._offered, self._offered_line = Offered(names), number
        elif names != self._offered_line:
            raise DecodeError(f"journal line {number}: line {names} is not the last list of names")
        return self._offered


class Offered:
    """Candidates as they were offered."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._known = frozenset(names)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __len__(self) -> int:
        return len(self._names)

    def names(self) -> Sequence[str]:
        return self._names


def _lines(
    numbered: Iterator[tuple[int, bytes]], say: Callable[[str], None]
) -> Iterator[tuple[int, In | Out]]:
    """What each line means; a last one that was not written to its end is left out."""
    for number, line in numbered:
        try:
            yield number, decoded(LINE, number, line)
        except DecodeError as error:
            is_json = isinstance(error.__cause__, msgspec.ValidationError)
            if is_json or line.endswith(b"\n") or next(numbered, None) is not None:
                raise
            say(f"line {number} is torn after {len(line)} bytes and left out")
