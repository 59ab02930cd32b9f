"""Every input of one engine as a line of JSON, and the engine played again from those lines.

    {"journal":1,"settings":{…}}                                           line 1
    {"step":"applied","now":1000.1,"record":["pod",{…}]}                   an input, written before
    {"step":"gave","digest":"9f86d081884c7d65"}                            what came of it, after
    {"step":"filter","now":1000.2,"pod":{…},"names":["n1","n2"]}
    {"step":"gave","digest":"60303ae22b998861"}
    {"step":"prioritize","now":1000.2,"pod":{…},"names":4}                 the names of line 4

The engine has no clock and no randomness, so the same inputs give the same answers and effects,
bit for bit: `replay` compares their digests. An input is written before the engine gets it, so that
one it never returns from is in the journal too. Floats are written so that they read back exactly.

The bytes go wherever `write` takes them, and lines come from wherever `replay` is given them.
"""

from __future__ import annotations

import hashlib
import math
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


class _Step(msgspec.Struct, frozen=True, tag_field="step", forbid_unknown_fields=True):
    """One input."""

    now: float


class _Applied(_Step, frozen=True, tag="applied"):
    record: _Tagged


class _Deleted(_Step, frozen=True, tag="deleted"):
    record: _Tagged


class _Listed(_Step, frozen=True, tag="listed"):
    kind: Kind
    records: tuple[_Tagged, ...]


class _Filter(_Step, frozen=True, tag="filter"):
    pod: PodRecord
    names: msgspec.Raw  # a list of them, or the number of the line that has the same list


class _Prioritize(_Step, frozen=True, tag="prioritize"):
    pod: PodRecord
    names: msgspec.Raw


class _BindArrived(_Step, frozen=True, tag="bind_arrived"):
    namespace: str
    name: str
    uid: str
    node: str


class _BindFinished(_Step, frozen=True, tag="bind_finished"):
    uid: str
    failed: BindFailed | None  # None: it is bound


class _UngateFinished(_Step, frozen=True, tag="ungate_finished"):
    uid: str
    failed: UngateFailed | None  # None: it is ungated


class _Tick(_Step, frozen=True, tag="tick"):
    pass


class _Drain(_Step, frozen=True, tag="drain"):
    pass


class _Heal(_Step, frozen=True, tag="heal"):
    pass


class _Gave(
    msgspec.Struct,
    frozen=True,
    tag_field="step",
    tag="gave",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """What came of the input before it; both are "" where nothing did."""

    digest: str = ""
    raised: str = ""  # the exception's name, where the engine failed on its input


_Input = (
    _Applied
    | _Deleted
    | _Listed
    | _Filter
    | _Prioritize
    | _BindArrived
    | _BindFinished
    | _UngateFinished
    | _Tick
    | _Drain
    | _Heal
)
_Line = _Input | _Gave

_TAGGED: dict[type, type[_Tagged]] = {
    NodeRecord: _Node,
    PodRecord: _Pod,
    JobRecord: _Job,
    TopologyRecord: _Topology,
}
_ENCODER = msgspec.json.Encoder()
_SORTING = msgspec.json.Encoder(order="deterministic")  # sets hash, and so lie, in any order
_LINE: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line)
_FIRST: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
_NAMES: msgspec.json.Decoder[list[str] | int] = msgspec.json.Decoder(list[str] | int)


def _tagged(record: Record) -> _Tagged:
    return _TAGGED[type(record)](record)


def _event(event: Event, now: float) -> _Input:
    match event:
        case Applied(record):
            return _Applied(now, _tagged(record))
        case Deleted(record):
            return _Deleted(now, _tagged(record))
        case Listed(kind, records):
            return _Listed(now, kind, tuple(_tagged(record) for record in records))


def _gave(given: object) -> _Gave:
    """The digest of effects, of an answer with its effects, or of scores."""
    if isinstance(given, tuple):
        answer, effects = given
        given = [answer, *effects]
    assert isinstance(given, list)
    if not given:
        return _Gave()
    if not isinstance(given[0], int):
        # Equal fields do not make equal effects: an Evict reads like a Delete.
        given = [(type(each).__name__, each) for each in given]
    return _Gave(hashlib.blake2b(_SORTING.encode(given), digest_size=DIGEST_BYTES).hexdigest())


# -- writing ---------------------------------------------------------------------------------------


