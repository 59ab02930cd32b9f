"""What a pod would leave that usual pods cannot use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.fit.order import SCORE_MAX, points_by_place
from topology.fragments import growth as module
from topology.fragments.growth import STEPS, growth, unusable, usual
from topology.model.resources import AMOUNT_MAX

PODS, CPU, GPU, NIC = range(4)
SCARCE = (GPU, NIC)
amounts = st.integers(0, 12)
requests = st.tuples(st.just(1), amounts, amounts, st.integers(0, 2))
weighted = st.lists(st.tuples(requests, st.integers(0, 9)), max_size=6)
nodes = st.lists(
    st.tuples(st.integers(0, 9), st.integers(-3, 24), amounts, amounts), min_size=1, max_size=6
)


def free_of(columns) -> np.ndarray:
    return np.array(columns, dtype=np.int64).T.copy()


def by_definition(node, weighted_requests) -> float:
    """Over the scarce resources and requests that name it, what the request cannot use, weighted.

    In units of what all of them ask together.
    """
    total = 0.0
    for row in SCARCE:
        naming = [(request, weight) for request, weight in weighted_requests if request[row]]
        asked = sum(request[row] * weight for request, weight in naming)
        for request, weight in naming:
            fits = all(need <= has for need, has in zip(request, node, strict=True) if need)
            if asked and not fits:
                total += max(0, node[row]) * weight / asked
    return total


@given(nodes, weighted)
def test_fragments_are_what_their_definition_says(columns, weighted_requests):
    found = unusable(free_of(columns), usual(weighted_requests, SCARCE))
    expected = [STEPS * by_definition(node, weighted_requests) for node in columns]
    assert found.tolist() == pytest.approx(expected)


@given(nodes, weighted)
def test_a_node_is_looked_at_for_itself(columns, weighted_requests):
    of = usual(weighted_requests, SCARCE)
    alone = [unusable(free_of([node]), of).tolist()[0] for node in columns]
    assert unusable(free_of(columns), of).tolist() == alone


def test_a_small_pod_costs_nothing_where_a_large_one_does_not_fit_any_more():
    of = usual([((1, 8, 8), 1)], [GPU])
    free = free_of([(9, 64, 8), (9, 64, 5)])
    before, after = unusable(free, of), unusable(free - [[1], [1], [1]], of)
    grown = growth(before, after)
    assert grown[0] > 0 > grown[1]


def test_cores_that_free_gpus_need_are_a_cost():
    """A pod without GPUs goes where the cores that are left still serve the free GPUs."""
    of = usual([((1, 8, 1), 1)], [GPU])
    free = free_of([(9, 8, 1), (9, 9, 1), (9, 8, 0)])
    after = free - [[1], [1], [0]]
    assert (growth(unusable(free, of), unusable(after, of)) > 0).tolist() == [True, False, False]


def test_requests_of_nothing_scarce_have_no_say():
    of = usual([((1, 64), 400), ((1, 8, 0, 0), 9)], SCARCE)
    assert not of
    assert unusable(free_of([(1, 1, 8, 8)]), of).tolist() == [0]


def test_resources_that_no_node_has_are_asked_in_vain():
    of = usual([((1, 1, 1, 0, 0, 5), 1)], [GPU])
    (found,) = unusable(free_of([(9, 9, 4, 0)]), of).tolist()
    assert found == 4 * STEPS


def test_weights_that_a_float_would_round_are_refused():
    with pytest.raises(ValueError, match="weights of 1 requests"):
        usual([((1, 1, 1), module.WEIGHT_MAX + 1)], [GPU])


@given(
    st.lists(st.tuples(*[st.integers(-AMOUNT_MAX, AMOUNT_MAX)] * 4), min_size=1, max_size=5),
    st.lists(st.tuples(st.tuples(*[st.integers(0, 2**48)] * 4), st.integers(1, 512)), max_size=5),
)
def test_amounts_as_large_as_they_get_leave_the_steps_bounded(columns, weighted_requests):
    free, of = free_of(columns), usual(weighted_requests, SCARCE)
    grown = growth(unusable(free, of), unusable(free // 2, of))
    assert abs(grown).max() <= module.STEPS_MAX


def points(*columns: tuple[list[int], int]) -> list[int]:
    return points_by_place([(np.array(column), bits) for column, bits in columns]).tolist()


def test_the_best_has_ten_points_and_each_point_less_goes_to_twice_as_many():
    found = points((list(range(2_000)), 16))
    assert found == sorted(found, reverse=True)
    assert [found.count(score) for score in range(SCORE_MAX, 0, -1)] == [
        1, *(2**place for place in range(SCORE_MAX - 1))
    ]  # fmt: skip


def test_equal_places_have_equal_points():
    assert points(([3, 1, 1, 2], 8)) == [8, 10, 10, 8]
    assert points(([5] * 3_000, 8)) == [10] * 3_000


def test_the_first_column_decides_before_the_second():
    assert points(([1, 0, 0], 4), ([0, 9, 8], 8)) == [8, 9, 10]


def test_of_numbers_with_more_bits_the_highest_count():
    assert points(([2**40, 2**40 + 1, 2**39], 8)) == [9, 9, 10]
    assert points(([], 8)) == []
