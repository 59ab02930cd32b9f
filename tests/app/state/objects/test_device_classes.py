"""Resources that kube-scheduler takes from drivers by claims: no node counts them."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.dialects.devices.dialect import DeviceClassRecord, decode_device_class
from app.dialects.registry import DIALECTS
from app.state.filter_result import Passed, Pinned, Rejected
from tests.app.state.world import World, members
from tests.records import node, pod

DEVICE = "example.com/gpu"
BY_CLASS = "deviceclass.resource.kubernetes.io/gpu.example.com"


def device_class(resource=DEVICE):
    return DeviceClassRecord("DeviceClass", "", "gpu.example.com", "uid-class", "1", resource)


def know(world, record):
    world.put(record)
    world.tick()


def asking(record, resource=DEVICE, amount=4):
    """The pod with so many devices beside what it requests."""
    request = tuple(sorted((*record.request, (resource, amount))))
    return msgspec.structs.replace(record, request=request)


def gang_of(pods, resource=DEVICE, **more):
    return [asking(each, resource) for each in members("g", pods, gpus=0, cpu=8_000, **more)]


def offering(name, amount):
    """A node whose device plugin counts the devices."""
    its = node(f"b0/r0/{name}", cpu=8_000)
    return msgspec.structs.replace(
        its, allocatable=tuple(sorted((*its.allocatable, (DEVICE, amount))))
    )


def test_a_class_is_read_with_both_names_of_its_devices():
    document = {
        "metadata": {"name": "gpu.example.com", "uid": "uid-class", "resourceVersion": "1"},
        "spec": {"selectors": [{"cel": {"expression": "true"}}], "extendedResourceName": DEVICE},
    }
    record = decode_device_class(json.dumps(document).encode())
    assert record == device_class()
    assert DIALECTS.claimed(record) == (BY_CLASS, DEVICE)
    del document["spec"]
    assert DIALECTS.claimed(decode_device_class(json.dumps(document).encode())) == (BY_CLASS,)


def two_nodes():
    return [node(f"b0/r0/n{i}", cpu=8_000) for i in range(2)]


@pytest.mark.parametrize("resource", [DEVICE, BY_CLASS])
def test_a_gang_that_requests_devices_of_a_class_is_placed_by_what_else_it_requests(resource):
    world = World(two_nodes())
    know(world, device_class())
    gang = gang_of(2, resource)
    world.put(*gang)
    assert sorted(world.held.values()) == ["n0", "n1"]
    assert sorted(world.schedule(*gang).values()) == ["n0", "n1"]


def test_a_gang_that_waits_is_placed_once_there_is_a_class():
    world = World(two_nodes(), gang_of(2))
    assert world.held == {}
    know(world, device_class())
    assert sorted(world.held.values()) == ["n0", "n1"]


def test_a_class_that_has_gone_or_names_another_resource_gives_no_place_any_more():
    for change in (World.delete, lambda world, _: know(world, device_class("example.com/tpu"))):
        world = World(two_nodes())
        know(world, device_class())
        change(world, device_class())
        world.tick()
        gang = gang_of(2)
        world.put(*gang)
        assert isinstance(answer := world.filter(gang[0]), Rejected)
        assert DEVICE in answer.sentence


def test_one_that_finds_no_place_is_told_that_claims_are_not_counted():
    world = World(two_nodes())
    know(world, device_class())
    gang = gang_of(3)
    world.put(*gang)
    assert isinstance(answer := world.filter(gang[0]), Rejected)
    assert "resource claims of its pods are not counted" in answer.sentence


def test_an_ordinary_pod_with_such_devices_has_what_a_gang_leaves_it():
    world = World([node("b0/r0/n0", cpu=64_000)])
    know(world, device_class())
    world.put(*members("g", 2, gpus=1))
    assert world.held == {"uid-g0": "n0", "uid-g1": "n0"}
    lone = asking(pod("p", gpus=0))
    world.put(lone)
    assert world.filter(lone) == Passed()
    assert [effect.node for effect in world.bind(lone, "n0")] == ["n0"]


def test_where_some_nodes_count_them_what_runs_there_is_counted_from_then_on():
    running = asking(pod("p", gpus=0, on="n1"))
    world = World([node("b0/r0/n1", cpu=8_000)], [running])
    know(world, device_class())
    bound_later = asking(pod("q", gpus=0, on="n1"))
    world.put(bound_later)
    world.put(offering("n1", 12))
    row = world.engine.books.axis.row(DEVICE)
    capacity = world.engine.books.topologies[""].capacity
    assert capacity.used[row].tolist() == [8]
    gang = [asking(each) for each in members("g", 2, gpus=0)]
    world.put(gang[0], gang[1])
    assert world.held == {}  # the third four of twelve are free, and not the fourth
    world.delete(bound_later)
    world.tick()
    assert list(world.held.values()) == ["n1", "n1"]
    assert world.filter(gang[0]) == Pinned("n1")


def test_what_device_plugins_count_is_claimed_once_no_node_has_any_of_it():
    world = World([offering("n0", 0), offering("n1", 4)])
    know(world, device_class())
    gang = gang_of(2)
    world.put(*gang)
    assert world.held == {}  # by the plugin there are four devices
    know(world, offering("n1", 0))
    assert sorted(world.held.values()) == ["n0", "n1"]
    for each in gang:
        know(world, offering(world.held[each.uid], 0))  # what is held there is not too much
    assert sorted(world.schedule(*gang).values()) == ["n0", "n1"]


@pytest.mark.parametrize("change", [World.delete, World.put])
def test_what_device_plugins_count_is_claimed_once_the_last_such_node_has_gone(change):
    world = World([node("b0/r0/n0", cpu=16_000), offering("n1", 4)])
    know(world, device_class())
    gang = gang_of(2)
    world.put(*gang)
    assert world.held == {}
    change(world, msgspec.structs.replace(offering("n1", 0), is_unschedulable=True))
    world.tick()
    assert list(world.held.values()) == ["n0", "n0"]


def test_what_others_run_with_leaves_a_gang_its_place_where_devices_are_claimed():
    running = asking(pod("p", gpus=0, on="n0"))
    world = World([offering("n0", 4), node("b0/r0/n1", cpu=64_000)], [running])
    know(world, device_class())
    know(world, node("b0/r0/n0", cpu=64_000))  # without its plugin, and with what ran by it
    lone = asking(pod("q", gpus=0))
    world.put(lone, *gang_of(2))
    assert len(world.held) == 2
    assert world.filter(lone) == Passed()
