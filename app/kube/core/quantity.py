"""Kubernetes quantities ("1500m", "2Gi", "1e3") as exact integers.

`decimal` and `fractions` are not safe here: nine hostile bytes, 1e1000000, cost two minutes of
integer arithmetic. So the text is matched first: short, ASCII, a small exponent. What is left
is one multiplication.

    text ──nano_units──▶ 10^-9 of a base unit ──whole_units──▶ base units, or millicores for cpu

A pod may have 28,000 amounts, each another one. `many_nano_units` reads those in a dozen steps over
all of them together, at a tenth of what each by itself takes, if they are as the API server writes
them: digits and a suffix.

Nano-units are the API's own resolution: finer digits round up when it reads them. They exist so
that a pod's containers can be added before rounding, as kube-scheduler does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from typing import Literal

import msgspec

LIMIT = 2**61  # larger amounts are cut to this: two of them can still be added in an int64
LONGEST_TEXT = 64  # characters; the API server writes at most about 30
LARGEST_EXPONENT = 30  # beyond any real amount in either direction (1E is 10^18)

_NANO = 10**9
_QUANTITY = re.compile(
    r"\+?(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_POWER_OF_TEN = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWER_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_WHOLE_NANOS: dict[str, int] = {
    **{suffix: 10 ** (9 + power) for suffix, power in _POWER_OF_TEN.items()},
    **{suffix: _NANO << power for suffix, power in _POWER_OF_TWO.items()},
}
_NANOS_OF = {"": _NANO, **_WHOLE_NANOS}
_EXPONENTS = {b"e%d" % power: suffix.encode() for suffix, power in _POWER_OF_TEN.items()}
_DIGITS = b"0123456789"
_NO_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789,")
# What each byte of texts in a row is: a digit, a letter, the end of a text, or none of these.
_CLASSES = bytes(
    ord("0")
    if byte in _DIGITS
    else ord("a")
    if chr(byte).isalpha() and byte < 128
    else byte
    if byte == ord(",")
    else ord("?")
    for byte in range(256)
)
_TOO_LONG = b"0" * (LONGEST_TEXT // 2)  # the API server writes at most 19
_INTEGERS = msgspec.json.Decoder(list[int])


class InvalidQuantity(ValueError):
    """Not a non-negative Kubernetes quantity; the message names resource and value."""


def amount(resource: str, quantity: object, *, rounding: Literal["up", "down"]) -> int:
    """Return a quantity in the unit its resource is counted in.

    Units: millicores for cpu; bytes, devices, pods for everything else.
    Rounding: "up" for what a pod asks, "down" for what a node has.
    Raises: InvalidQuantity for anything that is not a quantity of zero or more.
    """
    return whole_units(resource, nano_units(resource, quantity, rounding), rounding)


def whole_units(resource: str, nanos: int, rounding: Literal["up", "down"]) -> int:
    """Round nano-units to the unit of a resource and cut at LIMIT."""
    unit = _NANO // 1000 if resource == "cpu" else _NANO
    return min(_divide(nanos, unit, rounding), LIMIT)


def nano_units(resource: str, quantity: object, rounding: Literal["up", "down"] = "up") -> int:
    """Read a quantity at the API's own resolution; not yet cut at LIMIT.

    Raises: InvalidQuantity.
    """
    if isinstance(quantity, float):
        # A bare JSON number. Its repr is the shortest text that means it: the text that was sent.
        quantity = repr(quantity)
    elif isinstance(quantity, int) and not isinstance(quantity, bool):
        if not 0 <= quantity < 10**LONGEST_TEXT:
            raise _invalid(resource, quantity)
        return quantity * _NANO
    if not isinstance(quantity, str) or len(quantity) > LONGEST_TEXT:
        raise _invalid(resource, quantity)
    nanos = _read(quantity, rounding)
    if nanos is None:
        raise _invalid(resource, quantity)
    return nanos


def many_nano_units(quantities: Sequence[object]) -> list[int] | None:
    """What `nano_units` says of each; None if some are not just texts of digits and a suffix.

    Those may be good quantities too, such as "0.5": the API server stores that as "500m".
    """
    try:
        row = ",".join(quantities).encode("ascii")  # type: ignore[arg-type] # TypeError below
    except (TypeError, UnicodeEncodeError):
        return None
    if b"e" in row:  # it also stores "12e6" as it is
        for exponent, suffix in _EXPONENTS.items():
            row = row.replace(exponent, suffix)
    classes = row.translate(_CLASSES)
    if b"a0" in classes or b"?" in classes or _TOO_LONG in classes:
        return None
    try:
        numbers = _INTEGERS.decode(b"[%b]" % row.translate(None, _NO_DIGITS))
        suffixes = row.translate(None, _DIGITS).decode().split(",")
        nanos = list(map(mul, numbers, map(_NANOS_OF.__getitem__, suffixes)))
    except (ValueError, KeyError):  # no digit, one too many in front, or no such suffix
        return None
    return nanos if len(nanos) == len(quantities) else None


@lru_cache(maxsize=4_096)  # of at most LONGEST_TEXT each; clusters repeat a few hundred
def _read(text: str, rounding: Literal["up", "down"]) -> int | None:
    suffix = text[-2:] if text.endswith("i") else text[-1:]
    digits = text.removesuffix(suffix)
    if suffix in _WHOLE_NANOS and digits.isdecimal() and digits.isascii():
        return int(digits) * _WHOLE_NANOS[suffix]  # most texts, at a fifth of what the match takes
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    whole, part, suffix, exponent = match.group("whole", "part", "suffix", "exponent")
    digits = whole + (part or "")
    power = int(exponent) if exponent else _POWER_OF_TEN.get(suffix, 0)
    if not digits or abs(power) > LARGEST_EXPONENT:
        return None
    power += 9 - len(part or "")
    number = int(digits) << _POWER_OF_TWO.get(suffix, 0)
    if power < 0:
        return _divide(number, int(10**-power), rounding)
    return number * int(10**power)


def _divide(number: int, unit: int, rounding: Literal["up", "down"]) -> int:
    return -(-number // unit) if rounding == "up" else number // unit


def _invalid(resource: str, quantity: object) -> InvalidQuantity:
    return InvalidQuantity(f"{resource}: {_shown(quantity)} is not a quantity of zero or more")


def _shown(quantity: object) -> str:
    if isinstance(quantity, str):
        cut = "..." if len(quantity) > LONGEST_TEXT else ""
        return ascii(quantity[:LONGEST_TEXT]) + cut
    if isinstance(quantity, int) and abs(quantity) >= 10**LONGEST_TEXT:
        return "an integer of more than 64 digits"  # writing it out is slow, then an error
    return str(quantity) if isinstance(quantity, int) else f"a {type(quantity).__name__}"
