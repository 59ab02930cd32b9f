"""Groups of plain pods, from their composition to their end.

Source: kueue pkg/controller/jobs/pod/pod_controller.go (v0.16).
"""

from __future__ import annotations

import msgspec

from app.dialects.corral import POD_SETS
from app.state.effects import Delete, EmitEvent, Evict
from app.state.gang.gang import Phase
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, TOTAL, group, node, pod

PREFIX = "kueue.x-k8s.io/"
GATED = ("corral.dev/gang",)
ROLE_HASH = PREFIX + "role-hash"
FAST = {PREFIX + "pod-group-fast-admission": "true"}
SERVING = {PREFIX + "pod-group-serving": "true"}
UNRETRIABLE = {PREFIX + "retriable-in-group": "false"}


def started(pods=4, **annotations):
    settings = annotations.pop("settings", {})
    said = {**group("g", pods, RACK), **annotations}
    world = World(four_racks(), [pod(f"g{i}", annotations=said) for i in range(pods)], **settings)
    world.schedule(*world.pods.values())
    world.tick()
    assert all(each.node for each in world.pods.values())
    return world


def turn(world, name, phase):
    world.put(msgspec.structs.replace(world.pods[f"uid-{name}"], phase=phase))


def annotate(world, name, **annotations):
    record = world.pods[f"uid-{name}"]
    said = {**record.annotations, **annotations}
    world.put(msgspec.structs.replace(record, annotations=said))


def reasons(world):
    return [report.reason for report in world.told(EmitEvent)]


# -- 5.4 role hash ---------------------------------------------------------------------------------


def test_an_existing_role_hash_tells_pod_sets_apart():
    pods = [
        pod(f"g{i}", annotations={**group("g", 4, RACK), ROLE_HASH: f"hash{i // 2}"})
        for i in range(4)
    ]
    world = World(four_racks(), pods)
    for pair in (("uid-g0", "uid-g1"), ("uid-g2", "uid-g3")):
        assert len({world.held[uid][:2] for uid in pair}) == 1
    assert {member.leaf for member in world.gang().members.values()} == {"hash0", "hash1"}


# Kueue takes the first pod of a role for all of them; Corral counts what each pod asks for.
def test_pods_of_one_role_hash_that_ask_for_different_amounts_are_counted_each_for_itself():
    said = {**group("g", 2, RACK), ROLE_HASH: "same"}
    pods = [pod("g0", gpus=2, annotations=said), pod("g1", gpus=8, annotations=said)]
    world = World(four_racks(), pods)
    assert len(set(world.held.values())) == 2
    assert len(world.schedule(*pods)) == 2


def test_the_replacement_of_a_role_takes_the_place_of_its_own_role():
    small, large = ({**group("g", 3, RACK), ROLE_HASH: role} for role in ("small", "large"))
    pods = [pod("g0", gpus=4, annotations=small), pod("g1", gpus=4, annotations=small)]
    world = World(four_racks(), [*pods, pod("g2", gpus=8, annotations=large)])
    before = world.schedule(*world.pods.values())
    turn(world, "g0", "Failed")
    turn(world, "g2", "Failed")
    fresh = [pod("n2", gpus=8, annotations=large), pod("n0", gpus=4, annotations=small)]
    world.put(*fresh)
    world.tick()
    assert world.schedule(*fresh) == {"n2": before["g2"], "n0": before["g0"]}


# -- 5.5 construction ------------------------------------------------------------------------------


def test_fewer_runnable_pods_than_expected_wait_and_are_one_event():
    world = World(four_racks(), members("g", 4, gates=GATED)[:3], gather_seconds=10.0)
    for _ in range(100):
        world.tick(1.0)
    (report,) = world.told(EmitEvent)
    assert report.reason == "GangIncomplete"
    assert report.sentence.startswith("gang default/g has 3 of the 4 pods that annotation")
    assert world.ungated == []


