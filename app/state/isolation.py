"""Bugs of ours, kept to the gang or the object they are about (invariant I10).

Where the engine goes through many gangs or objects, what one of them trips over is noted and the
others have their turn. The engine has no log: who builds it says where faults are told.
"""

from __future__ import annotations

from collections.abc import Callable

OnFault = Callable[[str, Exception], None]
"""Told what was being done, and what was raised; called inside the `except`."""


def reraise(what: str, error: Exception) -> None:
    """Hide nothing: what tests want."""
    raise error
