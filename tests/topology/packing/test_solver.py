"""HiGHS, where it is installed, on what no table is large enough for."""

from __future__ import annotations

import pytest

from tests.questions import check, planted
from topology.packing import pack as packing
from topology.packing.greedy import Greedy
from topology.packing.pack import BUDGET, NoPacking, Packing, pack
from topology.packing.patterns import Work

BEYOND_THE_TABLES = planted(16, 1.0, seed=1, slack=0.2, shapes=10)
TOO_LITTLE = 5_000_000  # cells: less than the solver counts as for so many shapes and nodes


def test_what_the_solver_is_for_is_beyond_the_other_attempts() -> None:
    problem, work = packing._problem(*BEYOND_THE_TABLES), Work(BUDGET)
    greedy = Greedy(problem, work)
    assert greedy.run(is_single=True) is None
    assert packing._by_patterns(problem, greedy, work) == (None, False)
    assert next(greedy._left, None) is None, "all of its orders were tried"


def test_the_solver_finds_what_is_beyond_the_tables() -> None:
    pytest.importorskip(
        "highspy", reason="highspy is not installed: it is the optional extra `exact`"
    )
    answer = pack(*BEYOND_THE_TABLES)
    check(BEYOND_THE_TABLES, answer)
    assert isinstance(answer, Packing)


def test_the_solver_is_not_asked_when_the_budget_is_spent() -> None:
    answer = pack(*BEYOND_THE_TABLES, budget=TOO_LITTLE)
    assert isinstance(answer, NoPacking)
    assert not answer.is_proven
