"""Places for pods that do not exist: how long they are held, and who comes before them."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.core.objects import Requirement, Shape, Term
from app.state.gang.gang import Phase
from tests.app.state.lost import PREFIX, not_ready
from tests.app.state.reserve.test_before_pods import driver, in_order, leader_and_workers, worker
from tests.app.state.world import World, four_racks, racks
from tests.records import BLOCK, GPU, RACK, REQUIRED, SLICE_LEVEL, SLICE_SIZE, group, node, pod
from tests.workload_pods import stateful_pods, workload

ABSENT = "corral.dev/absent-seconds"
FAST = {PREFIX + "pod-group-fast-admission": "true"}


def runs(world: World, *uids: str) -> World:
    """These pods take their nodes."""
    world.schedule(*(world.pods[uid] for uid in uids))
    world.tick()
    assert all(world.pods[uid].node for uid in uids)
    return world


def fast(total=4, **settings) -> World:
    """The first pod of a group runs, and places are held for the others."""
    first = pod("g0", annotations=group("g", total, RACK, **FAST))
    world = runs(World(four_racks(), [first], **settings), "uid-g0")
    assert len(world.held) == total - 1
    return world


def of_driver(**settings) -> World:
    """A driver runs that has declared three workers."""
    world = runs(World(four_racks(), [driver(workers=3)], **settings), "uid-driver")
    assert len(world.held) == 3
    return world


def of_leader(**settings) -> World:
    """The leader of a group runs whose workers are made once it is ready."""
    world, (leader, *_) = leader_and_workers(3, **settings)
    return runs(world, leader.uid)


def of_first_job(**settings) -> World:
    """The first Job of a JobSet in order runs."""
    world = in_order(2, like=pod("like"), **settings)
    return runs(world, "uid-js-a-0-0", "uid-js-a-0-1")


@pytest.mark.parametrize("begin", [fast, of_driver, of_leader, of_first_job])
def test_places_for_pods_that_do_not_come_are_given_up_and_that_is_reported(begin):
    world = begin(absent_seconds=50.0)
    held = len(world.held)
    world.tick(49.0)
    assert len(world.held) == held > 0
    world.tick(1.1)
    assert world.held == {}
    (gang,) = world.engine.gangs.by_key.values()
    assert gang.phase is Phase.RUNNING
    told = f"gang {gang.key} runs, and no place is held any more for {held} pods that have not come"
    assert told in world.reports
    for _ in range(3):
        world.tick(100.0)
    assert world.held == {}


def test_each_pod_that_comes_renews_the_time_of_the_others():
    world = fast(absent_seconds=50.0)
    for index in (1, 2):
        world.tick(40.0)
        world.put(pod(f"g{index}", annotations=group("g", 4, RACK, **FAST)))
        world.tick()
        assert len(world.held) == 4 - index
        runs(world, f"uid-g{index}")
    world.tick(45.0)
    assert len(world.held) == 1
    world.tick(6.0)
    assert world.held == {}


def test_a_pod_that_comes_after_all_has_places_held_for_the_others_again():
    world = fast(absent_seconds=50.0)
    rack = racks({"g0": world.pods["uid-g0"].node})
    world.tick(60.0)
    assert world.held == {}
    world.put(pod("g1", annotations=group("g", 4, RACK, **FAST)))
    world.tick()
    assert len(world.held) == 3
    assert racks(world.held) == rack


def test_to_delete_a_pod_and_make_it_again_does_not_renew_the_time():
    world = fast(absent_seconds=50.0)
    last = "g1"
    for name in ("g1", "again-1", "again-2", "again-3"):
        if name != last:
            world.tick(20.0)
            world.delete(world.pods[f"uid-{last}"])
        world.put(pod(name, annotations=group("g", 4, RACK, **FAST)))
        world.tick()
        runs(world, f"uid-{name}")
        last = name
    assert world.held == {}


def test_a_gang_that_has_not_started_keeps_its_whole_plan_for_as_long_as_any_other():
    first = pod("g0", annotations=group("g", 4, RACK, **FAST))
    world = World(four_racks(), [first], absent_seconds=1.0, hold_seconds=60.0)
    world.tick(30.0)
    assert len(world.held) == 4


def test_a_gang_says_for_itself_how_long_its_places_wait():
    said = group("g", 4, RACK, **FAST, **{ABSENT: "300"})
    world = runs(World(four_racks(), [pod("g0", annotations=said)], absent_seconds=50.0), "uid-g0")
    world.tick(299.0)
    assert len(world.held) == 3
    world.tick(1.2)
    assert world.held == {}


def test_after_a_restart_the_time_begins_again():
    world = fast(absent_seconds=50.0)
    world.tick(60.0)
    again = World(four_racks(), world.pods.values(), absent_seconds=50.0)
    again.tick()
    assert len(again.held) == 3
    again.tick(51.0)
    assert again.held == {}


def test_a_group_that_grows_holds_places_again_once_a_pod_comes():
    world = of_driver(absent_seconds=50.0)
    for name in ("w0", "w1"):
        world.put(worker(name))
        runs(world, f"uid-{name}")
    world.tick(51.0)
    assert world.held == {}
    world.put(worker("w2"))
    world.tick()
    assert list(world.held) == ["uid-w2"]


# -- a pod that has come goes before those that have not ----------------------------------------


def stateful(total=3, nodes=(), **annotations) -> tuple[World, list]:
    """The first of some pods that come one after the other runs; places are held for the others."""
    record = workload("StatefulSet", "db", {"": total}, is_gradual=True)
    first, *others = [
        msgspec.structs.replace(each, annotations={**each.annotations, **annotations})
        for each in stateful_pods("db", total, RACK)
    ]
    cluster = nodes or [node(f"b0/r0/n{i}") for i in range(total)]
    world = runs(World(cluster, [first], jobs=[record]), first.uid)
    assert len(world.held) == total - 1
    return world, others


def place_of(world: World, number: int) -> str:
    """The uid of what stands for the pod of this number."""
    places = world.gang().placeholders.items()
    return next(uid for uid, each in places if each.member.index.index == number)


def test_a_pod_whose_own_place_was_taken_gets_that_of_one_that_has_not_come():
    world, (second, _) = stateful()
    left = world.held[place_of(world, 2)]
    world.put(pod("foreign", on=world.held[place_of(world, 1)]))
    assert list(world.held.values()) == [left]
    world.tick(5.0)
    world.put(second)
    world.tick()
    assert world.held == {second.uid: left}
    assert world.schedule(second) == {second.name: left}


def test_a_pod_that_loses_its_node_gets_that_of_one_that_has_not_come():
    world, (second, _) = stateful()
    left = world.held[place_of(world, 2)]
    world.put(second)
    world.tick()
    world.put(pod("foreign", on=world.held[second.uid]))
    world.tick(5.0)
    world.tick()
    assert world.held == {second.uid: left}


def test_a_lost_pod_made_again_gets_the_place_of_one_of_another_template():
    world = of_first_job(owed_seconds=0.0)
    lost = world.pods["uid-js-a-0-1"]
    world.put(not_ready(lost.node))
    world.delete(lost)
    places = sorted(world.held.values())
    again = msgspec.structs.replace(lost, uid="uid-again", node="", phase="Pending")
    world.put(again)
    world.tick()
    assert world.held[again.uid] in places
    assert sorted(world.held.values()) == places  # the other place stays


def test_the_places_stay_where_the_pod_that_has_come_would_not_fit_without_them_either():
    world, (second, _) = stateful()
    held = {place_of(world, 2): world.held[place_of(world, 2)]}
    world.put(pod("foreign", on=world.held[place_of(world, 1)]))
    elsewhere = Shape(selector=(("zone", "other"),))
    world.put(msgspec.structs.replace(second, shape=elsewhere))
    before = world.gang().plan.version
    for _ in range(30):
        world.tick(5.0)
    assert world.held == held
    assert world.gang().plan.version == before


def test_a_place_is_not_taken_from_the_rest_of_a_slice():
    slices = {SLICE_LEVEL: RACK, SLICE_SIZE: "2"}
    nodes = [node(f"b0/r{r}/n{r}{i}") for r in range(2) for i in range(2)]
    world, (second, third, _) = stateful(4, nodes, **{REQUIRED: BLOCK, **slices})
    world.put(second)
    runs(world, second.uid)
    rest = place_of(world, 3)
    left = world.held[rest]
    world.put(pod("foreign", on=world.held[place_of(world, 2)]))
    world.put(third)
    for _ in range(30):
        world.tick(5.0)
    assert world.held == {rest: left}


# -- of several kinds: the places held are those of the pods that are missing -------------------


def of_two_kinds(**settings) -> World:
    """A group planned from its first pod on: a driver of 8 GPUs and two workers of 4, all run."""
    kinds = {"driver": 8, "w0": 4, "w1": 4}
    pods = [pod(name, gpus=gpus, annotations=in_three()) for name, gpus in kinds.items()]
    world = World([node(f"b0/r0/n{i}") for i in range(2)], pods, owed_seconds=0.0, **settings)
    return runs(world, *(each.uid for each in pods))


def in_three() -> dict[str, str]:
    return group("g", 3, RACK, **FAST)


def test_the_place_held_for_a_lost_pod_is_that_of_its_kind():
    world = of_two_kinds()
    lost = world.pods["uid-w1"]
    world.delete(lost)
    world.tick()
    assert list(world.held.values()) == [lost.node]
    assert world.filter(pod("stranger", gpus=4)).without == {lost.node}
    world.put(pod("again", gpus=4, annotations=in_three()))
    runs(world, "uid-again")
    assert world.pods["uid-again"].node == lost.node
    assert world.held == {}


def test_after_a_restart_it_is_that_of_its_kind_too():
    world = of_two_kinds()
    lost = world.pods["uid-w1"]
    world.delete(lost)
    again = World(world.engine.books.nodes.values(), world.pods.values(), owed_seconds=0.0)
    assert list(again.held.values()) == [lost.node]


def test_no_place_is_held_for_a_lost_pod_of_which_nothing_is_known_any_more():
    world = of_two_kinds()
    world.delete(world.pods["uid-driver"])
    world.tick()
    assert world.held == {}
    assert world.gang().phase is Phase.RUNNING


def test_a_gang_of_which_nothing_runs_any_more_starts_with_a_place_for_every_pod():
    """One of its pods still ends, and says what the gang started with when it last ran."""
    world = of_two_kinds()
    world.put(msgspec.structs.replace(world.pods["uid-w0"], is_terminating=True))
    world.delete(world.pods["uid-driver"], world.pods["uid-w1"])
    world.put(pod("again", gpus=4, annotations=in_three()))
    world.tick()
    assert len(world.gang().plan.nodes) in (0, 3)
    world.put(node("b0/r0/n2"))
    world.tick()
    assert len(world.gang().plan.nodes) == 3


def test_a_gang_of_which_nothing_runs_does_not_start_with_fewer_places_than_it_needs():
    """One place was held while three ran; for three pods to come there may be none."""
    pods = [pod(f"g{at}", annotations=group("g", 4, RACK, **FAST)) for at in range(4)]
    ran = runs(World(four_racks(), pods), *(each.uid for each in pods))
    limits = {"absent_pods_per_namespace": 2, "absent_share_per_namespace": 0.0}
    world = World(four_racks(), [ran.pods[each.uid] for each in pods[1:]], **limits)
    world.tick()
    assert len(world.held) == 1
    world.put(*(msgspec.structs.replace(each, is_terminating=True) for each in world.pods.values()))
    world.put(pod("again", annotations=group("g", 4, RACK, **FAST)))
    world.tick()
    assert world.held == {}
    (gang,) = world.engine.gangs.by_key.values()
    assert gang.phase is Phase.WAITING


def test_a_place_ends_once_as_many_pods_of_its_kind_are_there_whatever_else_is_missing():
    world = of_two_kinds()
    world.put(msgspec.structs.replace(world.pods["uid-driver"], phase="Failed"))
    world.delete(world.pods["uid-w1"])
    world.tick()
    assert len(world.held) == 2
    # It is narrowed to the node of the driver that failed, so it cannot take the place of `w1`.
    (elsewhere,) = set(world.engine.books.nodes) - {world.pods["uid-w0"].node}
    narrowed = {**in_three(), "corral.dev/narrowed": "nodes"}
    term = Term(fields=(Requirement("metadata.name", "In", (elsewhere,)),))
    world.put(pod("w2", gpus=4, annotations=narrowed, shape=Shape(terms=(term,))))
    world.tick()
    places = world.gang().placeholders.values()
    assert [dict(each.member.pod.request)[GPU] for each in places] == [8]


def test_a_pod_behind_a_foreign_gate_has_a_place_of_its_own_kind():
    first = pod("driver", gpus=8, annotations=in_three())
    gated = pod("w0", gpus=4, annotations=in_three(), gates=("example.com/quota",))
    world = World(four_racks(), [first, gated, pod("w1", gpus=4, annotations=in_three())])
    (place,) = world.gang().placeholders.values()
    assert dict(place.member.pod.request)[GPU] == 4


def test_a_pod_to_come_is_like_the_first_of_those_that_are_there():
    first, second = (
        pod(f"g{at}", gpus=gpus, annotations=in_three(), created=f"2026-01-01T00:00:0{at}Z")
        for at, gpus in enumerate((8, 4))
    )
    world = World(four_racks(), [second, first])
    (place,) = world.gang().placeholders.values()
    assert dict(place.member.pod.request)[GPU] == 8


# -- between two Jobs of a JobSet, of which one is made once the other has ended -------------------


def between(**settings) -> World:
    """The first Job of a JobSet has ended, and the next one is not there yet."""
    world = of_first_job(**settings)
    for uid in ("uid-js-a-0-0", "uid-js-a-0-1"):
        world.put(msgspec.structs.replace(world.pods[uid], phase="Succeeded"))
        world.tick()
    (a,) = (each for each in world.engine.objects.by_uid.values() if each.kind == "Job")
    world.put(msgspec.structs.replace(a, completions=2, succeeded=2, is_finished=True))
    world.tick()
    return world


def test_places_for_the_next_job_are_held_when_the_one_before_has_ended():
    world = between()
    kept = sorted(world.held.values())
    assert len(kept) == 2
    answer = world.filter(pod("stranger", gpus=8))
    assert set(kept) <= answer.without
    job_b, pods = world.later
    world.put(job_b, *pods)
    world.tick()
    assert [world.held[each.uid] for each in pods] == kept
    assert sorted(world.schedule(*pods).values()) == kept
    world.tick()
    assert world.gang().phase is Phase.RUNNING


def test_they_are_given_up_if_it_does_not_come():
    world = between(absent_seconds=50.0)
    world.tick(48.0)
    assert len(world.held) == 2
    world.tick(2.0)
    assert world.held == {}


def test_they_end_with_the_job_set_and_with_its_pods():
    world = between()
    (whole,) = (each for each in world.engine.objects.by_uid.values() if each.kind == "JobSet")
    world.put(msgspec.structs.replace(whole, is_finished=True))
    world.tick()
    assert world.held == {}
    world = between()
    world.delete(*world.pods.values())
    assert world.held == {}


def test_each_pod_of_the_next_job_renews_their_time_and_starts_like_any_that_comes_later():
    world = between(absent_seconds=50.0)
    world.tick(40.0)
    job_b, (first, second) = world.later
    world.put(job_b, first)
    world.tick(1.0)
    assert first.uid in world.held
    assert len(world.held) == 2
    assert world.schedule(first)
    world.tick(40.0)
    (kept,) = world.held.values()
    world.put(second)
    world.tick()
    assert world.schedule(second) == {second.name: kept}


def test_the_next_job_starts_as_a_whole_if_places_are_lost_meanwhile():
    world = between()
    world.put(not_ready(min(world.held.values())))
    world.tick()
    job_b, pods = world.later
    world.put(job_b, pods[0])
    world.tick(2.0)
    assert world.held == {}
    world.put(pods[1])
    world.tick(2.0)
    assert len(racks(world.schedule(*pods))) == 1
