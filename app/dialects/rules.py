"""What every vocabulary's rules are made of: readers of values, and flaws in Kubernetes' words."""

from __future__ import annotations

from app.dialects.spec import Flaw

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


def forbidden(field: str, text: str, *, is_fatal: bool = True) -> Flaw:
    """A field that may not be set."""
    return Flaw(field, "Forbidden", text, None, is_fatal)


def required(field: str, text: str) -> Flaw:
    """A field that must be set."""
    return Flaw(field, "Required value", text)
