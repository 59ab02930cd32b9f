"""What a job is, and where.

Source: volcano docs/design/Network Topology Aware Scheduling.md, "Object Adaptation
in Scheduler Cache".
"""

from __future__ import annotations

import pytest

from app.dialects.registry import DIALECTS
from tests.app.dialects.volcano.objects import exact, record
from tests.app.dialects.volcano.workloads import GROUP_NAME, PARTITION, TASK, sub_group
from tests.app.state.histories.test_pod_groups import group
from tests.app.state.volcano import (
    HYPER_NODES,
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
from tests.records import node, pod

# -- HyperNodeInfo ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hyper_nodes", "top"),
    [
        pytest.param(HYPER_NODES, 3, id="one_more_than_the_widest"),
        pytest.param(HYPER_NODES[:4], 2, id="of_fewer_tiers"),
        pytest.param((), 1, id="1_without_hyper_nodes"),
    ],
)
def test_hyper_node_info_one_tier_above_all_is_every_node_of_the_cluster(hyper_nodes, top):
    """A ninth node is in no HyperNode."""
    its = workers("a b c d e f g h i")
    found = []
    for tier in (top - 1, top):
        world = cluster(hyper_nodes=hyper_nodes)
        world.put(node("n8", gpus=1))
        found.append(len(started(world, group(9, tier=tier), *its)))
    assert found == [0, 9]


# -- JobInfo: mapping rule from task to SubJobID ---------------------------------------------------

ROLE = "example.com/role"


@pytest.mark.parametrize(
    ("task", "labels", "sub_job"),
    [
        pytest.param(
            "task0", {PARTITION: "12", ROLE: "worker"}, "task0/12,worker", id="name_and_values"
        ),
        pytest.param("task0", {PARTITION: "12"}, "", id="one_of_two_labels_is_missing"),
        pytest.param("task0", {PARTITION: "12", ROLE: ""}, "", id="or_empty"),
        pytest.param("task1", {PARTITION: "12", ROLE: "worker"}, "", id="it_selects_other_pods"),
    ],
)
def test_job_info_a_task_is_in_the_sub_job_of_its_labels_else_of_the_job(task, labels, sub_job):
    policy = sub_group("task0", 1, keys=(PARTITION, ROLE))
    its = pod("a", labels={TASK: task, **labels}, annotations={GROUP_NAME: "pg"})
    claim = DIALECTS.claim(its, [group(1, policy)])
    assert claim is not None
    assert (claim.leaf, claim.flaw) == (sub_job, "")


def test_job_info_tasks_come_and_go_with_the_sub_jobs_that_they_make():
    world = cluster()
    policy = sub_group("worker", 2, min_sub_groups=1, topology=TIER_1)
    first = workers("a b", "0")
    started(world, group(2, policy, tier=2), *first)
    on = started(world, *workers("c d", "1"))
    assert [around((on["a"], on["b"])), around((on["c"], on["d"]))] == ["HyperNode0", "HyperNode1"]
    world.delete(*first)
    on = started(world, *workers("e f", "2"))
    assert around((on["e"], on["f"])) == "HyperNode0"


# -- SubJobInfo ------------------------------------------------------------------------------------


def test_sub_job_info_a_minimum_that_is_not_given_is_1():
    policy = sub_group("worker", 1, topology=TIER_1)
    del policy["subGroupSize"]
    world = cluster()
    cordon(world, "n1", "n2", "n3", "n4", "n5", "n6", "n7")
    assert started(world, group(0, policy), *workers("a b", "0")) == {"a": "n0"}


def test_sub_job_info_the_topology_is_that_of_its_policy():
    """Eight pods fill the eight nodes, so the three that may be anywhere get what is left."""
    policies = [
        sub_group("near", 2, topology=TIER_1),
        sub_group("wide", 3, topology=TIER_2),
        sub_group("free", 3),
    ]
    its = {
        policy["name"]: workers(names, "0", task=policy["name"])
        for policy, names in zip(policies, ("a b", "c d e", "f g h"), strict=True)
    }
    on = started(cluster(), group(8, *policies), *(each for pods in its.values() for each in pods))
    where = {name: around(on[each.name] for each in pods) for name, pods in its.items()}
    assert where["near"] in ("HyperNode0", "HyperNode1", "HyperNode2", "HyperNode3")
    assert where["wide"] in ("HyperNode4", "HyperNode5")
    assert where["free"] == TOP


