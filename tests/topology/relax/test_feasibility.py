"""How few questions find out how much fits, and what becomes of them when a budget ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text import cluster
from topology import Gang, Group, NoFit, Options, Placement, PodSet
from topology.model.request import Constraint
from topology.relax.feasibility import SCANNED, Feasibility


def question(pods: int = 4, searches: int = 10) -> Feasibility:
    """Pods on one node that takes four of them."""
    tree, capacity = cluster("r1/n1 pods=4")
    gang = Gang("ns/gang", Group("root", (PodSet("w", pods, (1,)),)))
    return Feasibility(tree, capacity, gang, {}, Options(), searches)


PLACE = question().place()


def asked(pods: int) -> Gang:
    return Gang("ns/gang", Group("root", (PodSet("w", pods, (1,)),)))


def test_every_search_is_counted_until_none_is_left() -> None:
    feasibility = question(searches=2)
    assert isinstance(feasibility.answer(), Placement)
    assert isinstance(feasibility.answer(gang=asked(5)), NoFit)
    assert (feasibility.left, feasibility.is_cut_short) == (0, False)
    assert feasibility.answer() is None
    assert feasibility.place() is None
    assert (feasibility.left, feasibility.is_cut_short) == (0, True)


def test_each_kind_of_changes_has_its_share_of_what_is_left() -> None:
    feasibility = question(searches=7)
    spent = []
    for kinds in (3, 2, 1):
        feasibility.begin(kinds)
        assert not feasibility.is_cut_short
        before = feasibility.left
        while feasibility.place() is not None:
            pass
        assert feasibility.is_cut_short
        spent.append(before - feasibility.left)
    assert spent == [2, 2, 3]


def test_a_place_is_looked_for_with_what_is_given_in_place_of_what_was_asked() -> None:
    feasibility = question(pods=5)
    assert feasibility.place() is None
    assert feasibility.place(gang=asked(4)) is not None
    _, roomier = cluster("r1/n1 pods=5")
    assert feasibility.place(capacity=roomier) is not None
    closed = {"": np.array([False])}
    assert feasibility.place(capacity=roomier, masks=closed) is None
    assert feasibility.left == 6


def test_an_invalid_gang_has_no_place() -> None:
    unknown = PodSet("w", 1, (1,), constraint=Constraint(required="row"))
    assert question().place(gang=replace(asked(1), root=Group("root", (unknown,)))) is None


@settings(max_examples=50)
@given(st.integers(0, 200), st.integers(0, 250))
def test_the_most_that_fit_is_found_in_few_questions(top: int, fitting: int) -> None:
    numbers: list[int] = []

    def fits(number: int) -> bool:
        assert 1 <= number <= top
        numbers.append(number)
        return number <= fitting

    assert question().most(top, fits, is_monotone=True) == min(top, fitting)
    assert len(numbers) <= top.bit_length() + 1
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize(
    ("top", "fitting", "most"),
    [
        pytest.param(SCANNED, {3, 7}, 7, id="few_are_tried_one_by_one"),
        pytest.param(SCANNED, {SCANNED}, SCANNED, id="all_of_them_alone"),
        pytest.param(1, {1}, 1, id="one"),
        pytest.param(SCANNED, set(), 0, id="none"),
        pytest.param(0, set(), 0, id="nothing_asked_for"),
        pytest.param(SCANNED + 1, {SCANNED + 1}, 0, id="not_one_of_many"),
    ],
)
def test_where_more_may_fit_though_fewer_do_not_few_are_tried_from_the_top(
    top: int, fitting: set[int], most: int
) -> None:
    assert question().most(top, fitting.__contains__, is_monotone=False) == most


def test_of_many_the_answer_fits_and_one_more_does_not() -> None:
    fitting = {*range(1, 10), *range(14, 18)}
    most = question().most(2 * SCANNED, fitting.__contains__, is_monotone=False)
    assert most in fitting
    assert most + 1 not in fitting


@settings(max_examples=50)
@given(st.integers(0, 40), st.integers(1, 45))
def test_the_first_that_are_enough_are_none_fewer_than_needed(ones: int, needed: int) -> None:
    sizes: list[int] = []

    def fits(some: list[int]) -> Placement | None:
        assert some == list(range(len(some)))
        sizes.append(len(some))
        return PLACE if len(some) >= needed else None

    found = question().first(range(ones), fits)
    assert len(sizes) <= ones.bit_length() + 1
    if needed > ones:
        assert found is None
    else:
        assert found == (list(range(needed)), PLACE)


@settings(max_examples=50)
@given(st.sets(st.integers(0, 12)), st.integers(1, 12))
def test_those_that_are_not_needed_are_left_out_from_the_last_on(
    needed: set[int], ones: int
) -> None:
    def fits(some: list[int]) -> Placement | None:
        assert some == sorted(some)
        return PLACE if needed & set(range(ones)) <= set(some) else None

    kept = question().thinned(range(ones), fits)
    assert kept == (sorted(needed & set(range(ones))) or [0])


def test_nothing_more_is_left_out_once_the_budget_has_ended() -> None:
    feasibility = question()

    def fits(some: list[int]) -> Placement | None:
        feasibility.is_cut_short = len(some) == 3
        return PLACE

    assert feasibility.thinned(range(5), fits) == [0, 1, 2]
