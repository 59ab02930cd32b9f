"""Which HyperNodes a gang may have, in which order.

A PodGroup is called a job there, a sub-group a sub-job, and a pod a task.
Source: volcano docs/design/Network Topology Aware Scheduling.md, "Plugin Function".
"""

from __future__ import annotations

import pytest

from tests.app.dialects.volcano.workloads import sub_group
from tests.app.state.histories.test_pod_groups import group
from tests.app.state.volcano import (
    SOFT,
    TIER_1,
    TIER_2,
    TOP,
    around,
    cluster,
    cordon,
    fill,
    started,
    workers,
)
from tests.app.state.world import Names
from tests.records import node, pod

# -- New Function "HyperNodeGradientFn" ------------------------------------------------------------

GRADIENT_0 = ["HyperNode0", "HyperNode1", "HyperNode2", "HyperNode3"]
GRADIENT_1 = ["HyperNode4", "HyperNode5"]


def in_order(world, *policies, **wanted):
    """The HyperNode of each gang of two, one after the other, until one finds none.

    Each gang is gone before the next comes, and the last of its nodes is closed: its HyperNode has
    no room for two any more. Of HyperNodes that are as full the first by name comes first.
    """
    found = []
    while True:
        name = f"g{len(found)}"
        job = group(2, *policies, name=name, **wanted)
        its = workers(f"{name}a {name}b", "0", group=name)
        on = started(world, job, *its)
        if not on:
            return found
        found.append(around(on.values()))
        world.delete(*its, job)
        cordon(world, max(on.values()))


def test_gradient_of_a_job_is_the_tiers_it_allows_the_narrowest_first():
    world = cluster()
    assert in_order(world, tier=2) == GRADIENT_0 + GRADIENT_1
    assert in_order(world) == [TOP], "two nodes were left, in HyperNodes of different tier 2"


@pytest.mark.parametrize(
    ("topology", "expected"),
    [(TIER_1, GRADIENT_0), (TIER_2, GRADIENT_0 + GRADIENT_1)],
    ids=["tier_1", "tier_2"],
)
def test_gradient_of_a_sub_job_is_the_tiers_it_allows(topology, expected):
    assert in_order(cluster(), sub_group("worker", 2, topology=topology)) == expected


@pytest.mark.parametrize(
    ("tier", "expected"), [(None, ["HyperNode2", "HyperNode0"]), (2, GRADIENT_0[:2])]
)
def test_gradient_of_a_sub_job_is_inside_the_hyper_node_of_its_job(tier, expected):
    """HyperNode0, 1 and 2 have room for one sub-job each, and the last would be the fullest."""
    world = cluster(gpus=2)
    cordon(world, "n6", "n7")
    fill(world, n1=1, n3=1, n4=1, n5=1)
    policy = sub_group("worker", 2, min_sub_groups=2, topology=TIER_1)
    on = started(world, group(4, policy, tier=tier), *workers("a b", "0"), *workers("c d", "1"))
    assert [around((on["a"], on["b"])), around((on["c"], on["d"]))] == expected


@pytest.mark.parametrize(
    ("tier", "names", "may_start"),
    [(1, "a b", False), (2, "a b", True), (2, "a b c", False), (3, "a b c", True)],
)
def test_gradient_leaves_out_what_is_above_the_highest_tier(tier, names, may_start):
    """n1 and n2 are free, in two HyperNodes of one of tier 2, and n7, elsewhere."""
    world = cluster()
    cordon(world, "n0", "n3", "n4", "n5", "n6")
    on = started(world, group(len(names.split()), tier=tier), *workers(names))
    assert len(on) == (len(names.split()) if may_start else 0)


