"""Places kept for pods that do not exist any more: after a loss, and after a node's failure."""

from __future__ import annotations

import math

import msgspec
import pytest

from app.dialects.spec import Constraint, GangKey, GroupSpec, LeafSpec, Said
from app.kube.core.objects import Owner, Shape, Taint, Toleration
from app.state.effects import Delete, Evict
from app.state.filter_result import Rejected
from app.state.gang.gang import Gang, Phase
from app.state.gang.members.member import Member
from app.state.gang.members.membership import MembershipStatus
from app.state.gang.parts import Placeholder
from app.state.reserve.placeholders import place_for
from app.state.reserve.pods_to_come import likenesses
from tests.app.state.crews import CrewWorld, hands, placed
from tests.app.state.lost import failed, not_ready, replacement, started
from tests.app.state.world import World, four_racks, members, racks
from tests.records import RACK, REQUIRED, job, node, pod

# -- a member is lost ---------------------------------------------------------------------------


def test_the_node_of_a_lost_member_is_held_for_its_replacement():
    world = started()
    lost = world.pods["uid-g2"]
    world.delete(lost)
    world.tick()
    assert list(world.held.values()) == [lost.node]
    world.put(replacement())
    world.tick()
    assert world.held == {"uid-g9": lost.node}
    assert world.schedule(world.pods["uid-g9"])["g9"] == lost.node


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_the_node_of_a_member_that_is_stopped_is_held_from_when_it_has_ended(phase):
    """Its kubelet says how a pod that is deleted has ended, before the pod is gone."""
    world = started()
    lost = msgspec.structs.replace(world.pods["uid-g2"], is_terminating=True)
    world.put(lost)
    world.tick(30.0)
    assert world.held == {}  # it runs there until then
    ended = msgspec.structs.replace(lost, phase=phase)
    world.put(ended)
    world.tick()
    assert list(world.held.values()) == [lost.node]
    assert lost.node in world.filter(pod("stranger", gpus=8)).without
    world.delete(ended)
    world.put(replacement())
    world.tick()
    assert world.held == {"uid-g9": lost.node}


def test_a_replacement_of_a_member_that_ended_well_as_it_was_stopped_is_not_one_too_many():
    world = started(delete_excess_pods=True)
    dying = msgspec.structs.replace(world.pods["uid-g2"], is_terminating=True)
    world.put(dying, replacement())
    world.tick()
    world.put(msgspec.structs.replace(dying, phase="Succeeded"))
    world.tick()
    assert world.held == {"uid-g9": dying.node}
    assert not [each for each in world.reports if "one more than" in each]
    assert world.told(Delete) == []


def test_a_member_that_was_deleted_after_it_had_succeeded_needs_no_replacement():
    world = started()
    done = msgspec.structs.replace(world.pods["uid-g2"], phase="Succeeded")
    world.put(done)
    world.put(msgspec.structs.replace(done, is_terminating=True), replacement())
    world.tick()
    assert world.held == {}
    assert any("one more than" in each for each in world.reports)


def test_a_member_that_lost_its_node_and_ends_there_has_one_place_held_for_it():
    world = eight_in_rack()
    bad = world.pods["uid-g1"].node
    dying = msgspec.structs.replace(world.pods["uid-g1"], is_terminating=True)
    world.put(not_ready(bad), dying)
    world.tick()
    (held,) = world.held.values()
    new = replacement(total=2)
    world.put(new)
    world.tick()
    assert world.schedule(new) == {"g9": held}
    world.put(msgspec.structs.replace(dying, phase="Failed"))
    assert world.held == {}


def test_a_failed_member_is_replaced_while_its_record_is_still_there():
    world = started()
    lost = world.pods["uid-g2"]
    world.put(failed(world, "uid-g2"), replacement())
    world.tick()
    assert world.held == {"uid-g9": lost.node}


def test_no_ordinary_pod_gets_the_node_of_a_lost_member():
    world = started()
    lost = world.pods["uid-g2"]
    world.delete(lost)
    answer = world.filter(pod("stranger", gpus=8))
    assert lost.node in answer.without


def test_the_place_of_a_lost_member_is_given_up_after_a_while():
    world = started(owed_seconds=30.0)
    world.delete(world.pods["uid-g2"])
    world.tick(29.0)
    assert len(world.held) == 1
    world.tick(2.0)
    assert world.held == {}
    assert world.gang("g").phase is Phase.RUNNING


def test_without_owed_seconds_nothing_is_held():
    world = started(owed_seconds=0.0)
    world.delete(world.pods["uid-g2"])
    world.tick()
    assert world.held == {}


