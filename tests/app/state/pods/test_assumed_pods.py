"""What ordinary pods meet: everything but what is held for gangs."""

from __future__ import annotations

import msgspec

from app.kube.watch.events import Applied
from app.state.effects import Bind, BindFailed, RejectBind
from app.state.filter_result import Passed
from app.state.pods.assumed_pods import IN_FLIGHT_SECONDS
from tests.app.state.world import World, four_racks, members, racks
from tests.records import RACK, REQUIRED, node, pod


def test_an_ordinary_pod_passes_with_every_node():
    world = World(four_racks())
    assert world.filter(pod("plain")) == Passed()


def test_an_ordinary_pod_loses_the_nodes_where_it_would_eat_held_capacity():
    world = World(four_racks())
    gang = members("g", 4, gpus=6)
    world.put(*gang)
    held = frozenset(world.held.values())
    assert world.filter(pod("big", gpus=4)) == Passed(without=held)
    assert world.filter(pod("small", gpus=2)) == Passed()


def test_an_ordinary_pod_that_reaches_bind_after_its_node_was_held_is_refused():
    world = World([node("b0/r0/n00")])
    plain = pod("plain")
    world.put(plain)
    assert world.filter(plain) == Passed()
    world.put(*members("g", 1))
    assert [type(effect) for effect in world.bind(plain, "n00")] == [RejectBind]


def test_an_ordinary_pod_that_fits_beside_what_is_held_is_bound():
    world = World([node("b0/r0/n00")])
    plain = pod("plain", gpus=2)
    world.put(plain)
    world.filter(plain)
    world.put(*members("g", 1, gpus=6))
    assert world.held == {"uid-g0": "n00"}
    assert [type(effect) for effect in world.bind(plain, "n00")] == [Bind]


def test_ordinary_pods_are_bound_to_a_node_that_the_watch_has_not_shown_yet():
    """Nothing can be held for a gang there; kube-scheduler has heard of the node before Corral."""
    world = World()
    pods = [pod(name, gpus=4) for name in "ab"]
    world.put(*pods)
    assert all(world.filter(each, ["new"]) == Passed() for each in pods)
    assert [type(world.bind(each, "new")[0]) for each in pods] == [Bind, Bind]


def test_ordinary_pods_are_bound_to_a_node_that_is_newer_than_the_trees():
    world = World()
    pods = [pod(name, gpus=4) for name in "abc"]
    world.put(*pods)
    assert all(world.filter(each, ["new"]) == Passed() for each in pods)
    engine = world.engine  # by itself: after each step the world brings the trees up to date
    engine.apply(Applied(node("b0/r0/new")), world.now)
    sent = [engine.bind_arrived("default", each.name, each.uid, "new", world.now) for each in pods]
    assert [type(effects[0]) for effects in sent] == [Bind, Bind, RejectBind]


def test_capacity_of_an_ordinary_pod_on_its_way_is_not_planned_for_a_gang():
    world = World([node("b0/r0/n00")])
    plain = pod("plain")
    world.put(plain)
    world.filter(plain)
    assert [type(effect) for effect in world.bind(plain, "n00")] == [Bind]
    world.put(*members("g", 1))
    assert "uid-g0" not in world.held


def test_a_failed_bind_of_an_ordinary_pod_gives_its_capacity_back():
    world = World([node("b0/r0/n00")])
    plain = pod("plain")
    world.put(plain)
    world.filter(plain)
    world.bind(plain, "n00")
    world.engine.bind_finished(plain.uid, BindFailed("gone", is_gone=True), world.now)
    assert world.held == {}


def test_the_node_of_an_ordinary_pod_on_its_way_is_held_until_its_time_is_over():
    world = World([node("b0/r0/n00")])
    plain = pod("plain")
    world.put(plain)
    world.filter(plain)
    world.bind(plain, "n00")
    world.tick(IN_FLIGHT_SECONDS - 1.0)
    assert set(world.held) == {"uid-plain"}
    world.tick(1.0)
    assert world.held == {}


def test_the_same_bind_of_an_ordinary_pod_again_is_sent_again():
    world = World([node("b0/r0/n00")])
    plain = pod("plain")
    world.put(plain)
    world.filter(plain)
    for _ in range(2):
        assert [type(effect) for effect in world.bind(plain, "n00")] == [Bind]


