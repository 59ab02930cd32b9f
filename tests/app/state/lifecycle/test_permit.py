"""The permit at /bind: who waits there, what opens it, and what leaders before left behind."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from app.dialects.corral import GATE
from app.dialects.spec import GangKey, GangSpec, GroupSpec, Said
from app.state.effects import Bind, BindFailed, RejectBind
from app.state.filter_result import Pinned, Rejected
from app.state.gang.gang import Gang, Phase
from app.state.gang.members.member import Member
from app.state.gang.members.membership import MembershipStatus
from app.state.lifecycle.permit import started_with
from app.state.reserve.plans import AWAIT_SECONDS
from tests.app.state.world import Names, World, four_racks, members, racks
from tests.records import RACK, REQUIRED, group, job, job_pods, pod


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


def without(nodes, uid):
    return {each: node for each, node in nodes.items() if each != uid}


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


def test_a_gang_of_which_every_binding_failed_is_bound_as_its_pods_come_again():
    world, nodes = at_bind()
    for uid in nodes:
        arrive(world, uid, nodes)
    for uid in nodes:
        world._take(world.engine.bind_finished(uid, BindFailed("503"), world.now))
    assert world.gang().phase is Phase.PLACED
    assert world.held == nodes
    for uid in nodes:
        assert bound_by(arrive(world, uid, nodes)) == {uid: nodes[uid]}
    assert world.gang().phase is Phase.BINDING


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


def test_a_request_held_for_long_enough_is_refused_alone_and_nothing_is_given_up():
    world, nodes = at_bind(gang_bind_seconds=20.0)
    arrive(world, "uid-g0", nodes)
    world.tick(10.0)
    arrive(world, "uid-g1", nodes)
    world.tick(9.0)
    assert world.refused == []
    world.tick(1.5)
    assert world.refused == ["uid-g0"]
    world.tick(10.0)
    assert world.refused == ["uid-g0", "uid-g1"]
    assert world.held == nodes
    assert world.filter(world.pods["uid-g0"]) == Pinned(nodes["uid-g0"])
    assert world.gang().phase is Phase.PLACED


def test_refusals_of_one_gang_are_all_the_same_sentence():
    world, nodes = at_bind(gang_bind_seconds=20.0)
    for uid in ("uid-g0", "uid-g1", "uid-g0"):
        arrive(world, uid, nodes)
        world.tick(21.0)
    refusals = world.told(RejectBind)
    assert [refusal.uid for refusal in refusals] == ["uid-g0", "uid-g1", "uid-g0"]
    assert len({refusal.sentence for refusal in refusals}) == 1


def test_a_gang_starts_when_each_member_has_arrived_once_though_never_all_at_a_time():
    world, nodes = at_bind(gang_bind_seconds=20.0)
    assert bound_by(arrive(world, "uid-g0", nodes)) == {}
    world.tick(21.0)
    assert bound_by(arrive(world, "uid-g1", nodes)) == {}
    world.tick(5.0)
    # Those that wait are bound at once, and only those.
    assert bound_by(arrive(world, "uid-g2", nodes)) == without(nodes, "uid-g0")
    assert world.gang().phase is Phase.BINDING
    assert world.filter(world.pods["uid-g0"]) == Pinned(nodes["uid-g0"])
    assert bound_by(arrive(world, "uid-g0", nodes)) == {"uid-g0": nodes["uid-g0"]}


def test_a_member_that_arrives_twice_does_not_stand_in_for_one_that_never_did():
    world, nodes = at_bind(gang_bind_seconds=20.0)
    for uid in ("uid-g0", "uid-g1", "uid-g1", "uid-g0"):
        assert bound_by(arrive(world, uid, nodes)) == {}
        world.tick(11.0)


def test_a_member_that_comes_again_is_held_for_the_whole_time_again():
    world, nodes = at_bind(gang_bind_seconds=20.0)
    for _ in range(3):  # kube-scheduler gave up on its request and sends another one
        arrive(world, "uid-g0", nodes)
        world.tick(15.0)
    assert world.refused == []
    world.tick(6.0)
    assert world.refused == ["uid-g0"]


def test_each_first_arrival_keeps_the_plan_and_arriving_again_does_not():
    world, nodes = at_bind(hold_seconds=60.0, gang_bind_seconds=20.0)
    for uid in ("uid-g0", "uid-g1"):
        world.tick(50.0)
        arrive(world, uid, nodes)
    for _ in range(2):
        world.tick(29.0)
        assert world.filter(world.pods["uid-g0"]) == Pinned(nodes["uid-g0"])
        arrive(world, "uid-g0", nodes)
    assert world.held == nodes
    world.tick(3.0)
    assert world.held == {}
    assert world.refused == ["uid-g0", "uid-g1", "uid-g0", "uid-g0"]


def test_a_member_never_asked_for_while_others_came_again_is_found_out_early():
    world = World(four_racks(), hold_seconds=60.0, gang_bind_seconds=20.0)
    world.put(*members("g", 2))
    nodes = dict(world.held)
    world.filter(world.pods["uid-g0"])
    arrive(world, "uid-g0", nodes)
    world.tick(21.0)
    assert world.held == nodes  # perhaps kube-scheduler takes its time
    world.filter(world.pods["uid-g0"])
    arrive(world, "uid-g0", nodes)
    world.tick(2.0)
    assert world.held == {}
    assert world.refused == ["uid-g0", "uid-g0"]
    assert world.gang().binding.awaited == {"uid-g1"}


@pytest.mark.parametrize("why", ["asked", "gated", "rejected"])
def test_a_member_that_kube_scheduler_did_not_turn_away_itself_is_waited_for(why):
    gates = (GATE,) if why == "gated" else ()
    first, second = members("g", 2)
    second = msgspec.structs.replace(second, gates=gates)
    world = World(four_racks(), [first], hold_seconds=60.0, gang_bind_seconds=5.0)
    if why == "rejected":
        world.engine.filter(second, Names(["n00"]), world.now)  # before the watch shows it
    world.put(second)
    nodes = dict(world.held)
    if why == "asked":
        world.filter(second)
    for _ in range(6):
        world.filter(first)
        arrive(world, first.uid, nodes)
        world.tick(7.0)
    assert world.held == nodes


def test_arrivals_are_forgotten_with_the_plan_they_were_for():
    world, nodes = at_bind(gang_bind_seconds=20.0)
    arrive(world, "uid-g0", nodes)
    arrive(world, "uid-g1", nodes)
    closed = world.engine.books.nodes[nodes["uid-g2"]]
    world.put(msgspec.structs.replace(closed, is_unschedulable=True))
    for _ in range(20):
        world.tick()
    again = world.held
    assert again.keys() == nodes.keys()
    for each in world.pods.values():
        assert world.filter(each) == Pinned(again[each.uid])
    assert bound_by(arrive(world, "uid-g2", again)) == {}
    assert bound_by(arrive(world, "uid-g1", again)) == {}
    assert bound_by(arrive(world, "uid-g0", again)) == again


def test_a_member_that_gets_another_node_has_to_arrive_there():
    world = World(four_racks(), members("g", 3), gang_bind_seconds=20.0)
    nodes = dict(world.held)
    for uid in ("uid-g0", "uid-g1"):
        world.filter(world.pods[uid])
        arrive(world, uid, nodes)
        world.tick(21.0)
    # kube-scheduler does not offer the node of one that had arrived, when it comes again.
    left = [name for name in world.engine.books.nodes if name != nodes["uid-g0"]]
    moved = world.filter(world.pods["uid-g0"], left)
    assert isinstance(moved, Pinned)
    assert moved.node != nodes["uid-g0"]
    now = dict(world.held)
    assert now["uid-g1"] == nodes["uid-g1"]
    assert bound_by(arrive(world, "uid-g2", now)) == {}
    assert bound_by(arrive(world, "uid-g0", now)) == without(now, "uid-g1")
    assert bound_by(arrive(world, "uid-g1", now)) == {"uid-g1": nodes["uid-g1"]}


def test_members_that_had_arrived_keep_their_nodes_though_the_one_that_started_has_gone():
    world, nodes = at_bind(gang_bind_seconds=20.0)
    for uid in ("uid-g0", "uid-g1"):
        arrive(world, uid, nodes)
        world.tick(21.0)
    effects = arrive(world, "uid-g2", nodes)
    assert bound_by(effects) == {"uid-g2": nodes["uid-g2"]}
    world.confirm(effects)
    world.tick(100.0)
    assert world.held == without(nodes, "uid-g2")


def test_members_that_had_arrived_start_though_the_only_one_that_ran_has_succeeded():
    world, nodes = at_bind(gang_bind_seconds=20.0, hold_seconds=60.0)
    for uid in ("uid-g0", "uid-g1"):
        arrive(world, uid, nodes)
        world.tick(21.0)
    world.confirm(arrive(world, "uid-g2", nodes))
    world.tick(100.0)  # the others are in kube-scheduler's back-off
    world.put(msgspec.structs.replace(world.pods["uid-g2"], phase="Succeeded"))
    for _ in range(10):
        world.tick()
    assert world.held == without(nodes, "uid-g2")
    assert bound_by(arrive(world, "uid-g0", nodes)) == {"uid-g0": nodes["uid-g0"]}
    assert bound_by(arrive(world, "uid-g1", nodes)) == {"uid-g1": nodes["uid-g1"]}


def test_a_gang_whose_only_binding_failed_as_the_pod_had_gone_has_not_started():
    world, nodes = at_bind(gang_bind_seconds=20.0)
    for uid in ("uid-g0", "uid-g1"):
        arrive(world, uid, nodes)
        world.tick(21.0)
    arrive(world, "uid-g2", nodes)
    world._take(world.engine.bind_finished("uid-g2", BindFailed("404", is_gone=True), world.now))
    world.delete(world.pods["uid-g2"])
    assert world.held == {}
    assert bound_by(arrive(world, "uid-g0", nodes)) == {}


def test_those_that_wait_are_bound_when_another_corral_has_started_their_gang():
    world, nodes = at_bind()
    arrive(world, "uid-g0", nodes)
    arrive(world, "uid-g1", nodes)
    world.put(msgspec.structs.replace(world.pods["uid-g2"], node=nodes["uid-g2"]))
    world.tick()
    assert bound_by(world.tick()) | bound_by(world.effects) == without(nodes, "uid-g2")


def test_who_arrives_after_another_corral_has_started_the_gang_waits_for_no_other():
    world, nodes = at_bind()
    arrive(world, "uid-g0", nodes)
    world.put(msgspec.structs.replace(world.pods["uid-g2"], node=nodes["uid-g2"]))
    assert bound_by(arrive(world, "uid-g1", nodes)) == without(nodes, "uid-g2")


def test_a_started_gang_of_which_a_place_is_lost_keeps_the_members_that_arrived():
    world, nodes = at_bind(pods=4, gang_bind_seconds=20.0)
    for uid in ("uid-g0", "uid-g1", "uid-g2"):
        arrive(world, uid, nodes)
        world.tick(21.0)
    world.confirm(arrive(world, "uid-g3", nodes))
    closed = world.engine.books.nodes[nodes["uid-g0"]]
    world.put(msgspec.structs.replace(closed, is_unschedulable=True))
    for uid in ("uid-g1", "uid-g2"):
        assert bound_by(arrive(world, uid, nodes)) == {uid: nodes[uid]}


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


def test_members_at_bind_start_once_their_job_is_made_smaller_and_no_other_is_needed():
    jobs, pods = [job("g", 3)], job_pods("g", 3, **{REQUIRED: RACK})
    world = World(four_racks(), pods, jobs)
    nodes = dict(world.held)
    for each in pods[:2]:
        assert bound_by(arrive(world, each.uid, nodes)) == {}
    world.put(job("g", 2))
    assert bound_by(world.tick()) == without(nodes, pods[2].uid)


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
        if world.held and first.uid not in world.gang("g").binding.arrived:
            began.append(world.now)
            assert isinstance(world.filter(first), Pinned)
            world.bind(first, world.held[first.uid])
            if asked:
                world.filter(other)
        elif not world.held:
            assert isinstance(world.filter(first), Rejected)
    return [round(later - earlier) for earlier, later in pairwise(began)]


def test_a_gang_that_holds_in_vain_leaves_the_nodes_to_others_for_ever_longer():
    world = World(four_racks(), members("g", 2), hold_seconds=20.0, retry_seconds=1.0)
    assert in_vain(world, asked=True) == [20 + 4, 20 + 32, 20 + 60]


def test_a_gang_with_a_member_that_kube_scheduler_turns_away_itself_holds_nothing_again():
    world = World(four_racks(), members("g", 2), hold_seconds=20.0)
    assert in_vain(world, asked=False) == []
    assert world.held == {}
    assert isinstance(world.filter(world.pods["uid-g1"]), Rejected)  # it asks at last
    world.tick()
    assert len(world.held) == 2


def test_a_member_whose_binding_failed_had_arrived_and_is_not_taken_for_one_that_never_came():
    """A failed binding takes a minute to come again where the API server is slow, not 10 s."""
    world, nodes = at_bind(2, hold_seconds=60.0)
    effects = [*arrive(world, "uid-g0", nodes), *arrive(world, "uid-g1", nodes)]
    assert bound_by(effects).keys() == nodes.keys()
    for _ in range(2):
        for uid in nodes:
            world.inputs.bind_finished(uid, BindFailed("503"), world.now)
        world.tick(1.0)
        arrive(world, "uid-g0", nodes)
    world.inputs.bind_finished("uid-g0", BindFailed("503"), world.now)
    world.tick(12.0)
    assert world.held == nodes


@pytest.mark.parametrize("lost", ["gone", "failed"])
def test_a_gang_is_planned_again_when_the_member_nobody_asked_for_is_replaced(lost):
    world = World(four_racks(), members("g", 2), hold_seconds=20.0)
    in_vain(world, asked=False)
    awaited = world.pods["uid-g1"]
    if lost == "gone":
        world.delete(awaited)
    else:
        world.put(msgspec.structs.replace(awaited, phase="Failed"))
    world.put(pod("again", annotations=group("g", 2, RACK), uid="uid-again"))
    world.tick()
    assert world.held.keys() == {"uid-g0", "uid-again"}


def test_a_gang_is_planned_again_when_it_needs_the_member_nobody_asked_for_no_more():
    first, second = job_pods("j", 2, **{REQUIRED: RACK})
    world = World(four_racks(), [first, second], [job("j", 2)], hold_seconds=20.0)
    world.filter(first)
    world.tick(21.0)
    assert world.held == {}
    world.put(job("j", 1))
    world.tick()
    assert world.held.keys() == {first.uid}


def test_a_gang_that_another_corral_has_started_waits_for_no_member_to_come_here():
    world = World(four_racks(), members("g", 3), hold_seconds=20.0)
    world.tick(21.0)
    assert world.held == {}
    world.put(msgspec.structs.replace(world.pods["uid-g0"], node="n00"))
    world.tick()
    assert world.held.keys() == {"uid-g1", "uid-g2"}
    assert racks(world.held) == {"n0"}


def test_a_gang_that_ran_before_its_members_came_here_places_a_lost_one_at_once():
    world = World(four_racks(), members("g", 2), hold_seconds=20.0, owed_seconds=0.0)
    world.tick(21.0)
    for each, node in zip(list(world.pods.values()), ("n00", "n01"), strict=True):
        world.put(msgspec.structs.replace(each, node=node))
    world.tick()
    assert world.gang().phase is Phase.RUNNING
    world.delete(world.pods["uid-g1"])
    world.put(pod("again", annotations=group("g", 2, RACK), uid="uid-again"))
    world.tick()
    assert world.held.keys() == {"uid-again"}


def runs_without_one(**settings):
    """A gang of two of which one is lost, and its replacement is planned and never asked for."""
    world = World(four_racks(), members("g", 2), hold_seconds=20.0, **settings)
    world.schedule(*world.pods.values())
    world.delete(world.pods["uid-g1"])
    new = pod("again", annotations=group("g", 2, RACK), uid="uid-again")
    world.put(new)
    world.tick()
    assert world.held.keys() == {"uid-again"}
    return world, new


def test_no_node_is_held_for_a_replacement_that_kube_scheduler_turns_away_itself():
    world, new = runs_without_one()
    world.tick(19.0)
    assert world.held.keys() == {"uid-again"}
    world.tick(1.0)
    for _ in range(100):
        assert world.held == {}
        world.tick(2.0)
    assert world.gang().phase is Phase.REPAIRING
    assert isinstance(world.filter(new), Rejected)  # it asks at last
    world.tick()
    assert "again" in world.woken
    assert "again" in world.schedule(new)


def test_such_a_replacement_is_planned_again_after_a_while():
    world, _ = runs_without_one()
    world.tick(21.0)
    assert world.held == {}
    world.tick(AWAIT_SECONDS)
    world.tick()
    assert world.held.keys() == {"uid-again"}


def test_it_keeps_no_other_replacement_waiting():
    world, _ = runs_without_one()
    world.tick(21.0)
    assert world.held == {}
    third = pod("third", annotations=group("g", 3, RACK), uid="uid-third")
    more = group("g", 3, RACK)
    for uid in ("uid-g0", "uid-again"):
        world.put(msgspec.structs.replace(world.pods[uid], annotations=more))
    world.put(third)
    world.tick()
    assert "uid-third" in world.held


def test_a_replacement_that_was_asked_for_keeps_its_node_however_long_its_volume_takes():
    world, new = runs_without_one()
    assert isinstance(world.filter(new), Pinned)
    for _ in range(30):
        world.tick(20.0)
        assert world.held.keys() == {"uid-again"}


def test_the_places_of_pods_that_do_not_exist_are_not_given_up_with_it():
    spare = {**group("g", 2, RACK), "corral.dev/spare-pods": "1"}
    pods = [pod(f"g{at}", annotations=spare) for at in range(2)]
    world = World(four_racks(), pods, hold_seconds=20.0)
    world.schedule(*pods)
    world.tick()
    (kept,) = world.held
    world.delete(world.pods["uid-g1"])
    world.put(pod("again", annotations=spare, uid="uid-again"))
    world.tick()
    assert world.held.keys() == {kept, "uid-again"}
    world.tick(21.0)
    assert world.held.keys() == {kept}


def test_members_that_were_rejected_before_a_hold_in_vain_are_called_once_more():
    first, second = members("g", 2)
    world = World(four_racks(), [first], hold_seconds=20.0, rewake_seconds=86_400.0)
    world.filter(first)
    world.put(second)
    world.tick()
    world.filter(second)
    world.bind(second, world.held[second.uid])
    before = world.woken.count("g0")
    world.tick(21.0)
    assert world.woken.count("g0") == before + 1


@pytest.mark.parametrize(
    ("is_said", "gpus", "noted", "text"),
    [
        pytest.param(None, (8, 4), (), "", id="nothing_declares_the_pods"),
        pytest.param(False, (8, 4), (), "", id="objects_declare_the_pod_sets"),
        pytest.param(True, (8, 8), (), "", id="all_pods_are_alike"),
        pytest.param(True, (8, 4, 4), (), "{1}=2,{0}=1", id="of_two_kinds_by_name"),
        pytest.param(True, (8, 4), (("a", 1), ("b", 2)), "a=1,b=2", id="as_noted_before"),
    ],
)
def test_what_a_group_starts_with_is_noted_if_only_its_pods_say_it(is_said, gpus, noted, text):
    key = GangKey("default", "g", "group")
    spec = GangSpec(key, GroupSpec("g", ()), "", is_said=bool(is_said))
    bound, *joining = [
        Member(pod(f"g{at}", gpus=each), Said(), started_with=() if at else noted)
        for at, each in enumerate(gpus)
    ]
    status = MembershipStatus(
        bound=(bound,),
        joining=tuple(joining),
        spec=None if is_said is None else spec,
    )
    names = list(dict.fromkeys(each.pod_set for each in (bound, *joining)))
    assert started_with(Gang(key, membership=status)) == text.format(*names)