def test_without_owed_seconds_another_node_is_held_only_while_the_lost_pod_is_shown():
    world = started(total=3, owed_seconds=0.0)
    lost = world.pods["uid-g1"]
    world.delete(world.engine.books.nodes[lost.node])
    world.tick()
    assert len(world.held) == 1
    world.delete(lost)
    world.tick()
    assert world.held == {}


def test_a_member_that_succeeds_leaves_nothing_held():
    world = started()
    world.put(msgspec.structs.replace(world.pods["uid-g2"], phase="Succeeded"))
    world.tick()
    assert world.held == {}
    world.put(replacement())
    world.tick()
    assert isinstance(world.filter(world.pods["uid-g9"]), Rejected)


def test_a_gang_of_which_every_member_is_lost_holds_nothing():
    world = started()
    for each in list(world.pods.values()):
        world.delete(each)
    world.tick()
    assert world.held == {}
    assert world.engine.gangs.by_key == {}


@pytest.mark.parametrize("lost", range(1, 4))
def test_several_lost_members_are_replaced_in_the_same_rack(lost):
    world = started()
    rack = world.pods["uid-g0"].node[:2]
    nodes = {world.pods[f"uid-g{i}"].node for i in range(4 - lost, 4)}
    for index in range(4 - lost, 4):
        world.delete(world.pods[f"uid-g{index}"])
    new = [replacement(f"h{index}") for index in range(lost)]
    world.put(*new)
    world.tick()
    placed = world.schedule(*new)
    assert set(placed.values()) == nodes
    assert racks(placed) == {rack}


def test_a_replacement_that_came_before_its_predecessor_was_gone_takes_its_node():
    world = started()
    dying = msgspec.structs.replace(world.pods["uid-g2"], is_terminating=True)
    world.put(dying, replacement())
    world.tick()
    assert world.held == {}  # the rack is full as long as the old pod is there
    world.delete(dying)
    world.tick()
    assert world.held == {"uid-g9": dying.node}


def test_a_lost_member_s_node_is_not_held_outside_the_rack_that_another_one_is_planned_in():
    in_a_rack = Constraint(required=RACK)
    leaves = (LeafSpec("driver", 1), LeafSpec("worker", 2, in_a_rack))
    nodes = [node(f"b0/r{at}/n{at}{each}") for at in range(2) for each in range(2)]
    pods = [*hands("c", "driver", 1, gpus=0), *hands("c", "worker", 2)]
    world = CrewWorld({"c": GroupSpec("c", leaves)}, nodes, pods)
    world.schedule(*pods)
    world.tick()
    (lost, bad), (dying, home) = placed(world, "worker").items()
    world.put(msgspec.structs.replace(world.engine.books.nodes[bad], is_ready=False))
    world.delete(world.pods[f"uid-{lost}"])
    (new,) = hands("c", "worker", 1, first=2)
    world.put(new)
    world.tick()
    assert world.held == {}  # the other worker's rack has no node left
    world.put(msgspec.structs.replace(world.pods[f"uid-{dying}"], is_terminating=True))
    world.tick(60.0)
    world.tick()
    (planned,) = world.held.values()
    assert planned[:2] != home[:2]  # the worker that terminates keeps nobody in its rack
    world.delete(world.pods[f"uid-{dying}"])
    assert racks(world.held) == {planned[:2]}
    world.tick()
    assert racks(world.held) == {planned[:2]}


# -- a node fails under a member -----------------------------------------------------------------


def eight_in_rack(**settings):
    """A gang of 2 in a rack of 4 nodes, so that there is room for replacements."""
    return started(total=2, **settings)


def test_matrix_row_1_hot_swap_off_holds_nothing_before_the_replacement_exists():
    world = eight_in_rack(replace_failed_nodes=False, replace_on_pod_termination=False)
    world.put(not_ready(world.pods["uid-g1"].node))
    world.tick(100.0)
    assert world.held == {}


def test_matrix_row_2_another_node_is_held_after_thirty_seconds_not_ready():
    world = eight_in_rack(replace_on_pod_termination=False)
    bad = world.pods["uid-g1"].node
    world.put(not_ready(bad))
    world.tick(29.0)
    assert world.held == {}
    world.tick(2.0)
    world.tick()
    (held,) = world.held.values()
    assert held[:2] == bad[:2]
    assert held != bad


