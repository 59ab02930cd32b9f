"""Bugs of Corral, confined to the gang or the object they are about (invariant I10).

Where the engine goes through many gangs or objects, an exception in one of them is reported and
the others are still handled. The engine has no log: its caller passes in what reports a fault.
"""

from __future__ import annotations

from collections.abc import Callable

OnFault = Callable[[str, Exception], None]
"""Called inside the `except` with what was being done and what was raised."""


def reraise(what: str, error: Exception) -> None:
    """Raise the fault again: for tests."""
    raise error


class confined:
    """Reports an exception that the body raises, and leaves the body; the code after it runs.

    `what`: what was being done, as `str.format` of `about`. It is put into words where an exception
    came: the list of a large cluster comes by here with each of its objects.
    """

    __slots__ = ("_about", "_on_fault", "_what")

    def __init__(self, on_fault: OnFault, what: str, about: object = "") -> None:
        self._on_fault = on_fault
        self._what = what
        self._about = about

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._on_fault(self._what.format(self._about), error)
        return True