class Recorder(Engine):
    """An engine in front of an engine: writes down each input, and what came of it.

    `engine` is fresh: what it was told before is in no journal. `write` takes one line with its
    end; it must not raise, since a full disk is no reason to stop scheduling, and once it has lost
    a line it should take no more. All that only reads is read from `engine` itself.

    Raises: ValueError for settings that JSON has no number for.
    """

    def __init__(self, engine: Engine, write: Callable[[bytes], None]) -> None:
        # Not Engine.__init__: there is one state, the inner engine's (see __getattr__).
        self._engine = engine
        self._write = write
        self._lines = 0
        self._names = b""  # the last that were written in full
        self._names_line = 0
        for field in fields(engine.settings):
            value = getattr(engine.settings, field.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"a journal cannot hold the setting {field.name}: {value}")
        self._put({"journal": VERSION, "settings": engine.settings})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def _put(self, line: object) -> None:
        self._lines += 1
        self._write(_ENCODER.encode(line) + b"\n")

    def _step(self, line: _Input, call: Callable[[], _T]) -> _T:
        self._put(line)
        try:
            given = call()
        except Exception as error:
            self._put(_Gave(raised=type(error).__name__))
            raise
        self._put(_gave(given))
        return given

    def _offered(self, candidates: Candidates) -> msgspec.Raw:
        """The names; those of the last list again are said by its line."""
        names = _ENCODER.encode(candidates.names())
        if names == self._names:
            return msgspec.Raw(b"%d" % self._names_line)
        self._names, self._names_line = names, self._lines + 1
        return msgspec.Raw(names)

    def apply(self, event: Event, now: float) -> list[Effect]:
        return self._step(_event(event, now), lambda: self._engine.apply(event, now))

    def filter(
        self, pod: PodRecord, candidates: Candidates, now: float
    ) -> tuple[FilterAnswer, list[Effect]]:
        line = _Filter(now, pod, self._offered(candidates))
        return self._step(line, lambda: self._engine.filter(pod, candidates, now))

    def prioritize(self, pod: PodRecord, candidates: Candidates, now: float) -> list[int]:
        line = _Prioritize(now, pod, self._offered(candidates))
        return self._step(line, lambda: self._engine.prioritize(pod, candidates, now))

    def bind_arrived(
        self, namespace: str, name: str, uid: str, node: str, now: float
    ) -> list[Effect]:
        line = _BindArrived(now, namespace, name, uid, node)
        return self._step(line, lambda: self._engine.bind_arrived(namespace, name, uid, node, now))

    def bind_finished(self, uid: str, outcome: BindOutcome, now: float) -> list[Effect]:
        line = _BindFinished(now, uid, outcome if isinstance(outcome, BindFailed) else None)
        return self._step(line, lambda: self._engine.bind_finished(uid, outcome, now))

    def ungate_finished(self, uid: str, outcome: UngateOutcome, now: float) -> list[Effect]:
        line = _UngateFinished(now, uid, outcome if isinstance(outcome, UngateFailed) else None)
        return self._step(line, lambda: self._engine.ungate_finished(uid, outcome, now))

    def tick(self, now: float) -> list[Effect]:
        return self._step(_Tick(now), lambda: self._engine.tick(now))

    def heal(self, now: float) -> list[Effect]:
        return self._step(_Heal(now), lambda: self._engine.heal(now))

    def drain(self, now: float) -> list[Effect]:
        return self._step(_Drain(now), lambda: self._engine.drain(now))


# -- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """An input that came to something else than was recorded. What follows may differ by it."""

    line: int  # of the input, counted from 1
    step: str
    now: float
    recorded: str  # a digest, or the name of an exception; "" is nothing
    replayed: str
    given: str  # what the engine gave this time

    def __str__(self) -> str:
        return (
            f"line {self.line}, {self.step} at {self.now}: recorded {self.recorded or 'nothing'},"
            f" replayed {self.replayed or 'nothing'}: {self.given[:MOST_SHOWN]}"
        )


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


