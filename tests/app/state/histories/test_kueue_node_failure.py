"""Nodes that fail under a gang, and which pods are replaced.

Kueue rewrites the assignment of a Workload, for one node at a time. Corral holds another node for
the pod that replaces the lost one, for any number of nodes at a time.
`test_kueue_no_replacement.py` has what happens where there is none; the five rows of the
interaction matrix are in `test_absent.py`.
Source: kueue pkg/controller/tas/node_controller.go (v0.16);
https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling "Hot swap support".
"""

from __future__ import annotations

import pytest

from app.kube.core.objects import Shape, Taint, Toleration
from app.state.effects import EmitEvent, Evict
from tests.app.state.failures import (
    BROKEN,
    change,
    each_slow_trigger,
    each_trigger,
    fail,
    remove,
    replace,
    running,
    terminate,
    where,
)
from tests.app.state.world import World, four_racks, members, racks
from tests.records import BLOCK, RACK, SLICE_LEVEL, SLICE_SIZE, group, node, pod

HINT = Taint("example.com/slow", "", "PreferNoSchedule")


# -- triggers --------------------------------------------------------------------------------------


@each_slow_trigger
def test_with_a_running_pod_on_it_the_node_is_not_replaced(trigger):
    world = running()
    trigger(world, where(world))
    for _ in range(20):
        world.tick(10.0)
    assert world.held == {}
    assert world.told(EmitEvent) == []


def test_a_node_that_is_deleted_is_replaced_at_once_though_its_pods_are_still_shown():
    world = running()
    bad = where(world)
    remove(world, bad)
    world.tick()
    (held,) = world.held.values()
    assert held != bad
    assert racks(world.held) == {bad[:2]}


def test_a_pod_alone_has_no_other_node_held_when_its_node_is_deleted():
    """No other member runs that its replacement would join: a search finds it a place anew."""
    world = running(pods=1)
    remove(world, where(world, "g0"))
    for _ in range(3):
        world.tick()
    assert world.held == {}
    assert not world.gang().placeholders


@each_trigger
def test_once_the_pod_there_terminates_another_node_is_held_at_once(trigger):
    world = running()
    bad = where(world)
    trigger(world, bad)
    terminate(world)
    world.tick()
    (held,) = world.held.values()
    assert held != bad
    assert racks(world.held) == {bad[:2]}


@each_trigger
@pytest.mark.parametrize("is_first_shown_ending", [False, True], ids=["at_once", "in_two_steps"])
def test_the_replacement_of_a_pod_that_has_gone_lands_on_another_node_of_the_domain(
    trigger, is_first_shown_ending
):
    world = running()
    bad = where(world)
    trigger(world, bad)
    if is_first_shown_ending:
        terminate(world)
    world.delete(world.pods["uid-g1"])
    world.tick()
    placed = replace(world)
    assert racks(placed) == {bad[:2]}
    assert bad not in placed.values()
    assert world.held == {}


@each_trigger
def test_the_replacement_of_a_pod_that_failed_lands_on_another_node_of_the_domain(trigger):
    world = running()
    bad = where(world)
    trigger(world, bad)
    fail(world)
    world.tick()
    placed = replace(world)
    assert racks(placed) == {bad[:2]}
    assert bad not in placed.values()


@each_trigger
def test_the_node_may_fail_after_the_pod_has(trigger):
    world = running()
    bad = where(world)
    fail(world)
    world.tick()
    assert list(world.held.values()) == [bad]  # nothing wrong with it so far
    trigger(world, bad)
    for _ in range(30):
        world.tick()
    (held,) = world.held.values()
    assert held != bad
    assert racks(world.held) == {bad[:2]}


def test_prefer_no_schedule_is_ignored():
    world = running()
    bad = where(world)
    change(world, bad, taints=(HINT,))
    fail(world)
    assert replace(world) == {"g1-new": bad}


def test_a_taint_that_is_tolerated_for_good_leaves_the_node_healthy():
    shape = Shape(tolerations=(Toleration("example.com/broken", "Exists", "", "NoExecute"),))
    world = running(shape=shape)
    bad = where(world)
    change(world, bad, taints=(BROKEN,))
    fail(world)
    assert replace(world, shape=shape) == {"g1-new": bad}


@each_slow_trigger
def test_a_pod_that_was_ending_before_its_node_failed_is_replaced_too(trigger):
    world = running()
    bad = where(world)
    terminate(world)
    world.tick()
    assert world.held == {}
    trigger(world, bad)  # and no kubelet will ever say that the pod has gone
    world.tick()
    (held,) = world.held.values()
    assert held != bad
    assert racks(world.held) == {bad[:2]}


def test_a_node_that_flaps_within_its_time_has_not_failed():
    world = running(replace_on_pod_termination=False)
    bad = where(world)
    for _ in range(10):
        change(world, bad, is_ready=False)
        world.tick(20.0)
        change(world, bad, is_ready=True)
        world.tick(5.0)
    assert world.held == {}


