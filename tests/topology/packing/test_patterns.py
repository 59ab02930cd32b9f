"""The patterns of one node. That the relaxation refutes nothing that fits is in test_table."""

from __future__ import annotations

import numpy as np

from tests.questions import asked
from topology.model.resources import AMOUNT_MAX
from topology.packing import pack as packing
from topology.packing.pack import BUDGET
from topology.packing.patterns import Work, patterns_of, relaxed


def test_patterns_of_many_shapes_of_the_largest_amounts_do_not_overflow() -> None:
    shapes = 8
    requests = [[1, AMOUNT_MAX - shape] for shape in range(shapes)]
    question = asked([[110, AMOUNT_MAX]], requests, *(1,) * shapes)
    patterns = patterns_of(packing._problem(*question), Work(BUDGET))
    assert patterns is not None
    assert sorted(patterns.pods.T.tolist()) == sorted(np.eye(shapes, dtype=int).tolist())


def test_there_are_no_patterns_of_more_combinations_than_fit_into_memory_whatever_is_left() -> None:
    requests, pods = [[1, 1], [1, 2], [1, 3]], (1_000, 1_000, 1_000)
    question = asked([[10_000, 10_000]], requests, *pods)
    assert patterns_of(packing._problem(*question), Work(10**12)) is None


def test_a_relaxation_that_the_budget_does_not_pay_for_refutes_nothing_and_costs_nothing() -> None:
    # Averages of what nodes can hold do not meet these demands.
    question = asked([[110, 5, 3], [110, 3, 5]], [[1, 4, 1], [1, 1, 4]], 2, 2)
    problem = packing._problem(*question)
    patterns = patterns_of(problem, Work(BUDGET))
    assert patterns is not None
    assert relaxed(problem, patterns, Work(BUDGET))[0]
    work = Work(1)
    assert not relaxed(problem, patterns, work)[0]
    assert work.cells == 1
