"""As many levels as a Topology object may have, with and without the hostname level."""

from __future__ import annotations

import msgspec
import pytest

from app.main import engine_settings
from app.settings import Settings
from tests.app.state.world import World, members
from tests.records import node, topology
from topology.model.levels import LEVELS_MAX, NODE_LEVEL

SIXTEEN = tuple(f"example.com/level-{number}" for number in range(LEVELS_MAX))


def nodes_of(levels):
    """Four nodes that differ in the narrowest of the levels alone."""
    found = [node(f"n{number}") for number in range(4)]
    return [
        msgspec.structs.replace(
            each,
            labels={**each.labels, **dict.fromkeys(levels, "a"), levels[-1]: f"v{number // 2}"},
        )
        for number, each in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("levels", "narrowest"),
    [
        pytest.param(SIXTEEN, SIXTEEN[-1], id="sixteen_and_the_node_level_is_added"),
        pytest.param((*SIXTEEN[:-1], NODE_LEVEL), SIXTEEN[-2], id="the_node_level_is_the_last"),
    ],
)
@pytest.mark.parametrize("is_object", [True, False], ids=["a_topology_object", "the_settings"])
def test_a_gang_is_placed_in_a_topology_of_sixteen_levels(levels, narrowest, is_object):
    above = tuple(level for level in levels if level != NODE_LEVEL)
    if is_object:
        world = World(nodes_of(above), topologies=[topology("deep", *levels)], levels=())
    else:
        world = World(nodes_of(above), levels=engine_settings(Settings(levels=levels)).levels)
    assert world.engine.topologies.problem == ""
    pods = members("g", 2, narrowest)
    world.put(*pods)
    assert set(world.schedule(*pods).values()) in ({"n0", "n1"}, {"n2", "n3"})


def test_seventeen_levels_are_told_and_not_used():
    levels = (*SIXTEEN, "example.com/level-16")
    world = World(topologies=[topology("deep", *levels)], levels=())
    assert "17 given" in world.engine.topologies.problem
    assert "deep" not in world.engine.books.topologies


def test_an_object_that_says_what_it_said_before_is_no_change():
    topologies = World(levels=()).engine.topologies
    rows = topology("rows", "example.com/row")
    assert topologies.put(rows)
    assert not topologies.put(rows)
    assert topologies.put(topology("rows", "example.com/row", NODE_LEVEL))
