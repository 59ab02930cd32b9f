"""The room for pods of a shape, which operators watch."""

from __future__ import annotations

import pytest

from app.explain.topology.slots import LevelSlots, slots_of
from app.explain.topology.usage import wanted_of
from tests.app.state.world import World, members
from tests.records import BLOCK, RACK, UNCONSTRAINED, node, pod

NODES = [node(f"b0/r{r}/n{r}{i}", gpus=8) for r in range(2) for i in range(2)]


def slots(world, text):
    (found,) = slots_of(world.engine, (wanted_of(text),))
    return found


def test_pods_that_fit_are_counted_node_by_node():
    world = World(NODES)
    assert slots(world, "nvidia.com/gpu=8").free == 4
    assert slots(world, "nvidia.com/gpu=5").free == 4
    assert slots(world, "nvidia.com/gpu=3").free == 8


def test_the_best_domain_of_each_level_is_told():
    world = World(NODES)
    world.put(pod("other", gpus=1, on="n00"))
    found = slots(world, "nvidia.com/gpu=8")
    assert [(each.level, each.most_free) for each in found.levels] == [(BLOCK, 3), (RACK, 2)]


def test_fragmentation_is_the_share_of_what_fits_that_is_not_in_wholly_free_domains():
    world = World(NODES)
    assert slots(world, "nvidia.com/gpu=8").levels[1] == LevelSlots(RACK, 2, 0.0)
    world.put(pod("other", gpus=1, on="n00"))
    # Three nodes are free, one of them in the rack that is in use.
    assert slots(world, "nvidia.com/gpu=8").levels[1].fragmentation == pytest.approx(1 / 3)
    world.put(pod("another", gpus=1, on="n10"))
    assert slots(world, "nvidia.com/gpu=8").levels[1].fragmentation == 1.0


def test_what_only_reservations_leave_no_room_is_told_apart():
    world = World(NODES)
    world.put(*members("g", 2))
    found = slots(world, "nvidia.com/gpu=8")
    assert (found.free, found.reserved) == (2, 2)


def test_a_node_that_takes_no_pods_has_no_room():
    world = World([*NODES[:3], node("b0/r1/n11", gpus=8, is_ready=False)])
    assert slots(world, "nvidia.com/gpu=8").free == 3


def test_of_a_resource_that_no_node_has_nothing_fits():
    found = slots(World(NODES), "example.com/fpga=1")
    assert found.free == found.reserved == 0
    assert {each.fragmentation for each in found.levels} == {0.0}


def test_a_cluster_without_nodes_has_no_domains():
    found = slots(World(()), "cpu=1")
    assert (found.free, found.levels) == (0, ())


def test_a_cluster_without_levels_has_the_sum_alone():
    world = World(NODES, levels=())
    world.put(pod("single", gpus=8, annotations={UNCONSTRAINED: "true"}))
    found = slots(world, "nvidia.com/gpu=8")
    assert (found.free, found.reserved, found.levels) == (3, 1, ())
