from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy import typing as npt

from tests.text import cluster, vector
from topology import Counts, DomainOrder, Strategy, build, packing_scores
from topology.fit import order
from topology.fit.fill import Offers, fill
from topology.fit.fit import LevelFit
from topology.model.capacity import Capacity
from topology.model.resources import AMOUNT_MAX, ResourceAxis, Rows


def counts(*pods: int) -> Counts:
    return np.array(pods, dtype=np.int64)


def test_the_tightest_domain_is_the_smallest_that_still_fits() -> None:
    assert order.tightest(counts(9, 5, 4, 6), 5) == 1


def test_the_tightest_of_equal_domains_is_the_first() -> None:
    assert order.tightest(counts(9, 5, 5), 3) == 1


@pytest.mark.parametrize("pods", [counts(), counts(2, 3)])
def test_there_is_no_tightest_where_none_fits(pods: Counts) -> None:
    assert order.tightest(pods, 4) is None


BEST_FIT, LEAST_FREE = Strategy.BEST_FIT, Strategy.LEAST_FREE


def filled(pods_by_domain: Counts, pods: int, strategy: Strategy) -> list[int] | None:
    """Pods of each domain, in domain order."""
    fits = LevelFit(pods_by_domain, pods_by_domain, pods_by_domain, pods_by_domain)
    domains = order.ranked(fits, strategy)
    taken = fill(Offers.of(fits), domains, pods, strategy)
    if taken is None:
        return None
    by_domain = np.zeros_like(pods_by_domain)
    by_domain[taken.domains] = taken.counts
    return by_domain.tolist()


def test_the_roomiest_are_filled_first_and_the_last_is_the_tightest() -> None:
    assert filled(counts(5, 8, 3, 2), 10, BEST_FIT) == [0, 8, 0, 2]


def test_the_smallest_holes_are_filled_first_and_the_rest_stays_whole() -> None:
    assert filled(counts(5, 8, 3, 0, 3), 7, LEAST_FREE) == [1, 0, 3, 0, 3]


@pytest.mark.parametrize(
    ("scores", "taken"),
    [
        pytest.param(counts(7, 7, 7), [0, 0, 3], id="one_score"),
        pytest.param(counts(7, 7, 0), [0, 3, 0], id="one_score_and_a_lower_one"),
    ],
)
def test_of_domains_with_the_best_score_the_tightest_takes_the_leader_and_all(
    scores: Counts, taken: list[int]
) -> None:
    pods, leads = counts(8, 5, 3), np.ones(3, dtype=np.bool_)
    filled = fill(Offers(pods, pods, leads, scores), np.arange(3), 3, BEST_FIT)
    assert filled is not None
    by_domain = np.zeros(3, dtype=np.int64)
    np.add.at(by_domain, filled.domains, filled.counts)
    assert (by_domain.tolist(), by_domain[filled.leader]) == (taken, 3)


def test_groups_are_tried_on_nodes_by_the_domains_around_them() -> None:
    tree, _ = cluster("b1/r1/n1 gpu=1\nb1/r2/n2 gpu=1\nb1/r2/n3 gpu=1")
    fullness = {1: np.array([0.0, 1.0]), tree.node_level: np.array([3.0, 1.0, 2.0])}

    def urgency(level: int, domains: Rows) -> npt.NDArray[np.float64]:
        return fullness[level][domains]

    nodes = np.arange(3)
    tried = order.for_group(tree, DomainOrder.TOPMOST, nodes, tree.node_level, 0, urgency)
    assert [tree.nodes[slot] for slot in tried] == ["n3", "n2", "n1"]


@pytest.mark.parametrize("strategy", list(Strategy))
def test_domains_that_do_not_suffice_give_nothing(strategy: Strategy) -> None:
    assert filled(counts(2, 3), 6, strategy) is None


def test_the_leader_goes_where_it_leaves_enough_for_the_others() -> None:
    # Beside the leader the first domain loses 3 of its 4, the second 1 of its 3.
    offers = Offers(counts(4, 3), counts(1, 2), np.array([True, True]))
    taken = fill(offers, np.arange(offers.counts.size), 6, BEST_FIT)
    assert taken is not None
    assert (taken.domains.tolist(), taken.counts.tolist(), taken.leader) == ([1, 0], [2, 4], 1)


def test_the_leader_and_all_workers_go_to_the_tightest_domain_that_takes_both() -> None:
    offers = Offers(counts(9, 5, 4), counts(8, 4, 3), np.array([True, True, True]))
    taken = fill(offers, np.arange(offers.counts.size), 4, BEST_FIT)
    assert taken is not None
    assert (taken.domains.tolist(), taken.counts.tolist(), taken.leader) == ([1], [4], 1)


