from __future__ import annotations

import random
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.text import BLOCK, RACK, cluster, pods_per_node, vector
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    Counts,
    Gang,
    Group,
    Leader,
    Options,
    Placement,
    PodSet,
    Rows,
    Slice,
    Strategy,
    Tree,
    find,
    invariants,
)
from topology.fit.fit import LevelFit
from topology.fit.unit import Unit, units_of
from topology.fit.view import CALL, Visits
from topology.pod_set import knapsack
from topology.pod_set.balanced import _thresholds, entropy, greedy


def counts(*pods: int) -> Counts:
    return np.array(pods, dtype=np.int64)


def fits_of(*pods: int) -> LevelFit:
    return LevelFit(*[counts(*pods)] * 4)


def search(tree: Tree, capacity: Capacity, pods: int, **fields: Any) -> dict[str, int]:
    """Pods per node of a balanced placement, preferring one rack unless told otherwise."""
    fields = {"constraint": Constraint(preferred=RACK, balanced=True)} | fields
    gang = Gang(
        "ns/gang",
        Group("root", (PodSet("w", pods, vector(capacity.axis, pods=1, gpu=1), **fields),)),
    )
    answer = find(tree, capacity, gang, {})
    assert isinstance(answer, Placement), str(answer)
    invariants.check(tree, capacity, gang=gang, placement=answer)
    return pods_per_node(tree, answer)["w"]


def test_nodes_get_about_the_same_number() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8\nb1/r1/n3 gpu=8")
    # Best fit would give 8 and 4.
    assert search(tree, capacity, 12) == {"n1": 6, "n2": 6}


def test_extra_pods_go_to_the_roomiest() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=6\nb1/r1/n2 gpu=8")
    assert search(tree, capacity, 13) == {"n1": 6, "n2": 7}


def test_slices_are_balanced_as_a_whole() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8\nb1/r2/n3 gpu=9\nb1/r2/n4 gpu=6")
    placed = search(tree, capacity, 12, slices=(Slice(3, NODE_LEVEL),))
    assert sorted(placed.values()) == [6, 6]


def test_racks_of_a_block_get_the_same_number_though_no_node_of_theirs_takes_as_many() -> None:
    tree, capacity = cluster("\n".join(f"b1/r{n // 4}/n{n} gpu=1" for n in range(8)))
    placed = search(tree, capacity, 6, constraint=Constraint(preferred=BLOCK, balanced=True))
    # Best fit would give 4 and 2.
    assert [sum(placed.get(f"n{n}", 0) for n in rack) for rack in (range(4), range(4, 8))] == [3, 3]


@pytest.mark.parametrize("pods", [3, 5, 7])
def test_slices_two_levels_below_are_never_an_empty_success(pods: int) -> None:
    # There Kueue may report success and place nothing.
    tree, capacity = cluster(
        "\n".join(f"b{n // 4}/r{n // 2}/n{n} gpu={2 + n % 3}" for n in range(8))
    )
    placed = search(
        tree,
        capacity,
        2 * pods,
        slices=(Slice(2, NODE_LEVEL),),
        constraint=Constraint(preferred=BLOCK, balanced=True),
    )
    assert sum(placed.values()) == 2 * pods


def test_the_leader_has_room_in_its_domain() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r1/n2 gpu=4")
    leader = Leader("boss", vector(capacity.axis, pods=1, gpu=2))
    assert search(tree, capacity, 6, leader=leader) == {"n1": 2, "n2": 4}


@pytest.mark.parametrize("leads", ["n1", "n2"])
def test_workers_are_balanced_though_only_one_node_takes_their_leader(leads: str) -> None:
    nodes = [f"b1/r1/{name} gpu=4 cpu={8 * (name == leads)}" for name in ("n1", "n2")]
    tree, capacity = cluster("\n".join(nodes))
    leader = Leader("boss", vector(capacity.axis, pods=1, gpu=1, cpu=8))
    assert search(tree, capacity, 4, leader=leader) == {"n1": 2, "n2": 2}


