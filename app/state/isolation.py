"""Bugs of Corral, confined to the gang or the object they are about (invariant I10).

Where the engine goes through many gangs or objects, an exception in one of them is reported and
the others are still handled. The engine has no log: its caller passes in what reports a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnFault = Callable[[str, Exception], None]
"""Called inside the `except` with what was being done and what was raised."""


def reraise(what: str, error: Exception) -> None:
    """Raise the fault again: for tests."""
    raise error


@contextmanager
def confined(on_fault: OnFault, what: str) -> Iterator[None]:
    """Report an exception in the body, which is left; what comes after it goes on."""
    try:
        yield
    except Exception as error:
        on_fault(what, error)