# -- Maintenance of AllocatedHyperNode in JobInfo/SubJobInfo ---------------------------------------


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize(
    ("tier", "nodes", "room"),
    [
        pytest.param(1, ("n2",), ["n3"], id="the_hyper_node_of_the_pod"),
        pytest.param(2, ("n0", "n2"), ["n1", "n3"], id="the_smallest_around_all_pods"),
        pytest.param(2, ("n4",), ["n5", "n6", "n7"], id="narrowest_first"),
    ],
)
def test_allocated_hyper_node_is_recovered_from_the_pods_that_run(is_restarted, tier, nodes, room):
    world, job = cluster(), group(len(nodes), tier=tier)
    cordon(world, *({f"n{at}" for at in range(8)} - set(nodes)))
    started(world, job, *workers(" ".join("xy"[: len(nodes)])))
    if is_restarted:
        world = cluster(*world.pods.values())
        world.put(job)
    else:
        world.put(*(node(f"n{at}", gpus=1) for at in range(8)))
    on = started(world, *workers("a b c d"))
    assert [on[name] for name in sorted(on) if name < "x"] == room


def test_allocated_hyper_node_of_a_job_without_running_pods_is_forgotten():
    world, its = cluster(), workers("a b")
    assert around(started(world, group(2, tier=1), *its).values()) == "HyperNode0"
    world.delete(*its)
    fill(world, n0=1)
    assert around(started(world, *workers("c d")).values()) == "HyperNode1"


def test_allocated_hyper_node_of_a_sub_job_without_running_pods_is_forgotten():
    """The job's stays: HyperNode5 is of another tier 2."""
    policy = sub_group("worker", 1, topology=TIER_1)
    lost = workers("b", "1")
    world = cluster(gpus=2)
    before = started(world, group(2, policy, tier=2), *workers("a", "0"), *lost)
    assert before == {"a": "n0", "b": "n0"}
    world.delete(*lost)
    fill(world, n0=1, n1=2)
    assert started(world, *workers("c", "1"))["c"] in ("n2", "n3")


def test_allocated_hyper_node_that_is_deleted_is_deduced_anew():
    """A pod runs on n0, which is in no HyperNode of tier 1 for a while and then in another."""
    world = cluster(*workers("a", on="n0", phase="Running"))
    world.put(group(1, tier=1), node("n8", gpus=1))
    world.delete(HYPER_NODES[0])
    assert "b" not in started(world, *workers("b"))
    world.put(record("HyperNode6", 1, exact("Node", "n0", "n8")))
    assert started(world)["b"] == "n8"


# -- what changes under a plan ---------------------------------------------------------------------


def test_a_plan_made_without_hyper_nodes_does_not_outlive_the_first_of_their_tier():
    """Without any, tier 1 is the whole cluster; the first one need not have the planned nodes."""
    world = cluster(hyper_nodes=())
    cordon(world, "n0", "n1", "n4", "n6", "n7")
    gang = workers("a b")
    world.put(group(2, tier=1), *gang)
    world.tick(1.0)
    assert {each.node for each in world.engine.books.held.values()} <= {"n2", "n3", "n5"}
    world.put(record("HyperNode0", 1, exact("Node", "n0", "n1")))
    world.tick(1.0)
    assert world.engine.books.held == {}
    assert started(world) == {}
    world.put(record("HyperNode1", 1, exact("Node", "n2", "n3")))
    on = started(world)
    assert around(on.values()) == "HyperNode1"


def test_a_plan_does_not_outlive_a_change_of_what_its_pod_group_requires():
    world = cluster()
    cordon(world, "n1", "n3", "n5", "n7")
    world.put(group(2, tier=3), *workers("a b"))
    world.tick(1.0)
    assert len(world.engine.books.held) == 2
    world.put(group(2, tier=1))
    world.tick(1.0)
    assert world.engine.books.held == {}
    world.put(group(2, tier=2))
    assert around(started(world).values()) == "HyperNode4"


def test_a_plan_stays_where_less_is_required_than_before():
    world = cluster()
    world.put(group(2, tier=1), *workers("a b"))
    world.tick(1.0)
    held = dict(world.engine.books.held)
    world.delete(*HYPER_NODES)
    world.tick(1.0)
    assert world.engine.books.held == held != {}
