"""Pod set groups: a leader and its workers lie in one domain.

Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16).
"""

from __future__ import annotations

import random

import msgspec
import pytest

from app.state.filter_result import Rejected
from tests.app.state.world import World, four_racks, racks
from tests.records import BLOCK, PREFERRED, RACK, REQUIRED, group, node, pod
from tests.workload_pods import group_pods, job_set

GROUP_NAME = "kueue.x-k8s.io/podset-group-name"
CPU_ONLY = (("cpu", 1000), ("pods", 1))


def pair(name, workers, level=RACK, *, mode=REQUIRED, leader_cpu=1000):
    """A plain group of a leader without devices and workers with 8 each."""
    annotations = group(name, workers + 1) | {mode: level, GROUP_NAME: "both"}
    leader = pod(f"{name}-leader", gpus=0, cpu=leader_cpu, annotations=annotations)
    return leader, [pod(f"{name}{i}", annotations=annotations) for i in range(workers)]


def test_a_leader_is_in_the_rack_of_its_workers():
    """Alone it would go to the tightest rack, where there is no room for the workers."""
    full = [pod(f"f{i}", on=f"n0{i}") for i in range(4)]
    world = World(four_racks(), full)
    leader, workers = pair("g", 4)
    world.put(leader, *workers)
    placed = world.schedule(leader, *workers)
    assert len(placed) == 5
    assert len(racks(placed)) == 1


def test_without_the_group_each_pod_set_is_placed_for_itself():
    full = [pod(f"f{i}", on=f"n0{i}") for i in range(4)]
    world = World(four_racks(), full)
    leader, workers = pair("g", 4)
    pods = [
        msgspec.structs.replace(each, annotations=group("g", 5, RACK))
        for each in (leader, *workers)
    ]
    world.put(*pods)
    assert len(racks(world.schedule(*pods))) == 2


def test_a_rack_that_takes_the_workers_but_not_their_leader_is_none():
    nodes = [node(f"b0/r{r}/n{r}{i}", cpu=8000) for r in range(2) for i in range(2)]
    nodes[3] = msgspec.structs.replace(
        nodes[3], allocatable=(("cpu", 64_000), *nodes[3].allocatable[1:])
    )
    world = World(nodes)
    leader, workers = pair("g", 2, leader_cpu=32_000)
    world.put(leader, *workers)
    assert racks(world.schedule(leader, *workers)) == {"n1"}


def test_a_leader_that_does_not_fit_beside_its_workers_is_named():
    nodes = [node(f"b0/r{r}/n{r}{i}", cpu=8000) for r in range(2) for i in range(2)]
    world = World(nodes, [pod(f"f{each.name}", gpus=0, cpu=2000, on=each.name) for each in nodes])
    leader, workers = pair("g", 2, leader_cpu=7000)
    world.put(leader, *workers)
    assert world.reports[-1].endswith(
        f"2 of 2 pods fit in one {RACK}, but not with leader g-leader"
    )


def test_a_leader_of_a_job_set_that_does_not_fit_is_named_as_its_pod_set():
    jobs, pods = job_set("js", {"driver": (1, 1), "w": (1, 2)}, RACK)
    pods = [
        msgspec.structs.replace(each, annotations={**each.annotations, GROUP_NAME: "both"})
        for each in pods
    ]
    pods[0] = msgspec.structs.replace(pods[0], request=(("cpu", 100_000), ("pods", 1)))
    world = World(four_racks(), jobs=jobs)
    world.put(*pods)
    assert world.reports[-1].endswith("but not with leader driver")


def test_a_preferred_level_widens_for_both():
    world = World(four_racks(), [pod(f"f{r}", on=f"n{r}0") for r in range(4)])
    leader, workers = pair("g", 5, mode=PREFERRED)
    world.put(leader, *workers)
    placed = world.schedule(leader, *workers)
    assert racks(placed) in ({"n0", "n1"}, {"n2", "n3"})


@pytest.mark.parametrize("late", ["leader", "worker"])
def test_whoever_comes_back_goes_where_the_others_are(late):
    leader, workers = pair("g", 3)
    pods = {"leader": leader, "worker": workers[0]}
    there = [each for each in (leader, *workers) if each is not pods[late]]
    running = [
        msgspec.structs.replace(each, node=f"n2{i}", phase="Running")
        for i, each in enumerate(there)
    ]
    tighter = [pod(f"f{i}", on=f"n0{i}") for i in range(3)]
    world = World(four_racks(), [*running, *tighter])
    world.put(pods[late])
    assert racks(world.schedule(pods[late])) == {"n2"}


def test_a_leader_worker_set_with_two_templates():
    annotations = {REQUIRED: RACK, GROUP_NAME: "both"}
    pods = group_pods("lws", 0, 5, RACK)
    pods = [
        msgspec.structs.replace(each, annotations={**each.annotations, **annotations})
        for each in pods
    ]
    pods[0] = msgspec.structs.replace(pods[0], request=CPU_ONLY)
    world = World(four_racks(), [pod(f"f{i}", on=f"n0{i}") for i in range(4)])
    world.put(*pods)
    placed = world.schedule(*pods)
    assert len(racks(placed)) == 1
    assert [placed[each.name] for each in pods[1:]] == sorted(
        placed[each.name] for each in pods[1:]
    )


