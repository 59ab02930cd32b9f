"""Gangs on clusters that begin without a node, in virtual time; see `autoscaling/gang_plays.py`."""

from __future__ import annotations

from random import Random

import pytest

from tests.records import BLOCK, RACK, REQUIRED, SLICE_LEVEL, SLICE_SIZE
from tests.sim.grown import IN_RACK, Watched, rack
from tests.sim.liveness import check_books, check_empty
from tests.sim.world import EMPTY_SECONDS


@pytest.mark.slow
def test_1_a_gang_of_an_empty_cluster_gets_its_rack_and_no_node_more() -> None:
    watched = Watched(rack("r0", 12))
    gang = watched.world.gang(8, 8, 300.0, IN_RACK)
    watched.until(lambda: len(watched.bound(gang)) == 8)
    watched.run(120.0)
    assert len(watched.made) == len(set(watched.bound(gang).values())) == 8
    watched.until(watched.is_empty)
    assert len(watched.made) == 8


@pytest.mark.slow
def test_5_of_two_gangs_each_gets_a_rack_the_first_of_them_first() -> None:
    watched = Watched(rack("r0", 8), rack("r1", 8, stock=0))
    first = watched.world.gang(8, 8, 2000.0, IN_RACK)
    watched.run(10.0)
    second = watched.world.gang(8, 8, 600.0, IN_RACK)
    watched.until(lambda: len(watched.bound(first)) == 8)
    watched.run(60.0)
    assert watched.bound(second) == {}
    assert len(watched.marked()) == 8, "it asks on"
    watched.autoscaler.cloud.stock["r1"] = None
    watched.until(lambda: len(watched.bound(second)) == 8)
    assert set(watched.racks(first)) == {"r0"}
    assert set(watched.racks(second)) == {"r1"}


@pytest.mark.slow
def test_6_ordinary_pods_that_come_meanwhile_take_no_node_of_the_gangs_rack() -> None:
    watched = Watched(rack("r0", 8))
    gang = watched.world.gang(8, 8, 300.0, IN_RACK)
    watched.until(lambda: len(watched.made) >= 3)
    flood = watched.world.plain(6, 8, 100.0)
    watched.until(lambda: len(watched.bound(gang)) == 8)
    assert watched.bound(flood) == {}
    watched.until(lambda: len(watched.bound(flood)) > 0)


@pytest.mark.slow
def test_7_where_the_cloud_is_out_of_stock_nothing_starts_and_what_came_goes_to_others() -> None:
    watched = Watched(rack("r0", 8, stock=6))
    gang = watched.world.gang(8, 8, 100.0, IN_RACK)
    watched.run(400.0)
    assert watched.bound(gang) == {}
    small = watched.world.gang(2, 8, 100.0, IN_RACK)
    watched.run(60.0)
    assert watched.bound(small) == {}, "the six are kept for the first"
    watched.until(lambda: len(watched.bound(small)) == 2, seconds=300.0)
    assert watched.bound(gang) == {}
    before = len(watched.made)
    watched.run(600.0)
    assert len(watched.made) - before <= 8, "nodes do not come and go all the time"
    watched.autoscaler.cloud.stock["r0"] = None
    watched.until(lambda: len(watched.bound(gang)) == 8)


@pytest.mark.slow
def test_9_the_nodes_of_a_gang_that_is_deleted_meanwhile_go_again() -> None:
    watched = Watched(rack("r0", 8))
    gang = watched.world.gang(8, 8, 100.0, IN_RACK)
    watched.until(lambda: len(watched.made) >= 2)
    for each in watched.world.api.list("Pod"):
        watched.world.api.remove("Pod", each.name)
    gang.names.clear()
    gang.is_over = True
    watched.until(lambda: not watched.world.api.nodes)
    assert watched.world.corrals[0].engine.new_nodes.nodes() == frozenset()


@pytest.mark.slow
def test_10_a_gang_that_fits_before_its_nodes_come_starts_and_these_go_again() -> None:
    watched = Watched(rack("r0", 4), rack("r1", 4, register_seconds=300.0))
    first = watched.world.gang(4, 8, 120.0, IN_RACK)
    watched.until(lambda: len(watched.bound(first)) == 4)
    second = watched.world.gang(4, 8, 1500.0, IN_RACK)
    watched.until(lambda: len(watched.marked()) == 4)
    watched.until(lambda: len(watched.bound(second)) == 4)
    assert set(watched.racks(second)) == {"r0"}
    assert watched.marked() == []
    watched.run(600.0)
    assert sorted({name.rpartition("-")[0] for name in watched.world.api.nodes}) == ["r0"]


@pytest.mark.slow
def test_a_gang_of_four_racks_comes_and_goes_ten_times() -> None:
    """Random delays and stock-outs: nothing starts in part, which the world checks all the time."""
    rng = Random(64)
    watched = Watched(*(rack(f"r{number}", 16, rng) for number in range(4)))
    whole = {REQUIRED: BLOCK, SLICE_LEVEL: RACK, SLICE_SIZE: "16"}
    for attempt in range(10):
        before = len(watched.made)
        is_short = attempt in (3, 7)
        if is_short:
            watched.autoscaler.cloud.stock[f"r{rng.randrange(4)}"] = rng.randrange(1, 16)
        gang = watched.world.gang(64, 8, 30.0, whole)
        if is_short:
            watched.run(rng.uniform(300.0, 500.0))
            assert watched.bound(gang) == {}
            for name in watched.autoscaler.cloud.stock:
                watched.autoscaler.cloud.stock[name] = None
        watched.until(lambda gang=gang: len(watched.bound(gang)) == 64)
        assert watched.racks(gang) == {f"r{number}": 16 for number in range(4)}
        watched.until(watched.is_empty)
        assert len(watched.made) - before == 64, attempt
    check_books(watched.world.api, watched.world.corrals, watched.world.clock)
    watched.run(EMPTY_SECONDS)
    check_empty(watched.world.corrals)
