"""No other node for a lost pod, and pods that run.

Where Kueue evicts, Corral does with `fail_fast` only; else what runs is left where it is.
Source: kueue pkg/controller/tas/node_controller.go (v0.16);
https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling "Hot swap support".
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dialects.volcano.jobs import decode_job
from app.kube.core.objects import Owner, Shape
from app.state.effects import Bind, EmitEvent, Evict
from app.state.filter_result import Pinned
from app.state.gang.gang import Phase
from tests.app.state.failures import (
    TRIGGERS,
    change,
    each_trigger,
    fail,
    remove,
    replace,
    running,
    terminate,
    where,
)
from tests.app.state.world import World, four_racks, members, racks
from tests.records import RACK, REQUIRED, group, job, job_owner, job_pods, node, pod
from tests.workload_pods import training_pods, workload

# -- no replacement --------------------------------------------------------------------------------


@each_trigger
def test_without_another_node_the_verdict_is_one_report_and_nobody_is_evicted(trigger):
    world = running(pods=4)
    trigger(world, where(world))
    terminate(world)
    for _ in range(50):
        world.tick(1.0)
    (report,) = [each for each in world.told(EmitEvent) if each.reason != "NeedsNodes"]
    assert report.reason == "GangNotPlaced"
    assert report.sentence.startswith("gang default/g runs without 1 of its pods, which cannot be")
    assert world.gang().phase is Phase.REPAIRING
    assert world.told(Evict) == []


@each_trigger
def test_with_fail_fast_the_gang_is_evicted_after_the_first_search_in_vain(trigger):
    world = running(pods=4, fail_fast=True)
    trigger(world, where(world))
    terminate(world)
    world.tick()
    # Of a node that is deleted the pod is lost before it terminates: it goes with the others.
    assert {effect.name for effect in world.told(Evict)} - {"g1"} == {"g0", "g2", "g3"}
    (sentence,) = {effect.sentence for effect in world.told(Evict)}
    assert sentence.startswith("gang default/g is evicted, as a lost pod cannot be replaced: ")
    assert "GangEvicted" in {report.reason for report in world.told(EmitEvent)}


@each_trigger
def test_with_fail_fast_a_spare_place_is_as_good_as_another_node(trigger):
    annotations = {**group("g", 3, RACK), "corral.dev/spare-pods": "1"}
    pods = [pod(f"g{i}", annotations=annotations) for i in range(3)]
    world = World([node(f"b0/r0/n{i}") for i in range(4)], pods, fail_fast=True)
    world.schedule(*pods)
    world.tick()
    (spare,) = world.held.values()
    trigger(world, where(world))
    terminate(world)
    world.tick()
    assert world.told(Evict) == []
    assert replace(world, annotations=annotations) == {"g1-new": spare}


def test_with_fail_fast_and_another_node_nobody_is_evicted():
    world = running(fail_fast=True)
    remove(world, where(world))
    terminate(world)
    for _ in range(50):
        world.tick(1.0)
    assert world.told(Evict) == []
    assert len(replace(world)) == 1


def test_an_eviction_that_took_no_effect_is_asked_for_again_and_no_more_once_the_gang_is_gone():
    """A disruption budget may have refused it, or nobody answered; the cluster is quiet."""
    world = running(pods=4, fail_fast=True)
    remove(world, where(world))
    terminate(world)
    world.tick()
    first = len(world.told(Evict))
    world.tick(61.0)
    assert {effect.name for effect in world.told(Evict)[first:]} == {"g0", "g2", "g3"}
    for each in list(world.pods.values()):
        world.delete(each)
    for _ in range(5):
        world.tick(61.0)
    assert len(world.told(Evict)) == first + 3


def test_an_evicted_gang_starts_again_as_a_whole_elsewhere():
    world = running(pods=4, fail_fast=True)
    bad = where(world)
    remove(world, bad)
    terminate(world)
    world.tick()
    for each in list(world.pods.values()):
        world.delete(each)
    fresh = [pod(f"h{i}", annotations=group("g", 4, RACK)) for i in range(4)]
    world.put(*fresh)
    world.tick()
    placed = world.schedule(*fresh)
    assert len(placed) == 4
    assert len(racks(placed)) == 1
    assert racks(placed) != {bad[:2]}


def test_a_mistake_of_the_replacement_evicts_nobody():
    world = running(fail_fast=True)
    fail(world)
    annotations = {**group("g", 2), REQUIRED: "example.com/unknown-level"}
    assert replace(world, gpus=4, annotations=annotations) == {}
    assert world.told(Evict) == []


# -- fail_fast only for failures -------------------------------------------------------------------


def never_evicted(world, seconds=100):
    for _ in range(seconds):
        world.tick(1.0)
    return world.told(Evict) == []


def test_with_fail_fast_a_pod_that_ended_on_a_healthy_node_evicts_nobody():
    world = running(pods=4, fail_fast=True, owed_seconds=0.0)
    on = where(world)
    terminate(world)
    assert never_evicted(world, 5)
    world.delete(world.pods["uid-g1"])
    world.put(pod("stranger", on=on, priority=1000))
    assert replace(world, total=4) == {}
    assert never_evicted(world)


def test_with_fail_fast_more_pods_than_there_is_room_for_evict_nobody():
    said = [job("train", 4)]
    pods = job_pods("train", 4, **{REQUIRED: RACK})
    world = World(four_racks(), pods, said, fail_fast=True)
    assert len(world.schedule(*pods)) == 4
    world.put(msgspec.structs.replace(job("train", 5), version="2"))
    (late,) = job_pods("train", 5, **{REQUIRED: RACK})[4:]
    world.put(late)
    assert never_evicted(world)
    assert any("runs without 1 of its pods" in sentence for sentence in world.reports)


def job_of_three():
    """A Job that runs on three of the four nodes of its rack."""
    pods = job_pods("train", 3, **{REQUIRED: RACK})
    world = World(four_racks(), pods, [job("train", 3)], fail_fast=True)
    assert len(world.schedule(*pods)) == 3
    return world


def declare(world, pods):
    """The Job is to have so many pods."""
    world.put(msgspec.structs.replace(job("train", pods), version="2"))


def make(world, *numbers):
    """The Job makes pods."""
    every = job_pods("train", max(numbers) + 1, **{REQUIRED: RACK})
    world.put(*(every[number] for number in numbers))


def lose(world, name):
    """A node fails under a pod, and the pod is gone."""
    lost = world.pods[f"uid-{name}"]
    remove(world, lost.node)
    world.delete(lost)
    world.tick()


@pytest.mark.parametrize("first", ["raised", "lost"])
def test_with_fail_fast_a_raise_evicts_nobody_where_the_lost_pod_has_another_node(first):
    world = job_of_three()
    for step in (first, "lost" if first == "raised" else "raised"):
        if step == "raised":
            declare(world, 4)
        else:
            lose(world, "train-1")
    assert len(world.held) == 1
    make(world, 3, 4)
    assert never_evicted(world, 10)
    assert any("runs without 1 of its pods" in sentence for sentence in world.reports)


def test_with_fail_fast_a_second_loss_evicts_after_a_raise_too():
    world = job_of_three()
    lose(world, "train-1")
    declare(world, 4)
    make(world, 3, 4)
    lose(world, "train-2")
    assert {effect.name for effect in world.told(Evict)} - {"train-2"} == {"train-0"}


def test_with_fail_fast_a_replacement_that_selects_no_node_evicts_nobody():
    world = running(fail_fast=True)
    fail(world)
    world.delete(world.pods["uid-g1"])
    nowhere = Shape(selector=(("disk", "none"),))
    assert replace(world, shape=nowhere) == {}
    assert never_evicted(world)


@each_trigger
def test_with_fail_fast_and_no_replacement_of_failed_nodes_nobody_is_evicted(trigger):
    world = running(pods=4, fail_fast=True, replace_failed_nodes=False)
    trigger(world, where(world))
    terminate(world)
    world.delete(world.pods["uid-g1"])
    assert replace(world, total=4) == {}
    assert never_evicted(world)


def test_with_fail_fast_a_pod_lost_before_its_node_counts_as_failed_evicts_nobody_until_then():
    world = running(pods=4, fail_fast=True, replace_on_pod_termination=False)
    change(world, where(world), is_ready=False)
    world.delete(world.pods["uid-g1"])
    assert never_evicted(world, 29)
    world.tick(2.0)
    world.tick()
    assert {effect.name for effect in world.told(Evict)} == {"g0", "g2", "g3"}


def test_with_fail_fast_a_node_that_comes_back_has_not_failed():
    world = running(pods=4, fail_fast=True, replace_on_pod_termination=False)
    bad = where(world)
    change(world, bad, is_ready=False)
    world.delete(world.pods["uid-g1"])
    world.tick(20.0)
    change(world, bad, is_ready=True)
    world.put(pod("stranger", on=bad, priority=1000))
    assert never_evicted(world)


def test_with_fail_fast_a_gang_that_has_all_its_pods_again_forgets_the_failure():
    world = running(fail_fast=True)
    remove(world, where(world))
    world.delete(world.pods["uid-g1"])
    assert len(replace(world)) == 1
    world.tick(1.0)
    world.put(pod("s0", on="n02"), pod("s1", on="n03"))
    terminate(world, "g1-new")
    world.delete(world.pods["uid-g1-new"])
    world.put(*(pod(f"t{at}{n}", on=f"n{at}{n}") for at in range(4) for n in range(4)))
    assert replace(world, name="g2") == {}
    assert never_evicted(world)


# -- evictions that would end the owner for good ---------------------------------------------------


def lose_for_long(world, pods, uid):
    """All start; one goes with its node, and its replacement finds no other one."""
    assert len(world.schedule(*pods)) == 4
    lost = world.pods[uid]
    remove(world, lost.node)
    world.delete(lost)
    world.put(msgspec.structs.replace(lost, name="again", uid="uid-again", node=""))
    for _ in range(200):
        world.tick(1.0)


@pytest.mark.parametrize(
    ("left", "is_evicted"),
    [
        pytest.param(None, True, id="any_number"),
        pytest.param(3, True, id="as_many"),
        pytest.param(2, False, id="one_too_few"),
    ],
)
def test_a_job_that_would_fail_for_good_is_not_evicted_and_its_owner_is_told(left, is_evicted):
    said = msgspec.structs.replace(job("train", 4), failures_left=left)
    pods = job_pods("train", 4, **{REQUIRED: RACK})
    world = World(four_racks(), pods, [said], fail_fast=True)
    lose_for_long(world, pods, "uid-train-1")
    assert bool(world.told(Evict)) is is_evicted
    refused = [e.sentence for e in world.told(EmitEvent) if e.reason == "GangNotEvicted"]
    assert len(refused) == (not is_evicted)
    if left == 2:  # its owner may run with a policy from now on
        world.put(msgspec.structs.replace(said, failures_left=None, version="2"))
        world.tick(61.0)
        world.tick(61.0)
        assert {effect.name for effect in world.told(Evict)} == {"train-0", "train-2", "train-3"}


@pytest.mark.parametrize(("left", "is_evicted"), [(None, True), (3, True), (2, False)])
def test_a_group_is_not_evicted_if_the_job_that_made_its_pods_would_fail(left, is_evicted):
    said = msgspec.structs.replace(job("j", 4), failures_left=left)
    owner = job_owner("j")
    pods = [msgspec.structs.replace(each, owner=owner) for each in members("g", 4)]
    world = World(four_racks(), pods, [said], fail_fast=True)
    lose_for_long(world, pods, "uid-g1")
    assert bool(world.told(Evict)) is is_evicted
    refused = [each for each in world.told(EmitEvent) if each.reason == "GangNotEvicted"]
    assert len(refused) == (not is_evicted)


@pytest.mark.parametrize(("action", "is_evicted"), [("RestartJob", True), ("AbortJob", False)])
def test_pods_of_a_vcjob_that_their_eviction_ends_for_good_are_not_evicted(action, is_evicted):
    made = {
        "metadata": {"namespace": "default", "name": "train", "uid": "u"},
        "spec": {"policies": [{"event": "PodEvicted", "action": action}]},
    }
    owner = Owner("batch.volcano.sh/v1alpha1", "Job", "train", "u")
    pods = [msgspec.structs.replace(each, owner=owner) for each in members("g", 4)]
    world = World(four_racks(), pods, [decode_job(msgspec.json.encode(made))], fail_fast=True)
    lose_for_long(world, pods, "uid-g1")
    assert bool(world.told(Evict)) is is_evicted


def test_a_training_job_that_counts_pods_that_run_and_end_as_failed_is_not_evicted():
    said = workload("TFJob", "t", {"Worker": 4}, level=RACK, failures_left=0, fails_if_lost=True)
    pods = training_pods("TFJob", "t", {"Worker": 4}, RACK)
    world = World(four_racks(), pods, [said], fail_fast=True)
    lose_for_long(world, pods, "uid-t-worker-1")
    assert world.told(Evict) == []
    (refused,) = [e.sentence for e in world.told(EmitEvent) if e.reason == "GangNotEvicted"]
    assert "restartPolicy" in refused


@pytest.mark.parametrize("end", [{"is_terminating": True}, {"phase": "Failed"}], ids=str)
@pytest.mark.parametrize(
    ("left", "counted", "is_evicted"),
    [
        pytest.param(4, 0, True, id="as_many"),
        pytest.param(3, 0, False, id="one_too_few"),
        pytest.param(3, 1, True, id="counted"),
    ],
)
def test_a_lost_pod_that_is_still_there_counts_unless_it_has_been_counted(
    end, left, counted, is_evicted
):
    said = msgspec.structs.replace(job("train", 4), failures_left=left, failures=counted)
    pods = job_pods("train", 4, **{REQUIRED: RACK})
    world = World(four_racks(), pods, [said], fail_fast=True)
    assert len(world.schedule(*pods)) == 4
    lost = world.pods["uid-train-1"]
    remove(world, lost.node)
    world.put(msgspec.structs.replace(lost, version="2", **end))
    world.put(msgspec.structs.replace(lost, name="again", uid="uid-again", node=""))
    for _ in range(200):
        world.tick(1.0)
    assert bool(world.told(Evict)) is is_evicted


# -- running pods are left alone -------------------------------------------------------------------

nodes_of_rack = st.integers(0, 3)
step = st.one_of(
    st.tuples(st.sampled_from(sorted(TRIGGERS)), nodes_of_rack),
    st.tuples(st.just("heal"), nodes_of_rack),
    st.tuples(st.sampled_from(["terminate", "fail", "gone", "new"]), st.integers(0, 2)),
    st.tuples(st.just("tick"), st.sampled_from([0, 1, 40])),
)


def play(world, kind, index):
    name = f"n0{index}"
    if kind == "tick":
        world.tick(index or 0.1)
    elif kind == "heal":
        world.put(node(f"b0/r0/{name}"))
    elif kind in TRIGGERS:
        if name in world.engine.books.nodes:
            TRIGGERS[kind](world, name)
    elif kind == "new":
        fresh = pod(f"x{len(world.effects)}-{world.now}", annotations=group("g", 3, RACK))
        world.put(fresh)
        world.schedule(*[each for each in world.pods.values() if not each.node])
    elif len(world.pods) > index:
        record = list(world.pods.values())[index]
        if kind == "gone":
            world.delete(record)
        elif kind == "fail":
            world.put(msgspec.structs.replace(record, phase="Failed"))
        else:
            world.put(msgspec.structs.replace(record, is_terminating=True))


@pytest.mark.slow
@pytest.mark.parametrize("fail_fast", [False, True])
@given(steps=st.lists(step, max_size=30))
def test_nothing_is_ever_done_to_a_pod_that_runs_but_its_eviction(fail_fast, steps):
    world = World(four_racks(), members("g", 3), fail_fast=fail_fast)
    world.schedule(*world.pods.values())
    for kind, index in steps:
        before, seen = {uid: each.node for uid, each in world.pods.items()}, len(world.effects)
        play(world, kind, index)
        for effect in world.effects[seen:]:
            if isinstance(effect, EmitEvent) or not before.get(effect.uid):
                continue
            assert isinstance(effect, Evict)
            assert fail_fast
    live = [each for each in world.pods.values() if each.node and each.phase == "Pending"]
    assert len({(each.node) for each in live}) == len(live)  # 8 of 8 GPUs each


def test_a_binding_asked_for_again_names_the_node_the_pod_runs_on():
    world = running()
    on = where(world)
    change(world, on, is_ready=False)
    answer = world.bind(world.pods["uid-g1"], on)
    assert [effect.node for effect in answer if isinstance(effect, Bind)] == [on]
    assert not isinstance(world.filter(world.pods["uid-g1"]), Pinned)
