"""Whole tables and corridors, held against brute force."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.questions import Question, asked, check, fits, small_question
from topology.packing import pack as packing
from topology.packing.pack import BUDGET, NoPacking, Packing, pack
from topology.packing.patterns import Work, patterns_of, relaxed
from topology.packing.table import Table

SEEDS, CASES = 8, 1250


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_attempt_by_itself_agrees_with_brute_force(seed: int) -> None:
    chance, answers = random.Random(200 + seed), Counter[str]()
    for _ in range(CASES):
        question = small_question(chance)
        problem, work = packing._problem(*question), Work(BUDGET)
        if (problem.most.sum(axis=1) == 0).any() or problem.pods.size < 2:
            continue
        is_packed = fits(question)
        answers[f"fits {is_packed}"] += 1
        if packing._is_refuted(problem):
            answers["bounds"] += 1
            assert not is_packed
            continue
        patterns = patterns_of(problem, work)
        assert patterns is not None
        is_refuted, held = relaxed(problem, patterns, work)
        answers["relaxation"] += is_refuted
        assert not (is_refuted and is_packed)
        whole = Table.whole(problem, patterns)
        for table in (whole, whole.corridor(held, 0), whole.corridor(held, 1)):
            placed = table.solve()
            if table is whole or placed is not None:
                assert (placed is not None) == is_packed
            if placed is not None:
                answers["tables"] += 1
                check(question, Packing(problem.spread(placed)))
    assert len(answers) == 5
    assert min(answers.values()) > CASES // 125


@pytest.mark.parametrize(
    "question",
    [
        # Averages of what nodes can hold meet these demands, whole pods do not.
        pytest.param(
            asked(
                [[110, 23, 11], [110, 12, 21], [110, 22, 6], [110, 8, 24]],
                [[1, 8, 3], [1, 7, 6], [1, 3, 7]],
                *(2, 2, 4),
            ),
            id="three_shapes",
        ),
        pytest.param(
            asked(
                [[110, 23, 11], [110, 12, 21], [110, 22, 6], [110, 8, 24]],
                [[1, 8, 3], [1, 3, 7], [1, 7, 6], [1, 3, 7]],
                *(2, 1, 2, 3),
            ),
            id="two_of_the_shapes_are_the_same",
        ),
    ],
)
def test_what_only_the_whole_table_refutes_is_proven(question: Question) -> None:
    assert not fits(question)
    answer = pack(*question)
    assert isinstance(answer, NoPacking)
    assert answer.is_proven
    assert sum(question.pods) - sum(answer.pods_by_shape) == 1
    unfinished = pack(*question, budget=100_000)
    assert isinstance(unfinished, NoPacking)
    assert not unfinished.is_proven