@pytest.mark.parametrize(
    ("tier", "allowed"),
    [
        pytest.param(1, ["n1"], id="the_hyper_node_itself"),
        pytest.param(2, ["n1", "n2", "n3"], id="what_has_an_ancestor_of_tier_2_in_common"),
        pytest.param(3, ["n1", "n2", "n3", "n4", "n5", "n6", "n7"], id="the_whole_cluster"),
    ],
)
def test_gradient_leaves_out_what_is_too_far_from_where_the_job_is_allocated(tier, allowed):
    """One pod runs, and others follow: to the closest nodes first, and to no other."""
    world = cluster(*workers("a", on="n0", phase="Running"))
    on = started(world, group(1, tier=tier), *workers("b c d e f g h i"))
    assert sorted(on.values()) == ["n0", *allowed]
    its = sorted(name for name in on if name != "a")
    assert [on[name] for name in its] == allowed


def test_gradient_of_a_sub_job_is_bound_by_where_its_job_is_allocated():
    """HyperNode5 has room for two, but the job is in HyperNode4, where there is room for one."""
    first = [*workers("a", "0", on="n0", phase="Running"), *workers("b", "0", on="n1")]
    world = cluster(*first)
    fill(world, n2=1)
    policy = sub_group("worker", 2, topology=TIER_1)
    assert set(started(world, group(2, policy, tier=2), *workers("c d", "1"))) == {"a", "b"}
    world.delete(world.pods["uid-other-n2"])
    on = started(world)
    assert around((on["c"], on["d"])) == "HyperNode1"


# Soft: "only the input HyperNode is returned", which is the whole cluster, or the job's HyperNode.


@pytest.mark.parametrize(
    ("closed", "hyper_node"),
    [
        pytest.param((), "HyperNode0", id="narrowest_first"),
        pytest.param(("n1", "n3", "n4"), "HyperNode3", id="any_of_the_narrowest"),
        pytest.param(("n1", "n3", "n5", "n7"), "HyperNode4", id="then_wider"),
        pytest.param(("n1", "n2", "n3", "n5", "n6", "n7"), TOP, id="then_anywhere"),
    ],
)
@pytest.mark.parametrize("policies", [(), (sub_group("worker", 2, topology=SOFT),)], ids=len)
def test_soft_mode_prefers_the_narrowest_hyper_node_and_never_blocks(policies, closed, hyper_node):
    world = cluster()
    cordon(world, *closed)
    topology = None if policies else SOFT
    on = started(world, group(2, *policies, topology=topology), *workers("a b", "0"))
    assert around(on.values()) == hyper_node


def test_soft_mode_of_a_sub_job_stays_inside_the_hyper_node_of_its_job():
    """Three nodes of HyperNode4 are free, and two of HyperNode5, one in each of tier 1."""
    world = cluster()
    cordon(world, "n1", "n5", "n7")
    policy = sub_group("worker", 2, topology=SOFT)
    on = started(world, group(3, policy, tier=2), *workers("a", task="ps"), *workers("b c", "0"))
    assert around(on.values()) == "HyperNode4"
    assert around((on["b"], on["c"])) == "HyperNode1"


# -- New Function "HyperNodeOrderFn" ---------------------------------------------------------------


@pytest.mark.parametrize("policies", [(), (sub_group("worker", 2, topology=TIER_1),)], ids=len)
def test_hyper_node_order_is_by_the_share_that_is_used_the_fullest_first(policies):
    """HyperNode2 has more room left than the others, but of four times as much."""
    world = cluster(gpus=4)
    world.put(node("n4", gpus=16), node("n5", gpus=16))
    fill(world, n1=4, n4=12, n5=12, n7=4)
    on = started(world, group(2, *policies, tier=1), *workers("a b", "0"))
    assert around(on.values()) == "HyperNode2"


# -- New Implementation For "BatchNodeOrderFn" -----------------------------------------------------


@pytest.mark.parametrize("topology", [SOFT, TIER_2], ids=["soft", "hard"])
def test_batch_node_order_3_the_closest_to_where_the_sub_job_is_allocated_comes_first(topology):
    """HyperNode3 is fuller than HyperNode0, where the sub-job is."""
    world = cluster(*workers("a", "0", on="n0", phase="Running"), gpus=4)
    fill(world, n2=3, n6=3)
    policy = sub_group("worker", 1, topology=topology)
    assert around((started(world, group(1, policy), *workers("b", "0"))["b"], "n0")) == "HyperNode0"


