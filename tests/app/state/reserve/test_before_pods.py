"""Places kept for pods that do not exist yet: fast admission, declared workers, spares."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.dialects.workloads import Template
from app.kube.core.objects import Shape, Toleration
from app.state.filter_result import Pinned, Rejected
from app.state.gang.gang import Phase
from tests.app.state.lost import PREFIX, failed, not_ready, started
from tests.app.state.world import World, four_racks, racks
from tests.records import (
    GPU,
    RACK,
    REQUIRED,
    SLICE_LEVEL,
    SLICE_SIZE,
    group,
    job,
    job_pods,
    node,
    pod,
)
from tests.workload_pods import group_pods, job_set, stateful_pods, workload

SPARES = {"corral.dev/spare-pods": "1"}


def test_fast_admission_takes_places_for_all_when_the_first_pod_is_there():
    annotations = group("g", 4, RACK, **{PREFIX + "pod-group-fast-admission": "true"})
    first, *others = [pod(f"g{i}", annotations=annotations) for i in range(4)]
    world = World(four_racks(), [first])
    assert len(world.held) == 4
    assert len(racks(world.held)) == 1
    rack = racks(world.schedule(first))
    for each in others:
        world.put(each)
        world.tick()
        assert racks(world.schedule(each)) == rack
    assert world.held == {}


def test_fast_admission_waits_where_not_all_of_them_fit():
    annotations = group("g", 5, RACK, **{PREFIX + "pod-group-fast-admission": "true"})
    world = World(four_racks(), [pod("g0", annotations=annotations)])
    assert world.held == {}
    assert isinstance(world.filter(world.pods["uid-g0"]), Rejected)


def test_a_member_behind_a_foreign_gate_has_its_place_in_a_gang_that_may_start_without_it():
    record = workload("StatefulSet", "db", {"": 3}, is_gradual=True)
    first, second, third = stateful_pods("db", 3, RACK)
    world = World(four_racks(), [pod(f"f{i}", on=f"n0{i}") for i in range(2)], jobs=[record])
    world.put(msgspec.structs.replace(second, gates=("example.com/quota",)), first)
    world.tick()
    assert len(world.held) == 3
    world.schedule(first)
    world.put(second)
    world.tick()
    assert second.uid in world.held
    assert len(world.held) == 2
    world.put(third)
    world.tick()
    placed = {**world.schedule(second, third), first.name: world.pods[first.uid].node}
    assert len(racks(placed)) == 1


def driver(workers=3, gpus=8, **template):
    sets = [
        {"name": "driver", "count": 1},
        {
            "name": "workers",
            "count": workers,
            "template": {
                "spec": {
                    "containers": [
                        {"name": "w", "resources": {"requests": {"cpu": "1", GPU: str(gpus)}}}
                    ]
                }
            },
        },
    ]
    annotations = {
        PREFIX + "pod-group-name": "g",
        PREFIX + "pod-group-sets": json.dumps(sets),
        REQUIRED: RACK,
    }
    return pod("driver", gpus=0, annotations=annotations)


def worker(name, gpus=8):
    labels = {PREFIX + "pod-group-name": "g", PREFIX + "pod-group-role": "workers"}
    return pod(name, gpus=gpus, labels=labels, annotations={REQUIRED: RACK})


def test_kep_976_story_3_a_driver_starts_only_where_its_declared_workers_fit():
    world = World(four_racks(), [driver(workers=3)])
    assert len(world.held) == 4
    assert len(racks(world.held)) == 1
    placed = world.schedule(world.pods["uid-driver"])
    for name in ("w0", "w1", "w2"):
        world.put(worker(name))
        world.tick()
        placed |= world.schedule(world.pods[f"uid-{name}"])
    assert len(placed) == 4
    assert len(racks(placed)) == 1
    assert world.held == {}


def test_kep_976_story_3_a_driver_waits_while_its_workers_would_not_fit():
    world = World(four_racks(), [driver(workers=5)])
    assert world.held == {}
    assert isinstance(world.filter(world.pods["uid-driver"]), Rejected)


def test_kep_976_worker_pods_beyond_the_count_are_not_scheduled():
    world = World(four_racks(), [driver(workers=1)])
    world.schedule(world.pods["uid-driver"])
    world.put(worker("w0"), worker("w1"))
    world.tick()
    answers = [world.filter(world.pods[uid]) for uid in ("uid-w0", "uid-w1")]
    assert isinstance(answers[0], Pinned)
    assert "one more than the 2 pods" in answers[1].sentence


def driver_with_workers():
    world = World(four_racks(), [driver(workers=2), worker("w0"), worker("w1")])
    for _ in range(3):
        world.schedule(*world.pods.values())
        world.tick()
    assert all(each.node for each in world.pods.values())
    return world


@pytest.mark.parametrize("is_seen", [True, False], ids=["seen", "gone_at_once"])
def test_nobody_is_expected_instead_of_a_driver_that_succeeds_on_a_node_that_goes(is_seen):
    world = driver_with_workers()
    leader = next(each for each in world.pods.values() if each.name == "driver")
    lost = [each for each in world.pods.values() if each.node == leader.node]
    world.delete(world.engine.books.nodes[leader.node])
    world.tick()
    assert len(world.held) == len(lost)
    world.put(msgspec.structs.replace(leader, phase="Succeeded"))
    if not is_seen:  # before the next roll call
        world.delete(leader)
    world.tick()
    assert len(world.held) == len(lost) - 1


def test_workers_to_come_are_expected_beside_one_that_another_corral_bound_in_another_rack():
    world = World(four_racks(), [driver(workers=3)])
    (leader,) = world.pods.values()
    world.schedule(leader)
    world.tick()
    (planned,) = racks(world.held)
    elsewhere = next(name for name in world.engine.books.nodes if name[:2] != planned)
    world.put(msgspec.structs.replace(worker("w0"), node=elsewhere, phase="Running"))
    for _ in range(30):
        world.tick()
    assert len(world.held) == 2
    assert racks(world.held) == {elsewhere[:2]}


def test_a_spare_place_is_held_beside_the_members_and_taken_over_at_once():
    world = started(total=2, annotations=SPARES)
    (spare,) = world.held.values()
    bad = world.pods["uid-g1"].node
    world.put(not_ready(bad), failed(world, "uid-g1"))
    annotations = {**group("g", 2, RACK), **SPARES}
    world.put(pod("g9", annotations=annotations, uid="uid-g9"))
    world.tick()
    placed = world.schedule(world.pods["uid-g9"])
    assert placed["g9"][:2] == spare[:2]


def test_a_spare_place_stays_where_it_is_when_a_member_goes():
    world = started(total=2, annotations=SPARES)
    ((uid, spare),) = world.held.items()
    world.delete(world.pods["uid-g1"])
    world.tick()
    assert world.held[uid] == spare


def test_a_spare_place_there_is_no_room_for_keeps_nobody_waiting():
    world = started(total=4, annotations=SPARES)
    assert world.held == {}
    assert world.gang("g").phase is Phase.RUNNING


def test_a_pod_whose_node_closes_comes_before_a_spare_of_its_gang():
    annotations = {**group("g", 2, RACK), **SPARES}
    runs, waits = (pod(f"g{i}", gpus=8, annotations=annotations) for i in range(2))
    runs = msgspec.structs.replace(runs, node="n0", phase="Running")
    world = World([node(f"b0/r0/n{i}") for i in range(3)], [runs, waits])
    planned = world.held[waits.uid]
    (spare,) = {"n1", "n2"} - {planned}
    world.put(node(f"b0/r0/{planned}", is_cordoned=True))
    world.tick(1.1)
    assert world.held == {waits.uid: spare}


def test_a_pod_to_come_whose_node_closes_comes_before_a_spare_of_its_gang():
    annotations = group("g", 2, RACK, **{PREFIX + "pod-group-fast-admission": "true"})
    first = pod("g0", gpus=8, on="n0", phase="Running", annotations={**annotations, **SPARES})
    world = World([node(f"b0/r0/n{i}") for i in range(3)], [first])
    (expected,) = (uid for uid, each in world.gang().placeholders.items() if not each.is_spare)
    planned = world.held[expected]
    (spare,) = {"n1", "n2"} - {planned}
    world.put(node(f"b0/r0/{planned}", is_cordoned=True))
    world.tick(1.1)
    assert world.held == {expected: spare}
    second = pod("g1", gpus=8, annotations={**annotations, **SPARES})
    world.put(second)
    assert world.schedule(second) == {"g1": spare}


def test_spares_end_with_the_members_that_asked_for_them():
    asks, other = (
        pod(f"g{i}", annotations={**group("g", 2, RACK), **(SPARES if not i else {})})
        for i in range(2)
    )
    world = World(four_racks(), [asks, other])
    world.schedule(asks, other)
    world.tick()
    assert len(world.held) == 1
    world.put(msgspec.structs.replace(world.pods[asks.uid], phase="Succeeded"))
    world.tick()
    assert world.held == {}


def test_a_gang_whose_job_has_gone_has_no_spares():
    pods = job_pods("train", 2, **{REQUIRED: RACK, **SPARES})
    world = World(four_racks(), pods, [job("train", 2)])
    assert len(world.held) == 3
    world.delete(job("train", 2))
    for _ in range(30):
        world.tick()
        assert world.held == {}
    assert world.gang("train").phase is Phase.GATHERING


# -- pods of templates that come later ----------------------------------------------------------


def in_order(pods: int, like, **settings) -> World:
    """A JobSet of two pods `a`, which run first, and so many `b`; only the Job of `a` exists."""
    jobs, made = job_set("js", {"a": (1, 2), "b": (1, pods)}, RACK)
    whole = workload("JobSet", "js", {"b": pods}, level=RACK, like=like, jobs=1, is_gradual=True)
    world = World(four_racks(), jobs=[whole, jobs[0]], **settings)
    world.put(*made[:2])
    world.tick()
    world.later = (jobs[1], made[2:])
    return world


def test_the_first_job_of_a_job_set_in_order_waits_while_the_others_would_not_fit_beside_it():
    world = in_order(5, like=pod("like"))
    assert world.held == {}
    assert isinstance(world.filter(world.pods["uid-js-a-0-0"]), Rejected)


def test_pods_of_later_jobs_find_the_places_held_for_them_by_their_numbers():
    world = in_order(2, like=pod("like"))
    assert len(world.held) == 4
    (rack,) = racks(world.held)
    world.schedule(world.pods["uid-js-a-0-0"], world.pods["uid-js-a-0-1"])
    kept = sorted(world.held.values())
    job_b, pods = world.later
    world.put(job_b, *reversed(pods))
    world.tick()
    assert [world.held[each.uid] for each in pods] == kept  # rank i on node i, whoever came first
    assert racks(world.schedule(*pods)) == {rack}
    assert world.held == {}


def test_strangers_do_not_get_what_is_held_for_later_jobs():
    world = in_order(2, like=pod("like"))
    answer = world.filter(pod("stranger", gpus=8))
    assert set(world.held.values()) <= answer.without


def test_a_pod_that_is_smaller_than_its_template_takes_the_place_held_for_it():
    world = in_order(2, like=pod("like"))
    world.schedule(world.pods["uid-js-a-0-0"], world.pods["uid-js-a-0-1"])
    job_b, pods = world.later
    smaller = [msgspec.structs.replace(each, request=pod("x", gpus=4).request) for each in pods]
    kept = sorted(world.held.values())
    world.put(job_b, *smaller)
    world.tick()
    assert [world.held[each.uid] for each in smaller] == kept


def test_a_pod_too_large_for_the_place_held_for_it_is_planned_anew():
    world = in_order(1, like=pod("like", gpus=4))
    world.schedule(world.pods["uid-js-a-0-0"], world.pods["uid-js-a-0-1"])
    (kept,) = world.held.values()
    world.put(pod("stranger", gpus=4, on=kept))
    world.tick()
    assert list(world.held.values()) == [kept]
    job_b, (large,) = world.later
    world.put(job_b, large)
    world.tick()
    assert world.held[large.uid] != kept
    assert racks(world.held) == {kept[:2]}


@pytest.mark.parametrize("at_once", [False, True])
def test_jobs_that_are_to_be_alone_start_with_their_first_pods_where_all_fit(at_once):
    in_slices = {SLICE_LEVEL: RACK, SLICE_SIZE: "2"}
    alone = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
    jobs, made = job_set("js", {"w": (2, 2)}, RACK)
    part = Template("", 2, in_slices)
    jobs = [msgspec.structs.replace(one, annotations=alone, templates=(part,)) for one in jobs]
    part = Template("w", 4, in_slices, pod("like"), 2)
    whole = msgspec.structs.replace(workload("JobSet", "js", {}), templates=(part,))
    # API servers write this on pods, and not on their templates.
    not_ready = Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute", True)
    made = [
        msgspec.structs.replace(one, annotations=in_slices, shape=Shape(tolerations=(not_ready,)))
        for one in made
    ]
    nodes = [one for one in four_racks() if one.name[2] in "01"]  # a Job fills a rack
    world = World(nodes, jobs=[whole, *jobs])
    leaders, followers = made[::2], made[1::2]
    for some in [leaders] if at_once else [leaders[:1], leaders[1:]]:
        world.put(*some)
        world.tick()
    assert len(world.held) == 4
    placed = world.schedule(*leaders)
    assert len(racks(placed)) == 2
    kept = sorted(world.held.values())
    for follower, on in zip(followers, placed.values(), strict=True):
        shape = Shape(((RACK, f"r{on[1]}"),), tolerations=(not_ready,))
        world.put(msgspec.structs.replace(follower, shape=shape))
        world.tick()
    assert sorted(world.held.values()) == kept
    assert racks(world.schedule(*followers)) == racks(placed)


def leader_and_workers(workers: int, **settings) -> tuple[World, list]:
    """A group whose leader has a template of its own and is there; its workers wait for it."""
    like, (leader, *rest) = pod("like"), group_pods("lws", 0, workers + 1, RACK)
    record = workload(
        "LeaderWorkerSet", "lws", {"leader": 1, "worker": workers}, level=RACK, is_gradual=True
    )
    templates = tuple(
        msgspec.structs.replace(each, like=like if each.name == "worker" else None)
        for each in record.templates
    )
    record = msgspec.structs.replace(record, templates=templates)
    world = World(four_racks(), jobs=[record], **settings)
    leader = msgspec.structs.replace(leader, request=pod("x", gpus=0).request)
    world.put(leader)
    world.tick()
    return world, [leader, *rest]


def test_a_leader_of_its_own_template_starts_only_where_its_workers_fit():
    world, (leader, *_) = leader_and_workers(5)
    assert world.held == {}
    assert isinstance(world.filter(leader), Rejected)


def test_workers_that_come_after_their_leader_take_the_places_held_for_them():
    world, (leader, *workers) = leader_and_workers(4)
    assert len(world.held) == 5
    (rack,) = racks({uid: node for uid, node in world.held.items() if uid != leader.uid})
    world.schedule(leader)
    kept = sorted(world.held.values())
    for each in (workers[2], workers[0], workers[3], workers[1]):
        world.put(each)
        world.tick()
    assert [world.held[each.uid] for each in workers] == kept
    assert racks(world.schedule(*workers)) == {rack}
    assert world.held == {}


def test_after_a_restart_the_places_for_later_pods_are_held_again():
    world, (leader, *_) = leader_and_workers(4)
    world.schedule(leader)
    held = sorted(world.held.values())
    again = World(
        four_racks(), world.pods.values(), jobs=list(world.engine.objects.by_uid.values())
    )
    again.tick()
    assert sorted(again.held.values()) == held


@pytest.mark.parametrize("first", [0, 1, 2])
def test_after_a_restart_places_are_held_for_the_numbers_that_have_not_come(first):
    jobs, made = job_set("js", {"a": (1, 2), "b": (1, 3)}, RACK)
    whole = workload(
        "JobSet", "js", {"b": 3}, level=RACK, like=pod("like"), jobs=1, is_gradual=True
    )
    there = made[2 + first]
    world = World(four_racks(), [*made[:2], there], jobs=[whole, jobs[0]])
    numbers = [each.member.index for each in world.gang().placeholders.values()]
    assert len(set(numbers)) == len(numbers) == 2
    assert world.gang().members[there.uid].index not in numbers
