"""Rank i on the planned node: consecutive ranks as close as the tree allows."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dialects.kueue import annotations as kueue
from app.dialects.spec import GangSpec, GroupSpec, LeafSpec
from app.state.gang.gang import Phase
from app.state.gang.members.membership import membership_status
from app.state.gang.parts import Placeholder
from app.state.plan.assignment import Plan
from tests.app.state.seats import in_tree_order, indexed, nodes_of, running
from tests.app.state.world import World, four_racks
from tests.records import (
    BLOCK,
    RACK,
    group,
    job,
    node,
    pod,
)
from tests.workload_pods import (
    COMPLETION_INDEX,
    group_pods,
    job_set,
    mpi_pods,
    stateful_pods,
    training_pods,
    workload,
)

POD_INDEX = "kueue.x-k8s.io/pod-group-pod-index"


def grouped(name, indexes, **more):
    """The pods of a plain group, numbered so; None: not at all."""
    annotations = group(name, len(indexes), BLOCK)
    return [
        pod(
            f"{name}{place}",
            labels={} if index is None else {POD_INDEX: str(index)},
            annotations=annotations,
            **more,
        )
        for place, index in enumerate(indexes)
    ]


def planned(world, *pods):
    """Show the pods to the watch in this order; the node planned for each."""
    world.put(*pods)
    world.tick()
    return nodes_of(world, pods)


def fallback(world):
    """What the plan of the only gang says, made once more from nothing."""
    (gang,) = world.engine.gangs.by_key.values()
    for uid in list(gang.plan.nodes):
        world.engine.reservations.give_back(gang, uid, "")
    plan = world.engine.planner.plan(gang)
    assert isinstance(plan, Plan)
    return plan.fallback


# -- each vocabulary ---------------------------------------------------------------------------


def test_rank_i_of_a_job_is_on_the_node_the_placement_gives_it():
    world = World(four_racks(), jobs=[job("j", 6)])
    pods = indexed("j", 6, gpus=4)
    planned(world, *(pods[index] for index in (5, 0, 3, 1, 4, 2)))
    nodes = nodes_of(world, pods)
    assert in_tree_order(world, nodes)
    assert Counter(nodes).most_common() == [(name, 2) for name in dict.fromkeys(nodes)]


def test_a_job_set_goes_through_its_jobs_in_order():
    jobs, pods = job_set("js", {"w": (3, 2)}, BLOCK, gpus=4)
    world = World(four_racks(), jobs=jobs)
    planned(world, *reversed(pods))
    nodes = nodes_of(world, pods)
    assert in_tree_order(world, nodes)
    assert nodes[::2] == nodes[1::2]


def test_each_replicated_job_of_a_job_set_is_ranked_for_itself():
    jobs, pods = job_set("js", {"driver": (1, 2), "w": (2, 3)}, BLOCK, gpus=4)
    world = World(four_racks(), jobs=jobs)
    planned(world, *reversed(pods))
    assert in_tree_order(world, nodes_of(world, pods[:2]))
    assert in_tree_order(world, nodes_of(world, pods[2:]))


def test_a_leader_of_a_leader_worker_set_comes_before_its_workers():
    pods = group_pods("lws", 0, 6, BLOCK, gpus=4)
    world = World(four_racks())
    planned(world, *reversed(pods))
    assert in_tree_order(world, nodes_of(world, pods))


def test_workers_count_on_from_a_leader_of_another_shape():
    leader, *workers = group_pods("lws", 0, 5, BLOCK, gpus=4)
    leader = msgspec.structs.replace(leader, request=(("cpu", 64_000), ("pods", 1)))
    world = World(four_racks())
    planned(world, *reversed(workers), leader)
    assert in_tree_order(world, nodes_of(world, workers))
    assert fallback(world) == ()


def test_the_groups_of_a_leader_worker_set_start_each_for_itself():
    one, other = group_pods("lws", 0, 4, RACK), group_pods("lws", 1, 4, RACK)
    world = World(four_racks())
    world.put(*one, *other[:3])
    assert set(world.held) == {each.uid for each in one}
    nodes = planned(world, other[3])
    assert nodes[0][:2] == world.held[other[0].uid][:2] != world.held[one[0].uid][:2]


def test_a_stateful_set_by_its_ordinals():
    world = World(four_racks(), jobs=[workload("StatefulSet", "db", {"": 6})])
    pods = stateful_pods("db", 6, BLOCK, gpus=4)
    planned(world, *reversed(pods))
    assert in_tree_order(world, nodes_of(world, pods))


def test_each_replica_type_of_a_training_job():
    record = workload("PyTorchJob", "t", {"Master": 1, "Worker": 5}, level=BLOCK)
    pods = training_pods("PyTorchJob", "t", {"Master": 1, "Worker": 5}, BLOCK, gpus=4)
    world = World(four_racks(), jobs=[record])
    world.put(*reversed(pods[1:]))
    assert world.held == {}
    planned(world, pods[0])
    assert in_tree_order(world, nodes_of(world, pods[1:]))


@pytest.mark.parametrize("first", [0, 1], ids=["launcher_apart", "launcher_as_worker"])
def test_the_workers_of_an_mpi_job_and_its_launcher(first):
    record = workload("MPIJob", "m", {"Launcher": 1, "Worker": 4}, level=BLOCK)
    pods = mpi_pods("m", 4, BLOCK, first=first)
    world = World(four_racks(), jobs=[record])
    planned(world, *reversed(pods))
    assert in_tree_order(world, nodes_of(world, pods[1:]))
    assert fallback(world) == ()


def test_a_plain_group_by_the_index_of_its_pods():
    world = World(four_racks())
    pods = grouped("g", [3, 1, 0, 2], gpus=4)
    planned(world, *pods)
    by_rank = [pods[place] for place in (2, 1, 3, 0)]
    assert in_tree_order(world, nodes_of(world, by_rank))


def test_roles_of_a_plain_group_share_their_numbers():
    """Kueue cannot rank the larger role here: its numbers begin with 1."""
    world = World(four_racks())
    pods = grouped("g", [0, 4, 2, 3, 1], gpus=4)
    pods[0] = msgspec.structs.replace(pods[0], request=(("cpu", 1000), ("pods", 1)))
    planned(world, *pods)
    assert in_tree_order(world, nodes_of(world, [pods[place] for place in (4, 2, 3, 1)]))
    assert fallback(world) == ()


# -- numbers that cannot be trusted ------------------------------------------------------------


@pytest.mark.parametrize(
    ("indexes", "why"),
    [
        pytest.param([0, 1, None, 3], "pod g2 has no index", id="missing"),
        pytest.param([0, 1, 1, 3], "pods g1 and g2 have the same index", id="duplicate"),
        pytest.param([0, 1, 2, 4], "pod g3 has index 4, its 4 pods count from 0", id="beyond"),
    ],
)
def test_one_doubtful_number_and_the_plan_says_why_none_was_used(indexes, why):
    world = World(four_racks())
    pods = grouped("g", indexes)
    assert len(set(planned(world, *pods))) == 4
    assert fallback(world) == (("", why),)


def test_an_index_beyond_its_part_names_the_part():
    jobs, pods = job_set("js", {"w": (2, 2)}, BLOCK)
    pods[3] = msgspec.structs.replace(pods[3], labels={**pods[3].labels, COMPLETION_INDEX: "2"})
    world = World(four_racks(), jobs=jobs)
    planned(world, *pods)
    assert fallback(world) == (
        ("w", "pod js-w-1-1 has index 2 in part 1, its 2 parts have 2 pods"),
    )


def test_pods_that_nobody_numbered_are_no_fallback():
    world = World(four_racks())
    planned(world, *grouped("g", [None] * 4))
    assert fallback(world) == ()


def test_on_a_single_node_numbers_do_not_matter():
    world = World(four_racks())
    assert len(set(planned(world, *grouped("g", [0, 0], gpus=4)))) == 1
    assert fallback(world) == ()


def test_an_offset_says_which_number_is_the_first():
    world = World(four_racks())
    pods = grouped("g", [2, 4, 1, 3])
    annotations = {**pods[0].annotations, kueue.INDEX_OFFSET: "1"}
    pods = [msgspec.structs.replace(each, annotations=annotations) for each in pods]
    planned(world, *pods)
    assert in_tree_order(world, nodes_of(world, [pods[place] for place in (2, 0, 3, 1)]))
    assert fallback(world) == ()


# -- members that have a node already ----------------------------------------------------------


def test_after_a_restart_the_rest_finds_the_places_of_its_ranks():
    pods = indexed("j", 4, RACK)
    bound = running([pods[0], pods[3]], ["n20", "n23"])
    world = World(four_racks(), [*bound, pods[2], pods[1]], jobs=[job("j", 4)])
    assert nodes_of(world, [pods[1], pods[2]]) == ["n21", "n22"]
    assert fallback(world) == ()


def test_members_that_run_elsewhere_are_left_alone_and_the_rest_goes_where_there_is_room():
    pods = indexed("j", 6, RACK, gpus=4)
    bound = running(pods[:4], ["n03", "n02", "n01", "n00"])
    world = World(four_racks(), bound, jobs=[job("j", 6)])
    world.put(*pods[4:])
    gang = next(iter(world.engine.gangs.by_key.values()))
    assert gang.phase is Phase.BINDING
    assert {name[:2] for name in nodes_of(world, pods[4:])} == {"n0"}


# -- places kept for pods that are still to come -----------------------------------------------


def test_places_kept_for_pods_without_a_number_get_the_ranks_that_are_left():
    pods = indexed("j", 4)
    world = World(four_racks(), jobs=[job("j", 4)])
    world.put(pods[3], pods[0], pods[2])
    (gang,) = world.engine.gangs.by_key.values()
    like = gang.members[pods[0].uid]
    kept = dataclasses.replace(like, pod=msgspec.structs.replace(like.pod, uid="kept"), index=None)
    spec = GangSpec(gang.key, GroupSpec("j", (LeafSpec("", 4),)), "here")
    gang.placeholders["kept"] = Placeholder(kept, math.inf)
    world.engine.books.refresh()
    gang.membership = membership_status(gang.members.values(), lambda *_: spec)
    plan = world.engine.planner.plan(gang)
    assert isinstance(plan, Plan)
    uids = [pods[0].uid, "kept", pods[2].uid, pods[3].uid]
    assert in_tree_order(world, [plan.nodes[uid] for uid in uids])
    assert plan.fallback == ()


def test_pods_of_a_group_that_started_early_find_the_place_of_their_number():
    annotations = group("g", 4, BLOCK) | {"kueue.x-k8s.io/pod-group-fast-admission": "true"}
    pods = [
        pod(f"g{index}", labels={POD_INDEX: str(index)}, annotations=annotations)
        for index in range(4)
    ]
    world = World(four_racks())
    for index in (0, 3, 1, 2):
        world.put(pods[index])
        world.tick()
        world.schedule(pods[index])
    assert in_tree_order(world, [world.pods[each.uid].node for each in pods])


# -- pods made one after the other -------------------------------------------------------------


def test_the_first_pod_of_an_ordered_stateful_set_goes_where_all_of_them_fit():
    full = [pod(f"f{i}", on=f"n0{i}") for i in range(3)]
    record = workload("StatefulSet", "db", {"": 4}, is_gradual=True)
    world = World(four_racks(), full, jobs=[record])
    first, *rest = stateful_pods("db", 4, RACK)
    (rack,) = {planned(world, first)[0][:2]}
    assert rack != "n0"
    world.schedule(first)
    for each in rest:
        world.put(each)
        assert world.schedule(each)[each.name].startswith(rack)


def test_ordered_pods_are_where_they_would_be_had_they_come_together():
    record = workload("StatefulSet", "db", {"": 14}, is_gradual=True)
    world = World(four_racks(), jobs=[record])
    pods = stateful_pods("db", 14, BLOCK, gpus=4)
    for each in pods:
        world.put(each)
        world.tick()
        world.schedule(each)
    nodes = [world.pods[each.uid].node for each in pods]
    assert in_tree_order(world, nodes)
    assert set(Counter(nodes).values()) == {2}


def test_an_ordered_stateful_set_that_fits_nowhere_does_not_start():
    record = workload("StatefulSet", "db", {"": 5}, is_gradual=True)
    world = World(four_racks(), jobs=[record])
    world.put(stateful_pods("db", 1, RACK)[0])
    world.tick()
    assert world.held == {}


def test_the_leader_starts_alone_where_its_workers_wait_for_it():
    record = workload("LeaderWorkerSet", "lws", {"worker": 4}, level=RACK, is_gradual=True)
    world = World(four_racks(), jobs=[record])
    leader, *workers = group_pods("lws", 0, 4, RACK)
    world.put(leader)
    world.tick()
    rack = world.schedule(leader)[leader.name][:2]
    world.put(*workers)
    assert {name[:2] for name in world.schedule(*workers).values()} == {rack}


def test_later_jobs_of_a_job_set_in_order_join_those_that_run():
    jobs, pods = job_set("js", {"a": (1, 2), "b": (1, 2)}, RACK)
    whole = workload("JobSet", "js", {"a": 2, "b": 2}, level=RACK, is_gradual=True)
    world = World(four_racks(), jobs=[whole, jobs[0]])
    world.put(*pods[:2])
    world.tick()
    assert len(world.schedule(*pods[:2])) == 2
    world.put(jobs[1], *pods[2:])
    assert len(world.schedule(*pods[2:])) == 2


def test_without_an_order_a_job_set_waits_for_all_its_jobs():
    jobs, pods = job_set("js", {"a": (1, 2), "b": (1, 2)}, RACK)
    whole = workload("JobSet", "js", {"a": 2, "b": 2}, level=RACK)
    world = World(four_racks(), jobs=[whole, jobs[0]])
    world.put(*pods[:2])
    assert world.held == {}
    world.put(*pods[2:])
    assert world.held == {}
    world.put(jobs[1])
    assert len(world.held) == 4


# -- whatever the order ------------------------------------------------------------------------

ODD_NODES = [
    node(f"b{r // 2}/r{r}/n{r}{i}", gpus=4 * (1 + i % 2)) for r in range(4) for i in range(4)
]


@pytest.mark.slow
@given(
    st.permutations(range(7)),
    st.sampled_from([RACK, BLOCK]),
    st.sets(st.integers(0, 15), max_size=4),
)
def test_the_order_in_which_numbered_pods_arrive_changes_nothing(order, level, full):
    def play(pods):
        fillers = [pod(f"f{i}", gpus=4, on=ODD_NODES[i].name) for i in sorted(full)]
        world = World(ODD_NODES, fillers, jobs=[job("j", 7)])
        world.put(*pods)
        world.tick()
        return world.held

    pods = indexed("j", 7, level, gpus=2)
    assert play([pods[place] for place in order]) == play(pods)