def test_matrix_row_2_goes_on_searching_until_there_is_a_node():
    world = started(replace_on_pod_termination=False)
    bad = world.pods["uid-g1"].node
    world.put(not_ready(bad))
    world.tick(31.0)
    world.tick()
    assert world.held == {}
    assert world.told(Evict) == []
    world.tick(1.1)
    assert any("runs without 1 of its pods" in sentence for sentence in world.reports)
    world.put(node(f"b{int(bad[1]) // 2}/r{bad[1]}/spare"))
    world.tick()
    assert list(world.held.values()) == ["spare"]


def test_matrix_row_3_another_node_is_held_as_soon_as_the_pod_there_terminates():
    world = eight_in_rack()
    bad = world.pods["uid-g1"].node
    world.put(not_ready(bad))
    world.tick(100.0)
    assert world.held == {}  # not ready with a running pod is no failure yet
    world.put(msgspec.structs.replace(world.pods["uid-g1"], is_terminating=True))
    world.tick()
    (held,) = world.held.values()
    assert held[:2] == bad[:2]
    assert held != bad


def test_matrix_row_4_the_only_search_fails_and_the_gang_is_evicted():
    world = started(replace_on_pod_termination=False, fail_fast=True)
    world.put(not_ready(world.pods["uid-g1"].node))
    world.tick(29.0)
    assert world.told(Evict) == []
    world.tick(2.0)
    world.tick()
    assert sorted(effect.name for effect in world.told(Evict)) == ["g0", "g1", "g2", "g3"]


def test_matrix_row_5_termination_on_a_failed_node_without_replacement_evicts_at_once():
    world = started(fail_fast=True)
    world.put(not_ready(world.pods["uid-g1"].node))
    world.put(msgspec.structs.replace(world.pods["uid-g1"], is_terminating=True))
    world.tick()
    assert sorted(effect.name for effect in world.told(Evict)) == ["g0", "g2", "g3"]
    for _ in range(100):
        world.tick()
    assert len(world.told(Evict)) == 3


def test_a_deleted_node_has_failed_at_once():
    world = eight_in_rack()
    bad = world.pods["uid-g1"].node
    world.delete(world.engine.books.nodes[bad])
    world.tick()
    (held,) = world.held.values()
    assert held[:2] == bad[:2]


def test_a_taint_tolerated_for_a_while_bars_the_replacement_of_whom_it_evicted():
    for_a_while = Toleration("maintenance", "Exists", "", "NoExecute", is_for_a_while=True)
    shape = Shape(tolerations=(for_a_while,))
    pods = members("g", 2, shape=shape)
    world = World(four_racks(), pods)
    world.schedule(*pods)
    world.tick()
    bad = world.pods["uid-g1"].node
    tainted = node(
        f"b{int(bad[1]) // 2}/r{bad[1]}/{bad}", taints=(Taint("maintenance", "", "NoExecute"),)
    )
    world.put(tainted)
    world.tick()
    assert world.held == {}  # the pod may stay for now
    world.put(msgspec.structs.replace(world.pods["uid-g1"], is_terminating=True))
    world.tick()
    (held,) = world.held.values()
    assert held[:2] == bad[:2]
    assert held != bad
    world.delete(world.pods["uid-g1"])
    again = msgspec.structs.replace(pods[1], uid="uid-again", name="again")
    others = [name for name in world.engine.books.nodes if name[:2] == bad[:2] and name != bad]
    world.put(*(pod(f"on-{name}", on=name) for name in others if name != world.pods["uid-g0"].node))
    world.put(again)
    world.tick()
    assert world.held == {}  # only the node that evicted it would be free


def test_a_node_that_comes_back_ends_what_was_held_instead():
    world = eight_in_rack(replace_on_pod_termination=False)
    bad = world.pods["uid-g1"].node
    world.put(not_ready(bad))
    world.tick(31.0)
    world.tick()
    assert len(world.held) == 1
    world.put(node(f"b{int(bad[1]) // 2}/r{bad[1]}/{bad}"))
    world.tick()
    assert world.held == {}


@pytest.mark.parametrize("bad", [1, 2])
def test_several_nodes_that_fail_at_once_do_not_cost_the_gang_its_life(bad):
    world = World(four_racks(), members("g", 4, gpus=4))
    world.schedule(*world.pods.values())
    rack = {each.node[:2] for each in world.pods.values()}
    for name in sorted({each.node for each in world.pods.values()})[:bad]:
        world.put(not_ready(name))
        for each in [each for each in world.pods.values() if each.node == name]:
            world.put(msgspec.structs.replace(each, phase="Failed"))
    world.tick()
    gone = [each for each in world.pods.values() if each.phase == "Failed"]
    new = [replacement(f"n-{each.name}", gpus=4) for each in gone]
    world.put(*new)
    world.tick()
    placed = world.schedule(*new)
    assert len(placed) == len(new)
    assert racks(placed) == rack
    assert not {world.engine.books.nodes[on].is_ready for on in placed.values()} & {False}