class _Player:
    """A fresh engine, and the names that later lines may refer to."""

    def __init__(self, settings: EngineSettings) -> None:
        self._engine = Engine(settings)
        self._offered = _Offered(())
        self._offered_line = 0

    def play(self, number: int, step: _Input) -> tuple[_Gave, str]:
        """Give the engine one input; what comes of it, also in words."""
        if isinstance(step, _Filter | _Prioritize):
            self._hear_names(number, step.names)
        try:
            given = self._give(step)
        except Exception as error:  # the recorded engine may have failed on it as well
            return _Gave(raised=type(error).__name__), repr(error)
        return _gave(given), repr(given)

    def _hear_names(self, number: int, raw: msgspec.Raw) -> None:
        names = _decoded(_NAMES, number, raw)
        if isinstance(names, list):
            self._offered, self._offered_line = _Offered(names), number
        elif names != self._offered_line:
            raise DecodeError(f"journal line {number}: names: line {names} has not the last list")

    def _give(self, step: _Input) -> object:
        engine, now = self._engine, step.now
        match step:
            case _Applied():
                return engine.apply(Applied(step.record.record), now)
            case _Deleted():
                return engine.apply(Deleted(step.record.record), now)
            case _Listed():
                records = tuple(each.record for each in step.records)
                return engine.apply(Listed(step.kind, records), now)
            case _Filter():
                return engine.filter(step.pod, self._offered, now)
            case _Prioritize():
                return engine.prioritize(step.pod, self._offered, now)
            case _BindArrived():
                return engine.bind_arrived(step.namespace, step.name, step.uid, step.node, now)
            case _BindFinished():
                return engine.bind_finished(step.uid, step.failed or Bound(), now)
            case _UngateFinished():
                return engine.ungate_finished(step.uid, step.failed or Ungated(), now)
            case _Tick():
                return engine.tick(now)
            case _Drain():
                return engine.drain(now)
            case _Heal():
                return engine.heal(now)


def replay(
    lines: Iterable[bytes], *, note: Callable[[str], None] | None = None
) -> Iterator[Difference]:
    """Play a journal on a fresh engine; every input that came to something else. None: equal.

    `note` is told what could not be compared: an input without an answer (a crash, mostly), a last
    line that is torn.

    Raises: DecodeError naming the line that cannot be meant.
    """
    say = note or (lambda sentence: None)
    numbered = enumerate(lines, start=1)
    player = _Player(_settings(next(numbered, (1, b""))[1]))
    asked: tuple[int, _Input, _Gave, str] | None = None
    for number, line in _lines(numbered, say):
        if not isinstance(line, _Gave):
            if asked is not None:
                say(f"line {asked[0]}: no answer is recorded, so none is compared")
            asked = (number, line, *player.play(number, line))
        elif asked is None:
            raise DecodeError(f"journal line {number}: an answer, but no input before it")
        else:
            at, step, gave, given = asked
            asked = None
            if gave != line:
                yield _difference(at, step, line, gave, given)
    if asked is not None:
        say(f"line {asked[0]}: no answer is recorded, so none is compared")


def _difference(at: int, step: _Input, recorded: _Gave, replayed: _Gave, given: str) -> Difference:
    return Difference(
        at,
        str(step.__struct_config__.tag),
        step.now,
        recorded.raised or recorded.digest,
        replayed.raised or replayed.digest,
        given,
    )


def _settings(line: bytes) -> EngineSettings:
    """What the first line says.

    Raises: DecodeError also where this engine lacks a setting: it would play something else.
    """
    first = _decoded(_FIRST, 1, line)
    version = first.get("journal")
    if type(version) is not int or version != VERSION:
        raise DecodeError(f"journal line 1: version {version!r} is not known, only {VERSION}")
    said = first.get("settings")
    known = {field.name for field in fields(EngineSettings)}
    for name in said if isinstance(said, dict) else ():
        if name not in known:
            raise DecodeError(f"journal line 1: settings: {name!r} is not known")
    try:
        return msgspec.convert(said, EngineSettings)
    except msgspec.ValidationError as error:
        raise DecodeError(f"journal line 1: settings: {error}") from error


def _lines(
    numbered: Iterator[tuple[int, bytes]], say: Callable[[str], None]
) -> Iterator[tuple[int, _Line]]:
    """What each line means; a last one that was not written to its end is left out."""
    for number, line in numbered:
        try:
            yield number, _decoded(_LINE, number, line)
        except DecodeError as error:
            is_cut = not line.endswith(b"\n") and not isinstance(
                error.__cause__, msgspec.ValidationError
            )
            if not is_cut or next(numbered, None) is not None:
                raise
            say(f"line {number} is torn after {len(line)} bytes and left out")


def _decoded(decoder: msgspec.json.Decoder[_T], number: int, raw: bytes | msgspec.Raw) -> _T:
    try:
        return decoder.decode(raw)
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, not ours; nested too deep
        raise DecodeError(f"journal line {number}: {error}") from error