def test_without_a_place_for_the_leader_nothing_is_taken() -> None:
    offers = Offers(counts(9, 5), counts(9, 5), np.array([False, False]))
    assert fill(offers, np.arange(offers.counts.size), 3, BEST_FIT) is None


def test_a_higher_score_comes_before_more_room() -> None:
    fits = LevelFit(*[counts(9, 2, 5)] * 4, scores=counts(0, 7, 7))
    assert order.ranked(fits, BEST_FIT).tolist() == [2, 1, 0]
    assert order.one_domain(fits, 4, is_last_chance=False) == 2
    # Nothing with the highest score takes eight: only the last chance looks further.
    assert order.one_domain(fits, 8, is_last_chance=False) is None
    assert order.one_domain(fits, 8, is_last_chance=True) == 0


@pytest.mark.parametrize("strategy", list(Strategy))
def test_of_domains_for_as_many_slices_those_with_fewest_pods_to_spare_come_first(
    strategy: Strategy,
) -> None:
    slices, anyone = counts(2, 2, 2), np.ones(3, dtype=np.bool_)
    fits = LevelFit(counts(9, 8, 11), counts(9, 10, 8), slices, slices, may_lead=anyone)
    assert order.ranked(fits, strategy).tolist() == [1, 0, 2]
    assert order.ranked_led(fits, strategy).tolist() == [2, 0, 1]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2**31, 2**40])), min_size=1, max_size=9
    ),
    st.booleans(),
    st.booleans(),
)
def test_sorting_in_one_integer_equals_sorting_by_columns(
    rows: list[tuple[int, int]], first_descends: bool, second_descends: bool
) -> None:
    first, second = counts(*(row[0] for row in rows)), counts(*(row[1] for row in rows))
    found = order.by_columns([(first, first_descends), (second, second_descends)])
    signs = [-1 if first_descends else 1, -1 if second_descends else 1]
    assert found.tolist() == sorted(
        range(len(rows)), key=lambda i: (signs[0] * rows[i][0], signs[1] * rows[i][1], i)
    )


@given(st.lists(st.sampled_from([0, 1, 255, 256, 2**16 - 1, 2**16]), max_size=9), st.booleans())
def test_sorting_by_one_column_keeps_the_order_of_equal_numbers(
    numbers: list[int], is_descending: bool
) -> None:
    found = order.by_columns([(counts(*numbers), is_descending)])
    sign = -1 if is_descending else 1
    assert found.tolist() == sorted(range(len(numbers)), key=lambda i: (sign * numbers[i], i))


def test_the_last_domain_is_the_tightest_of_the_most_welcome_not_of_all() -> None:
    pods, scores = counts(5, 6, 2), counts(9, 9, 0)
    offers = Offers(pods, pods, None, scores)
    taken = fill(offers, np.array([1, 0, 2]), 2, BEST_FIT)
    assert taken is not None
    assert taken.domains.tolist() == [0]


def literal_best_fit(pods_by_domain: list[int], pods: int) -> list[int]:
    """The best fit as kueue's tas_flavor_snapshot.go writes it, one domain at a time."""
    waiting = sorted(range(len(pods_by_domain)), key=lambda d: (-pods_by_domain[d], d))
    taken = [0] * len(pods_by_domain)
    while pods > 0:
        domain = waiting[0]
        if pods_by_domain[domain] >= pods:
            fits = [d for d in waiting if pods_by_domain[d] >= pods]
            domain = min(fits, key=lambda d: (pods_by_domain[d], waiting.index(d)))
        taken[domain] = min(pods, pods_by_domain[domain])
        pods -= taken[domain]
        waiting.remove(domain)
    return taken


def literal_least_free(pods_by_domain: list[int], pods: int) -> list[int]:
    taken = [0] * len(pods_by_domain)
    for domain in sorted(range(len(pods_by_domain)), key=lambda d: (pods_by_domain[d], d)):
        taken[domain] = min(pods, pods_by_domain[domain])
        pods -= taken[domain]
    return taken


@pytest.mark.slow
@given(st.lists(st.integers(0, 7), min_size=1, max_size=12), st.integers(1, 40))
def test_taking_domains_all_at_once_equals_taking_them_one_by_one(
    pods_by_domain: list[int], pods: int
) -> None:
    assume(sum(pods_by_domain) >= pods)
    best_fit = filled(counts(*pods_by_domain), pods, BEST_FIT)
    least_free = filled(counts(*pods_by_domain), pods, LEAST_FREE)
    assert best_fit == literal_best_fit(pods_by_domain, pods)
    assert least_free == literal_least_free(pods_by_domain, pods)


