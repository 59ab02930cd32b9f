"""Operations of a JSON patch."""

from __future__ import annotations

from typing import Literal

import msgspec


class Operation(msgspec.Struct, frozen=True):
    """One operation of a JSON patch (RFC 6902)."""

    op: Literal["add", "remove", "test"]
    path: str
    value: object = msgspec.UNSET


def escaped(key: str) -> str:
    """A key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
