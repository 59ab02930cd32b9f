"""Whether what a test needs of the real control plane is built on this machine."""

from __future__ import annotations

import os

import pytest

from tests.controlplane.plane import BinariesMissing, binaries, operator


def skip_unless_built(*programs: str) -> None:
    """Skips the test where the control plane or one of these operators is not built.

    Raises: BinariesMissing instead, if they have to be.
    """
    try:
        binaries()
        for program in programs:
            operator(program)
    except BinariesMissing as missing:
        if os.environ.get("CORRAL_E2E") == "required":
            raise
        pytest.skip(str(missing))
