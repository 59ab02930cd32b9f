"""Places held for lost pods: no more than a namespace runs, beyond what it may have held at all."""

from __future__ import annotations

import msgspec
import pytest

from tests.app.state.fairness.test_absent_pods import NONE, quota
from tests.app.state.lost import failed, replacement, started
from tests.app.state.world import World, four_racks
from tests.records import group, pod


def pair(number: int, namespace: str = "default"):
    """A gang of a pod that requests next to nothing, and one that takes a whole node."""
    said = group(f"g{number}", 2)
    pods = [
        pod(f"small{number}", gpus=0, cpu=1, annotations=said),
        pod(f"large{number}", gpus=8, annotations=said),
    ]
    return [msgspec.structs.replace(each, namespace=namespace) for each in pods]


def with_pairs_that_failed(pairs: int, **settings) -> World:
    """One pair after the other runs, and its large pod fails; nobody makes another."""
    world = World(four_racks(), **settings)
    for number in range(pairs):
        small, large = pair(number)
        world.put(small, large)
        world.tick()
        world.schedule(small, large)
        world.put(failed(world, large.uid))
        world.tick()
    return world


@pytest.mark.parametrize(("most", "held"), [(0, 0), (2, 2), (32, 6)])
def test_pods_that_fail_one_after_the_other_have_so_many_places_held(most, held):
    limits = {**NONE, "absent_pods_per_namespace": most}
    assert len(with_pairs_that_failed(6, **limits).held) == held


def test_places_are_held_for_as_much_as_runs_beside_the_bound():
    world = started(total=4, **NONE)
    for uid in ("uid-g1", "uid-g2", "uid-g3"):
        world.delete(world.pods[uid])
        world.tick()
    assert len(world.held) == 2  # one runs when the third goes


def test_a_place_that_is_taken_counts_no_more():
    world = started(total=4, **NONE)
    for number in range(8):
        lost = next(each for each in world.pods.values() if each.node)
        world.delete(lost)
        again = replacement(f"new{number}")
        world.put(again)
        world.tick()
        assert world.schedule(again) == {again.name: lost.node}
    assert world.engine.owed_places.held == {}


@pytest.mark.parametrize(("gpus", "held"), [(31, 0), (32, 1)])
def test_with_what_runs_the_places_stay_within_the_quota(gpus, held):
    world = started(total=4)
    world.put(quota(gpus=gpus, used=32))  # the lost pod's is counted as used for a while
    world.delete(world.pods["uid-g1"])
    world.tick()
    assert len(world.held) == held


def test_another_namespace_has_its_own():
    world = with_pairs_that_failed(3, **NONE)
    other = pair(9, "other")
    world.put(*other)
    world.tick()
    assert len(world.held) == 2
