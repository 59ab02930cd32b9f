"""What is recorded of an object that is neither a pod nor a node: what its vocabulary reads of it.

Found by trying: a part of the object goes, and if the vocabulary reads the same record from the
rest, it stays away. So nothing remains that no reader looks at, of any kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from app.cli.record.driver_sets import named_in, thinned
from app.errors import DecodeError
from app.kube.core.objects import Record
from app.kube.watch.resource import Resource

Object = dict[str, Any]
_CONDITION = ("type", "status", "reason", "lastTransitionTime", "observedGeneration")
Decode = Callable[[bytes], Record]


def kept_object(resource: Resource, raw: bytes | msgspec.Raw) -> Object:
    """What is recorded of an object of a kind.

    Raises: DecodeError if its vocabulary cannot read it.
    """
    try:
        made = msgspec.json.decode(raw)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{resource.kind}: {error}") from error
    if not isinstance(made, dict):
        raise DecodeError(f"{resource.kind}: an object is required")
    record = resource.decode(bytes(raw))
    if named_in(made):
        made = thinned(made)
        record = resource.decode(msgspec.json.encode(made))
    _thin_out(made, made, resource.decode, record)
    _shorten_conditions(made.get("status"))
    group = resource.path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0]
    named = {"apiVersion": group, "kind": resource.kind.partition(".")[0]}
    return named | {key: part for key, part in made.items() if key not in named}


def _shorten_conditions(status: Any) -> None:
    """Leave the messages of conditions out, which a vocabulary may read to write them again."""
    for each in (status or {}).get("conditions") or () if isinstance(status, dict) else ():
        if isinstance(each, dict):
            for key in [key for key in each if key not in _CONDITION]:
                del each[key]


def _thin_out(part: Any, whole: Object, decode: Decode, record: Record) -> None:
    """Take out of a part of the whole what it is read the same without."""
    if isinstance(part, dict):
        for key in list(part):
            value = part.pop(key)
            if not _reads(whole, decode, record):
                part[key] = value
                _thin_out(value, whole, decode, record)
    elif isinstance(part, list):
        for at in reversed(range(len(part))):
            value = part.pop(at)
            if not _reads(whole, decode, record):
                part.insert(at, value)
                _thin_out(value, whole, decode, record)


def _reads(whole: Object, decode: Decode, record: Record) -> bool:
    try:
        return decode(msgspec.json.encode(whole)) == record
    except DecodeError:
        return False
