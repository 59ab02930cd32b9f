"""The barrier at /bind: who waits there, what opens it, and what leaders before left behind."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from app.state.effects import Bind, BindFailed
from app.state.filter_result import Pinned, Rejected
from app.state.gang.gang import Phase
from tests.app.state.world import World, four_racks, members, racks
from tests.records import RACK, group, pod


def at_bind(pods=3, **settings):
    """A world and its gang, every member pinned: uid -> node."""
    world = World(four_racks(), members("g", pods), **settings)
    for each in world.pods.values():
        assert isinstance(world.filter(each), Pinned)
    return world, dict(world.held)


def arrive(world, uid, nodes):
    return world.bind(world.pods[uid], nodes[uid])


def bound_by(effects):
    return {effect.uid: effect.node for effect in effects if isinstance(effect, Bind)}


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_bindings_that_fail_stay_owed_and_their_pods_come_back_to_the_same_nodes(failures):
    world, nodes = at_bind()
    effects = [effect for uid in nodes for effect in arrive(world, uid, nodes)]
    assert bound_by(effects) == nodes
    failed = sorted(nodes)[:failures]
    for uid in failed:
        world._take(world.engine.bind_finished(uid, BindFailed("503"), world.now))
    world.confirm([effect for effect in effects if effect.uid not in failed])
    world.tick()
    assert world.held == {uid: nodes[uid] for uid in failed}
    stranger = pod("stranger")
    assert set(world.held.values()) <= world.filter(stranger).without
    assert world.schedule(*[world.pods[uid] for uid in failed]) == {
        world.pods[uid].name: nodes[uid] for uid in failed
    }
    world.tick()
    assert world.gang().phase is Phase.RUNNING


def test_a_gang_of_which_every_binding_failed_waits_for_all_again():
    world, nodes = at_bind()
    for uid in nodes:
        arrive(world, uid, nodes)
    for uid in nodes:
        world._take(world.engine.bind_finished(uid, BindFailed("503"), world.now))
    assert world.gang().phase is Phase.PLACED
    first, second, third = nodes
    assert arrive(world, first, nodes) == []
    assert arrive(world, second, nodes) == []
    assert bound_by(arrive(world, third, nodes)) == nodes


def test_a_binding_that_timed_out_and_succeeded_after_all_is_not_done_twice():
    world, nodes = at_bind(pods=2)
    effects = [effect for uid in nodes for effect in arrive(world, uid, nodes)]
    world._take(world.engine.bind_finished("uid-g0", BindFailed("timeout"), world.now))
    world.put(msgspec.structs.replace(world.pods["uid-g0"], node=nodes["uid-g0"]))
    world.confirm(effects)
    world.tick()
    assert world.held == {}
    assert world.gang().phase is Phase.RUNNING
    assert len(bound_by(world.effects)) == len(world.told(Bind)) == 2


def test_after_its_time_all_are_refused_and_nothing_stays_held():
    world, nodes = at_bind(gang_bind_seconds=20.0)
    arrive(world, "uid-g0", nodes)
    world.tick(10.0)
    arrive(world, "uid-g1", nodes)
    world.tick(9.0)
    assert world.refused == []
    world.tick(1.5)
    assert sorted(world.refused) == ["uid-g0", "uid-g1"]
    assert world.held == {}
    late = world.bind(world.pods["uid-g2"], nodes["uid-g2"])
    assert bound_by(late) == {}
    assert "uid-g2" in world.refused


def test_a_member_deleted_while_others_are_held_refuses_them_and_holds_nothing():
    world, nodes = at_bind()
    arrive(world, "uid-g0", nodes)
    arrive(world, "uid-g1", nodes)
    world.delete(world.pods["uid-g2"])
    assert sorted(world.refused) == ["uid-g0", "uid-g1"]
    assert world.held == {}
    assert world.told(Bind) == []
    world.put(pod("g2", uid="uid-new", annotations=group("g", 3, RACK)))
    for _ in range(30):
        world.tick()
    assert len(world.schedule(*world.pods.values())) == 3


def test_a_held_member_that_is_deleted_itself_is_answered_too():
    world, nodes = at_bind()
    arrive(world, "uid-g0", nodes)
    world.delete(world.pods["uid-g0"])
    assert world.refused == ["uid-g0"]
    assert world.held == {}


def test_a_member_deleted_after_the_bindings_went_out_does_not_stop_the_others():
    world, nodes = at_bind()
    effects = [effect for uid in nodes for effect in arrive(world, uid, nodes)]
    gone = world.pods["uid-g2"]
    world.delete(gone)
    world._take(world.engine.bind_finished(gone.uid, BindFailed("404", is_gone=True), world.now))
    world.confirm(effects)
    world.tick()
    assert [world.pods[uid].node for uid in ("uid-g0", "uid-g1")] == [
        nodes["uid-g0"],
        nodes["uid-g1"],
    ]
    fresh = pod("g2", uid="uid-new", annotations=group("g", 3, RACK))
    world.put(fresh)
    world.tick()
    assert racks(world.schedule(fresh)) == racks(nodes)


def test_after_a_failover_the_new_leader_is_told_the_same_and_nobody_counts_twice():
    world, nodes = at_bind()
    arrive(world, "uid-g0", nodes)
    arrive(world, "uid-g1", nodes)
    for uid in ("uid-g2", "uid-g0", "uid-g1"):  # the new leader has its own order
        assert world.filter(world.pods[uid]) == Pinned(nodes[uid])
    assert arrive(world, "uid-g0", nodes) == []
    assert arrive(world, "uid-g1", nodes) == []
    assert bound_by(arrive(world, "uid-g2", nodes)) == nodes


def test_the_old_leaders_binds_open_the_way_and_the_new_leaders_find_it_open():
    world, nodes = at_bind()
    effects = [effect for uid in nodes for effect in arrive(world, uid, nodes)]
    again = [effect for uid in nodes for effect in arrive(world, uid, nodes)]
    assert bound_by(again) == nodes  # the API server answers: bound there already
    world.confirm(effects)
    world.confirm(again)
    world.tick()
    assert world.held == {}
    assert world.gang().phase is Phase.RUNNING
    assert {each.node for each in world.pods.values()} == set(nodes.values())


def test_an_old_leaders_bind_to_a_node_of_a_lost_plan_is_refused():
    world, nodes = at_bind(pods=4)
    failing = world.engine.books.nodes[nodes["uid-g0"]]
    world.put(msgspec.structs.replace(failing, is_ready=False))
    for _ in range(20):
        world.tick()
    assert racks(world.held) != racks(nodes)
    assert bound_by(arrive(world, "uid-g0", nodes)) == {}
    assert world.refused == ["uid-g0"]


def test_a_bind_by_an_older_corral_elsewhere_takes_the_rest_along():
    world, nodes = at_bind()
    elsewhere = next(name for name in world.engine.books.nodes if name[:2] not in racks(nodes))
    world.put(msgspec.structs.replace(world.pods["uid-g0"], node=elsewhere))
    for _ in range(30):
        world.tick()
    rest = world.schedule(world.pods["uid-g1"], world.pods["uid-g2"])
    assert len(rest) == 2
    assert racks(rest) == {elsewhere[:2]}


def test_no_member_passes_to_a_node_that_is_not_its_own():
    world, nodes = at_bind(pods=2)
    swapped = {"uid-g0": nodes["uid-g1"], "uid-g1": nodes["uid-g0"]}
    for uid in swapped:
        assert bound_by(arrive(world, uid, swapped)) == {}
    assert isinstance(world.filter(world.pods["uid-g0"], [nodes["uid-g1"]]), Rejected)
    assert sorted(world.refused) == ["uid-g0", "uid-g1"]


def in_vain(world, *, asked):
    """Rounds of a gang of two of which one member never gets to /bind; when each plan was made."""
    first, other = world.pods["uid-g0"], world.pods["uid-g1"]
    began = []
    for _ in range(1000):
        world.tick(0.2)
        if world.held and first.uid not in world.gang("g").arrived:
            began.append(world.now)
            assert isinstance(world.filter(first), Pinned)
            world.bind(first, world.held[first.uid])
            if asked:
                world.filter(other)
        elif not world.held:
            assert isinstance(world.filter(first), Rejected)
    return [round(later - earlier) for earlier, later in pairwise(began)]


def test_a_gang_that_holds_in_vain_leaves_the_nodes_to_others_for_ever_longer():
    world = World(four_racks(), members("g", 2), gang_bind_seconds=20.0, retry_seconds=1.0)
    assert in_vain(world, asked=True) == [20 + 4, 20 + 32, 20 + 60]


def test_a_gang_with_a_member_that_kube_scheduler_turns_away_itself_holds_nothing_again():
    world = World(four_racks(), members("g", 2), gang_bind_seconds=20.0)
    assert in_vain(world, asked=False) == []
    assert world.held == {}
    assert isinstance(world.filter(world.pods["uid-g1"]), Rejected)  # it asks at last
    world.tick()
    assert len(world.held) == 2


def test_a_gang_is_planned_again_when_the_member_nobody_asked_for_is_replaced():
    world = World(four_racks(), members("g", 2), gang_bind_seconds=20.0)
    in_vain(world, asked=False)
    world.delete(world.pods["uid-g1"])
    world.put(pod("again", annotations=group("g", 2, RACK), uid="uid-again"))
    world.tick()
    assert world.held.keys() == {"uid-g0", "uid-again"}


def test_members_that_were_rejected_before_a_hold_in_vain_are_called_once_more():
    first, second = members("g", 2)
    world = World(four_racks(), [first], gang_bind_seconds=20.0, rewake_seconds=1e6)
    world.filter(first)
    world.put(second)
    world.tick()
    world.filter(second)
    world.bind(second, world.held[second.uid])
    before = world.woken.count("g0")
    world.tick(21.0)
    assert world.woken.count("g0") == before + 1
