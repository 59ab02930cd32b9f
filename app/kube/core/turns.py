"""Where a long piece of reading lets others go on: between its slices, none of which is long.

Python changes threads between two bytecodes, and a waiting one asks for that after five
milliseconds. So what is read beside the event loop is cut into small calls, and says between them
that it is the loop's turn. On the loop itself a turn is nothing: there only what is small is read.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar


def _nobody_waits() -> None:
    """Read on: this is the loop, or a test."""


give_way: ContextVar[Callable[[], None]] = ContextVar("give_way", default=_nobody_waits)
"""What a turn does here."""


def turn() -> None:
    """Say that a slice has ended; what is read has more."""
    give_way.get()()
