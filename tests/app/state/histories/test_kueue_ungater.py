"""Who is ungated, when, and to which node.

Where Kueue's ungater works on a Workload that was admitted before, Corral plans, holds and ungates
in one step; a rank then is a node, not a domain. `test_gates.py` has the patches themselves,
`plan/test_assignment.py` the ranks of every kind of workload, `test_barrier.py` what comes after.
Source: kueue pkg/controller/tas/topology_ungater.go (v0.16).
"""

from __future__ import annotations

import msgspec
import pytest

from app.state.effects import EmitEvent, Ungate, Ungated, UngateFailed
from tests.app.state.world import World, four_racks, racks
from tests.records import RACK, REQUIRED, group, job, job_owner, node, pod
from tests.workload_pods import COMPLETION_INDEX, job_set

GATED = ("corral.dev/gang",)
FOREIGN = "example.com/quota"
INDEX = "kueue.x-k8s.io/pod-group-pod-index"
COMPLETION = "batch.kubernetes.io/job-completion-index"
OFFSET = "kueue.x-k8s.io/pod-index-offset"


def numbered(indexes, *, total=0, gpus=4, gates=GATED, **annotations):
    """The pods of group g with these index labels, None: without one."""
    said = {**group("g", total or len(indexes), RACK), **annotations}
    return [
        pod(
            f"g{place}",
            gpus=gpus,
            labels={} if index is None else {INDEX: str(index)},
            annotations=said,
            gates=gates,
        )
        for place, index in enumerate(indexes)
    ]


def job_pod(index, uid="", gates=GATED):
    return pod(
        f"j-{index}",
        uid=uid or f"uid-j-{index}",
        owner=job_owner("j"),
        labels={COMPLETION: str(index)},
        annotations={REQUIRED: RACK},
        gates=gates,
    )


def reasons(world, reason):
    return [each.sentence for each in world.told(EmitEvent) if each.reason == reason]


def patches(world, name):
    return [effect for effect in world.told(Ungate) if effect.name == name]


def failing(world, name):
    """The node as it is when it is not ready any more."""
    return msgspec.structs.replace(world.engine.books.nodes[name], is_ready=False)


# -- ranks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_ranks_decide_the_node_and_the_order_of_arrival_does_not(order):
    pods = numbered([0, 1, 2, 3])
    world = World([node(f"b0/r0/n{i}") for i in range(2)])
    world.put(*[pods[place] for place in order])
    assert [world.held[each.uid] for each in pods] == ["n0", "n0", "n1", "n1"]
    for each in pods:
        assert patches(world, each.name)[0].nodes[0] in world.held.values()
    assert reasons(world, "RanksNotUsed") == []


@pytest.mark.parametrize(
    ("indexes", "why"),
    [
        pytest.param([0, 1, None, 3], "pod g2 has no index", id="missing_label"),
        pytest.param([0, 1, 1, 3], "pods g1 and g2 have the same index", id="duplicate"),
        pytest.param([0, 1, 2, 4], "pod g3 has index 4", id="out_of_range"),
        pytest.param([0, 1, 2, "x"], "pod g3 has no index", id="no_number"),
        pytest.param([0, 1, 2, -1], "pod g3 has no index", id="negative"),
    ],
)
def test_a_doubtful_rank_makes_the_whole_pod_set_greedy_and_the_owner_is_told_once(indexes, why):
    world = World(four_racks(), numbered(indexes, gpus=8))
    for _ in range(50):
        world.tick()
    (sentence,) = reasons(world, "RanksNotUsed")
    assert sentence.startswith("gang default/g is not placed by rank: ")
    assert why in sentence
    assert sorted(world.ungated) == ["g0", "g1", "g2", "g3"]
    assert len(set(world.held.values())) == 4
    assert len(racks(world.held)) == 1


def test_each_pod_set_whose_ranks_are_doubtful_is_told():
    jobs, pods = job_set("js", {"a": (1, 2), "b": (1, 2), "c": (1, 2)}, RACK)
    world = World([node(f"b0/r0/n{number}") for number in range(6)], (), jobs)
    for each in pods:
        if not each.name.startswith("js-c"):
            each = msgspec.structs.replace(each, labels={**each.labels, COMPLETION_INDEX: "7"})
        world.put(each)
    for _ in range(50):
        world.tick()
    (sentence,) = reasons(world, "RanksNotUsed")
    assert [name for name in "abc" if f"pod set {name} of gang" in sentence] == ["a", "b"]


def test_a_doubtful_rank_is_not_told_where_it_makes_no_difference():
    world = World(four_racks(), numbered([0, 0], gpus=1))
    assert len(set(world.held.values())) == 1
    assert reasons(world, "RanksNotUsed") == []


def test_the_offset_is_the_first_rank_of_the_pod_set():
    pods = numbered([3, 2, 1, 4], **{OFFSET: "1"})
    world = World([node(f"b0/r0/n{i}") for i in range(2)], pods)
    assert [world.held[each.uid] for each in pods] == ["n1", "n0", "n0", "n1"]


def test_an_offset_that_is_no_number_ungates_nothing_and_is_told():
    world = World(four_racks(), numbered([0, 1], **{OFFSET: "one"}))
    world.tick()
    assert world.ungated == []
    (sentence,) = reasons(world, "GangMistaken")
    problem = 'Invalid value: "one": must be a non-negative integer'
    assert f"metadata.annotations[{OFFSET}]: {problem}" in sentence


