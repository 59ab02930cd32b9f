"""A rule that an object breaks, in the words of Kubernetes' field errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

MOST_SHOWN = 256  # characters of a value in a message; annotations may have 256 KiB

FlawKind = Literal[
    "Invalid value",
    "Required value",
    "Forbidden",
    "Duplicate value",
    "Unsupported value",
    "Too long",
    "Too many",
]


@dataclass(frozen=True, slots=True)
class Flaw:
    """One rule that an object breaks, in the words of Kubernetes' field errors."""

    field: str
    """Below `root`: "annotations[key]"."""
    kind: FlawKind
    text: str
    value: str | int | None = None
    """None: the field itself is it."""
    is_fatal: bool = True
    """False: the API server refuses the object, but one that exists is read without it."""
    root: str = "metadata"

    @property
    def path(self) -> str:
        """The field in its object."""
        return f"{self.root}.{self.field}"

    @property
    def body(self) -> str:
        """The text without the field."""
        value = "" if self.value is None else f": {shown(self.value)}"
        return f"{self.kind}{value}: {self.text}"

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


def shown(value: str | int) -> str:
    """A value as Go's %q and %d write it, cut where it is long."""
    if isinstance(value, int):
        return str(value)[:MOST_SHOWN]
    cut = value if len(value) <= MOST_SHOWN else value[:MOST_SHOWN] + "…"
    shown = msgspec.json.encode(cut.encode("utf-8", "replace").decode()).decode()
    # Control characters take six each; the reason after the value must still be read.
    return shown if len(shown) <= 2 * MOST_SHOWN else f'{shown[: 2 * MOST_SHOWN]}…"'
