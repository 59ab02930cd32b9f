"""What every vocabulary's rules are made of: readers of values, and flaws in Kubernetes' words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.dialects.flaw import Flaw

# The spellings that Go's strconv.ParseBool takes, which most controllers read with.
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class BadValue(ValueError):
    """A label or annotation has a value that is not valid; the text names it and the value."""


def whole_number(text: str | None) -> int | None:
    """The number, or None for anything that is no small whole number in decimal digits."""
    if text is not None and text.isascii() and text.isdecimal() and len(text) <= 9:
        return int(text)
    return None


def boolean(text: str) -> bool | None:
    """The truth value of an annotation, or None if it is neither."""
    return _BOOLEANS.get(text)


def annotation(key: str) -> str:
    """The path of an annotation below metadata."""
    return f"annotations[{key}]"


def label(key: str) -> str:
    """The path of a label below metadata."""
    return f"labels[{key}]"


def invalid(field: str, value: str | int, text: str, *, is_fatal: bool = True) -> Flaw:
    """A value that a field may not have."""
    return Flaw(field, "Invalid value", text, value, is_fatal)


def too_small(field: str, value: str | int, least: int, *, is_fatal: bool = True) -> Flaw:
    """A number that is less than the least there may be."""
    return invalid(field, value, f"must be greater than or equal to {least}", is_fatal=is_fatal)


def forbidden(field: str, text: str, *, is_fatal: bool = True) -> Flaw:
    """A field that may not be set."""
    return Flaw(field, "Forbidden", text, None, is_fatal)


def required(field: str, text: str, *, is_fatal: bool = True) -> Flaw:
    """A field that must be set."""
    return Flaw(field, "Required value", text, None, is_fatal)


def duplicate(field: str, value: str | None, *, is_fatal: bool = True) -> Flaw:
    """A value that another field has already."""
    return Flaw(field, "Duplicate value", "must be unique", value, is_fatal)


def unsupported(field: str, value: str, known: Iterable[str], *, is_fatal: bool = True) -> Flaw:
    """A value that is none of those that are known."""
    text = "supported values: " + ", ".join(f'"{each}"' for each in known)
    return Flaw(field, "Unsupported value", text, value, is_fatal)


def too_many(
    field: str, number: int, most: int, what: str = "items", *, is_fatal: bool = True
) -> Flaw:
    """A list or map with more entries than are read, or than can be placed."""
    return Flaw(field, "Too many", f"must have at most {most} {what}", number, is_fatal=is_fatal)


def too_long(field: str, most_bytes: int) -> Flaw:
    """A text, or a part of an object, of more bytes than are read."""
    return Flaw(field, "Too long", f"may not be more than {most_bytes} bytes")


def of_spec(flaws: Iterable[Flaw]) -> Iterator[Flaw]:
    """The same flaws; their fields are below the object's spec."""
    return (replace(flaw, root="spec") for flaw in flaws)