def test_two_replicated_jobs_of_a_job_set():
    jobs, pods = job_set("js", {"driver": (1, 1), "w": (2, 2)}, RACK)
    pods = [
        msgspec.structs.replace(each, annotations={**each.annotations, GROUP_NAME: "both"})
        for each in pods
    ]
    pods[0] = msgspec.structs.replace(pods[0], request=CPU_ONLY)
    world = World(four_racks(), [pod(f"f{i}", on=f"n0{i}") for i in range(4)], jobs=jobs)
    world.put(*pods)
    assert len(racks(world.schedule(*pods))) == 1


def pairs_of_equal_shapes(pairs, workers, level=RACK, *, mode=REQUIRED, leader_gpus=0):
    """One plain group of several leaders, each with its own workers."""
    found = []
    for index in range(pairs):
        own = group("g", pairs * (workers + 1)) | {mode: level, GROUP_NAME: f"pair{index}"}
        leader = pod(f"leader{index}", gpus=leader_gpus, annotations=own)
        found.append([leader, *(pod(f"w{index}-{i}", annotations=own) for i in range(workers))])
    return found


def domains(pods, placed, level):
    """Where the pods are; `four_racks` has nodes n00 to n33, and two racks in each block."""
    numbers = {int(placed[each.name][1]) for each in pods}
    return numbers if level == RACK else {number // 2 for number in numbers}


def test_each_of_two_leaders_of_one_shape_is_in_the_rack_of_its_own_workers():
    pairs = pairs_of_equal_shapes(2, 4)
    pods = [each for pair in pairs for each in pair]
    world = World(four_racks())
    world.put(*pods)
    placed = world.schedule(*pods)
    assert len(placed) == 10
    assert sorted(len(domains(pair, placed, RACK)) for pair in pairs) == [1, 1]
    assert domains(pairs[0], placed, RACK) != domains(pairs[1], placed, RACK)


@pytest.mark.parametrize("mode", [REQUIRED, PREFERRED])
@pytest.mark.parametrize("seed", range(20))
def test_a_lost_pod_of_one_of_several_equal_pairs_comes_back_beside_its_own(seed, mode):
    chance = random.Random(seed)
    level, workers = chance.choice([BLOCK, RACK]), chance.randint(1, 3)
    pairs = pairs_of_equal_shapes(
        chance.randint(2, 3), workers, level, mode=mode, leader_gpus=chance.choice([0, 4])
    )
    pods = [each for pair in pairs for each in pair]
    chance.shuffle(pods)
    world = World(four_racks())
    world.put(*pods)
    placed = world.schedule(*pods)
    assert len(placed) == len(pods)
    lost = chance.choice(pods)
    world.put(msgspec.structs.replace(world.pods[lost.uid], phase="Failed"))
    again = msgspec.structs.replace(lost, uid="uid-again")
    world.put(again)
    world.tick()
    placed |= world.schedule(again)
    assert [len(domains(pair, placed, level)) for pair in pairs] == [1] * len(pairs)


def wrong_pairs():
    leader, workers = pair("g", 2)
    exactly, of_one = "of exactly 2 pod sets, got: {} pod set(s)", "only 1 replica, got: 2 replica"
    yield pytest.param([leader, *workers[:1], spare()], exactly.format(3), id="three")
    yield pytest.param([*workers, twin(workers[0])], exactly.format(1), id="one")
    yield pytest.param([leader, twin(leader), *workers], of_one, id="no_leader")
    other = {**leader.annotations, REQUIRED: BLOCK}
    yield pytest.param(
        [msgspec.structs.replace(leader, annotations=other), *workers],
        "topology consistent with 'metadata.annotations' of pod default/g0 in group 'both'",
        id="different_levels",
    )


def twin(record):
    return msgspec.structs.replace(record, name=f"{record.name}-twin", uid=f"{record.uid}-twin")


def spare():
    return pod("g-spare", gpus=1, annotations=pair("g", 2)[0].annotations)


@pytest.mark.parametrize(("pods", "said"), list(wrong_pairs()))
def test_a_group_that_cannot_be_meant_is_told_to_every_pod(pods, said):
    total = {"kueue.x-k8s.io/pod-group-total-count": str(len(pods))}
    pods = [
        msgspec.structs.replace(each, annotations={**each.annotations, **total}) for each in pods
    ]
    world = World(four_racks())
    world.put(*pods)
    answers = {world.filter(each) for each in pods}
    (answer,) = answers
    assert isinstance(answer, Rejected)
    assert said in answer.sentence
    assert "gang default/g is invalid: pod default/g" in answer.sentence
    assert world.held == {}
    assert world.reports == [answer.sentence]


def test_the_last_worker_is_replaced_although_its_leader_has_succeeded():
    leader, workers = pair("g", 1)
    world = World(four_racks(), [leader, *workers])
    world.schedule(leader, *workers)
    world.put(msgspec.structs.replace(world.pods[leader.uid], phase="Succeeded"))
    world.put(msgspec.structs.replace(world.pods[workers[0].uid], phase="Failed"))
    world.put(msgspec.structs.replace(workers[0], name="again", uid="uid-again"))
    world.tick()
    assert "uid-again" in world.held


def test_a_gang_that_runs_is_not_asked_again_what_it_is_made_of():
    leader, workers = pair("g", 2)
    done = msgspec.structs.replace(leader, node="n20", phase="Succeeded")
    runs = msgspec.structs.replace(workers[0], node="n20", phase="Running")
    world = World(four_racks(), [done, runs])
    world.put(workers[1])
    assert racks(world.schedule(workers[1])) == {"n2"}