def test_an_ordinary_pod_that_asks_again_gives_its_earlier_node_back():
    world = World([node("b0/r0/n00")])
    plain = pod("plain")
    world.put(plain)
    world.filter(plain)
    world.bind(plain, "n00")
    world.put(*members("g", 1))
    assert set(world.held) == {"uid-plain"}
    world.filter(plain)
    world.tick()
    assert set(world.held) == {"uid-g0"}


def test_an_ordinary_pod_that_found_everything_held_is_woken_when_the_hold_ends():
    world = World([node("b0/r0/n00")])
    (member,) = members("g", 1)
    world.put(member)
    plain = pod("plain")
    world.put(plain)
    assert world.filter(plain) == Passed(frozenset({"n00"}))
    world.tick()
    assert world.woken == []
    world.delete(member)
    world.tick()
    assert world.woken == ["plain"]
    world.tick()
    assert world.woken == ["plain"]


def test_an_ordinary_pod_is_not_woken_for_a_hold_that_ended_where_it_does_not_fit():
    world = World([node("b0/r0/n00"), node("b0/r1/n10", gpus=2)])
    large, small = members("large", 1), members("small", 1, gpus=2)
    world.put(*large, *small)
    plain = pod("plain", gpus=4)
    world.put(plain)
    world.filter(plain, ["n00"])
    world.delete(*small)
    world.tick()
    assert world.woken == []


def test_an_ordinary_pod_that_is_gone_is_not_woken():
    world = World([node("b0/r0/n00")])
    (member,) = members("g", 1)
    plain = pod("plain")
    world.put(member, plain)
    world.filter(plain)
    world.delete(plain)
    world.delete(member)
    world.tick()
    assert world.woken == []


def test_a_pod_that_passed_filter_before_a_restart_counts_with_what_the_watch_shows_of_it():
    world = World([node("b0/r0/n00"), node("b0/r1/n10")])
    large, small = pod("large", gpus=8), pod("small", gpus=2)
    world.put(*members("g", 1, gpus=6), large, small)
    (held,) = world.held.values()
    assert [type(effect) for effect in world.bind(large, held)] == [RejectBind]
    assert [type(effect) for effect in world.bind(small, held)] == [Bind]


def test_a_gang_of_one_is_not_told_to_wait_for_all_of_its_pods():
    gates = ("corral.dev/gang", "example.com/x")
    world = World(four_racks(), [pod("alone", annotations={REQUIRED: RACK}, gates=gates)])
    assert world.gang().reporting.sentence == "gang default/alone waits until its pod is ungated"


def test_a_pod_on_its_way_that_is_made_a_member_is_planned_with_its_gang():
    world = World(four_racks())
    plain = pod("g0")
    world.put(plain)
    world.filter(plain)
    assert [type(effect) for effect in world.bind(plain, "n00")] == [Bind]
    gang = members("g", 2)
    world.put(*gang)
    world.tick()
    assert world.held.keys() == {"uid-g0", "uid-g1"}


def test_the_binding_of_a_pod_that_became_a_member_pins_the_others():
    world = World(four_racks())
    plain = pod("g0")
    world.put(plain)
    world.filter(plain)
    world.bind(plain, "n30")
    gang = members("g", 2)
    world.put(*gang)
    world.tick()
    world.put(msgspec.structs.replace(gang[0], node="n30", phase="Running"))
    world.tick()
    assert racks({**world.held, "g0": "n30"}) == {"n3"}


def test_an_ordinary_pod_whose_whole_sample_is_held_is_tried_again_with_the_next_one():
    nodes = [node(f"b0/r{at // 10}/n{at:03}") for at in range(300)]
    world = World(nodes)
    gang = members("g", 150, required=None)
    world.put(*gang)
    world.tick()
    held = set(world.held.values())
    large = pod("large", gpus=8)
    world.put(large)
    sample = sorted(held)[: 300 * 48 // 100]  # by kube-scheduler's adaptive rule
    assert world.filter(large, sample).without >= set(sample)
    world.tick()
    assert world.woken == ["large"]


def test_an_ordinary_pod_that_has_room_nowhere_beside_what_is_held_waits():
    nodes = [node(f"b0/r{at // 10}/n{at:03}") for at in range(150)]
    world = World(nodes)
    world.put(*members("g", 150, required=None))
    world.tick()
    large = pod("large", gpus=8)
    world.put(large)
    world.filter(large, sorted(world.held.values())[:100])  # as many as are sampled at least
    world.tick()
    assert world.woken == []
