"""Pods with more resources than are counted, when nodes begin to offer one of those left out."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import decode_pod
from app.kube.decoding.requests import MOST_RESOURCES
from app.kube.watch.events import Listed
from app.state.effects import ReadAgain
from app.state.filter_result import Failed
from app.state.journal.replay import replay
from app.state.objects.pod_lists import GATHER_SECONDS, RELIST_SECONDS
from tests.app.state.journal.test_journal import RecordedWorld
from tests.app.state.world import World, members
from tests.records import GPU, node

BARE = [
    msgspec.structs.replace(node(path), allocatable=(("cpu", 64_000), ("pods", 110)))
    for path in ("b0/r0/n00", "b0/r0/n01")
]
WITH_GPUS = node("b0/r0/n00", gpus=8)
NOT_READY = "Corral is not ready: it has not read the whole cluster yet"


def greedy(world: World, name: str = "greedy", made_up: int = MOST_RESOURCES, on: str = "n00"):
    """A pod on a node that it named itself, as the watch of this world reads it now."""
    asked = {f"a.com/r{at:04}": "1" for at in range(made_up)} | {GPU: "8"}
    container = {"name": "c", "resources": {"requests": asked}}
    pod = {
        "metadata": {"namespace": "other", "name": name, "uid": f"uid-{name}"},
        "spec": {"nodeName": on, "containers": [container]},
        "status": {"phase": "Running"},
    }
    raw = json.dumps(pod).encode()
    return decode_pod(raw, world.engine.dialects.keeps, offered=world.engine.books.axis)


def asked(world: World) -> list[ReadAgain]:
    return world.told(ReadAgain)


def listed(world: World, *pods: PodRecord) -> None:
    world.pods.update({each.uid: each for each in pods})
    world.apply(Listed("Pod", tuple(world.pods.values())))


def wait(world: World, seconds: float = 3 * RELIST_SECONDS) -> None:
    for _ in range(int(seconds)):
        world.tick(1.0)


def test_a_pod_read_after_a_node_offers_a_resource_is_counted_with_it():
    world = World([WITH_GPUS])
    world.put(greedy(world, made_up=1_000))
    world.put(*members("g", 1))
    wait(world)
    assert world.held == {}
    assert asked(world) == []


def test_pods_read_before_a_node_offers_a_resource_are_listed_once_more_and_then_counted():
    world = World(BARE)
    world.put(greedy(world))
    wait(world)
    assert asked(world) == []
    world.put(WITH_GPUS)
    wait(world)
    assert asked(world) == [ReadAgain("Pod")]
    listed(world, greedy(world))
    world.put(*members("g", 1))
    wait(world)
    assert world.held == {}
    assert asked(world) == [ReadAgain("Pod")]
    world.delete(world.pods["uid-greedy"])
    world.tick()
    assert world.held == {"uid-g0": "n00"}


def test_a_gang_that_was_planned_in_the_meantime_loses_its_plan():
    world = World(BARE)
    world.put(greedy(world), *members("g", 1))
    world.put(WITH_GPUS)
    world.tick()
    assert world.held == {"uid-g0": "n00"}
    listed(world, greedy(world))
    world.tick()
    assert world.held == {}


class Starting(World):
    """A world whose nodes are listed after its pods, as may be when Corral starts."""

    def apply(self, event):
        return [] if event in (Listed("Node", ()), Listed("Pod", ())) else super().apply(event)


@pytest.mark.parametrize("last", ["Node", "Pod"])
def test_at_the_start_nothing_is_planned_until_the_pods_are_counted_with_what_nodes_offer(last):
    world = Starting()
    gang = members("g", 1)
    early = (greedy(world), *gang)
    lists = [Listed("Pod", early), Listed("Node", (WITH_GPUS, BARE[1]))]
    for each in lists if last == "Node" else reversed(lists):
        world.apply(each)
    wait(world)
    assert asked(world) == [ReadAgain("Pod")]
    assert not world.engine.is_synced
    assert (world.held, world.filter(gang[0])) == ({}, Failed(NOT_READY))
    listed(world, greedy(world), *gang)
    wait(world)
    assert world.engine.is_synced
    assert world.held == {}
    world.delete(world.pods["uid-greedy"])
    world.tick()
    assert world.held == {"uid-g0": "n00"}


@pytest.mark.parametrize("change", ["goes", "is read anew"])
def test_at_the_start_a_pod_that_changes_before_the_list_is_in_keeps_nobody_waiting(change):
    world = Starting()
    early = greedy(world)
    listed(world, early, *members("g", 1))
    world.apply(Listed("Node", (WITH_GPUS, BARE[1])))
    assert not world.engine.is_synced
    if change == "goes":
        world.delete(early)
    else:
        world.put(greedy(world))
    world.tick()
    assert world.engine.is_synced
    assert world.held == ({"uid-g0": "n00"} if change == "goes" else {})
    wait(world)
    assert asked(world) == []


def test_once_started_corral_stays_ready_while_the_pods_are_listed_once_more():
    world = World(BARE)
    world.put(greedy(world))
    world.put(WITH_GPUS)
    assert world.engine.is_synced
    wait(world)
    assert world.engine.is_synced


def test_a_list_that_was_read_before_a_node_offered_a_resource_is_not_enough():
    world = World(BARE)
    early = greedy(world)
    world.put(WITH_GPUS)
    wait(world)
    assert asked(world) == []
    listed(world, early)
    wait(world)
    assert asked(world) == [ReadAgain("Pod")]


def test_a_pod_that_is_gone_or_has_ended_is_no_reason_for_a_list():
    world = World(BARE)
    world.put(greedy(world, "gone"), greedy(world, "ended"))
    world.delete(world.pods["uid-gone"])
    world.put(msgspec.structs.replace(world.pods["uid-ended"], phase="Succeeded"))
    world.put(WITH_GPUS)
    wait(world)
    assert asked(world) == []
    assert world.engine.part_counted.then_of == {}


@pytest.mark.parametrize(
    "made_up", [pytest.param(0, id="few"), pytest.param(MOST_RESOURCES - 1, id="as_many_as_count")]
)
def test_pods_that_are_counted_in_full_are_no_reason_for_a_list(made_up):
    world = World(BARE)
    world.put(greedy(world, made_up=made_up))
    world.put(WITH_GPUS)
    wait(world)
    assert asked(world) == []
    world.put(*members("g", 1))
    assert world.held == {}


def test_a_tenant_cannot_have_the_pods_listed_all_the_time():
    world = World([WITH_GPUS, BARE[1]])
    for number in range(100):
        world.put(greedy(world, f"greedy-{number}", on="n01"))
        world.put(WITH_GPUS, BARE[1])
        world.tick(1.0)
    assert asked(world) == []


def test_resources_that_come_soon_after_one_another_are_one_list_and_lists_are_far_apart():
    world = World(BARE)
    world.put(greedy(world))
    asked_after = []  # seconds
    for number in range(60):
        more = tuple((f"b.com/r{each:04}", 1) for each in range(number))
        world.put(msgspec.structs.replace(BARE[1], allocatable=(*BARE[1].allocatable, *more)))
        if ReadAgain("Pod") in world.tick(GATHER_SECONDS):
            asked_after.append(number * GATHER_SECONDS)
            listed(world, greedy(world))
    first, second = asked_after
    assert second - first == RELIST_SECONDS


def test_a_journal_of_such_pods_plays_again():
    world = RecordedWorld(BARE)
    world.put(greedy(world))
    world.put(WITH_GPUS)
    wait(world)
    listed(world, greedy(world))
    world.put(*members("g", 1))
    world.tick()
    assert ReadAgain("Pod") in world.effects
    assert list(replay(world.lines)) == []