# Kueue waits until no pod of the Workload runs on the node; Corral replaces each pod as it ends.
def test_of_two_pods_on_a_failed_node_each_is_replaced_when_it_ends_itself():
    world = World(four_racks(), members("g", 4, gpus=4))
    world.schedule(*world.pods.values())
    bad = where(world)
    here = [each for each in world.pods.values() if each.node == bad]
    assert len(here) == 2
    change(world, bad, is_ready=False)
    for ended, each in enumerate(here, start=1):
        terminate(world, each.name)
        world.tick()
        assert len(world.held) == ended
    assert bad not in world.held.values()


def test_a_node_that_is_back_takes_the_replacement_where_nothing_was_found_meanwhile():
    world = running(pods=4)
    bad = where(world)
    change(world, bad, is_ready=False)
    fail(world)
    world.tick()
    assert world.held == {}
    change(world, bad, is_ready=True)
    assert replace(world, total=4) == {"g1-new": bad}


def test_a_planned_member_of_a_gang_that_has_begun_gets_another_node_in_the_domain():
    world = World(four_racks(), members("g", 3))
    nodes = {each.uid: world.filter(each).node for each in world.pods.values()}
    effects = [
        effect for uid, each in world.pods.items() for effect in world.bind(each, nodes[uid])
    ]
    world.confirm([effect for effect in effects if effect.uid == "uid-g0"])
    again = World(world.engine.books.nodes.values(), world.pods.values())
    bad = again.held["uid-g1"]
    remove(again, bad)
    for _ in range(20):
        again.tick()
    placed = again.schedule(again.pods["uid-g1"], again.pods["uid-g2"])
    assert len(placed) == 2
    assert racks(placed) == {nodes["uid-g0"][:2]}
    assert bad not in placed.values()


# -- several nodes at once -------------------------------------------------------------------------


def two_racks(nodes):
    return [node(f"b0/r{r}/n{r}{i:02}") for r in range(2) for i in range(nodes)]


@pytest.mark.parametrize("bad", range(1, 9))
@each_trigger
def test_any_number_of_nodes_may_fail_at_once_and_every_replacement_is_in_the_domain(trigger, bad):
    world = running(pods=8, nodes=two_racks(16))
    rack = racks({each.name: each.node for each in world.pods.values()})
    lost = [f"g{i}" for i in range(bad)]
    broken = {where(world, name) for name in lost}
    for name in lost:
        trigger(world, where(world, name))
    for name in lost:
        terminate(world, name)
        world.delete(world.pods[f"uid-{name}"])
    world.tick()
    if bad == 8:
        assert world.held == {}  # nobody is left to be replaced: the gang starts anew
    annotations = group("g", 8, RACK)
    world.put(*[pod(f"{name}-new", annotations=annotations) for name in lost])
    for _ in range(20):
        world.tick()
    placed = world.schedule(*[world.pods[f"uid-{name}-new"] for name in lost])
    assert len(placed) == bad
    assert not broken & set(placed.values())
    if bad < 8:
        assert racks(placed) == rack
    assert world.told(Evict) == []


SLICED = group("g", 6, BLOCK, **{SLICE_LEVEL: RACK, SLICE_SIZE: "2"})


@pytest.mark.parametrize("lost", range(6))
def test_the_replacement_of_a_sliced_pod_joins_what_is_left_of_its_slice_or_waits(lost):
    pods = [pod(f"g{i}", annotations=SLICED) for i in range(6)]
    world = World([node(f"b0/r{r}/n{r}{i}") for r in range(2) for i in range(4)], pods)
    world.schedule(*pods)
    world.tick()
    bad = where(world, f"g{lost}")
    is_full = sum(each.node[:2] == bad[:2] for each in world.pods.values()) == 4
    change(world, bad, is_ready=False)
    fail(world, f"g{lost}")
    placed = replace(world, f"g{lost}", annotations=SLICED)
    # The other rack has room for it, but a slice is never torn apart.
    assert racks(placed) == (set() if is_full else {bad[:2]})
    assert bad not in placed.values()


def test_a_slice_that_cannot_be_completed_in_its_rack_is_told_and_not_torn_apart():
    annotations = group("g", 4, BLOCK, **{SLICE_LEVEL: RACK, SLICE_SIZE: "4"})
    pods = [pod(f"g{i}", annotations=annotations) for i in range(4)]
    world = World(four_racks(), pods)
    world.schedule(*pods)
    bad = where(world)
    remove(world, bad)
    world.delete(world.pods["uid-g1"])
    assert replace(world, annotations=annotations) == {}
    assert world.held == {}
    world.tick(1.1)
    assert any("runs without 1 of its pods" in sentence for sentence in world.reports)


def test_a_place_that_is_owed_ends_with_the_last_pod_that_ran_and_the_gang_starts_anew():
    world = running()
    world.delete(world.pods["uid-g1"])
    world.tick()
    assert len(world.held) == 1
    annotations = group("g", 2, RACK)
    world.put(*[pod(f"n{i}", annotations=annotations) for i in range(2)])
    world.delete(world.pods["uid-g0"])
    for _ in range(20):
        world.tick()
    placed = world.schedule(*world.pods.values())
    assert len(placed) == 2
    assert len(racks(placed)) == 1
    assert world.held == {}
