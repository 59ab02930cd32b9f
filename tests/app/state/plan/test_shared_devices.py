"""Gangs of pods that share devices: no plan where parts of devices add up and no device has one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.kube.core.objects import NodeRecord, PodRecord
from app.state.filter_result import Passed
from tests.app.state.world import World, members
from tests.records import RACK, node, pod

PARTS = "example.com/gpu-milli"
SHARED = {"device_parts": ((PARTS, 1000),)}


def sharing(path: str, gpus: int) -> NodeRecord:
    amounts = (("cpu", 64_000), (PARTS, 1000 * gpus), ("pods", 110))
    return replace(node(path), allocatable=tuple(sorted(amounts)))


def asking(each: PodRecord, parts: int) -> PodRecord:
    return replace(each, request=tuple(sorted((("cpu", 1000), (PARTS, parts), ("pods", 1)))))


def running(name: str, parts: int, on: str) -> PodRecord:
    return asking(pod(name, on=on, phase="Running"), parts)


def gang(name: str, *parts: int) -> list[PodRecord]:
    return [asking(*each) for each in zip(members(name, len(parts), RACK), parts, strict=True)]


def nodes_of(world: World, pods: list[PodRecord]) -> list[str]:
    world.put(*pods)
    return sorted(world.schedule(*pods).values())


def worn(**settings: object) -> World:
    """0.8 of the devices of n0 are free, 0.4 of each; n1 has two free ones, in another rack."""
    pods = [running("a", 600, "n0"), running("b", 600, "n0")]
    return World([sharing("b0/r0/n0", 2), sharing("b0/r1/n1", 2)], pods, **{**SHARED, **settings})


def test_a_gang_is_planned_where_a_device_has_room_for_each_of_its_pods():
    assert nodes_of(worn(), gang("g", 500)) == ["n1"]
    assert nodes_of(worn(), gang("g", 400, 400)) == ["n0", "n0"]


def test_where_nodes_say_nothing_of_devices_parts_are_one_sum():
    assert nodes_of(worn(device_parts=()), gang("g", 500)) == ["n0"]


@pytest.mark.parametrize(
    ("parts", "is_placed"),
    [
        pytest.param((600, 600), True, id="one_on_each"),
        pytest.param((600, 400, 600, 400), True, id="two_on_each"),
        pytest.param((400,) * 4, True, id="as_many_as_fit"),
        pytest.param((400,) * 5, False, id="one_more_fits_by_sum"),
        pytest.param((600, 600, 500), False, id="pods_of_two_kinds"),
        pytest.param((1000, 600), True, id="one_has_a_device_alone"),
        pytest.param((2000,), True, id="it_has_both_alone"),
    ],
)
def test_all_pods_of_a_gang_have_room_on_devices_together(parts, is_placed):
    world = World([sharing("b0/r0/n0", 2)], **SHARED)
    assert nodes_of(world, gang("g", *parts)) == ["n0"] * (len(parts) if is_placed else 0)


def test_the_verdict_says_that_no_device_has_room():
    pods = [running("a", 600, "n0"), running("b", 600, "n0")]
    world = World([sharing("b0/r0/n0", 2)], pods, **SHARED)
    assert nodes_of(world, gang("g", 500)) == []
    assert any(f"insufficient {PARTS} on one device" in said for said in world.reports)


def test_it_is_placed_once_a_pod_leaves_its_device():
    world = worn()
    world.put(running("c", 1000, "n1"), running("d", 1000, "n1"))
    pods = gang("g", 500)
    assert nodes_of(world, pods) == []
    world.delete(world.pods["uid-a"])
    world.tick()
    assert sorted(world.schedule(*pods).values()) == ["n0"]


def test_pods_on_a_node_that_offers_its_devices_later_count_on_them():
    pods = [running("a", 600, "n0"), running("b", 600, "n0")]
    world = World([node("b0/r0/n0")], pods, **SHARED)
    world.put(sharing("b0/r0/n0", 2))
    world.tick()
    assert nodes_of(world, gang("g", 500)) == []
    assert nodes_of(world, gang("h", 400)) == ["n0"]


def test_an_ordinary_pod_gets_no_device_that_a_gang_is_planned_on():
    world = World([sharing("b0/r0/n0", 2)], **SHARED)
    world.put(*gang("g", 600, 600))
    for parts, has_room in ((500, False), (400, True)):
        answer = world.filter(asking(pod("ordinary"), parts))
        assert isinstance(answer, Passed)
        assert ("n0" not in answer.without) == has_room


def test_after_a_restart_the_same_gangs_have_room():
    world = worn()
    world.put(*gang("g", 600, 600))
    again = World(world.engine.books.nodes.values(), world.pods.values(), **SHARED)
    for each in (world, again):
        assert nodes_of(each, gang("h", 500)) == []
