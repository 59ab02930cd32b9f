"""Gangs of Volcano's PodGroups, as PodGroups, HyperNodes and pods come, change and go."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from app.dialects.registry import DIALECTS
from app.dialects.volcano.jobs import decode_job
from app.dialects.volcano.pod_groups import decode_pod_group
from app.dialects.volcano.queues import decode_queue
from app.dialects.workloads.kubeflow import decode_training_job
from app.kube.watch.events import Listed
from app.state.effects import ReadAgain, WriteStatus
from app.state.filter_result import Rejected
from tests.app.dialects.volcano.objects import exact, record
from tests.app.dialects.volcano.workloads import (
    GROUP_NAME,
    PARTITION,
    TASK,
    network_topology,
    pod_group,
    queue,
    sub_group,
    task,
    vcjob,
)
from tests.app.state.world import LISTED, World
from tests.records import node, pod

KINDS = (*LISTED, "HyperNode", "PodGroup.scheduling.volcano.sh", "Job.batch.volcano.sh")
PATH = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/{}".format
TREE = (
    record("s0", 1, exact("Node", "n0", "n1")),
    record("s1", 1, exact("Node", "n2", "n3")),
    record("s2", 2, exact("HyperNode", "s0", "s1")),
)
LEAF = {"n0": "s0", "n1": "s0", "n2": "s1", "n3": "s1"}


def world_of(*pod_groups, hyper_nodes=TREE, jobs=(), **settings):
    """Four nodes with room for one pod each, in two HyperNodes of tier 1, those in one of 2."""
    world = World([node(f"n{at}", gpus=1) for at in range(4)], kinds=KINDS, levels=(), **settings)
    world.apply(Listed("HyperNode", tuple(hyper_nodes)))
    world.apply(Listed("Job.batch.volcano.sh", tuple(jobs)))
    world.apply(Listed("PodGroup.scheduling.volcano.sh", pod_groups))
    world.tick()
    return world


def group(least, *policies, tier=None, name="pg", version="1", owner="", conditions=(), **more):
    if tier is not None:
        more["topology"] = network_topology(tier)
    made = pod_group(name, least, sub_groups=policies, **more)
    made["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": version}
    if conditions:
        made["status"] = {**made.get("status", {}), "conditions": conditions}
    if owner:
        made["metadata"]["ownerReferences"] = [{"controller": True, "uid": owner}]
    return decode_pod_group(msgspec.json.encode(made))


def pods(count, *, first=0, partition="", **more):
    labels = {TASK: "worker", **({PARTITION: partition} if partition else {})}
    numbers = range(first, first + count)
    return [
        pod(f"p{at}", gpus=1, labels=labels, annotations={GROUP_NAME: "pg"}, **more)
        for at in numbers
    ]


def placed(world, *its):
    world.put(*its)
    world.tick()
    return world.schedule(*its)


def statuses(world):
    """Those of PodGroups."""
    found = (each for each in world.effects if isinstance(each, WriteStatus))
    return [each for each in found if each.gang.source == "volcano"]


def last_status(world):
    return statuses(world)[-1].status


# -- placement -------------------------------------------------------------------------------------


def test_a_gang_is_in_one_hyper_node_of_its_tier():
    world = world_of(group(2, tier=1))
    assert len({LEAF[each] for each in placed(world, *pods(2)).values()}) == 1


def test_pods_wait_for_their_pod_group_and_say_so():
    world = world_of()
    its = pods(2)
    assert placed(world, *its) == {}
    assert world.filter(its[0]) == Rejected("gang default/pg waits until PodGroup pg is there")
    world.put(group(2, tier=1))
    world.tick()
    assert len({LEAF[each] for each in world.schedule(*its).values()}) == 1


def test_a_pod_that_joins_a_gang_whose_pod_group_is_gone_is_told_what_it_waits_for():
    there = group(2, tier=1)
    world = world_of(there)
    assert len(placed(world, *pods(2))) == 2
    world.delete(there)
    (late,) = pods(1, first=2)
    assert placed(world, late) == {}
    assert world.filter(late) == Rejected("gang default/pg waits until PodGroup pg is there")


def test_what_is_needed_starts_and_the_rest_follows_as_it_fits():
    world = world_of(group(2, tier=1))
    its = pods(3)
    assert len(placed(world, *its)) == 2  # a HyperNode of tier 1 has room for two
    world.tick()
    assert len(world.schedule(*its)) == 2


@pytest.mark.parametrize(("least", "held"), [(3, 1), (2, 0)], ids=["it_needs", "it_does_not_need"])
def test_a_place_is_held_for_a_lost_pod_if_the_gang_lacks_one_that(least, held):
    world = world_of(group(least, tier=2))
    its = pods(3)
    placed(world, *its)
    world.tick()
    assert len(world.schedule(*its)) == 3
    world.put(msgspec.structs.replace(world.pods[its[2].uid], phase="Failed"))
    world.tick()
    assert len(world.held) == held


def test_each_sub_group_has_its_own_hyper_node():
    policy = sub_group("worker", 2, min_sub_groups=2, topology=network_topology(1))
    world = world_of(group(4, policy, tier=2))
    its = [*pods(2, partition="0"), *pods(2, first=2, partition="1")]
    on = placed(world, *its)
    assert len(on) == 4
    assert LEAF[on["p0"]] == LEAF[on["p1"]] != LEAF[on["p2"]] == LEAF[on["p3"]]


def test_a_sub_group_that_has_not_started_comes_before_more_pods_of_one_that_has():
    world = world_of(group(0, sub_group("worker", 2)))
    assert len(placed(world, *pods(2, partition="0"))) == 2
    more = [*pods(1, first=2, partition="0"), *pods(2, first=3, partition="1")]
    world.pods.update((each.uid, each) for each in more)
    world.apply(Listed("Pod", tuple(world.pods.values()), edition=1))
    world.tick()
    assert set(world.schedule(*more)) == {"p3", "p4"}  # there was room for two


def test_a_policy_that_changes_sorts_the_waiting_pods_anew():
    half = sub_group("worker", 4, topology=network_topology(1))
    world = world_of(group(4, half, tier=2))
    its = [*pods(2, partition="0"), *pods(2, first=2, partition="1")]
    assert placed(world, *its) == {}  # no sub-group has four pods
    policy = sub_group("worker", 2, min_sub_groups=2, topology=network_topology(1))
    world.put(group(4, policy, tier=2, version="2"))
    world.tick()
    on = world.schedule(*its)
    assert LEAF[on["p0"]] == LEAF[on["p1"]] != LEAF[on["p2"]] == LEAF[on["p3"]]


def test_a_gang_of_too_many_sub_groups_is_told_so():
    world = world_of(group(1, sub_group("worker", 1)))
    its = [pods(1, first=at, partition=str(at))[0] for at in range(300)]
    assert placed(world, *its[:2]) != {}
    world = world_of(group(1, sub_group("worker", 1)))
    assert placed(world, *its) == {}
    answer = world.filter(its[0])
    assert isinstance(answer, Rejected)
    assert "its pods are of 300 kinds, and a gang may have 64" in answer.sentence


def test_a_label_that_a_policy_names_is_read_before_the_gang_starts():
    world = world_of(group(2, sub_group("zoned", 1, labels={}, keys=["zone"])))
    its = pods(2)
    assert placed(world, *its) == {}
    for _ in range(20):
        world.tick()
    assert any(isinstance(each, ReadAgain) for each in world.effects)
    answer = world.filter(its[0])
    assert isinstance(answer, Rejected)
    assert "labels of its pods" in answer.sentence
    again = [
        msgspec.structs.replace(each, labels={**each.labels, "zone": f"z{at}"})
        for at, each in enumerate(its)
    ]
    world.pods.update((each.uid, each) for each in again)
    world.apply(Listed("Pod", tuple(again), edition=1))
    world.tick()
    assert len(world.schedule(*again)) == 2


def test_a_gang_that_waits_follows_its_tier_to_another_level():
    """Tier 1 is one node at first; then there is a HyperNode of tier 1 with two."""
    alone = [record(f"s{at}", 1, exact("Node", f"n{at}")) for at in range(4)]
    world = world_of(group(2, tier=2), hyper_nodes=alone[:1])
    its = pods(2)
    # Tier 2 is the whole cluster as long as nothing is wider than tier 1.
    assert len(placed(world, *its)) == 2
    world = world_of(group(2, tier=2), hyper_nodes=(*alone, record("w", 3, exact("HyperNode"))))
    assert placed(world, *its) == {}
    world.put(record("w", 2, exact("HyperNode", "s2", "s3"), version="2"))
    world.tick()
    assert sorted(world.schedule(*its).values()) == ["n2", "n3"]


@pytest.mark.parametrize(("name", "is_known"), [("leaf", True), ("island", False)])
def test_a_tier_may_have_a_name(name, is_known):
    names = {1: "leaf", 2: "spine"}
    named = [
        msgspec.structs.replace(
            each, domain=replace(each.domain, tier_name=names[each.domain.tier])
        )
        for each in TREE
    ]
    world = world_of(group(2, topology=network_topology(tier_name=name)), hyper_nodes=named)
    its = pods(2)
    on = placed(world, *its)
    if is_known:
        assert len({LEAF[each] for each in on.values()}) == 1
    else:
        assert on == {}
        answer = world.filter(its[0])
        assert isinstance(answer, Rejected)
        assert "tierName island" in answer.sentence


def test_hyper_nodes_that_go_move_nothing_that_runs():
    world = world_of(group(2, tier=1))
    its = pods(2)
    on = placed(world, *its)
    for each in TREE:
        world.delete(each)
    world.tick()
    assert world.schedule(*its) == on


# -- statuses --------------------------------------------------------------------------------------


def job(scheduler, *of_templates):
    tasks = [task(f"t{at}", 2) for at, _ in enumerate(of_templates or ("",))]
    for its, name in zip(tasks, of_templates, strict=False):
        its["template"]["spec"]["schedulerName"] = name
    made = vcjob("train", *tasks, scheduler=scheduler)
    made["metadata"] |= {"uid": "u1"}
    return decode_job(msgspec.json.encode(made))


@pytest.mark.parametrize(
    ("schedulers", "ours", "is_written"),
    [
        (["corral"], "corral", True),
        (["volcano"], "corral", False),
        ([""], "corral", False),
        (["volcano"], "", True),
        # A template's counts before that of the vcjob, which Volcano's webhook fills in.
        (["volcano", "corral"], "corral", True),
        (["volcano", "", "corral"], "corral", True),
        (["corral", "volcano"], "corral", False),
        (["corral", "volcano", ""], "corral", True),
    ],
)
def test_a_pod_group_without_pods_is_inqueue_if_its_vcjob_names_our_scheduler(
    schedulers, ours, is_written
):
    group_of_job = group(2, name="train-u1")
    world = world_of(group_of_job, jobs=[job(*schedulers)], scheduler_name=ours)
    found = [each for each in statuses(world) if each.gang.name == "train-u1"]
    expected = [(PATH("train-u1"), "Inqueue")] if is_written else []
    assert [(each.path, each.status["phase"]) for each in found] == expected


@pytest.mark.parametrize(
    ("scheduler", "made_for", "is_written"),
    [
        pytest.param("corral", "uid-job", True, id="its_job_names_our_scheduler"),
        pytest.param("volcano", "uid-job", False, id="its_job_names_another_scheduler"),
        pytest.param(None, "uid-job", False, id="its_pods_get_the_operators_scheduler"),
        pytest.param("corral", "uid-else", False, id="it_was_made_for_something_of_that_name"),
        pytest.param("corral", "", False, id="it_was_made_by_hand"),
    ],
)
def test_a_pod_group_of_kubeflows_is_inqueue_before_its_job_has_pods(
    scheduler, made_for, is_written
):
    template = {"spec": {"containers": []}}
    if scheduler is not None:
        template["spec"]["schedulerName"] = scheduler
    types = {"Master": {"template": {}}, "Worker": {"replicas": 2, "template": template}}
    job = {
        "metadata": {"namespace": "default", "name": "train", "uid": "uid-job"},
        "spec": {"pytorchReplicaSpecs": types},
    }
    world = world_of(scheduler_name="corral")
    raw = msgspec.json.encode(job)
    world.put(decode_training_job(raw, DIALECTS.keeps, kind="PyTorchJob"))
    world.put(group(3, name="train", owner=made_for))
    world.tick()
    expected = [(PATH("train"), "Inqueue")] if is_written else []
    assert [(each.path, each.status["phase"]) for each in statuses(world)] == expected


def test_a_pod_group_alone_is_left_as_it_is():
    assert statuses(world_of(group(2))) == []


def test_its_phase_follows_its_pods():
    world = world_of(group(2, tier=1))
    its = pods(2)
    world.put(its[0])
    world.tick()
    assert last_status(world)["phase"] == "Inqueue"
    (waits,) = last_status(world)["conditions"]
    assert (waits["type"], waits["reason"]) == ("Unschedulable", "NotEnoughResources")
    assert "waits until" in waits["message"]
    assert len(placed(world, *its)) == 2
    world.tick()
    assert {key: last_status(world)[key] for key in ("phase", "running")} == {
        "phase": "Running",
        "running": 2,
    }
    (ready,) = last_status(world)["conditions"]
    assert ready["type"] == "Scheduled"
    # One is lost: some run, and too few.
    world.delete(world.pods["uid-p0"])
    world.tick()
    assert last_status(world)["phase"] == "Unknown"


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_gang_whose_pods_are_bound_one_after_another_is_never_unknown(beyond):
    """To Volcano's job controller that is an event, to which a policy may restart the job."""
    world = world_of(group(2, tier=1))
    its = pods(2)
    world.put(*its, *pods(beyond, first=2))  # for more there is no room
    world.tick()
    binds = [each for one in its for each in world.bind(one, world.filter(one).node)]
    for each in binds:
        world.confirm([each])
        world.tick()
    phases = [(each.status["phase"], each.status["running"]) for each in statuses(world)]
    assert phases[-2:] == [("Inqueue", 1), ("Running", 2)]
    assert {phase for phase, _ in phases[:-2]} == {"Inqueue"}


