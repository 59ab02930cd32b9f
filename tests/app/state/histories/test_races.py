"""What the simulator found: events that cross a plan under way."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.core.objects import Taint
from app.kube.watch.events import Applied, Deleted
from app.state.effects import Bind, BindFailed, Bound, RejectBind, Ungate, UngateFailed
from app.state.filter_result import Pinned, Rejected
from app.state.gang.gang import Phase
from tests.app.state.world import World, four_racks, members, racks, ungated
from tests.records import RACK, UNCONSTRAINED, job, job_pods, node, pod

SPARES = "corral.dev/spare-pods"
FAILED = BindFailed("500")


def bound(world, uid, on):
    return msgspec.structs.replace(world.pods[uid], node=on)


def bind_all(world):
    """Take every planned member through /filter and /bind: uid -> the node of its Bind."""
    placed = dict(world.held)
    for uid, on in placed.items():
        assert isinstance(world.filter(world.pods[uid]), Pinned)
        world.bind(world.pods[uid], on)
    assert {effect.uid: effect.node for effect in world.told(Bind)} == placed
    return placed


def fail(world, *uids):
    for uid in uids:
        world._take(world.engine.bind_finished(uid, FAILED, world.now))


def racks_now(world):
    """The racks, by label, of everything that is held or bound for members."""
    nodes = world.engine.books.nodes
    used = {*world.held.values(), *(each.node for each in world.pods.values() if each.node)}
    return {nodes[on].labels[RACK] for on in used}


def elsewhere(world):
    """A node outside the rack the gang is planned in."""
    rack = next(iter(world.held.values()))[:2]
    return next(name for name in world.engine.books.nodes if name[:2] != rack)


def test_members_follow_one_that_another_corral_bound_in_another_domain():
    world = World(four_racks(), members("g", 3))
    other = elsewhere(world)
    world.put(bound(world, "uid-g0", other))
    for _ in range(15):
        world.tick()
    assert racks(world.held) == {other[:2]}


def test_a_binding_that_failed_on_a_node_somebody_else_filled_is_owed_elsewhere():
    world = World(four_racks(), members("g", 2))
    placed = dict(world.held)
    for uid, on in placed.items():
        assert not isinstance(world.filter(world.pods[uid]), Rejected)
        world.bind(world.pods[uid], on)
    world._take(world.engine.bind_finished("uid-g0", Bound(), world.now))
    world.put(bound(world, "uid-g0", placed["uid-g0"]))
    taken = placed["uid-g1"]
    world.put(pod("thief", on=taken, phase="Running"))
    world._take(world.engine.bind_finished("uid-g1", FAILED, world.now))
    for _ in range(15):
        world.tick()
    assert world.held["uid-g1"] != taken
    assert world.held["uid-g1"][:2] == taken[:2]


def test_a_gang_whose_job_has_gone_is_not_complete_any_more():
    owned = job_pods("train", 2, **{"kueue.x-k8s.io/podset-required-topology": RACK})
    world = World(four_racks(), owned, [job("train", 2)])
    assert len(world.held) == 2
    world.apply(Deleted(job("train", 2)))
    world.tick()
    assert world.held == {}


def test_a_plan_is_lost_when_one_of_its_nodes_moves_to_another_rack():
    world = World(four_racks(), members("g", 3))
    moved = sorted(world.held.values())[0]
    world.put(node(f"b1/r3/{moved}"))
    for _ in range(15):
        world.tick()
    rack = {world.engine.books.nodes[on].labels[RACK] for on in world.held.values()}
    assert len(world.held) == 3
    assert len(rack) == 1


def test_the_rest_of_a_gang_follows_a_bound_member_whose_node_moves():
    world = World(four_racks(), members("g", 2))
    first, second = sorted(world.held)
    on = world.held[first]
    world.put(bound(world, first, on))
    world.tick()
    world.put(node(f"b1/r3/{on}"))
    for _ in range(15):
        world.tick()
    assert world.engine.books.nodes[world.held[second]].labels[RACK] == "r3"


@pytest.mark.parametrize("moving", ["uid-g0", "uid-g1"], ids=["node_of_the_other", "its_node"])
def test_a_member_whose_binding_fails_after_a_node_moved_is_placed_beside_those_that_run(moving):
    world = World(four_racks(), members("g", 2))
    placed = bind_all(world)
    world.put(bound(world, "uid-g0", placed["uid-g0"]))
    home = racks_now(world)
    world.put(node(f"b1/r3/{placed[moving]}"))
    assert world.held == {"uid-g1": placed["uid-g1"]}  # perhaps the binding succeeds
    fail(world, "uid-g1")
    for _ in range(15):
        world.tick()
    assert world.held.keys() == {"uid-g1"}
    assert racks_now(world) == ({"r3"} if moving == "uid-g0" else home)


@pytest.mark.parametrize("moving", range(3))
def test_a_gang_whose_bindings_all_fail_after_a_node_moved_is_planned_again_as_a_whole(moving):
    world = World(four_racks(), members("g", 3))
    placed = bind_all(world)
    world.put(node(f"b1/r3/{placed[f'uid-g{moving}']}"))
    fail(world, *placed)
    for _ in range(15):
        world.tick()
    assert world.held.keys() == placed.keys()
    assert len(racks_now(world)) == 1


@pytest.mark.parametrize("fails", [True, False], ids=["bindings_fail", "bindings_succeed"])
def test_after_a_node_moved_the_rest_of_a_gang_waits_for_the_bindings_under_way(fails):
    world = World(four_racks(), members("g", 4, gpus=4), gang_bind_seconds=20.0)
    placed, home = dict(world.held), racks_now(world)
    here, there = dict.fromkeys(placed.values())
    runs, late = (uid for uid, on in placed.items() if on == here)
    under_way = [uid for uid, on in placed.items() if on == there]
    for uid in (late, runs, *under_way):
        if uid == runs:
            world.tick(21.0)  # the first request is refused
        assert isinstance(world.filter(world.pods[uid]), Pinned)
        world.bind(world.pods[uid], placed[uid])
    world.put(bound(world, runs, here))
    world.put(node(f"b1/r3/{there}"))
    for _ in range(15):
        world.tick()
    assert world.held == dict.fromkeys(under_way, there)
    if fails:
        fail(world, *under_way)
    else:
        world.put(*(bound(world, uid, there) for uid in under_way))
    for _ in range(15):
        world.tick()
    assert world.held.keys() == ({late, *under_way} if fails else {late})
    assert {world.engine.books.nodes[on].labels[RACK] for on in world.held.values()} == (
        home if fails else {"r3"}  # where most of them run
    )


def test_after_a_node_moved_no_spare_is_held_before_the_bindings_under_way_have_ended():
    pods = [
        msgspec.structs.replace(each, annotations={**each.annotations, SPARES: "1"})
        for each in members("g", 2)
    ]
    world = World(four_racks(), pods)
    placed = dict(world.held)
    for each in pods:
        assert isinstance(world.filter(each), Pinned)
        world.bind(each, placed[each.uid])
    world.put(bound(world, "uid-g0", placed["uid-g0"]))
    home = racks_now(world)
    assert len(world.held) == 2  # the other member and the spare
    world.put(node(f"b1/r3/{placed['uid-g1']}"))
    for _ in range(15):
        world.tick()
    assert world.held == {"uid-g1": placed["uid-g1"]}
    fail(world, "uid-g1")
    for _ in range(15):
        world.tick()
    assert len(world.held) == 2
    assert racks_now(world) == home


def test_a_binding_that_failed_on_a_node_that_is_tainted_meanwhile_is_owed_elsewhere():
    world = World(four_racks(), members("g", 2))
    placed = bind_all(world)
    world.put(bound(world, "uid-g0", placed["uid-g0"]))
    home = world.engine.books.nodes[placed["uid-g1"]]
    world.put(msgspec.structs.replace(home, taints=(Taint("broken", "", "NoSchedule"),)))
    fail(world, "uid-g1")
    for _ in range(15):
        world.tick()
    assert world.held["uid-g1"] not in placed.values()
    assert len(racks_now(world)) == 1


def test_a_gang_does_not_start_from_a_roll_call_that_is_out_of_date():
    world = World(four_racks(), members("g", 3))
    for uid, on in sorted(world.held.items())[:2]:
        world.filter(world.pods[uid])
        world.bind(world.pods[uid], on)
    last = world.pods["uid-g2"]
    on = world.held["uid-g2"]
    world.filter(last)
    dying = msgspec.structs.replace(world.pods["uid-g0"], is_terminating=True)
    world.pods[dying.uid] = dying
    world.put(dying)
    effects = world.bind(last, on)
    assert [effect for effect in effects if isinstance(effect, Bind)] == []


def test_a_node_deleted_twice_costs_one_plan():
    world = World(four_racks(), members("g", 2))
    gone = world.engine.books.nodes[sorted(world.held.values())[0]]
    world.delete(gone)
    lost = world.gang().back_off.plans_lost
    world.delete(gone)
    assert world.gang().back_off.plans_lost == lost == 1


def test_a_gang_whose_last_running_member_goes_starts_again_as_a_whole():
    world = World(four_racks(), members("g", 2))
    world.schedule(*world.pods.values())
    for uid in ("uid-g0", "uid-g1"):
        world.put(msgspec.structs.replace(world.pods[uid], phase="Failed"))
        again = msgspec.structs.replace(
            world.pods[uid], uid=f"{uid}-again", name=f"{uid}-again", node="", phase="Pending"
        )
        world.put(again)
    for _ in range(15):
        world.tick()
    assert len(world.held) == 2
    assert len(racks(world.held)) == 1


def test_a_member_whose_binding_is_under_way_is_not_planned_again():
    world = World(four_racks(), members("g", 2))
    placed = dict(world.held)
    for uid, on in placed.items():
        world.filter(world.pods[uid])
        world.bind(world.pods[uid], on)
    others = [name for name in world.engine.books.nodes if name not in placed.values()]
    answer = world.filter(world.pods["uid-g0"], others)
    assert isinstance(answer, Rejected)
    assert world.held == placed


def test_the_rest_of_a_gang_is_planned_again_when_the_node_of_its_members_comes_back():
    world = World(four_racks(), members("g", 2))
    first, second = sorted(world.held)
    on = world.held[first]
    home = world.engine.books.nodes[on]
    world.put(bound(world, first, on))
    world.delete(home)
    for _ in range(15):
        world.tick()
    world.put(home)
    for _ in range(15):
        world.tick()
    assert world.held[second][:2] == on[:2]


def test_what_is_being_bound_stays_held_when_its_job_goes():
    world = World(four_racks(), jobs=[job("j", 2)])
    pods = job_pods("j", 2, **{UNCONSTRAINED: "true"})
    world.put(*pods)
    for each in pods:
        world.bind(each, world.filter(each).node)
    world.delete(job("j", 2))
    world.tick()
    assert world.held.keys() == {each.uid for each in pods}


def test_hearing_of_a_job_again_changes_nothing():
    world = World(four_racks(), jobs=[job("j", 2)])
    world.put(*job_pods("j", 2, **{UNCONSTRAINED: "true"}))
    held = dict(world.held)
    assert world.apply(Applied(job("j", 2))) == []
    assert world.held == held


def test_a_pod_is_never_pinned_to_a_node_that_was_not_offered():
    world = World(four_racks(), members("g", 2, gates=("corral.dev/gang",)))
    patches = {effect.uid: effect for effect in world.told(Ungate)}
    first = ungated(world.pods["uid-g0"], patches["uid-g0"])  # our watch shows it gated still
    on = world.held["uid-g0"]
    others = [name for name in patches["uid-g0"].nodes if name != on]
    answer = world.filter(first, others[:1])
    assert not isinstance(answer, Pinned) or answer.node in others[:1]


def test_a_gate_that_may_not_be_taken_off_at_all_is_not_asked_for_in_a_loop():
    world = World(four_racks(), members("g", 1, gates=("corral.dev/gang",)))
    refused = UngateFailed("403", is_forbidden=True)
    for _ in range(5):
        world._take(world.engine.ungate_finished("uid-g0", refused, world.now))
    assert len(world.told(Ungate)) <= 3
    world.tick(1.1)
    world.tick(1.1)
    assert 2 <= len(world.told(Ungate)) <= 5


def test_a_pod_turned_away_because_our_books_were_late_is_woken_when_they_catch_up():
    leaving = pod("leaving", on="n0", gpus=4, phase="Running")
    world = World([node("b0/r0/n0")], [leaving, *members("g", 1, gpus=4)])
    assert world.held == {"uid-g0": "n0"}
    stranger = pod("stranger", gpus=4)
    world.put(stranger)
    world.filter(stranger, ["n0"])  # kube-scheduler knows that `leaving` is gone
    world.put(bound(world, "uid-g0", "n0"))
    world.tick()
    assert "stranger" not in world.woken
    world.delete(leaving)
    world.tick()
    assert "stranger" in world.woken


def test_a_deadline_counts_from_the_first_member_that_still_waits():
    world = World(four_racks(), members("g", 3), gang_bind_seconds=20.0)
    first, second, _ = sorted(world.held)
    world.bind(world.pods[first], world.held[first])
    world.tick(15.0)
    world.bind(world.pods[second], world.held[second])
    gone = world.pods[first]
    again = msgspec.structs.replace(gone, uid="uid-again")
    world.delete(gone)
    world.put(again)
    for _ in range(30):
        world.tick()
    uid = next(iter(world.held))
    world.bind(world.pods[uid], world.held[uid])
    before = len(world.refused)
    world.tick(15.0)
    assert len(world.refused) == before
    world.tick(6.0)
    assert len(world.refused) == before + 1


def test_a_place_that_is_dropped_when_another_is_taken_leaves_no_trace():
    pods = members("g", 4, gates=("corral.dev/gang",))
    world = World(four_racks(), pods)
    world.patch(world.effects)
    world.schedule(*(world.pods[each.uid] for each in pods))
    world.tick()
    for uid in ("uid-g2", "uid-g3"):
        world.delete(world.pods[uid])
    same = msgspec.structs.replace(pods[2], uid="uid-h0", name="h0")
    other = pod("h1", gpus=4, annotations=pods[3].annotations, gates=pods[3].gates, uid="uid-h1")
    world.put(same, other)
    world.tick()
    assert sorted(world.held) == ["uid-h0", "uid-h1"]


def test_a_member_that_is_planned_elsewhere_has_its_earlier_bind_request_refused():
    world = World(four_racks(), members("g", 3))
    first, second, _ = (world.pods[f"uid-g{i}"] for i in range(3))
    on = world.held[first.uid]
    assert isinstance(world.filter(first), Pinned)
    world.bind(first, on)
    # Another kube-scheduler leads now, and the node has refused the pod meanwhile.
    world.filter(first, [name for name in world.engine.books.nodes if name != on])
    assert first.uid in {effect.uid for effect in world.told(RejectBind)}
    assert world.held.get(first.uid, "") != on
    assert second.uid not in {effect.uid for effect in world.told(RejectBind)}


def test_a_bind_request_of_an_older_plan_is_not_forgotten_when_others_are_planned_again():
    world = World(four_racks(), members("g", 3))
    first, second, _ = (world.pods[f"uid-g{i}"] for i in range(3))
    on = world.held[first.uid]
    assert isinstance(world.filter(first), Pinned)
    # The plan is lost, and made again on the same nodes before kube-scheduler has come to /bind.
    world.engine.plans.lose(world.gang("g"), "for a test", world.now)
    for _ in range(30):
        world.tick()
    assert world.held[first.uid] == on
    world.bind(first, on)
    offered = [name for name in world.engine.books.nodes if name != world.held[second.uid]]
    world.filter(second, offered)
    kept = world.held.get(first.uid) == on and first.uid in world.gang("g").binding.arrived
    assert kept or first.uid in {effect.uid for effect in world.told(RejectBind)}


# -- a pod that waits is resized (kubectl edit --subresource resize) -------------------------------


def resized(pod, cpu):
    request = tuple((each, cpu if each == "cpu" else amount) for each, amount in pod.request)
    return msgspec.structs.replace(pod, request=request)


def beside_another(**more):
    """Two gangs of two planned on one node of ten cores, two cores for each pod."""
    pods = [each for name in ("g", "h") for each in members(name, 2, gpus=2, cpu=2_000, **more)]
    world = World([node("b0/r0/n0", cpu=10_000), node("b0/r0/n1", cpu=8_000, gpus=2)], pods)
    assert set(world.held.values()) == {"n0"}
    return world


def held_cores(world):
    return {uid: dict(each.request)["cpu"] for uid, each in world.engine.books.held.items()}


@pytest.mark.parametrize("gates", [(), ("corral.dev/gang",)])
def test_what_is_held_for_a_pod_that_is_resized_follows(gates):
    world = beside_another(gates=gates)
    for cores in (4_000, 500):
        world.put(resized(world.pods["uid-g0"], cores))
        assert held_cores(world) == {
            "uid-g0": cores, "uid-g1": 2_000, "uid-h0": 2_000, "uid-h1": 2_000
        }  # fmt: skip


def test_a_gang_whose_pod_needs_more_than_there_is_loses_its_plan_and_no_other_one_does():
    world = beside_another()
    world.put(resized(world.pods["uid-g0"], 5_000))
    assert world.gang("h").phase is Phase.PLACED
    for _ in range(15):
        world.tick()
    assert {uid: world.held[uid] for uid in ("uid-h0", "uid-h1")} == dict.fromkeys(
        ("uid-h0", "uid-h1"), "n0"
    )
    assert sorted((world.held["uid-g0"], world.held["uid-g1"])) == ["n0", "n1"]
    assert held_cores(world)["uid-g0"] == 5_000


def test_others_give_way_to_a_pod_that_is_resized_while_it_is_being_bound():
    world = beside_another()
    for uid in ("uid-g0", "uid-g1"):
        world.filter(world.pods[uid])
        world.bind(world.pods[uid], "n0")
    assert len(world.told(Bind)) == 2
    world.put(resized(world.pods["uid-g0"], 6_000))
    assert sorted(world.held) == ["uid-g0", "uid-g1"]
    assert world.gang("h").back_off.plans_lost == 0


def test_an_ordinary_pod_that_is_resized_while_it_is_being_bound_takes_what_it_is_to_have():
    world = beside_another()
    other = pod("other", gpus=0, cpu=1_000)
    world.put(other)
    world.filter(other)
    world.bind(other, "n0")
    world.put(resized(other, 2_000))
    assert held_cores(world)["uid-other"] == 2_000
    world.put(resized(other, 4_000))
    assert held_cores(world)["uid-other"] == 4_000
    assert {world.gang("g").phase, world.gang("h").phase} == {Phase.PLACED, Phase.WAITING}
