"""Who has to go, held against every set of those who may."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.topology.victims.cases import SHAPES, Case, hard_case, random_case, wide_case
from topology import Placement
from topology.victims.choose import VISITS
from topology.victims.victim import NoVictims, Victims

pytestmark = pytest.mark.slow

SEEDS, CASES, HARD_CASES, WIDE_CASES = 8, 60, 25, 5
FEW_VISITS = (300, 1_000, 3_000)


def chosen(case: Case, answer: Victims) -> list[int]:
    keys = [victim.key for victim in case.candidates]
    return [keys.index(key) for key in answer.keys]


def check(case: Case, answer: Victims) -> list[int]:
    """The set makes room, the budgets let it go, and none of it may stay."""
    ones = chosen(case, answer)
    assert isinstance(case.without(ones), Placement)
    assert case.is_allowed(ones)
    for one in ones:
        assert not isinstance(case.without([each for each in ones if each != one]), Placement)
    return ones


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_set_is_less_and_none_of_it_may_stay(seed: int) -> None:
    chance = random.Random(seed)
    enough = 0
    for _ in range(CASES):
        case = random_case(chance, most=10)
        answer, cheapest = case.answer(), case.cheapest()
        if isinstance(answer, NoVictims):
            assert cheapest is None
            continue
        ones = check(case, answer)
        # Less work is looked for, and not for long.
        assert cheapest is not None
        assert case.price(ones)[:4] == cheapest[:4]
        enough += bool(ones)
    assert enough > CASES // 6


@pytest.mark.parametrize("seed", range(SEEDS))
def test_in_large_racks_and_with_gangs_across_them_hardly_any_set_is_less(seed: int) -> None:
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(HARD_CASES):
        case = hard_case(chance)
        answer, cheapest = case.answer(), case.cheapest_in_domains()
        if isinstance(answer, NoVictims):
            assert cheapest is None
            continue
        ones = check(case, answer)
        if not ones:
            continue
        assert cheapest is not None
        price = case.price(ones)
        assert price[0] == cheapest[0]
        assert price[1:] >= cheapest[1:]
        seen["cases"] += 1
        seen["fewest gangs"] += price[:3] == cheapest[:3]
        assert price[:4] == cheapest[:4] or not answer.is_proven
    assert seen["cases"] > HARD_CASES // 2
    assert seen["fewest gangs"] >= 0.96 * seen["cases"]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("shape", SHAPES)
def test_none_of_a_set_may_stay_where_the_visits_ended_before_all_was_tried(
    shape: str, seed: int
) -> None:
    chance = random.Random(seed)
    told = 0
    for _ in range(WIDE_CASES):
        case = wide_case(chance, shape)
        for visits in (*FEW_VISITS, VISITS):
            answer = case.answer(visits)
            if isinstance(answer, Victims):
                check(case, answer)
                told += bool(answer.keys) and not answer.is_proven
    assert told, "some were cut short"
