"""A wall clock that is set forward or back while a Python program runs, as far as Python reads it.

On the program's PYTHONPATH, with a file of seconds in STEPPED_CLOCK. The monotonic clock stays.
"""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path
from typing import Any

_FILE = Path(os.environ["STEPPED_CLOCK"])
_time, _datetime = time.time, datetime.datetime


def _step() -> float:
    return float(_FILE.read_text(encoding="utf-8"))


class _Kind(type):
    """What C code makes is a datetime as well."""

    def __instancecheck__(cls, thing: object) -> bool:
        return isinstance(thing, _datetime)


class _Stepped(_datetime, metaclass=_Kind):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _datetime.now(tz) + datetime.timedelta(seconds=_step())

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.UTC).replace(tzinfo=None)


time.time = lambda: _time() + _step()
time.time_ns = lambda: int(time.time() * 1e9)
datetime.datetime = _Stepped  # type: ignore[misc]