def test_greedy_says_how_few_domains_do() -> None:
    found = greedy(fits_of(3, 9, 0, 5), 12)
    assert found is not None
    assert (found.taken, found.last) == (2, 3)
    assert greedy(fits_of(3, 9, 0, 5), 18) is None


def test_even_children_have_more_entropy_and_their_order_does_not_matter() -> None:
    assert entropy(counts(2, 2)) == pytest.approx(1.0)
    assert entropy(counts(3, 1)) < entropy(counts(2, 2))
    assert entropy(counts(7, 1, 3)) == entropy(counts(3, 7, 1))
    assert entropy(counts(0, 0)) == 0


def chosen_set(fits: LevelFit, order: Rows, number: int, unit: Unit) -> Rows | None:
    return knapsack.chosen_set(fits, order, number, unit, Visits().add)


def unit_of(pods: int) -> Unit:
    tree, _ = cluster("b1/r1/n1")
    gang = Gang("ns/gang", Group("root", (PodSet("w", pods, (1,)),)))
    return units_of(tree, gang, Strategy.BEST_FIT)[0]


def visits(racks: int, nodes: int, pods: int, preferred: str) -> int:
    """What a balanced placement costs, in racks of so many nodes that take 9 pods each."""
    lines = (f"b1/r{rack}/n{rack}.{at} gpu=9" for rack in range(racks) for at in range(nodes))
    tree, capacity = cluster("\n".join(lines))
    counted, constraint = Visits(), Constraint(preferred=preferred, balanced=True)
    workers = PodSet("w", pods, vector(capacity.axis, pods=1, gpu=1), constraint=constraint)
    gang = Gang("ns/gang", Group("root", (workers,)))
    assert isinstance(find(tree, capacity, gang, {}, Options(visits=counted)), Placement)
    return counted.total


def test_what_a_set_of_domains_costs_is_counted() -> None:
    assert visits(1, 160, 640, RACK) > 20 * visits(1, 40, 160, RACK)


def test_what_each_family_of_domains_costs_is_counted() -> None:
    assert visits(16, 2, 4, NODE_LEVEL) >= visits(1, 2, 4, NODE_LEVEL) + 15 * CALL


def test_of_all_sets_of_so_many_domains_the_one_that_wastes_least_is_chosen() -> None:
    chosen = chosen_set(fits_of(9, 4, 6, 5), np.arange(4), 2, unit_of(10))
    assert chosen is not None
    assert chosen.tolist() == [1, 2]
    assert chosen_set(fits_of(9, 4, 6, 5), np.arange(4), 1, unit_of(10)) is None


def led(pods: list[int], with_leader: list[int], may_lead: list[bool]) -> LevelFit:
    """Domains that take so many pods, and so many beside the leader where that may be."""
    plain, beside = counts(*pods), counts(*with_leader)
    return LevelFit(plain, beside, plain, beside, may_lead=np.array(may_lead))


def led_unit(pods: int) -> Unit:
    tree, _ = cluster("b1/r1/n1")
    pod_set = PodSet("w", pods, (1,), leader=Leader("boss", (1,)))
    return units_of(tree, Gang("ns/gang", Group("root", (pod_set,))), Strategy.BEST_FIT)[0]


@pytest.mark.parametrize(
    ("need", "taken", "last_led", "last"),
    [
        pytest.param(2, 1, 1, None, id="the_leaders_domain_takes_all"),
        pytest.param(3, 2, 1, 0, id="and_the_tightest_that_takes_the_rest"),
        pytest.param(11, 2, 1, 3, id="the_roomiest_beside_it"),
        pytest.param(12, 3, 1, 0, id="a_third"),
        pytest.param(16, 3, 1, 0, id="all_of_them"),
    ],
)
def test_greedy_counts_the_domain_of_the_leader_first(
    need: int, taken: int, last_led: int, last: int | None
) -> None:
    """Only domains 1 and 2 may lead; 1 takes most beside the leader."""
    found = greedy(led([5, 4, 0, 9], [0, 2, 0, 0], [False, True, True, False]), need)
    assert found is not None
    assert (found.taken, found.last_led) == (taken, last_led)
    assert (found.last is None) == (last is None)