def test_failed_pods_are_not_counted():
    dead = pod("g0", on="n00", phase="Failed", annotations=group("g", 3, RACK))
    world = World(four_racks(), [dead, *members("g", 3)[1:]])
    world.tick()
    assert world.held == {}
    world.put(pod("g9", annotations=group("g", 3, RACK)))
    world.tick()
    assert len(world.held) == 3


def test_unbound_pods_that_are_being_deleted_are_not_counted():
    leaving = pod("g0", annotations=group("g", 2, RACK), is_terminating=True)
    world = World(four_racks(), [leaving, members("g", 2)[1]])
    world.tick()
    assert world.held == {}


def test_of_too_many_pods_those_that_were_ungated_stay_whatever_their_age():
    said = group("g", 2, RACK)
    young = [
        pod(f"g{i}", annotations=said, gates=GATED, created="2026-01-02T00:00:00Z")
        for i in range(2)
    ]
    world = World(four_racks(), young)
    held = dict(world.held)
    world.patch(world.effects)
    world.put(pod("old", annotations=said, gates=GATED, created="2026-01-01T00:00:00Z"))
    world.tick()
    assert world.held == held
    assert "old" not in world.ungated
    assert reasons(world) == ["PodNotInGang"]


def test_of_too_many_gated_pods_the_youngest_are_out():
    said = group("g", 2, RACK)
    pods = [
        pod(f"g{i}", annotations=said, gates=GATED, created=f"2026-01-01T00:00:0{9 - i}Z")
        for i in range(4)
    ]
    world = World(four_racks(), pods)
    assert sorted(world.ungated) == ["g2", "g3"]


def test_fast_admission_is_for_pods_alike_and_another_shape_takes_one_of_the_places():
    said = {**group("g", 3, RACK), **FAST}
    world = World(four_racks(), [pod("g0", annotations=said)])
    world.schedule(world.pods["uid-g0"])
    assert len(world.held) == 2
    other, alike = pod("g1", gpus=4, annotations=said), pod("g2", annotations=said)
    for each in (other, alike):
        world.put(each)
        world.tick()
        assert len(world.schedule(each)) == 1
    world.tick()
    assert world.held == {}
    assert world.gang().phase is Phase.RUNNING


def test_fast_admission_begins_anew_with_places_for_all_also_of_a_role_that_no_pod_shows():
    """What is left of it says that the group had another role, and not what its pods request."""
    said = {**group("g", 4, RACK), **FAST}
    pods = [pod(f"g{i}", gpus=2 if i else 4, annotations=said) for i in range(4)]
    world = World(four_racks(), pods)
    world.schedule(*pods)
    world.tick()
    assert "=1," in world.pods["uid-g3"].annotations[POD_SETS]
    turn(world, "g3", "Succeeded")
    for name in ("g0", "g1", "g2"):
        world.delete(world.pods[f"uid-{name}"])
    world.tick(600.0)
    world.put(pod("g4", gpus=2, annotations=said))
    world.tick()
    assert len(world.gang().plan.nodes) == 3
    driver = pod("g5", gpus=4, annotations=said)
    world.put(driver)
    world.tick()
    world.tick(1.0)
    assert len(world.gang().plan.nodes) == 3
    assert driver.uid in world.gang().plan.nodes


def test_fast_admission_never_has_more_pods_than_the_total_count():
    said = {**group("g", 2, RACK), **FAST}
    world = World(four_racks(), [pod(f"g{i}", annotations=said) for i in range(3)])
    assert sorted(world.held) == ["uid-g0", "uid-g1"]
    assert "is one more than the 2 pods" in world.filter(world.pods["uid-g2"]).sentence


def test_fast_admission_leaves_the_places_of_those_to_come_to_nobody():
    said = {**group("g", 4, RACK), **FAST}
    world = World([node(f"b0/r0/n{i}") for i in range(4)], [pod("g0", annotations=said)])
    world.schedule(world.pods["uid-g0"])
    world.put(*members("h", 1))
    world.tick(600.0)
    world.tick()
    assert "uid-h0" not in world.held
    assert len(world.held) == 3


# -- 5.6 running -----------------------------------------------------------------------------------


