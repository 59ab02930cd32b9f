"""Kubernetes quantities as exact numbers: `2500m`, `16Gi`, `1e3`.

The scheduler counts cpu in millicores and everything else in base units, and rounds up what it
reads, requests and allocatable alike (framework/types.go, `MilliValue` and `Value`).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SHAPE = re.compile(
    r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([KMGTPE]i)|([eE][+-]?\d{1,2})|([numkMGTPE]?))", re.ASCII
)
_LARGEST = 2**63 - 1  # what an int64 holds; larger amounts saturate as they do upstream


@lru_cache(maxsize=8192)
def parse(text: str) -> Fraction:
    """The exact value of a quantity.

    Raises: ValueError if the text is not one.
    """
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    sign, digits, binary, exponent, decimal = match.groups()
    value = Fraction(digits + "0" if digits.endswith(".") else digits)
    if binary:
        value *= 1024 ** _BINARY[binary]
    elif exponent:
        value *= Fraction(10) ** int(exponent[1:])
    else:
        value *= Fraction(10) ** _DECIMAL[decimal]
    return -value if sign == "-" else value


def amount(resource: str, text: object) -> int:
    """The integer the scheduler works with.

    Units: millicores for cpu, base units for everything else; rounded up.
    """
    value = parse(str(text))
    return min(ceil(value * 1000 if resource == "cpu" else value), _LARGEST)
