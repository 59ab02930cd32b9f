"""Ordinary pods that are shown a sample of the nodes, all of them held or kept for a gang."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.kube.core.objects import Taint
from app.state.effects import Requeue
from app.state.filter_result import Passed
from app.state.pods.samples import MOST_SAMPLES
from tests.app.state.world import World, members
from tests.records import node, pod

SAMPLE = 100  # nodes that kube-scheduler looks for at most, of all
HELD = [f"n0{at:03}" for at in range(SAMPLE)]  # for a gang, in rack 0
OTHERS = [f"n1{at:03}" for at in range(SAMPLE + 1)]  # in rack 1
FOREIGN = (Taint("team", "a", "NoSchedule"),)
STARVED = {"starvation_seconds": 60.0, "earmarked_nodes": len(OTHERS), "earmark_seconds": 86_400.0}
PLAIN = pod("plain")


def two_racks(taints=()):
    return [
        *(node(f"b0/r0/{name}") for name in HELD),
        *(node(f"b0/r1/{name}", taints=taints) for name in OTHERS),
    ]


def beside_a_gang(*pods, **settings):
    """Rack 0 is held for a gang that waits for kube-scheduler, and an ordinary pod comes."""
    world = World(two_racks(), [*members("g", SAMPLE), *pods], **settings)
    assert set(world.held.values()) == set(HELD)
    world.put(PLAIN)
    return world


def beside_a_starving_gang():
    """Rack 0 is kept for a gang, and of rack 1 neither tolerates the taint."""
    runs = pod("runs", on=HELD[0], phase="Running")
    world = World(two_racks(FOREIGN), [runs, *members("big", SAMPLE)], **STARVED)
    world.tick(61.0)
    world.tick()
    assert world.engine.starvation.nodes() == set(HELD)
    world.put(PLAIN)
    return world


def requeues(world):
    return [each for each in world.told(Requeue) if each.uid == PLAIN.uid]


def asked(world, sample=HELD):
    answer = world.filter(PLAIN, sample)
    assert isinstance(answer, Passed)
    assert answer.without >= set(sample)


def tried_for(world, seconds):
    """When the pod is requeued, if each of its samples is held; kube-scheduler tries it at once."""
    asked(world)
    found, began, until = [], world.now, world.now + seconds
    while world.now < until:
        before = len(requeues(world))
        world.tick(0.5)
        if len(requeues(world)) > before:
            found.append(world.now - began)
            asked(world)
    return found


def test_where_another_node_has_room_the_pod_is_requeued_for_another_sample():
    world = beside_a_gang()
    asked(world)
    world.tick()
    assert len(requeues(world)) == 1
    assert world.filter(PLAIN, OTHERS).without.isdisjoint(OTHERS)


@pytest.mark.parametrize("sample", [HELD[:-1], [*HELD, *OTHERS]], ids=["fewer", "all"])
def test_one_that_was_shown_all_that_there_are_is_not(sample):
    world = beside_a_gang(*(pod(f"o{name}", on=name, phase="Running") for name in OTHERS))
    assert world.filter(PLAIN, sample).without >= set(HELD[:-1])
    world.tick()
    assert requeues(world) == []


def test_nodes_that_are_closed_to_the_pod_are_no_room_for_it():
    """Rack 1 is kept for a gang that starves: its first node has a pod that ends some day."""
    runs = pod("runs", on=OTHERS[0], phase="Running")
    world = World(two_racks(), [runs, *members("big", len(OTHERS))], **STARVED)
    world.tick(61.0)
    world.tick()
    assert world.engine.starvation.nodes() == set(OTHERS)
    world.put(*members("g", SAMPLE))
    assert set(world.held.values()) == set(HELD)
    world.put(PLAIN)
    asked(world)
    world.tick()
    assert requeues(world) == []


@pytest.mark.slow
def test_a_pod_that_no_sample_helps_is_requeued_so_often_and_ever_later():
    """The room is on nodes that it does not tolerate: no sample of it ever has them."""
    world = beside_a_starving_gang()
    times = tried_for(world, 900.0)
    assert len(times) == MOST_SAMPLES
    pauses = [after - before for before, after in pairwise(times)]
    assert times[0] <= 1.0
    assert pauses[0] < pauses[3] < pauses[-1]
    assert times[-1] < 800.0


def test_it_is_woken_all_the_same_when_a_node_is_freed():
    world = beside_a_starving_gang()
    for _ in range(MOST_SAMPLES):
        asked(world)
        world.tick(60.0)
    before = len(requeues(world))
    asked(world)
    world.delete(world.pods["uid-runs"], *(world.pods[f"uid-big{at}"] for at in range(SAMPLE)))
    world.tick()
    assert len(requeues(world)) == before + 1