def test_greedy_finds_nothing_where_no_domain_may_lead_or_all_are_too_few() -> None:
    assert greedy(led([5, 4], [0, 0], [False, False]), 1) is None
    assert greedy(led([5, 4], [3, 0], [True, False]), 8) is None
    assert greedy(led([5, 4], [3, 0], [True, False]), 7) is not None
    assert greedy(fits_of(0, 0), 1) is None


def test_the_most_that_all_domains_taken_can_have_alike_leaves_room_for_the_leader() -> None:
    alone = fits_of(9, 4, 6)
    found = greedy(alone, 16)
    assert found is not None
    assert _thresholds(alone, found, 16) == (4, 4), "the last one taken has no more"
    found = greedy(alone, 14)
    assert found is not None
    assert _thresholds(alone, found, 14) == (6, 6), "of 9 and 6"
    with_leader = led([9, 4, 6], [7, 1, 3], [True, True, True])
    found = greedy(with_leader, 13)
    assert found is not None
    assert (found.last_led, found.last) == (0, 2)
    assert _thresholds(with_leader, found, 13) == (6, 3), "the last one could lead with 3"
    found = greedy(with_leader, 5)
    assert found is not None
    assert _thresholds(with_leader, found, 5) == (5, 5), "one domain takes all"


def least_left(fits: LevelFit, order: list[int], pods: int, domains: tuple[int, ...]) -> int | None:
    """What is left free if these domains, tried in order, take all; None if they do not.

    No domain is added once everything is placed, and none takes nothing but the leader.
    """
    found = []
    tried = [domain for domain in order if domain in domains]
    may_lead = fits.may_lead
    for leader in [None] if may_lead is None else [each for each in tried if may_lead[each]]:
        left, is_led = pods, may_lead is None
        for domain in tried:
            if (is_led and left <= 0) or (domain != leader and not fits.slices[domain]):
                break
            is_led |= domain == leader
            left -= int((fits.pods_led if domain == leader else fits.pods)[domain])
        else:
            if left <= 0:
                found.append(-left)
    return min(found, default=None)


@pytest.mark.parametrize("is_led", [False, True], ids=["workers_alone", "with_a_leader"])
def test_the_set_chosen_leaves_as_little_free_as_any(is_led: bool) -> None:
    chance, answers = random.Random(5), Counter[bool]()
    for _ in range(300):
        size = chance.randint(1, 5)
        rooms = [chance.randint(0, 6) for _ in range(size)]
        fits = fits_of(*rooms)
        if is_led:
            beside = [max(0, room - chance.randint(0, 3)) for room in rooms]
            fits = led(rooms, beside, [chance.random() < 0.6 for _ in rooms])
        pods, number = chance.randint(1, 14), chance.randint(1, size)
        order = chance.sample(range(size), size)
        unit = led_unit(pods) if is_led else unit_of(pods)
        chosen = chosen_set(fits, np.array(order), number, unit)
        left = {
            domains: free
            for domains in combinations(range(size), number)
            if (free := least_left(fits, order, pods, domains)) is not None
        }
        answers[bool(left)] += 1
        assert (chosen is not None) == bool(left)
        if chosen is not None:
            assert left[tuple(chosen.tolist())] == min(left.values())
    assert min(answers.values()) > 50


def test_of_sets_that_leave_the_same_free_the_one_found_first_in_the_order_given_is_chosen() -> (
    None
):
    fits = fits_of(4, 3, 3, 4)
    orders = {(0, 1, 2, 3): [0, 1], (3, 2, 1, 0): [2, 3], (1, 3, 0, 2): [1, 3]}
    for order, domains in orders.items():
        chosen = chosen_set(fits, np.array(order), 2, unit_of(7))
        assert chosen is not None
        assert chosen.tolist() == domains


def test_no_set_of_no_domains_is_chosen() -> None:
    assert chosen_set(fits_of(4, 4), np.arange(2), 0, unit_of(3)) is None
