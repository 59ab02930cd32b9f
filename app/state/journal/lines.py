"""The lines of a journal: what they mean as records and events, and back.

    {"journal":3,"settings":{…}}                                             line 1
    {"line":"in","now":1.5,"call":"apply","args":[["applied","Pod",{…}]]}  before it is given
    {"line":"out","digest":"9f86d081884c7d65"}                             what it returned
    {"line":"in","now":1.7,"call":"filter","args":[{…},["n1","n2"]]}
    {"line":"out","digest":"60303ae22b998861"}
    {"line":"in","now":1.7,"call":"prioritize","args":[{…},4]}               the names of line 4

Floats are written so that they read back exactly.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import msgspec
from pydantic import ValidationError

from app.dialects.registry import Dialects
from app.dialects.spec import GangKey
from app.errors import DecodeError
from app.kube.core.objects import ObjectRecord, PodRecord, Record
from app.kube.watch.events import Applied, Deleted, Event, Kind, Listed
from app.state.effects import BindFailed, EvictOutcome, PlaceAnswer, RoomAnswer, UngateFailed
from app.state.filter_result import Victims
from app.state.settings import EngineSettings

VERSION = 3  # one more whenever an older line would be read as something else
DIGEST_BYTES = 8  # against chance, not against malice

_T = TypeVar("_T")


class _Applied(msgspec.Struct, frozen=True, tag="applied", array_like=True):
    kind: Kind
    record: msgspec.Raw


class _Deleted(msgspec.Struct, frozen=True, tag="deleted", array_like=True):
    kind: Kind
    record: msgspec.Raw


class _Listed(msgspec.Struct, frozen=True, tag="listed", array_like=True):
    kind: Kind
    records: tuple[msgspec.Raw, ...]
    edition: int = 0


Heard = _Applied | _Deleted | _Listed
Names = list[str] | int  # a number: those of that line, the last with a list

_ARGUMENTS: dict[str, Any] = {  # of the engine's methods, without `now`
    "apply": tuple[Heard],
    "filter": tuple[PodRecord, Names],
    "admit": tuple[PodRecord, str],
    "prioritize": tuple[PodRecord, Names],
    "preempt": tuple[PodRecord, dict[str, Victims]],
    "bind_arrived": tuple[str, str, str, str],
    "bind_finished": tuple[str, BindFailed | None],  # None: it is bound
    "ungate_finished": tuple[str, UngateFailed | None],  # None: it is ungated
    "write_lost": tuple[GangKey, str, str],
    "nominating_forbidden": tuple[str, float],
    "room_found": tuple[GangKey, RoomAnswer | None, float],
    "place_found": tuple[GangKey, PlaceAnswer | None, float],
    "eviction_tried": tuple[str, EvictOutcome],
    "eviction_finished": tuple[str, EvictOutcome],
    "lead": tuple[bool],
    "tick": tuple[()],
    "heal": tuple[()],
    "drain": tuple[()],
}


class _Line(msgspec.Struct, frozen=True, tag_field="line", forbid_unknown_fields=True):
    pass


class In(_Line, frozen=True, tag="in"):
    """One input."""

    now: float
    call: str
    args: msgspec.Raw


class Out(_Line, frozen=True, tag="out", omit_defaults=True):
    """What the engine returned for the input before it; both are "" for nothing."""

    digest: str = ""
    raised: str = ""  # the exception's name, where the engine failed on its input


ENCODER = msgspec.json.Encoder()
_SORTING = msgspec.json.Encoder(order="deterministic")  # a set has no order of its own
_FIRST: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
LINE: msgspec.json.Decoder[In | Out] = msgspec.json.Decoder(In | Out)
ARGS = {call: msgspec.json.Decoder(type_) for call, type_ in _ARGUMENTS.items()}

Decoders = dict[Kind, msgspec.json.Decoder[Record]]


def decoders_of(dialects: Dialects) -> Decoders:
    """What reads the records of every kind that these vocabularies watch."""
    return {each.kind: msgspec.json.Decoder(each.record) for each in dialects.resources()}


def heard(event: Event) -> Heard:
    """An event as it is written in a line."""
    if isinstance(event, Listed):
        return _Listed(event.kind, tuple(_raw(record) for record in event.records), event.edition)
    line = _Applied if isinstance(event, Applied) else _Deleted
    return line(_kind_of(event.record), _raw(event.record))


def _raw(record: Record) -> msgspec.Raw:
    return msgspec.Raw(ENCODER.encode(record))


def _kind_of(record: Record) -> Kind:
    if isinstance(record, ObjectRecord):
        return record.kind
    return "Pod" if isinstance(record, PodRecord) else "Node"


def event_of(number: int, said: Heard, decoders: Decoders) -> Event:
    """The event that is written in a line of this number.

    Raises: DecodeError for a kind that no vocabulary has, or a record not of its kind.
    """
    decoder = decoders.get(said.kind)
    if decoder is None:
        raise DecodeError(f"journal line {number}: kind {said.kind!r} is not known")
    if isinstance(said, _Listed):
        records = tuple(decoded(decoder, number, each) for each in said.records)
        return Listed(said.kind, records, said.edition)
    record = decoded(decoder, number, said.record)
    if _kind_of(record) != said.kind:
        other = f"a {_kind_of(record)} where a {said.kind} is said to be"
        raise DecodeError(f"journal line {number}: {other}")
    return Applied(record) if isinstance(said, _Applied) else Deleted(record)


def args_of(number: int, step: In) -> Any:
    """The arguments of an input, without its time. Raises: DecodeError also for an unknown call."""
    if step.call not in ARGS:
        raise DecodeError(f"journal line {number}: call {step.call!r} is not known")
    return decoded(ARGS[step.call], number, step.args)


def out_of(given: Any) -> Out:
    """The digest of effects, of an answer with its effects, or of scores."""
    parts = [given[0], *given[1]] if isinstance(given, tuple) else given
    if not parts:
        return Out()
    if not isinstance(parts[0], int):
        # Equal fields do not make equal effects: an Evict reads like a Delete.
        parts = [(type(each).__name__, each) for each in parts]
    return Out(hashlib.blake2b(_SORTING.encode(parts), digest_size=DIGEST_BYTES).hexdigest())


def settings_of(first: bytes) -> EngineSettings:
    """The settings in the first line.

    Raises: DecodeError also for a setting that this engine lacks, which would change the replay.
    """
    said = decoded(_FIRST, 1, first)
    version = said.get("journal")
    if type(version) is not int or version != VERSION:  # True is an int, and is 1
        raise DecodeError(f"journal line 1: version {version!r} is not known, only {VERSION}")
    settings = said.get("settings")
    known = EngineSettings.model_fields.keys()
    unknown = sorted(settings.keys() - known) if isinstance(settings, dict) else ()
    if unknown:
        raise DecodeError(f"journal line 1: settings {', '.join(unknown)} are not known")
    try:
        return EngineSettings.model_validate_json(ENCODER.encode(settings), strict=True)
    except ValidationError as error:
        (wrong, *_) = error.errors()
        where = ".".join(str(part) for part in ("settings", *wrong["loc"]))
        raise DecodeError(f"journal line 1: {where}: {wrong['msg']}") from error


def first_line(settings: EngineSettings) -> bytes:
    """Line 1: what `settings_of` reads."""
    return ENCODER.encode({"journal": VERSION, "settings": settings.model_dump(mode="json")})


def decoded(decoder: msgspec.json.Decoder[_T], number: int, raw: bytes | msgspec.Raw) -> _T:
    try:
        return decoder.decode(raw)
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, not ours; nested too deep
        raise DecodeError(f"journal line {number}: {error}") from error
