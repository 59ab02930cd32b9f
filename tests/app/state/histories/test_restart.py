"""What Corral knows again after a restart, and what the one before it left behind."""

from __future__ import annotations

import msgspec
import pytest

from app.state.filter_result import Rejected
from tests.app.state.stories import finish
from tests.app.state.world import World, four_racks, members, racks
from tests.records import RACK, group, node, pod

SPARE = {"corral.dev/spare-pods": "1"}


@pytest.mark.parametrize("late", [1, 2, 3])
def test_binds_of_the_corral_before_that_arrive_after_the_restart_are_followed(late):
    """The new one plans elsewhere meanwhile: its rack was not the one the old one had chosen."""
    world = World(four_racks(), members("g", 4))
    nodes = {uid: world.filter(each).node for uid, each in world.pods.items()}
    (rack,) = racks(nodes)
    closed = [
        msgspec.structs.replace(each, is_unschedulable=each.name[:2] == rack)
        for each in world.engine.books.nodes.values()
    ]
    again = World(closed, world.pods.values())
    assert racks(again.held) != {rack}
    for each in closed:  # uncordoned again, and the old one's bindings come through
        again.put(msgspec.structs.replace(each, is_unschedulable=False))
    for uid in sorted(nodes)[:late]:
        again.put(msgspec.structs.replace(again.pods[uid], node=nodes[uid]))
    finish(again)
    assert {each.node for each in again.pods.values()} == set(nodes.values())
    assert again.held == {}


def test_the_spare_place_of_a_running_gang_is_held_again_after_a_restart():
    said = {**group("g", 3, RACK), **SPARE}
    world = World(four_racks(), [pod(f"g{i}", annotations=said) for i in range(3)])
    world.schedule(*world.pods.values())
    world.tick()
    assert all(each.node for each in world.pods.values())
    again = World(four_racks(), world.pods.values())
    assert len(world.held) == 1
    assert list(again.held.values()) == list(world.held.values())


def test_a_spare_place_there_was_no_room_for_is_held_once_there_is():
    in_the_way = pod("other", on="n03")
    world = World([node(f"b0/r0/n0{i}") for i in range(4)], [in_the_way])
    said = {**group("g", 3, RACK), **SPARE}
    pods = [pod(f"g{i}", annotations=said) for i in range(3)]
    world.put(*pods)
    world.schedule(*pods)
    world.tick()
    assert world.held == {}
    world.delete(in_the_way)
    world.tick()
    assert list(world.held.values()) == ["n03"]


def test_a_rejected_pod_is_told_the_same_after_a_restart():
    world = World(four_racks(), members("g", 5))
    again = World(four_racks(), world.pods.values())
    answers = {each.filter(each.pods["uid-g0"]) for each in (world, again)}
    (answer,) = answers
    assert isinstance(answer, Rejected)
    assert "cannot be placed" in answer.sentence