def test_a_group_has_finished_when_as_many_pods_have_succeeded_as_it_declares():
    world = started(3)
    for name in ("g0", "g1", "g2"):
        turn(world, name, "Succeeded")
        world.tick()
    assert world.gang().phase is Phase.DONE
    late = pod("late", annotations=group("g", 3, RACK))
    world.put(late)
    world.tick()
    assert "is one more than the 3 pods" in world.filter(late).sentence


def test_a_group_has_finished_when_nothing_runs_and_one_pod_may_not_be_retried():
    world = started(2, settings={"delete_excess_pods": True})
    annotate(world, "g1", **UNRETRIABLE)
    turn(world, "g1", "Failed")
    assert world.gang().phase is not Phase.DONE
    turn(world, "g0", "Failed")
    world.tick()
    assert world.gang().phase is Phase.DONE
    world.put(pod("late", annotations=group("g", 2, RACK)))
    for _ in range(5):
        world.tick()
    assert [effect.name for effect in world.told(Delete)] == ["late"]


def test_a_serving_group_never_finishes():
    world = started(2, **SERVING)
    for round_ in range(3):
        for each in list(world.pods.values()):
            world.put(msgspec.structs.replace(each, phase="Succeeded"))
        said = {**group("g", 2, RACK), **SERVING}
        fresh = [pod(f"r{round_}{i}", annotations=said) for i in range(2)]
        world.put(*fresh)
        world.tick()
        assert len(world.schedule(*fresh)) == 2
    assert "PodNotInGang" not in reasons(world)


def test_the_place_of_a_serving_pod_that_succeeded_is_not_reclaimed():
    world = started(4, **SERVING)
    lost = world.pods["uid-g2"].node
    turn(world, "g2", "Succeeded")
    assert lost in world.filter(pod("stranger")).without
    fresh = pod("g9", annotations={**group("g", 4, RACK), **SERVING})
    world.put(fresh)
    world.tick()
    assert world.schedule(fresh) == {"g9": lost}


def test_the_place_of_any_other_pod_that_succeeded_is():
    world = started(4)
    lost = world.pods["uid-g2"].node
    turn(world, "g2", "Succeeded")
    assert lost not in world.filter(pod("stranger")).without


def test_a_total_count_lowered_on_the_running_pods_costs_nobody_its_node():
    world = started(4)
    for name in ("g0", "g1", "g2", "g3"):
        annotate(world, name, **{TOTAL: "2"})
        world.tick()
    assert world.gang().phase is Phase.RUNNING
    assert world.told(Evict) == world.told(Delete) == []
    assert reasons(world) == []
    turn(world, "g3", "Failed")
    fresh = pod("g9", annotations=group("g", 2, RACK))
    world.put(fresh)
    world.tick()
    assert world.held == {}
    assert "is one more than the 2 pods" in world.filter(fresh).sentence


def test_a_total_count_changed_on_one_running_pod_is_no_contradiction_any_more():
    world = started(3)
    annotate(world, "g2", **{TOTAL: "7"})
    world.tick()
    assert world.gang().phase is Phase.RUNNING
    assert reasons(world) == []


def test_a_total_count_edited_before_the_start_counts_once_all_pods_say_so():
    world = World(four_racks(), members("g", 3)[:2])
    for name in ("g0", "g1"):
        assert world.held == {}
        annotate(world, name, **{TOTAL: "2"})
        world.tick()
    assert len(world.held) == 2


def test_a_replacement_waits_for_room_while_its_predecessor_is_ending():
    world = World([node(f"b0/r0/n{i}") for i in range(2)], members("g", 2))
    world.schedule(*world.pods.values())
    dying = msgspec.structs.replace(world.pods["uid-g1"], is_terminating=True)
    fresh = pod("g9", annotations=group("g", 2, RACK), gates=GATED)
    world.put(dying, fresh)
    world.tick()
    assert world.ungated == []
    world.delete(dying)
    world.tick()
    assert world.ungated == ["g9"]
    assert world.held == {"uid-g9": dying.node}
