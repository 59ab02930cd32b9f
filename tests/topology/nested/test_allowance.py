"""A search with an allowance ends as without one, or says that it is not finished."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.quality import feasible, large
from tests.text import RACK, cluster, vector
from topology import Capacity, Constraint, Gang, Group, NoFit, Options, Placement, PodSet, find
from topology.fit.view import Allowance, Visits
from topology.nested.complete import complete
from topology.nested.recheck import fits_still

TRIES = 32


def within(
    capacity: Capacity, gang: Gang, visits: int, cells: int
) -> tuple[Placement | NoFit, int]:
    """The answer of a search with an allowance, and the visits that it cost."""
    options = Options(tries=TRIES, visits=Visits(), allowance=Allowance(visits, cells))
    return find(capacity.tree, capacity, gang, {}, options), options.visits.total


@pytest.mark.parametrize("cells", [0, 200_000, 10**9])
@pytest.mark.parametrize("visits", [1_000, 20_000, 60_000, 10**9])
def test_the_answer_is_that_without_an_allowance_or_none(visits: int, cells: int) -> None:
    unfinished = 0
    for seed in range(12):
        made = feasible.instance(seed, is_mixed=True, is_nested=seed % 2 == 0)
        whole = find(made.capacity.tree, made.capacity, made.gang, {}, Options(tries=TRIES))
        found, _ = within(made.capacity, made.gang, visits, cells)
        if isinstance(found, NoFit) and found.is_unfinished:
            assert not found.is_proven
            unfinished += 1
        else:
            assert found == whole, seed
    if visits == 10**9 == cells:
        assert not unfinished
    if visits < 10_000:
        assert unfinished


def test_it_ends_as_soon_as_the_allowance_is_spent() -> None:
    made = large.instance(0)
    nodes = len(made.capacity.tree.nodes)
    found, cost = within(made.capacity, made.gang, 60_000, 1_000_000)
    assert isinstance(found, NoFit)
    assert found.is_unfinished
    assert cost <= 60_000 + 2 * nodes


def test_one_pod_set_is_placed_whatever_the_allowance() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r2/n2 gpu=4")
    workers = PodSet("w", 2, vector(capacity.axis, pods=1, gpu=4), constraint=Constraint(RACK))
    gang = Gang("ns/g", Group("g", (workers,)))
    found, _ = within(capacity, gang, 0, 0)
    assert found == find(tree, capacity, gang, {})
    assert isinstance(found, Placement)


def test_a_place_beside_kept_pods_has_the_allowance_as_well() -> None:
    made = feasible.instance(3, is_mixed=True, is_nested=True)
    name = next(made.gang.names())
    tree, options = made.capacity.tree, Options(tries=TRIES, allowance=Allowance(1, 0))
    found = complete(tree, made.capacity, made.gang, {}, {name: ((0, 1),)}, options)
    assert isinstance(found, NoFit)
    assert found.is_unfinished


def _placed() -> tuple[Capacity, Gang, Placement]:
    _, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=4")
    sets = tuple(
        PodSet(name, 2, vector(capacity.axis, pods=1, gpu=gpu), f"shape-{name}")
        for name, gpu in (("a", 4), ("b", 2))
    )
    gang = Gang("ns/g", Group("g", sets, Constraint(RACK)))
    found = find(capacity.tree, capacity, gang, {})
    assert isinstance(found, Placement)
    return capacity, gang, found


def test_a_place_is_still_there_until_something_else_is_on_its_nodes() -> None:
    capacity, gang, found = _placed()
    assert fits_still(capacity, gang, {}, {}, Options(), found)
    capacity.use(0, vector(capacity.axis, gpu=1), 1)
    assert not fits_still(capacity, gang, {}, {}, Options(), found)


def test_a_place_is_not_there_on_a_node_that_closes_or_does_not_allow_the_pods() -> None:
    capacity, gang, found = _placed()
    closed = ~capacity.is_open
    assert not fits_still(capacity, gang, {"shape-b": closed}, {}, Options(), found)
    on = vector(capacity.axis, pods=110, gpu=8)
    capacity.set_node(0, on, is_open=False)
    assert not fits_still(capacity, gang, {}, {}, Options(), found)


def test_pods_that_are_on_the_books_already_are_not_counted_again() -> None:
    capacity, gang, found = _placed()
    first = found.pod_sets[0]
    for slot, pods in first.slots:
        capacity.use(slot, vector(capacity.axis, pods=1, gpu=4), pods)
    assert not fits_still(capacity, gang, {}, {}, Options(), found)
    kept = {first.pod_set: tuple(first.slots)}
    assert fits_still(capacity, gang, {}, kept, Options(), replace(found))
