"""When a search for a gang would be another one than before."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.corral import GATE
from tests.app.state.world import World, four_racks, members


def test_a_version_stays_while_nothing_changes_that_a_search_depends_on():
    world = World(four_racks(), members("g", 3))
    before = world.gang().version
    for each in list(world.pods.values())[:2]:
        world.bind(each, world.filter(each).node)
    world.tick()
    assert world.gang().version == before


def _drop(world):
    world.delete(world.pods["uid-g2"])


def _annotate(world):
    world.put(msgspec.structs.replace(world.pods["uid-g2"], priority=7))
    world.tick()


def _close(world):
    node = world.engine.books.nodes[world.held["uid-g0"]]
    world.put(msgspec.structs.replace(node, is_unschedulable=True))


def _start(world):
    for each in list(world.pods.values()):
        world.bind(each, world.filter(each).node)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_drop, id="a_member_goes"),
        pytest.param(_annotate, id="a_member_changes_its_priority"),
        pytest.param(_close, id="the_plan_is_lost"),
        pytest.param(_start, id="the_gang_starts"),
    ],
)
def test_a_version_moves_on_with_what_a_search_depends_on(change):
    world = World(four_racks(), members("g", 3))
    before = world.gang().version
    change(world)
    assert world.gang().version != before


def test_a_version_moves_on_when_members_are_narrowed():
    gang = members("g", 2, gates=(GATE,))
    world = World(four_racks(), gang[:1])
    narrowings = world.gang().ungating.version
    world.put(gang[1])
    assert all(each.allowed for each in world.gang().members.values())
    assert world.gang().ungating.version > narrowings