def test_it_is_completed_when_all_its_pods_have_succeeded():
    world = world_of(group(2, tier=1))
    its = pods(2)
    assert len(placed(world, *its)) == 2
    for each in its:
        world.put(msgspec.structs.replace(world.pods[each.uid], phase="Succeeded"))
    world.tick()
    assert last_status(world)["phase"] == "Completed"
    assert (last_status(world)["running"], last_status(world)["succeeded"]) == (0, 2)


def test_pods_that_have_failed_and_are_gone_are_counted_no_more():
    world = world_of(group(2, name="train-u1"), jobs=[job("corral")], scheduler_name="corral")
    its = [msgspec.structs.replace(each, annotations={GROUP_NAME: "train-u1"}) for each in pods(2)]
    assert len(placed(world, *its)) == 2
    for each in its:
        world.put(msgspec.structs.replace(world.pods[each.uid], phase="Failed"))
    world.tick()
    assert last_status(world)["failed"] == 2
    failed = group(2, name="train-u1", version="2")
    world.put(msgspec.structs.replace(failed, phase="Inqueue", counted=(0, 0, 2)))
    for each in its:
        world.delete(world.pods[each.uid])
    world.tick()
    assert last_status(world)["failed"] == 0


def test_a_status_is_sent_until_it_shows():
    world = world_of(group(2, name="train-u1"), jobs=[job("corral")])
    sent = len(statuses(world))
    for _ in range(400):  # a Corral that does not lead writes nothing, and later it may lead
        world.tick(1.0)
    again = len(statuses(world)) - sent
    assert 3 <= again <= 6  # after 10 s, then twice as long each time, 300 s at most
    shown = group(2, name="train-u1", phase="Inqueue", version="2")
    world.put(shown)
    sent = len(statuses(world))
    for _ in range(400):
        world.tick(1.0)
    assert len(statuses(world)) == sent