@pytest.mark.parametrize(
    ("nodes", "hyper_node"),
    [(("n0", "n1", "n2"), "HyperNode0"), (("n0", "n2", "n3"), "HyperNode1")],
)
def test_batch_node_order_4_of_equally_close_ones_that_with_most_of_its_tasks(nodes, hyper_node):
    """Its tasks are in both HyperNodes of HyperNode4; that with fewer of them is the fuller one."""
    running = [workers(name, on=name, phase="Running")[0] for name in nodes]
    world = cluster(*running, gpus=4)
    fill(world, **{"n3" if "n1" in nodes else "n1": 3})
    on = started(world, group(3, topology=SOFT), *workers("more"))
    assert around((on["more"],)) == hyper_node


# For tasks without network topology constraints.


def test_batch_node_order_of_an_ordinary_pod_is_by_what_is_used_of_the_hyper_nodes_around():
    world = cluster(gpus=2)
    fill(world, n1=1)
    names = [f"n{at}" for at in range(8)]
    scores = world.engine.prioritize(pod("plain", gpus=1), Names(names), world.now)
    of = dict(zip(names, scores, strict=True))
    assert of["n0"] == of["n1"] > of["n2"] == of["n3"] > of["n4"] == of["n7"]


# -- New Function "SubJobReadyFn" And "SubJobPipelinedFn" ------------------------------------------


@pytest.mark.parametrize(("free", "pods"), [(1, 0), (2, 2), (3, 3)])
def test_sub_job_is_ready_with_as_many_tasks_as_its_minimum(free, pods):
    world = cluster()
    cordon(world, *(f"n{at}" for at in range(free, 8)))
    policy = sub_group("worker", 2, min_sub_groups=1)
    assert len(started(world, group(0, policy), *workers("a b c", "0"))) == pods


# -- New Function "SubJobOrderFn" ------------------------------------------------------------------

ONE_EACH = sub_group("worker", 1)


def first_of(room, pods, *policies, least=0):
    """The pods that start where there is room for so many."""
    world = cluster(*pods)
    cordon(world, *(f"n{at}" for at in range(room, 8)))
    return sorted(started(world, group(least, *policies)))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param("2", "10", id="by_number"),
        pytest.param("x", "1", id="what_is_no_number_is_0"),
        pytest.param("a", "b", id="of_equal_numbers_by_name"),
        pytest.param("0", "b", id="0_is_equal_to_what_is_no_number"),
    ],
)
def test_sub_job_order_is_by_match_index_then_by_name(earlier, later):
    pods = [*workers("second", later), *workers("first", earlier)]
    assert first_of(1, pods, ONE_EACH) == ["first"]


@pytest.mark.parametrize(
    ("least", "room", "first"),
    [
        (0, 2, ["x0", "y0"]),
        (2, 2, ["x0", "y0"]),
        (0, 3, ["x0", "x1", "y0"]),
    ],
)
def test_sub_job_order_is_by_match_index_whatever_the_policy(least, room, first):
    pods = [
        pod
        for task in ("x", "y")
        for partition in ("0", "1")
        for pod in workers(task + partition, partition, task=task)
    ]
    assert first_of(room, pods, sub_group("x", 1), sub_group("y", 1), least=least) == first


@pytest.mark.parametrize("room", range(1, 6))
def test_sub_job_order_is_by_match_index_though_the_next_is_of_the_policy_before(room):
    """Of y there are two in a row, and x1 is the last of all."""
    order = [("x", "0"), ("y", "1"), ("y", "2"), ("x", "3"), ("y", "10")]
    pods = [each for task, at in reversed(order) for each in workers(task + at, at, task=task)]
    found = first_of(room, pods, sub_group("x", 1), sub_group("y", 1))
    assert found == sorted(task + at for task, at in order[:room])


def test_sub_job_order_has_pods_of_no_sub_group_before_those_of_any():
    pods = [*workers("b", "0"), *workers("a", task="ps")]
    assert first_of(1, pods, ONE_EACH) == ["a"]


