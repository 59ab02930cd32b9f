"""Work that is counted, so that a test of its bound does not depend on the machine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(step: Callable[[], object]) -> int:
    """How many lines of Python a step runs, in whatever module.

    None of the garbage collector's: others' finalizers and callbacks would be counted.
    """
    lines = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        step()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return lines