# -- verdicts ------------------------------------------------------------------------------------


def test_nodes_that_fail_one_after_the_other_are_told_of_in_one_verdict():
    world = started()
    for index in (1, 2, 3):
        world.put(not_ready(world.pods[f"uid-g{index}"].node))
        world.delete(world.pods[f"uid-g{index}"])
        world.put(replacement(f"h{index}"))
        world.tick()
    for _ in range(30):
        world.tick()
    assert [sentence for sentence in world.reports if "runs without" in sentence] == [
        sentence for sentence in world.reports if "runs without 3 of its pods" in sentence
    ]
    assert len(world.reports) == 1


def test_of_two_replacements_the_first_takes_the_only_node_that_comes_back():
    world = started()
    nodes = [world.pods[f"uid-g{index}"].node for index in (2, 3)]
    for index, on in zip((2, 3), nodes, strict=True):
        world.put(not_ready(on))
        world.delete(world.pods[f"uid-g{index}"])
    new = [replacement(f"h{index}") for index in range(2)]
    world.put(*new)
    world.tick()
    assert world.held == {}
    world.put(node(f"b{int(nodes[0][1]) // 2}/r{nodes[0][1]}/{nodes[0]}"))
    world.tick()
    assert world.held == {"uid-h0": nodes[0]}


def test_a_verdict_whose_numbers_change_is_reported_once():
    nodes = four_racks()
    world = World(nodes, members("g", 5))
    for name in ("n10", "n11", "n20"):
        world.put(pod(f"on-{name}", on=name, phase="Running"))
        world.tick(61.0)
        world.tick()
    assert len([each for each in world.reports if "cannot be placed" in each]) == 1


def of_job(uid):
    """Three pods of the Job x with this uid, in one rack."""
    owner = Owner("batch/v1", "Job", "x", uid)
    return [
        pod(f"{uid}-{at}", owner=owner, annotations={REQUIRED: RACK}, gpus=8) for at in range(3)
    ]


def test_places_of_two_epochs_of_one_name_are_held_beside_each_other():
    world = World(four_racks())
    for uid in "ab":
        pods = of_job(uid)
        world.put(msgspec.structs.replace(job("x", 3), uid=uid), *pods)
        world.tick()
        world.schedule(*pods)
        assert all(world.pods[each.uid].node for each in pods)
        world.delete(world.pods[pods[0].uid])
        world.delete(msgspec.structs.replace(job("x", 3), uid=uid))
    world.tick()
    assert len(world.held) == 2


@pytest.mark.parametrize("length", [10, 250_000])
def test_a_place_takes_no_more_memory_for_the_length_of_its_gangs_name(length):
    owner = Owner("batch/v1", "Job", "x" * length, "uid-x")
    world = World(four_racks())
    pods = [pod(f"p{at}", owner=owner, annotations={REQUIRED: RACK}, gpus=8) for at in range(3)]
    world.put(msgspec.structs.replace(job("x", 3), name="x" * length, uid="uid-x"), *pods)
    world.tick()
    world.schedule(*pods)
    world.delete(world.pods["uid-p0"])
    (place,) = world.held
    assert len(place) < 20


def test_of_spares_that_suit_a_pod_alike_it_gets_the_oldest():
    spares = {
        f"absent/{at}": Placeholder(Member(pod(f"s{at}"), Said()), math.inf, is_spare=True)
        for at in range(3)
    }
    gang = Gang(GangKey("default", "g", "group"), placeholders=spares)
    assert place_for(gang, Member(pod("g9"), Said())) == "absent/0"


def test_each_place_that_is_held_stands_for_one_of_the_pods_behind_foreign_gates():
    gated = [Member(pod(f"g{at}", gates=("example.com/quota",)), Said()) for at in range(3)]
    gang = Gang(
        GangKey("default", "g", "group"),
        membership=MembershipStatus(joining=tuple(gated), lacking={}),
        placeholders={
            f"absent/{at}": Placeholder(Member(pod(f"p{at}"), Said()), math.inf) for at in range(2)
        },
    )
    assert list(likenesses(gang, gated)) == gated[2:]
