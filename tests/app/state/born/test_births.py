"""Gangs whose pods are stored where they belong: from the first pod's creation to the start."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest

from app.dialects import corral
from app.dialects.quota.dialect import QuotaRecord
from app.dialects.volcano.jobs import decode_job
from app.kube.core.objects import Owner, PodRecord
from app.kube.watch.events import Listed
from app.state.effects import Mark
from app.state.filter_result import Pinned, Rejected
from app.state.turns.budget import POD
from tests.app.dialects.volcano.workloads import task, vcjob
from tests.app.state.born.nursery import ASKED, SECONDS, Nursery, fast, nursery, rack, train
from tests.app.state.histories.test_pod_groups import KINDS as VOLCANO
from tests.app.state.histories.test_pod_groups import group as volcano_group
from tests.app.state.histories.test_pod_groups import pods as volcano_pods
from tests.app.state.world import members
from tests.records import RACK, group, job, job_pods, node, pod


def test_the_first_pod_of_a_job_is_narrowed_to_the_nodes_of_its_gang_and_to_racks_beside():
    jobs, pods = train()
    world = nursery([*rack(0, 3), *rack(1)], jobs)
    nodes = world.asked(pods[0])
    assert nodes == ("n10", "n11", "n12", "n13", "n00", "n01", "n02")
    assert sorted(world.held.values()) == ["n10", "n11", "n12", "n13"]


def test_a_gang_that_loses_a_node_before_it_starts_finds_another_rack_beside():
    nodes = [*rack(0), *rack(1)]
    jobs, pods = train()
    world = nursery(nodes, jobs, born_seconds=60.0)
    stored = [world.created(each) for each in pods]
    world.put(*stored[:2])
    lost = set(world.held.values())
    world.delete(nodes[0] if nodes[0].name in lost else nodes[4])
    for _ in range(30):
        world.tick(1.0)
    world.put(*stored[2:])
    for _ in range(3):
        placed = world.schedule(*world.pods.values())
    assert len(placed) == 4
    assert {each[:2] for each in placed.values()} != {each[:2] for each in lost}


def test_pods_that_come_after_a_plan_was_made_anew_are_narrowed_to_that_one():
    nodes = [*rack(0), *rack(1)]
    jobs, pods = train()
    world = nursery(nodes, jobs, born_seconds=60.0)
    world.put(world.created(pods[0]))
    before = world.asked(pods[1])
    world.delete(nodes[0])
    for _ in range(10):
        world.tick(1.0)
    after = world.asked(pods[1])
    assert before is not None
    assert after is not None
    assert set(before[:4]) == {each.name for each in nodes[:4]}
    assert set(after[:4]) == {each.name for each in nodes[4:]}


def test_no_more_nodes_are_named_than_pods_are_narrowed_to():
    jobs, pods = train()
    world = nursery([*rack(0), *rack(1), *rack(2)], jobs, narrow_nodes=9)
    nodes = world.asked(pods[0])
    assert nodes is not None
    assert len(nodes) == 8
    assert len({each[:2] for each in nodes}) == 2, "whole racks"


@pytest.mark.parametrize("most", [0, 3])
def test_nothing_is_held_for_a_gang_on_more_nodes_than_pods_are_narrowed_to(most):
    jobs, pods = train()
    world = nursery(rack(0), jobs, narrow_nodes=most)
    assert world.asked(pods[0]) is None
    assert world.held == {}
    assert world.engine.gangs.by_key == {}


def test_nothing_is_held_when_the_only_pod_that_has_come_is_gone():
    jobs, pods = train()
    world = nursery(rack(0), jobs)
    first = world.created(pods[0])
    world.put(first)
    world.delete(first)
    assert world.held == {}
    world.tick()
    assert world.asked(pods[1]) is not None, "the others are planned anew"
    assert len(world.held) == 4


def test_asked_again_it_is_answered_alike_and_takes_nothing_more():
    jobs, pods = train()
    world = nursery(rack(0), jobs)
    answers = {world.asked(pods[0]) for _ in range(3)}
    assert len(answers) == 1
    assert len(world.held) == 4


def test_every_pod_passes_filter_at_once_and_all_are_bound_together():
    jobs, pods = train()
    world = nursery([*rack(0, 3), *rack(1)], jobs)
    bound = []
    for each in pods:
        stored = world.created(each)
        assert not stored.gates
        world.put(stored)
        answer = world.filter(stored)
        assert isinstance(answer, Pinned)
        assert not world.told(type(bound)) if bound else True
        bound = world.bind(stored, answer.node)
    world.confirm(bound)
    assert sorted(each.node for each in world.pods.values()) == ["n10", "n11", "n12", "n13"]
    world.tick()
    assert world.gang().phase.value == "running"
    assert world.gang().birth is None


def test_nothing_is_bound_before_the_last_pod_has_come():
    jobs, pods = train()
    world = nursery(rack(0), jobs)
    for each in pods[:3]:
        stored = world.created(each)
        world.put(stored)
        assert world.bind(stored, world.filter(stored).node) == []
    assert [world.tick(1.0) for _ in range(5)] == [[]] * 5


def test_a_pod_that_the_watch_has_not_shown_takes_its_place_and_is_bound_when_it_does():
    jobs, pods = train(2)
    world = nursery(rack(0, 2), jobs)
    stored = [world.created(each) for each in pods]
    effects = []
    for each in stored:
        answer = world.filter(each)
        assert isinstance(answer, Pinned)
        effects += world.bind(each, answer.node)
    assert effects == []
    world.put(stored[0])
    assert world.told(type(None)) == []
    world.effects.clear()
    world.put(stored[1])
    assert {each.uid for each in world.effects if type(each).__name__ == "Bind"} == {
        each.uid for each in stored
    }


def test_a_pod_that_the_watch_never_shows_has_its_place_for_a_moment():
    jobs, pods = train(2)
    world = nursery(rack(0, 2), jobs, born_seconds=60.0)
    first, second = (world.created(each) for each in pods)
    world.put(first)
    assert isinstance(world.filter(second), Pinned)
    for _ in range(6):
        world.tick(1.0)
    assert second.uid not in world.engine.gangs.key_of
    assert set(world.held) >= {first.uid}


def test_a_gang_whose_only_pod_the_watch_never_shows_awaits_its_first_again():
    jobs, pods = train(2)
    world = nursery(rack(0, 2), jobs, born_seconds=60.0)
    only, _ = (world.created(each) for each in pods)
    assert isinstance(world.filter(only), Pinned)
    for _ in range(6):
        world.tick(1.0)
    (gang,) = world.engine.gangs.by_key.values()
    assert (len(gang.members), len(world.held)) == (0, 2)
    assert world.engine.differences() == []


def test_a_pod_that_the_watch_has_not_shown_is_not_believed_in_where_no_place_is_held_for_it():
    jobs, pods = train(2)
    world = nursery(rack(0), jobs)
    for each in pods:
        world.put(world.created(each))
    (*_, third) = job_pods("train", 3, **ASKED)
    assert isinstance(world.filter(third), Rejected)
    assert third.uid not in world.engine.gangs.key_of


def test_no_more_pods_are_believed_in_than_may_be(monkeypatch):
    monkeypatch.setattr("app.state.claims.unseen.MOST_UNSEEN", 1)
    jobs, pods = train(2)
    world = nursery(rack(0, 2), jobs)
    first, second = (world.created(each) for each in pods)
    assert isinstance(world.filter(first), Pinned)
    assert isinstance(world.filter(second), Rejected)
    world.put(first, second)
    assert isinstance(world.filter(second), Pinned)


def test_pods_that_never_come_hold_nothing_for_long():
    jobs, pods = train()
    world = nursery(rack(0), jobs)
    stored = world.created(pods[0])
    world.put(stored)
    for _ in range(12):
        world.tick(1.0)
    assert world.held == {}
    assert world.gang().phase.value == "gathering"
    assert isinstance(world.filter(stored), Rejected)
    later = world.created(pods[1])
    assert later.gates == (corral.GATE,), "what was not whole in time is gathered behind the gate"


def test_what_exists_of_it_starts_inside_what_it_was_narrowed_to_when_all_are_there():
    jobs, pods = train()
    world = nursery([*rack(0), *rack(1)], jobs)
    world.put(world.created(pods[0]))
    for _ in range(12):
        world.tick(1.0)
    for each in pods[1:]:
        world.put(world.created(each))
    for _ in range(5):
        world.patch(world.tick(1.0))
    world.patch([each for each in world.effects if type(each).__name__ == "Ungate"])
    placed = world.schedule(*world.pods.values())
    placed = world.schedule(*world.pods.values())
    assert {each[:2] for each in placed.values()} == {"n0"}
    assert len(placed) == 4


def test_a_creation_that_was_only_tried_leaves_nothing():
    jobs, pods = train()
    world = nursery(rack(0), jobs)
    assert world.asked(pods[0]) is not None
    for _ in range(12):
        world.tick(1.0)
    assert world.held == {}
    assert world.engine.gangs.by_key == {}


@pytest.mark.parametrize(
    ("nodes", "pods", "settings"),
    [
        pytest.param(3, 4, {}, id="no_place"),
        pytest.param(4, 4, {"born_seconds": 0.0}, id="switched_off"),
        pytest.param(
            4,
            4,
            {"absent_pods_per_namespace": 2, "absent_share_per_namespace": 0.0},
            id="no_budget",
        ),
    ],
)
def test_who_cannot_be_planned_waits_behind_the_gate(nodes, pods, settings):
    jobs, made = train(pods)
    world = nursery(rack(0, nodes), jobs, **settings)
    assert world.asked(made[0]) is None
    assert world.held == {}
    assert world.engine.gangs.by_key == {}


@pytest.mark.parametrize(("priority", "is_born"), [(0, False), (10, True)])
def test_no_gang_is_born_on_nodes_that_are_kept_for_one_before_it(priority, is_born):
    """New ones, made for a gang that had asked for them, and too few for it by now."""
    waiting = members("g", 5, gates=(corral.GATE,))
    jobs, pods = train()
    world = nursery([], jobs, waiting)
    for _ in range(5):
        world.tick(10.0)
    assert [each.key.name for each in world.engine.marks.asking()] == ["g"]
    world.put(*rack(0))
    world.tick()
    nodes = world.asked(msgspec.structs.replace(pods[0], priority=priority))
    assert (nodes is not None) == is_born


def test_a_job_that_the_watch_has_not_shown_is_gathered_behind_the_gate():
    _, pods = train()
    world = nursery(rack(0), [])
    assert world.asked(pods[0]) is None


def test_a_pod_too_many_waits_behind_the_gate():
    jobs, pods = train(2)
    world = nursery(rack(0, 3), jobs)
    for each in pods:
        world.put(world.created(each))
    assert world.asked(msgspec.structs.replace(pods[0], uid="another")) is None


def test_pods_that_nobody_makes_anew_wait_behind_the_gate():
    world = nursery(rack(0), [])
    assert world.asked(members("g", 4)[0]) is None
    assert world.held == {}


@pytest.mark.parametrize(
    ("tasks", "held"), [({"worker": 2}, 2), ({"master": 1, "worker": 1}, 0)], ids=["alike", "not"]
)
def test_a_worker_says_nothing_of_what_the_master_is_like(tasks, held):
    made = vcjob("train", *(task(name, 3, min_available=least) for name, least in tasks.items()))
    made["metadata"]["uid"] = "uid-train"
    nodes = [node(f"n{at}", gpus=1) for at in range(4)]
    world = Nursery(nodes, kinds=VOLCANO, levels=(), born_seconds=SECONDS)
    world.apply(Listed("Job.batch.volcano.sh", (decode_job(msgspec.json.encode(made)),)))
    pod_group = volcano_group(2, tasks=tasks, owner="uid-train")
    world.apply(Listed("PodGroup.scheduling.volcano.sh", (pod_group,)))
    world.apply(Listed("HyperNode", ()))
    world.tick()
    owner = Owner("batch.volcano.sh/v1alpha1", "Job", "train", "uid-train")
    (worker,) = volcano_pods(1, owner=owner)
    assert (world.asked(worker) is not None) is (held > 0)
    assert len(world.held) == held


def test_a_group_that_says_fast_admission_is_born_and_starts_with_its_first_pod():
    world = nursery(rack(0), [])
    pods = fast(members("g", 4))
    for number, each in enumerate(pods):
        stored = world.created(each)
        assert not stored.gates
        world.put(stored)
        assert len(world.schedule(stored)) == 1, number
        for _ in range(12):
            world.tick(0.5)
    assert len({each.node for each in world.pods.values()}) == 4
    assert world.held == {}


def test_of_such_a_group_places_are_held_as_it_says_when_its_pods_are_late():
    world = nursery(rack(0), [])
    first = world.created(fast(members("g", 4))[0])
    world.put(first)
    world.schedule(first)
    for _ in range(30):
        world.tick(1.0)
    assert world.gang().birth is None
    assert len(world.held) == 3


def test_a_member_that_came_behind_the_gate_is_ungated_into_its_place():
    jobs, pods = train()
    world = nursery(rack(0), jobs)
    stored = [world.created(each) for each in pods[:3]]
    world.put(*stored, msgspec.structs.replace(pods[3], gates=(corral.GATE,)))
    world.patch([each for each in world.effects if type(each).__name__ == "Ungate"])
    world.schedule(*world.pods.values())
    assert len(world.schedule(*world.pods.values())) == 4


def test_a_member_behind_the_gate_is_not_ungated_before_all_are_there():
    jobs, pods = train()
    world = nursery([*rack(0), *rack(1)], jobs)
    first, *others = (world.created(each) for each in pods)
    world.put(msgspec.structs.replace(pods[0], gates=(corral.GATE,)), *others[:2])
    world.tick(2.0)
    assert world.ungated == [], "it may go anywhere until its gang can start"
    world.put(others[2])
    assert world.ungated == [first.name]


def test_no_node_is_asked_for_before_all_pods_of_the_gang_are_there():
    nodes = rack(0)
    jobs, pods = train()
    world = nursery(nodes, jobs, born_seconds=60.0)
    world.put(world.created(pods[0]))
    world.delete(nodes[0])
    for _ in range(10):
        world.tick(1.0)
    world.put(world.created(pods[1]))
    for _ in range(10):
        world.tick(1.0)
    assert world.pods[pods[1].uid].gates == (corral.GATE,)
    assert world.told(Mark) == []

    world.put(*(world.created(each) for each in pods[2:]))
    for _ in range(20):
        world.tick(1.0)
    assert {each.name for each in world.told(Mark)} == {each.name for each in pods[1:]}


def stranger(namespace: str, pods: int = 4) -> PodRecord:
    """A pod whose group says all there is to know, in a namespace that need not exist."""
    (first, *_) = fast([pod("g-0", annotations=group("g", pods, required=RACK))])
    return msgspec.structs.replace(first, namespace=namespace)


def test_pods_that_never_come_hold_little_whatever_namespaces_they_are_said_to_be_of():
    """The webhook may be asked by whoever reaches its port."""
    nodes = [each for number in range(20) for each in rack(number)]
    bound = {"absent_pods_per_namespace": 4, "absent_share_per_namespace": 0.05}
    world = nursery(nodes, [], **bound)
    for number in range(20):
        world.asked(stranger(f"made-up-{number}"))
        world.tick()
    assert len(world.held) == 8, "one namespace's share, and another's beside it"

    shown = world.created(stranger("made-up-0"))
    world.put(shown)
    assert world.asked(stranger("another")) is not None, "what has come is not counted"


def test_a_gang_that_is_refused_its_places_has_been_work_for_the_tick():
    jobs, pods = train()
    world = nursery(rack(0), jobs, absent_pods_per_namespace=3, absent_share_per_namespace=0.0)
    assert world.asked(pods[0]) is None
    assert world.engine.budget.spent_by("default") >= len(pods) * POD


def test_nothing_is_remembered_of_a_namespace_whose_gang_was_refused_its_places():
    world = nursery(rack(0), [], absent_pods_per_namespace=3, absent_share_per_namespace=0.0)
    assert world.asked(stranger("default")) is None
    allowance = QuotaRecord("ResourceQuota", "default", "q", "uid-q", "", (("pods", 100, 0),))
    assert not world.engine.absent_pods.put_object(allowance), "no gang waits for it"


def test_where_another_corral_leads_a_pod_gets_the_gate():
    jobs, pods = train()
    world = nursery(rack(0), jobs)
    world._take(world.inputs.lead(False, world.now))
    assert world.asked(pods[0]) is None
    world._take(world.inputs.lead(True, world.now))
    world.tick()
    assert world.asked(pods[0]) is not None


def test_a_job_of_any_size_costs_no_more_than_what_may_be_held_for_absent_pods():
    world = nursery(rack(0, 2), [job("train", 10_000_000)])
    first, *_ = job_pods("train", 1, **ASKED)
    tracemalloc.start()
    try:
        assert world.created(first).gates == (corral.GATE,)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2**23