RACKS = """
    b1/r1/n1 cpu=16/64
    b1/r1/n2 cpu=64
    b1/r2/n3 cpu=64
    b2/r3/n4 cpu=64
    b2/r3/n5 cpu=64
"""


def scores(text: str, **request: int) -> dict[str, int]:
    tree, capacity = cluster(text)
    found = packing_scores(tree, capacity, vector(capacity.axis, pods=1, **request))
    return dict(zip(tree.nodes, found.tolist(), strict=True))


def test_a_node_in_a_partly_used_rack_scores_above_one_in_a_free_rack() -> None:
    found = scores(RACKS, cpu=1)
    assert found["n1"] > found["n2"] > found["n3"] > found["n4"] == found["n5"] == 0


def test_the_fuller_rack_scores_higher() -> None:
    found = scores("r1/n1 cpu=60/64\nr1/n2 cpu=64\nr2/n3 cpu=8/64\nr2/n4 cpu=64", cpu=1)
    assert found["n2"] > found["n4"]


def test_the_scarcest_resource_says_how_much_of_a_rack_is_used() -> None:
    found = scores("r1/n1 cpu=8/64 gpu=8/8\nr2/n2 cpu=32/64 gpu=8", cpu=1)
    assert found["n1"] > found["n2"]


def test_shares_of_two_exbibytes_are_told_apart() -> None:
    found = scores(
        f"r1/n1 memory={AMOUNT_MAX // 2}/{AMOUNT_MAX}\nr2/n2 memory={AMOUNT_MAX // 8}/{AMOUNT_MAX}"
    )
    assert found["n1"] > found["n2"] > 1


def test_nodes_that_cannot_take_the_pod_score_nothing() -> None:
    found = scores("r1/n1 cpu=64/64\nr1/n2 cpu=32/64 closed\nr1/n3 cpu=63/64", cpu=2)
    assert set(found.values()) == {0}


def test_held_room_counts_as_used() -> None:
    tree, capacity = cluster("r1/n1 cpu=64\nr2/n2 cpu=64")
    capacity.hold(1, vector(capacity.axis, pods=1, cpu=32))
    n1, n2 = packing_scores(tree, capacity, vector(capacity.axis, pods=1, cpu=1)).tolist()
    assert n2 > n1


def test_no_nodes_have_no_scores() -> None:
    tree = build(["rack"], {}, generation=1)
    assert packing_scores(tree, Capacity(ResourceAxis(), tree), (1,)).size == 0


def test_nodes_without_levels_above_them_are_packed_one_by_one() -> None:
    found = scores("n1 cpu=64\nn2 cpu=4/64\nn3 cpu=60/64", cpu=1)
    assert found["n3"] > found["n2"] > found["n1"] == 0


def test_ordinary_pods_that_follow_the_scores_leave_a_rack_wholly_free() -> None:
    lines = [f"b1/r{node // 4}/n{node} cpu=8" for node in range(16)]
    tree, capacity = cluster("\n".join(lines))
    request = vector(capacity.axis, pods=1, cpu=1)
    for _ in range(65):
        found = packing_scores(tree, capacity, request)
        capacity.use(int(found.argmax()), request)
    free = capacity.free_by_domain[1][capacity.axis.row("cpu")]
    assert sorted(free.tolist())[-1] == 4 * 8_000
    assert sorted(free.tolist())[0] == 0


amounts = st.integers(0, AMOUNT_MAX)


@pytest.mark.slow
@given(st.lists(st.tuples(amounts, amounts, st.booleans()), min_size=1, max_size=8))
def test_scores_stay_in_their_range_whatever_the_amounts(
    nodes: list[tuple[int, int, bool]],
) -> None:
    text = "\n".join(f"r{index % 3}/n{index}" for index in range(len(nodes)))
    tree, capacity = cluster(text)
    for slot, (memory, used, is_open) in enumerate(nodes):
        capacity.set_node(slot, vector(capacity.axis, pods=9, memory=memory), is_open)
        capacity.use(slot, vector(capacity.axis, memory=used))
    found = packing_scores(tree, capacity, vector(capacity.axis, pods=1))
    assert found.min() >= 0
    assert found.max() <= order.SCORE_MAX
    assert found.tolist() == packing_scores(tree, capacity, (1,)).tolist()
