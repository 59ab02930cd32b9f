"""The books: what counts, where, and for how long."""

from __future__ import annotations

import msgspec
import pytest

from tests.app.state.world import World, four_racks, members
from tests.records import (
    node,
    pod,
)


def test_pods_of_other_schedulers_are_counted():
    world = World([node("b0/r0/n00"), node("b0/r0/n01")])
    world.put(pod("foreign", on="n00", scheduler="someone-else"))
    gang = members("g", 2)
    world.put(*gang)
    assert world.held == {}


def test_all_pods_gone_leaves_the_books_empty():
    world = World(four_racks())
    gangs = [*members("a", 4), *members("b", 3), *members("c", 5)]
    world.put(*gangs)
    world.schedule(*gangs)
    world.delete(*list(world.pods.values()))
    world.tick()
    cluster = world.engine.books
    assert (cluster.bound, cluster.held, world.engine.gangs.by_key) == ({}, {}, {})
    assert not any(topology.capacity.used.any() for topology in cluster.topologies.values())


def test_a_finished_pod_takes_nothing():
    running = pod("f", on="n00", phase="Running")
    world = World([node("b0/r0/n00")], [running])
    world.put(*members("g", 1))
    assert world.held == {}
    world.put(msgspec.structs.replace(running, phase="Succeeded"))
    world.tick()
    assert world.held == {"uid-g0": "n00"}


def test_capacity_held_on_a_node_is_counted_when_the_node_joins_a_topology():
    bare = node("n00")
    world = World([bare])
    world.put(*members("g", 1, required=None))
    labelled = msgspec.structs.replace(node("b0/r0/n00"))
    world.put(labelled)
    world.put(*members("h", 1))
    assert set(world.held) == {"uid-g0"}


def test_what_a_node_offers_from_now_on_counts_at_once():
    world = World([node("b0/r0/n00", gpus=4)])
    world.put(*members("g", 1))
    assert world.held == {}
    world.put(node("b0/r0/n00", gpus=8))
    world.tick()
    assert world.held == {"uid-g0": "n00"}


def test_a_node_that_could_not_be_read_takes_no_pods():
    broken = msgspec.structs.replace(node("b0/r0/n00"), problem="node n00: no such amount")
    world = World([broken])
    world.put(*members("g", 1))
    assert world.held == {}


def test_a_pod_that_is_booked_cannot_be_held_as_well():
    world = World([node("b0/r0/n00"), node("b0/r0/n01")], [pod("bound", on="n00")])
    world.put(*members("g", 1))
    for uid in ("uid-bound", "uid-g0"):
        with pytest.raises(ValueError, match=f"pod {uid} is booked already"):
            world.engine.books.hold(uid, "n01", (1,))
    assert world.engine.differences() == []


def test_pods_bound_by_name_with_absurd_requests_break_nothing():
    world = World([node("b0/r0/n00")])
    world.put(*(pod(f"x{i}", on="n00", cpu=2**61, gpus=2**61) for i in range(20)))
    world.put(*members("g", 1))
    assert world.held == {}


@pytest.mark.parametrize(
    ("blocks", "told"),
    [
        pytest.param(4, "domains: b0/r, b1/r, b2/r, b3/r", id="all_of_four"),
        pytest.param(5, "domains: b0/r, b1/r, b2/r, b3/r, …", id="four_of_five"),
    ],
)
def test_a_value_under_many_parents_is_told_with_at_most_four_of_its_paths(blocks, told):
    world = World([node(f"b{block}/r/n{block}") for block in range(blocks)])
    (warning,) = world.engine.warnings()
    assert warning.endswith(told)
