"""Every input of one engine as a line of JSON, and the engine played again from those lines.

    {"journal":1,"settings":{…}}                                             line 1
    {"line":"in","now":1.5,"call":"apply","args":[["applied",["pod",{…}]]]}  before it is given
    {"line":"out","digest":"9f86d081884c7d65"}                               after: what came of it
    {"line":"in","now":1.7,"call":"filter","args":[{…},["n1","n2"]]}
    {"line":"out","digest":"60303ae22b998861"}
    {"line":"in","now":1.7,"call":"prioritize","args":[{…},4]}               the names of line 4

The engine has no clock and no randomness, so the same inputs give the same answers and effects,
bit for bit; `replay` compares their digests. An input is written before the engine gets it, so that
one it never returns from is in the journal too. Floats are written so that they read back exactly.

There is no I/O here: bytes go where `write` takes them and come from where `replay` is given them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import msgspec

from app.errors import DecodeError
from app.kube.events import Applied, Deleted, Event, Kind, Listed
from app.kube.objects import JobRecord, NodeRecord, PodRecord, Record, TopologyRecord
from app.state.answers import Candidates, FilterAnswer
from app.state.effects import (
    BindFailed,
    BindOutcome,
    Bound,
    Effect,
    Ungated,
    UngateFailed,
    UngateOutcome,
)
from app.state.engine import Engine
from app.state.settings import EngineSettings

VERSION = 1  # one more whenever a line of before would be read as something else
DIGEST_BYTES = 8  # against chance, not against malice
MOST_SHOWN = 1000  # characters of what an engine gave, in the sentence about a difference

_T = TypeVar("_T")


# -- the lines -------------------------------------------------------------------------------------


class _Node(msgspec.Struct, frozen=True, tag="node", array_like=True, gc=False):
    record: NodeRecord


class _Pod(msgspec.Struct, frozen=True, tag="pod", array_like=True, gc=False):
    record: PodRecord


class _Job(msgspec.Struct, frozen=True, tag="job", array_like=True, gc=False):
    record: JobRecord


class _Topology(msgspec.Struct, frozen=True, tag="topology", array_like=True, gc=False):
    record: TopologyRecord


_Tagged = _Node | _Pod | _Job | _Topology


class _Applied(msgspec.Struct, frozen=True, tag="applied", array_like=True):
    record: _Tagged


class _Deleted(msgspec.Struct, frozen=True, tag="deleted", array_like=True):
    record: _Tagged


class _Listed(msgspec.Struct, frozen=True, tag="listed", array_like=True):
    kind: Kind
    records: tuple[_Tagged, ...]


_Heard = _Applied | _Deleted | _Listed
_Names = list[str] | int  # a number: those of that line, the last with a list

_ARGUMENTS: dict[str, Any] = {  # of the engine's methods, without `now`
    "apply": tuple[_Heard],
    "filter": tuple[PodRecord, _Names],
    "prioritize": tuple[PodRecord, _Names],
    "bind_arrived": tuple[str, str, str, str],
    "bind_finished": tuple[str, BindFailed | None],  # None: it is bound
    "ungate_finished": tuple[str, UngateFailed | None],  # None: it is ungated
    "tick": tuple[()],
    "heal": tuple[()],
    "drain": tuple[()],
}


class _Line(msgspec.Struct, frozen=True, tag_field="line", forbid_unknown_fields=True):
    pass


class _In(_Line, frozen=True, tag="in"):
    """One input."""

    now: float
    call: str
    args: msgspec.Raw


class _Out(_Line, frozen=True, tag="out", omit_defaults=True):
    """What came of the input before it; both are "" where nothing did."""

    digest: str = ""
    raised: str = ""  # the exception's name, where the engine failed on its input


_ENCODER = msgspec.json.Encoder()
_SORTING = msgspec.json.Encoder(order="deterministic")  # a set has no order of its own
_FIRST: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
_LINE: msgspec.json.Decoder[_In | _Out] = msgspec.json.Decoder(_In | _Out)
_ARGS = {call: msgspec.json.Decoder(type_) for call, type_ in _ARGUMENTS.items()}

_TAGGED: dict[type[Record], Callable[[Any], _Tagged]] = {
    NodeRecord: _Node,
    PodRecord: _Pod,
    JobRecord: _Job,
    TopologyRecord: _Topology,
}


def _tagged(record: Record) -> _Tagged:
    return _TAGGED[type(record)](record)


def _heard(event: Event) -> _Heard:
    if isinstance(event, Listed):
        return _Listed(event.kind, tuple(_tagged(record) for record in event.records))
    tagged = _tagged(event.record)
    return _Applied(tagged) if isinstance(event, Applied) else _Deleted(tagged)


def _event(heard: _Heard) -> Event:
    if isinstance(heard, _Listed):
        return Listed(heard.kind, tuple(each.record for each in heard.records))
    record = heard.record.record
    return Applied(record) if isinstance(heard, _Applied) else Deleted(record)


def _out(given: Any) -> _Out:
    """The digest of effects, of an answer with its effects, or of scores."""
    parts = [given[0], *given[1]] if isinstance(given, tuple) else given
    if not parts:
        return _Out()
    if not isinstance(parts[0], int):
        # Equal fields do not make equal effects: an Evict reads like a Delete.
        parts = [(type(each).__name__, each) for each in parts]
    return _Out(hashlib.blake2b(_SORTING.encode(parts), digest_size=DIGEST_BYTES).hexdigest())


# -- writing ---------------------------------------------------------------------------------------


class Recorder(Engine):
    """An engine in front of an engine: writes down each input, and what came of it.

    `engine` is fresh: what it was told before is in no journal. All that is only read is read from
    it. `write` takes one line with its end; it must not raise, since a full disk is no reason to
    stop scheduling, and after a line it could not keep it keeps no more.

    Raises: DecodeError for settings that do not read back (JSON has no infinity).
    """

    def __init__(self, engine: Engine, write: Callable[[bytes], None]) -> None:
        # Not Engine.__init__: there is one state, and it is the inner engine's (`__getattr__`).
        self._engine = engine
        self._write = write
        self._lines_written = 0
        self._names = b""  # the last that were written in full
        self._names_line = 0
        first = _ENCODER.encode({"journal": VERSION, "settings": engine.settings})
        _settings(first)
        self._write_line(first)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def _write_line(self, line: bytes) -> None:
        self._lines_written += 1
        self._write(line + b"\n")

    def _recorded(
        self, now: float, call: str, args: Sequence[object], give: Callable[[], _T]
    ) -> _T:
        line = _In(now, call, msgspec.Raw(_ENCODER.encode(args)))
        self._write_line(_ENCODER.encode(line))
        try:
            given = give()
        except Exception as error:
            self._write_line(_ENCODER.encode(_Out(raised=type(error).__name__)))
            raise
        self._write_line(_ENCODER.encode(_out(given)))
        return given

    def _offered(self, candidates: Candidates) -> msgspec.Raw:
        names = _ENCODER.encode(candidates.names())
        if names == self._names:
            return msgspec.Raw(b"%d" % self._names_line)
        self._names, self._names_line = names, self._lines_written + 1
        return msgspec.Raw(names)

    def apply(self, event: Event, now: float) -> list[Effect]:
        args = (_heard(event),)
        return self._recorded(now, "apply", args, lambda: self._engine.apply(event, now))

    def filter(
        self, pod: PodRecord, candidates: Candidates, now: float
    ) -> tuple[FilterAnswer, list[Effect]]:
        args = (pod, self._offered(candidates))
        give = self._engine.filter
        return self._recorded(now, "filter", args, lambda: give(pod, candidates, now))

    def prioritize(self, pod: PodRecord, candidates: Candidates, now: float) -> list[int]:
        args = (pod, self._offered(candidates))
        give = self._engine.prioritize
        return self._recorded(now, "prioritize", args, lambda: give(pod, candidates, now))

    def bind_arrived(
        self, namespace: str, name: str, uid: str, node: str, now: float
    ) -> list[Effect]:
        args = (namespace, name, uid, node)
        give = self._engine.bind_arrived
        return self._recorded(now, "bind_arrived", args, lambda: give(*args, now))

    def bind_finished(self, uid: str, outcome: BindOutcome, now: float) -> list[Effect]:
        args = (uid, outcome if isinstance(outcome, BindFailed) else None)
        give = self._engine.bind_finished
        return self._recorded(now, "bind_finished", args, lambda: give(uid, outcome, now))

    def ungate_finished(self, uid: str, outcome: UngateOutcome, now: float) -> list[Effect]:
        args = (uid, outcome if isinstance(outcome, UngateFailed) else None)
        give = self._engine.ungate_finished
        return self._recorded(now, "ungate_finished", args, lambda: give(uid, outcome, now))

    def tick(self, now: float) -> list[Effect]:
        return self._recorded(now, "tick", (), lambda: self._engine.tick(now))

    def heal(self, now: float) -> list[Effect]:
        return self._recorded(now, "heal", (), lambda: self._engine.heal(now))

    def drain(self, now: float) -> list[Effect]:
        return self._recorded(now, "drain", (), lambda: self._engine.drain(now))


# -- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """An input that came to something else than was recorded; later ones may differ because of it.

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
    build: Callable[[EngineSettings], Engine] = Engine,
) -> Iterator[Difference]:
    """Play a journal on a fresh engine: every input that comes to something else. None: equal.

    `note` is told what could not be compared: an input without an answer (as a crash leaves one),
    a last line that is torn. `build` makes the engine, where it is to be a changed or watched one.

    Raises: DecodeError naming the line that cannot be meant.
    """
    say = note or (lambda sentence: None)
    numbered = enumerate(lines, start=1)
    player = _Player(build(_settings(next(numbered, (1, b""))[1])))
    asked: tuple[int, _In, _Out, str] | None = None
    for number, line in _lines(numbered, say):
        if isinstance(line, _In):
            if asked is not None:
                say(f"line {asked[0]}: no answer is recorded, so none is compared")
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
    """A fresh engine, and the names that later lines may refer to."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._offered = _Offered(())
        self._offered_line = 0

    def play(self, number: int, step: _In) -> tuple[_Out, str]:
        """Give the engine one input; what comes of it, also in words."""
        args = self._args(number, step)
        try:
            given = getattr(self._engine, step.call)(*args, step.now)
        except Exception as error:  # the recorded engine may have failed on it as well
            return _Out(raised=type(error).__name__), repr(error)
        return _out(given), repr(given)

    def _args(self, number: int, step: _In) -> Sequence[object]:
        if step.call not in _ARGS:
            raise DecodeError(f"journal line {number}: call {step.call!r} is not known")
        args = _decoded(_ARGS[step.call], number, step.args)
        match step.call:
            case "apply":
                return (_event(args[0]),)
            case "filter" | "prioritize":
                return (args[0], self._candidates(number, args[1]))
            case "bind_finished":
                return (args[0], args[1] or Bound())
            case "ungate_finished":
                return (args[0], args[1] or Ungated())
        return tuple(args)

    def _candidates(self, number: int, names: _Names) -> Candidates:
        if isinstance(names, list):
            self._offered, self._offered_line = _Offered(names), number
        elif names != self._offered_line:
            raise DecodeError(f"journal line {number}: line {names} is not the last list of names")
        return self._offered


class _Offered:
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


def _settings(first: bytes) -> EngineSettings:
    """What the first line says.

    Raises: DecodeError also for a setting this engine lacks: it would play something else.
    """
    said = _decoded(_FIRST, 1, first)
    version = said.get("journal")
    if type(version) is not int or version != VERSION:  # True is an int, and is 1
        raise DecodeError(f"journal line 1: version {version!r} is not known, only {VERSION}")
    settings = said.get("settings")
    known = {field.name for field in fields(EngineSettings)}
    unknown = sorted(settings.keys() - known) if isinstance(settings, dict) else ()
    if unknown:
        raise DecodeError(f"journal line 1: settings {', '.join(unknown)} are not known")
    try:
        return msgspec.convert(settings, EngineSettings)
    except msgspec.ValidationError as error:
        raise DecodeError(f"journal line 1: settings: {error}") from error


def _lines(
    numbered: Iterator[tuple[int, bytes]], say: Callable[[str], None]
) -> Iterator[tuple[int, _In | _Out]]:
    """What each line means; a last one that was not written to its end is left out."""
    for number, line in numbered:
        try:
            yield number, _decoded(_LINE, number, line)
        except DecodeError as error:
            is_json = isinstance(error.__cause__, msgspec.ValidationError)
            if is_json or line.endswith(b"\n") or next(numbered, None) is not None:
                raise
            say(f"line {number} is torn after {len(line)} bytes and left out")


def _decoded(decoder: msgspec.json.Decoder[_T], number: int, raw: bytes | msgspec.Raw) -> _T:
    try:
        return decoder.decode(raw)
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, not ours; nested too deep
        raise DecodeError(f"journal line {number}: {error}") from error
