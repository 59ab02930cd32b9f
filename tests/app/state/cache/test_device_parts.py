"""What is left of each device that pods share, as the bookings of a node change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.kube.core.objects import NodeRecord, PodRecord
from app.state.cache.device_parts import NODES_AT_ONCE
from tests.app.state.journal.test_journal import RecordedWorld
from tests.app.state.world import Names, World
from tests.records import node, pod

PARTS = "example.com/gpu-milli"
SHARED = {"fewest_fragments": True, "device_parts": ((PARTS, 1000),)}


def sharing(path: str, gpus: int = 4) -> NodeRecord:
    amounts = (("cpu", 64_000), (PARTS, 1000 * gpus), ("pods", 110))
    return replace(node(path), allocatable=tuple(sorted(amounts)))


def asks(name: str, parts: int, on: str = "") -> PodRecord:
    request = tuple(sorted((("cpu", 1000), (PARTS, parts), ("pods", 1))))
    return replace(pod(name, on=on, phase="Running" if on else "Pending"), request=request)


def world_of(*pods: PodRecord, **settings) -> World:
    nodes = [sharing("b0/r0/n0"), sharing("b0/r0/n1"), sharing("b0/r1/n2"), node("b0/r1/n3")]
    return World(nodes, pods, **{**SHARED, **settings})


def devices(world: World, name: str) -> list[int]:
    """What is left of each device of a node, the most first."""
    world.tick()
    tree = world.engine.scoring._topology().tree
    (found,) = world.engine.device_parts.devices(tree)
    column: list[int] = found.left[:, tree.slot_of[name]].tolist()
    return [*column, 0, 0][:4]


def test_devices_follow_pods_that_come_change_and_go():
    world = world_of(asks("a", 300, "n0"))
    assert devices(world, "n0") == [1000, 1000, 1000, 700]
    world.put(asks("b", 600, "n0"), asks("c", 2000, "n0"))
    assert devices(world, "n0") == [1000, 100, 0, 0]
    world.delete(world.pods["uid-a"])
    assert devices(world, "n0") == [1000, 400, 0, 0]
    world.put(asks("b", 900, "n0"))
    assert devices(world, "n0") == [1000, 100, 0, 0]
    assert devices(world, "n1") == [1000] * 4


def test_devices_follow_nodes_that_change_go_and_come_back():
    world = world_of(asks("a", 300, "n0"))
    world.put(sharing("b0/r0/n0", gpus=2), sharing("b0/r9/n9", gpus=1))
    assert devices(world, "n0") == [1000, 700, 0, 0]
    assert devices(world, "n9") == [1000, 0, 0, 0]
    gone = world.engine.books.nodes["n0"]
    world.delete(gone)
    world.tick()
    world.put(gone)
    assert devices(world, "n0") == [1000, 700, 0, 0]


def test_nodes_without_such_devices_or_with_too_many_have_none():
    world = world_of()
    world.put(sharing("b0/r0/n1", gpus=17))
    assert devices(world, "n3") == devices(world, "n1") == [0] * 4


steps = st.lists(
    st.tuples(
        st.integers(0, 5), st.sampled_from([0, 200, 500, 900, 1000, 2000]), st.integers(0, 2)
    ),
    max_size=12,
)


@pytest.mark.slow
@given(steps)
def test_after_a_restart_the_devices_are_the_same(history):
    world = world_of()
    for number, parts, slot in history:
        name = f"p{number}"
        if parts == 0:
            if f"uid-{name}" in world.pods:
                world.delete(world.pods[f"uid-{name}"])
        else:
            world.put(asks(name, parts, f"n{slot}"))
    again = world_of(*world.pods.values())
    for name in ("n0", "n1", "n2"):
        assert devices(world, name) == devices(again, name)


def test_many_nodes_are_looked_at_one_tick_after_another():
    nodes = [sharing(f"b0/r{at // 20}/n{at}") for at in range(3 * NODES_AT_ONCE)]
    world = World(nodes, **SHARED)
    waiting = world.engine.books.rebooked
    assert len(waiting) == 2 * NODES_AT_ONCE  # the world begins with a tick
    world.tick()
    assert len(waiting) == NODES_AT_ONCE
    world.tick()
    assert not waiting


@pytest.mark.parametrize("setting", [{"device_parts": ()}, {"fewest_fragments": False}])
def test_nothing_is_noted_where_no_devices_are_shared(setting):
    world = world_of(asks("a", 300, "n0"), **setting)
    assert world.engine.books.rebooked is None


def scores(world: World, parts: int) -> dict[str, int]:
    names = tuple(world.engine.books.nodes)
    given = world.inputs.prioritize(asks("asks", parts), Names(names), world.now)
    return dict(zip(names, given, strict=True))


def test_a_part_goes_to_a_device_in_use_before_it_breaks_a_whole_one():
    """n0 and n2 have as much free; on n2 it is a part of one device, and the rest is whole."""
    pods = [
        *(asks(f"a{at}", 500, "n0") for at in range(2)),
        asks("b", 600, "n2"),
        asks("c", 1000, "n1"),
        asks("d", 1000, "n1"),
    ]
    found = scores(world_of(*pods), 300)
    assert found["n2"] == 10 > max(found["n0"], found["n1"])


def test_a_journal_with_simulators_between_gives_the_same_scores():
    """What they ask is not in the journal, and may not change what is."""
    asked, told = [], []
    for is_asked in (False, True):
        world = RecordedWorld([sharing(f"b0/r{at}/n{at}") for at in range(6)], **SHARED)
        for number in range(40):
            on, parts = f"n{number % 5}", (300, 700, 1000)[number % 3]
            world.put(asks(f"p{number}", parts, on))
            if is_asked:
                names = tuple(world.engine.books.nodes)
                asked.append(world.engine.scoring.unchanged(asks("x", 100 + number), names))
            told.append(scores(world, 200))
    assert told[:40] == told[40:]
    assert any(map(any, asked))
