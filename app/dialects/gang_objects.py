"""What vocabularies share whose gangs are objects, each of the gang's name: PodGroups, PodGangs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import msgspec

from app.dialects import corral
from app.dialects.spec import NOTHING_SAID, GangKey, Said
from app.dialects.written import AT_WRITE
from app.kube.core.objects import ObjectRecord, PodRecord

_R = TypeVar("_R", bound=ObjectRecord)
_S = TypeVar("_S")

_SAID = {text: Said(ends_together=whole) for text, whole in corral.ENDS_TOGETHER.items()}


def object_of(gang: GangKey, kind: type[_R], objects: Collection[ObjectRecord]) -> _R | None:
    """The object of a gang; of two while one is made anew, either."""
    for each in objects:
        if isinstance(each, kind) and (each.namespace, each.name) == (gang.namespace, gang.name):
            return each
    return None


def said_of(pod: PodRecord) -> Said:
    """What a pod says of its gang in Corral's own annotation."""
    return _SAID.get(pod.annotations.get(corral.DISRUPTION, ""), NOTHING_SAID)


def path_of(record: ObjectRecord, every: str) -> str:
    """Where the API has an object. `every`: the path of all objects of its kind."""
    api, _, plural = every.rpartition("/")
    return f"{api}/namespaces/{record.namespace}/{plural}/{record.name}"


def read_status(
    decoder: msgspec.json.Decoder[_S | None], raw: msgspec.Raw, empty: _S, most_bytes: int
) -> _S | None:
    """The status in these bytes, `empty` for null; None: it cannot be read, or is too long."""
    if len(bytes(raw)) > most_bytes:
        return None
    try:
        return decoder.decode(raw) or empty
    except (ValueError, RecursionError):
        return None


def since(status: str, before: Mapping[str, Any]) -> str:
    """The lastTransitionTime of a condition of this status. `before`: the one that is there."""
    then = before.get("lastTransitionTime") if before.get("status") == status else ""
    return then or AT_WRITE
