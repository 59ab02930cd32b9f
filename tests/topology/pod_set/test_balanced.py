from __future__ import annotations

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
    Placement,
    PodSet,
    Slice,
    Strategy,
    Tree,
    find,
    invariants,
)
from topology.fit.fit import LevelFit
from topology.fit.unit import Unit, units_of
from topology.pod_set.balanced import entropy, greedy
from topology.pod_set.knapsack import chosen_set


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


def unit_of(pods: int) -> Unit:
    tree, _ = cluster("b1/r1/n1")
    gang = Gang("ns/gang", Group("root", (PodSet("w", pods, (1,)),)))
    return units_of(tree, gang, Strategy.BEST_FIT)[0]


def test_of_all_sets_of_so_many_domains_the_one_that_wastes_least_is_chosen() -> None:
    chosen = chosen_set(fits_of(9, 4, 6, 5), np.arange(4), 2, unit_of(10))
    assert chosen is not None
    assert chosen.tolist() == [1, 2]
    assert chosen_set(fits_of(9, 4, 6, 5), np.arange(4), 1, unit_of(10)) is None