def test_sub_job_order_has_a_sub_job_that_is_not_ready_before_more_of_an_earlier_one():
    """x0 runs and has one more pod; y1 is new, in another policy."""
    pods = [*workers("x0", "0", task="x", on="n7"), *workers("x0more", "0", task="x")]
    pods += workers("y1", "1", task="y")
    assert first_of(1, pods, sub_group("x", 1), sub_group("y", 1)) == ["x0", "y1"]


@pytest.mark.parametrize("is_running", [False, True])
def test_sub_job_order_has_those_that_are_not_ready_before_those_that_are(is_running):
    on = ("n6", "n7") if is_running else ("", "")
    first = [workers(name, "0", on=node)[0] for name, node in zip(("a0", "a1"), on, strict=True)]
    pods = [*first, *workers("a2", "0"), *workers("b0 b1 b2", "1")]
    found = first_of(2 if is_running else 4, pods, sub_group("worker", 2))
    assert [name[0] for name in found] == ["a", "a", "b", "b"]


def test_sub_job_order_has_those_that_are_not_ready_before_more_than_the_minimum_of_any():
    pods = [each for at in "012" for each in workers(f"{at}a {at}b {at}c", at)]
    found = first_of(6, pods, sub_group("worker", 2))
    assert [name[0] for name in found] == ["0", "0", "1", "1", "2", "2"]


@pytest.mark.parametrize("least", [0, 1], ids=["nothing_is_needed", "one_is_needed"])
@pytest.mark.parametrize("tasks", ["xx", "xy"], ids=["one_policy", "two_policies"])
def test_sub_job_order_is_by_the_highest_priority_among_the_tasks(tasks, least):
    first, second = tasks
    pods = [
        *workers("a", "0", task=first, priority=5),
        *workers("b0", "1", task=second, priority=9),
        *workers("b1", "1", task=second, priority=0),
    ]
    assert first_of(1, pods, sub_group("x", 1), sub_group("y", 1), least=least) == ["b0"]


def test_sub_job_order_by_priority_has_min_sub_groups_of_each_policy_first():
    pods = [*workers("a", "0", task="x"), *workers("b c", "1", task="y", priority=9)]
    policies = (sub_group("x", 1, min_sub_groups=1), sub_group("y", 1))
    assert first_of(1, pods, *policies) == ["a"]
    assert first_of(2, pods, *policies) == ["a", "b"]


def test_sub_job_order_changes_nothing_for_those_that_have_started():
    """A pod of the highest priority there is comes to the one that waits."""
    world = cluster()
    cordon(world, *(f"n{at}" for at in range(1, 8)))
    assert set(started(world, group(0, ONE_EACH), *workers("a", "0"), *workers("b", "1"))) == {"a"}
    assert set(started(world, *workers("urgent", "1", priority=2_000_001_000))) == {"a"}


@pytest.mark.parametrize("topology", [None, TIER_1], ids=["anywhere", "tier_1"])
def test_sub_job_order_costs_no_more_however_many_and_urgent_the_sub_jobs_are(topology):
    """Of 60 sub-jobs eight have room; the last by number are the most urgent, and come first."""

    def visits(priority_of):
        world = cluster()
        policy = sub_group("worker", 1, topology=topology)
        pods = [
            pod
            for at in range(60)
            for pod in workers(f"{at:02}", f"{at}", priority=priority_of(at))
        ]
        before = world.engine.node_table.visits.total
        on = started(world, group(0, policy, tier=2 if topology else None), *pods)
        return sorted(on), world.engine.node_table.visits.total - before

    some, usual = visits(lambda at: 0)
    urgent, cost = visits(lambda at: 1_999_999_900 + at)
    assert len(some) == len(urgent) == (4 if topology else 8)
    assert some == [f"{at:02}" for at in range(len(some))]
    assert urgent == [f"{at:02}" for at in range(60 - len(urgent), 60)]
    assert cost <= usual * 1.1
