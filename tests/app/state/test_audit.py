"""The self-audit finds books that are wrong, and healing makes them right again."""

from __future__ import annotations

import pytest

from tests.app.state.world import World, four_racks, members
from tests.records import pod


@pytest.fixture
def world():
    ordinary = pod("o", on="n33", phase="Running")
    world = World(four_racks(), [ordinary, *members("g", 4), *members("h", 2)])
    world.schedule(*(world.pods[f"uid-h{i}"] for i in range(2)))
    assert differences(world) == []
    return world


def differences(world):
    return world.engine.differences()


def rows(world):
    return [
        (topology.capacity.used.tolist(), topology.capacity.held.tolist())
        for topology in world.engine.books.topologies.values()
    ]


def test_wrong_sums_are_found_with_their_nodes_and_healed(world):
    right = rows(world)
    capacity = next(iter(world.engine.books.topologies.values())).capacity
    capacity.used[0, 3] += 1
    (difference,) = differences(world)
    assert "used is not the sum of pods in 1 slots: n03" in difference
    world._take(world.engine.heal(world.now))
    assert rows(world) == right


def test_a_pod_that_is_missing_in_the_index_by_node_is_found_and_healed(world):
    world.engine.books.bound_on["n33"].clear()
    assert differences(world) == ["bound pods by node differ from bound pods"]
    world._take(world.engine.heal(world.now))
    assert differences(world) == []


def test_a_hold_that_nobody_owns_is_released(world):
    world.engine.books.hold("leaked", "n22", (("pods", 1),))
    assert any("leaked" in each for each in differences(world))
    world._take(world.engine.heal(world.now))
    assert "leaked" not in world.held


def test_a_plan_without_its_hold_is_made_again(world):
    world.engine.books.release("uid-g1")
    assert any("uid-g1 is not held" in each for each in differences(world))
    world._take(world.engine.heal(world.now))
    for _ in range(30):
        world.tick()
    assert sorted(world.held) == ["uid-g0", "uid-g1", "uid-g2", "uid-g3"]


def test_healing_books_that_are_right_changes_nothing(world):
    before, plans = rows(world), dict(world.held)
    effects = world._take(world.engine.heal(world.now))
    assert effects == []
    assert (rows(world), dict(world.held)) == (before, plans)
