"""What `corral gangs` and `corral explain` have in common: options, and how they answer."""

from __future__ import annotations

from typing import Any

from app.cli.common.columns import on_one_line
from app.cli.common.options import Namespace, Output, Written, usage, write


def name_of(gang: dict[str, Any]) -> str:
    """How a gang is named among others."""
    return on_one_line(f"{gang['namespace']}/{gang['name']}")


def span(seconds: float) -> str:
    """A time as kubectl writes an age: 45s, 3m, 2h, 5d."""
    for unit, its in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= its:
            return f"{int(seconds // its)}{unit}"
    return f"{int(seconds)}s"


# What every command has, beside what is above.
__all__ = ["Namespace", "Output", "Written", "name_of", "span", "usage", "write"]
