"""HiGHS, where it is installed, on what no table is large enough for."""

from __future__ import annotations

import pytest

from tests.questions import check, planted
from topology.packing.pack import Packing, pack


def test_the_solver_finds_what_is_beyond_the_tables() -> None:
    pytest.importorskip(
        "highspy", reason="highspy is not installed: it is the optional extra `exact`"
    )
    question = planted(16, 1.0, seed=0, slack=0.1, shapes=8)
    answer = pack(*question)
    check(question, answer)
    assert isinstance(answer, Packing)