def test_a_status_names_the_version_that_the_watch_showed_last():
    """Also where nothing but an annotation has changed since: with an older one it is refused."""
    others = {"type": "Other", "status": "True"}
    world = world_of(group(2, conditions=[others]))
    world.put(group(2, conditions=[others], version="2"))
    world.put(pods(1)[0])
    world.tick()
    assert (last_status(world)["phase"], statuses(world)[-1].version) == ("Inqueue", "2")


# -- queues ----------------------------------------------------------------------------------------


def queue_of(gpus):
    made = queue(capability={"nvidia.com/gpu": gpus})
    made["metadata"]["uid"] = "uid-queue"
    return decode_queue(msgspec.json.encode(made))


def job_of(name):
    made = vcjob(name, task("worker", 2))
    made["metadata"]["uid"] = "u"
    return decode_job(msgspec.json.encode(made))


def test_a_vcjob_waits_until_its_queue_has_room_and_says_so():
    world = world_of(scheduler_name="corral")
    needs = {"minResources": {"nvidia.com/gpu": 2}}
    world.put(queue_of(3))
    for name in ("a", "b"):
        made = msgspec.structs.replace(job_of(name), uid=f"uid-job-{name}")
        its = group(2, name=made.pod_group, **needs)
        world.put(made, its)
    world.tick()
    first, second = (f"{name}-uid-job-{name}" for name in ("a", "b"))
    assert {each.gang.name: each.status["phase"] for each in statuses(world)} == {
        first: "Inqueue",
        second: "Pending",
    }
    (waits,) = last_status(world)["conditions"]
    assert (waits["type"], waits["message"]) == (
        "Unschedulable",
        "Queue default has no 2 nvidia.com/gpu left",
    )
    world.put(group(2, name=first, phase="Completed", version="2", **needs))
    world.tick()
    assert (statuses(world)[-1].gang.name, last_status(world)["phase"]) == (second, "Inqueue")


