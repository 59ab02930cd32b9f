"""How a check says that something does not hold."""

from __future__ import annotations


class Violation(AssertionError):
    """An invariant does not hold; the text begins with its name."""


def require(holds: bool, sentence: str) -> None:
    """Raises: Violation."""
    if not holds:
        raise Violation(sentence)