def test_running_pods_that_are_not_where_their_ranks_belong_make_the_rest_greedy():
    pods = numbered([0, 1, 2, 3], gpus=8)
    bound = [
        msgspec.structs.replace(each, node=on, gates=())
        for each, on in zip(pods[:2], ("n03", "n00"), strict=True)
    ]
    world = World(four_racks(), [*bound, *pods[2:]])
    assert sorted(world.held.values()) == ["n01", "n02"]
    assert ["already are not where" in each for each in reasons(world, "RanksNotUsed")] == [True]


def test_replacements_get_the_node_of_their_own_rank_whatever_order_they_come_in():
    world = World(four_racks(), [job_pod(i) for i in range(4)], jobs=[job("j", 4)])
    world.patch(world.effects)
    before = world.schedule(*world.pods.values())
    for index in (0, 2, 3):
        world.delete(world.pods[f"uid-j-{index}"])
    for index in (3, 0, 2):
        world.put(job_pod(index, uid=f"again-{index}", gates=()))
        world.tick()
        name = f"j-{index}"
        assert world.schedule(world.pods[f"again-{index}"])[name] == before[name]


# -- who stays gated -----------------------------------------------------------------------------


def test_surplus_pods_stay_gated():
    world = World(four_racks(), [job_pod(i) for i in range(4)], jobs=[job("j", 3)])
    for _ in range(20):
        world.tick()
    assert sorted(world.ungated) == ["j-0", "j-1", "j-2"]


def test_finished_pods_are_not_counted_and_not_ungated():
    done = msgspec.structs.replace(job_pod(0), phase="Succeeded", gates=(), node="n00")
    pods = [done, *(job_pod(i) for i in (1, 2))]
    world = World(four_racks(), pods, jobs=[job("j", 3, completions=3, succeeded=1)])
    assert sorted(world.ungated) == ["j-1", "j-2"]


def test_a_pod_whose_target_node_has_failed_stays_gated_until_there_is_another_plan():
    world = World(four_racks(), numbered([0, 1, 2, 3], gpus=8))
    first = dict(world.held)
    for uid in first:
        world._take(world.engine.ungate_finished(uid, UngateFailed("timeout"), world.now))
    sent = len(world.told(Ungate))
    bad = first["uid-g0"]
    world.put(failing(world, bad))
    assert world.held == {}
    assert len(world.told(Ungate)) == sent
    for _ in range(30):
        world.tick()
    assert len(world.held) == 4
    assert racks(world.held) != {bad[:2]}
    again = world.told(Ungate)[sent:]
    assert {effect.uid for effect in again} == set(world.held)
    assert all(effect.nodes[0] in world.held.values() for effect in again)


def test_a_replacement_stays_gated_while_there_is_no_node_for_it():
    world = World(four_racks(), numbered([0, 1, 2, 3], gpus=8, gates=()))
    world.schedule(*world.pods.values())
    lost = world.pods["uid-g3"]
    world.put(failing(world, lost.node))
    world.delete(lost)
    fresh = pod("g9", labels={INDEX: "3"}, annotations=lost.annotations, gates=GATED)
    world.put(fresh)
    for _ in range(30):
        world.tick(1.0)
    assert world.ungated == []
    world.put(node(f"b{int(lost.node[1]) // 2}/r{lost.node[1]}/{lost.node}"))
    for _ in range(20):
        world.tick()
    assert world.ungated == ["g9"]
    assert world.held == {"uid-g9": lost.node}


def test_a_replacement_behind_a_foreign_gate_stays_gated_and_its_place_stays_held():
    world = World(four_racks(), numbered([0, 1, 2], gpus=8, gates=()))
    world.schedule(*world.pods.values())
    lost = world.pods["uid-g1"]
    world.delete(lost)
    blocked = pod("g9", labels=lost.labels, annotations=lost.annotations, gates=(FOREIGN, *GATED))
    world.put(blocked)
    world.tick()
    assert world.ungated == []
    assert list(world.held.values()) == [lost.node]
    world.put(msgspec.structs.replace(blocked, gates=GATED))
    world.tick()
    assert world.ungated == ["g9"]
    assert world.held == {"uid-g9": lost.node}


# -- expectations --------------------------------------------------------------------------------


def test_no_second_patch_before_the_watch_shows_the_first_even_when_it_was_written():
    world = World(four_racks(), numbered([0, 1]))
    world._take(world.engine.ungate_finished("uid-g0", Ungated(), world.now))
    world.put(world.pods["uid-g0"])  # the watch is late: it still shows the gate
    for _ in range(80):
        world.tick()
    assert sorted(world.ungated) == ["g0", "g1"]
    world.patch(world.told(Ungate))
    for _ in range(200):
        world.tick()
    assert sorted(world.ungated) == ["g0", "g1"]


def test_a_patch_nobody_has_heard_of_is_sent_again_after_a_while():
    world = World(four_racks(), numbered([0, 1]))
    for _ in range(13):
        world.tick(1.0)
    assert sorted(world.ungated) == ["g0", "g0", "g1", "g1"]
    assert len({(effect.uid, effect.nodes) for effect in world.told(Ungate)}) == 2


def test_a_pod_that_is_deleted_is_not_waited_for_and_its_successor_is_patched_itself():
    world = World(four_racks(), numbered([0, 1]))
    gone = world.pods["uid-g0"]
    world.delete(gone)
    world.put(msgspec.structs.replace(gone, uid="uid-again"))
    for _ in range(30):
        world.tick()
    assert [effect.uid for effect in patches(world, "g0")] == ["uid-g0", "uid-again"]