def test_a_queue_that_may_have_less_keeps_what_is_in_it():
    world = world_of(scheduler_name="corral")
    made = job_of("a")
    needs = {"minResources": {"nvidia.com/gpu": 2}}
    world.put(queue_of(2), made, group(2, name=made.pod_group, **needs))
    world.tick()
    world.put(group(2, name=made.pod_group, phase="Inqueue", version="2", **needs))
    world.put(queue_of(1))
    for _ in range(20):
        world.tick(1.0)
    assert [each.status["phase"] for each in statuses(world)] == ["Inqueue"]


def test_pods_that_are_there_do_not_wait_for_the_queue():
    world = world_of(group(2, minResources={"nvidia.com/gpu": 2}))
    world.put(queue_of(1))
    assert len(placed(world, *pods(2))) == 2
    assert {each.status["phase"] for each in statuses(world)} <= {"Inqueue", "Running"}


def test_a_vcjob_that_restarts_waits_for_its_queue_while_its_pods_before_still_end():
    """Volcano deletes the PodGroup of a job that restarts, and makes one of the same name."""
    needs = {"minResources": {"nvidia.com/gpu": 2}}
    a, b = (msgspec.structs.replace(job_of(name), uid=f"uid-{name}") for name in ("a", "b"))
    before = group(2, name=a.pod_group, **needs)
    world = world_of(before, jobs=[a], scheduler_name="corral")
    world.put(queue_of(2))
    its = [msgspec.structs.replace(each, annotations={GROUP_NAME: a.pod_group}) for each in pods(2)]
    assert len(placed(world, *its)) == 2
    world.put(b, group(2, name=b.pod_group, **needs))
    world.tick()
    for each in its:
        world.put(msgspec.structs.replace(world.pods[each.uid], is_terminating=True))
    world.delete(before)
    world.tick()
    assert (statuses(world)[-1].gang.name, last_status(world)["phase"]) == (b.pod_group, "Inqueue")
    anew = msgspec.structs.replace(group(2, name=a.pod_group, **needs), uid="uid-anew")
    world.put(anew)
    world.tick()
    (said,) = [each.status for each in statuses(world) if each.uid == "uid-anew"]
    assert said["phase"] == "Pending"
    assert said["conditions"][0]["message"] == "Queue default has no 2 nvidia.com/gpu left"
    for each in its:
        world.delete(world.pods[each.uid])
    world.put(group(2, name=b.pod_group, phase="Completed", version="2", **needs))
    world.tick()
    said = [each.status for each in statuses(world) if each.uid == "uid-anew"][-1]
    assert said["phase"] == "Inqueue"
