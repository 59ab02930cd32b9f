"""What HyperNodes are for, as users have it.

Source: volcano docs/design/Network Topology Aware Scheduling.md, "Motivation",
"Function Detail" and "Volcano Job Controller".
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.app.dialects.volcano.objects import exact, record
from tests.app.dialects.volcano.workloads import sub_group
from tests.app.state.domains.test_explicit import paths
from tests.app.state.histories.test_pod_groups import group
from tests.app.state.volcano import (
    SOFT,
    TIER_1,
    TIER_2,
    TIER_3,
    around,
    cluster,
    cordon,
    fill,
    started,
    workers,
)
from tests.records import node

# -- Motivation: Use Case 1 ------------------------------------------------------------------------


@pytest.mark.parametrize("topology", [TIER_2, SOFT], ids=["hard", "soft"])
@pytest.mark.parametrize(
    ("names", "zone"), [("a b", "HyperNode0"), ("a b c", "HyperNode4"), ("a b c d", "HyperNode4")]
)
def test_use_case_1_all_pods_are_in_one_tier_1_zone_else_in_one_of_tier_2(topology, names, zone):
    on = started(cluster(), group(len(names.split()), topology=topology), *workers(names))
    assert around(on.values()) == zone


def test_use_case_1_no_pod_starts_unless_all_of_them_can():
    world = cluster()
    assert started(world, group(5, tier=2), *workers("a b c d e")) == {}
    # A gang that fits is not kept waiting by one that does not.
    others = workers("f g", group="other")
    assert len(started(world, group(2, tier=2, name="other"), *others)) == 2


# -- Motivation: Use Case 2 ------------------------------------------------------------------------

# Here HCCS is tier 1, RoCE tier 2, and VPC the whole cluster: tier 3.


def groups_of_two(partitions):
    return [pod for at in range(partitions) for pod in workers(f"{at}a {at}b", f"{at}")]


def zones(on):
    """The zone of each group of pods: of those whose names begin with its number."""
    nodes = defaultdict(list)
    for name, its in sorted(on.items()):
        nodes[name[0]].append(its)
    return [around(its) for its in nodes.values()]


def test_use_case_2_pods_of_a_group_that_requires_hccs_are_in_one_zone_of_it():
    world = cluster()
    cordon(world, "n3")  # n2 is free, and no group is split for it
    policy = sub_group("worker", 2, min_sub_groups=3, topology=TIER_1)
    on = started(world, group(6, policy), *groups_of_two(3))
    assert zones(on) == ["HyperNode0", "HyperNode2", "HyperNode3"]


def test_use_case_2_no_group_starts_unless_all_of_them_have_a_zone():
    world = cluster()
    cordon(world, "n3", "n5")
    policy = sub_group("worker", 2, min_sub_groups=3, topology=TIER_1)
    assert started(world, group(6, policy), *groups_of_two(3)) == {}


@pytest.mark.parametrize(
    ("closed", "zone"),
    [
        pytest.param((), "HyperNode0", id="hccs"),
        pytest.param(("n1", "n2", "n4", "n6"), "HyperNode4", id="then_roce"),
        pytest.param(("n0", "n1", "n2", "n4", "n5", "n6"), "ClusterTopHyperNode", id="then_vpc"),
    ],
)
@pytest.mark.parametrize("topology", [TIER_3, SOFT], ids=["hard", "soft"])
def test_use_case_2_a_group_prefers_hccs_then_roce_then_vpc(topology, closed, zone):
    world = cluster()
    cordon(world, *closed)
    on = started(world, group(2, sub_group("worker", 2, topology=topology)), *groups_of_two(1))
    assert zones(on) == [zone]


# -- network topology definition -------------------------------------------------------------------

SPINE_LEAF = (
    *(record(f"s{at}", 1, exact("Node", f"n{2 * at}", f"n{2 * at + 1}")) for at in range(4)),
    record("s4", 2, exact("HyperNode", "s0", "s1")),
    record("s5", 2, exact("HyperNode", "s2", "s3")),
    record("s6", 3, exact("HyperNode", "s4", "s5")),
)
TWO_NETWORKS = (
    record("roce-network0", 2, exact("HyperNode", "nvlink-network0", "nvlink-network1")),
    record("roce-network1", 2, exact("HyperNode", "nvlink-network2", "nvlink-network3")),
    *(
        record(f"nvlink-network{at}", 1, exact("Node", f"n{2 * at}", f"n{2 * at + 1}"))
        for at in range(4)
    ),
)


def test_definition_example_1_is_a_tree_of_three_tiers():
    assert list(paths(cluster(hyper_nodes=SPINE_LEAF)).values()) == [
        *[("s6", "s4", "s0")] * 2,
        *[("s6", "s4", "s1")] * 2,
        *[("s6", "s5", "s2")] * 2,
        *[("s6", "s5", "s3")] * 2,
    ]


def test_definition_example_2_is_two_trees_and_their_order_does_not_matter():
    found = paths(cluster(hyper_nodes=TWO_NETWORKS))
    assert found == paths(cluster(hyper_nodes=reversed(TWO_NETWORKS)))
    assert [found[f"n{at}"] for at in range(0, 8, 2)] == [
        ("roce-network0", "nvlink-network0"),
        ("roce-network0", "nvlink-network1"),
        ("roce-network1", "nvlink-network2"),
        ("roce-network1", "nvlink-network3"),
    ]


@pytest.mark.parametrize(
    ("tier", "names", "spans"), [(1, "a b", 2), (2, "a b c", 4), (3, "a b c d e", 8)]
)
def test_definition_example_1_holds_a_gang_of_each_tier(tier, names, spans):
    """`spans`: the nodes of the HyperNode that a gang of so many pods is in."""
    pods = len(names.split())
    world = cluster(hyper_nodes=SPINE_LEAF)
    assert started(world, group(pods, tier=tier - 1), *workers(names)) == {}
    on = started(world, group(pods, tier=tier, version="2"))
    assert {int(node[1:]) // spans for node in on.values()} == {0}


# -- Job management --------------------------------------------------------------------------------

# Its example: the job in one HyperNode of tier 2, its 8 pods in two partitions of tier 1 each.

PARTITIONS = sub_group("t0", 4, topology=TIER_1)


def partition(number, again=""):
    names = " ".join(f"{number}{letter}{again}" for letter in "abcd")
    return workers(names, f"{number}", task="t0")


def test_job_management_each_partition_is_in_its_tier_and_all_in_that_of_the_job():
    on = started(cluster(gpus=2), group(4, PARTITIONS, tier=2), *partition(0), *partition(1))
    assert len(on) == 8
    assert (zones(on), around(on.values())) == (["HyperNode0", "HyperNode1"], "HyperNode4")


def test_job_management_a_partition_is_not_started_in_part():
    """HyperNode4 has room for seven, and so has HyperNode5: minAvailable is 4."""
    world = cluster(gpus=2)
    fill(world, n0=1, n7=1)
    on = started(world, group(4, PARTITIONS, tier=2), *partition(0), *partition(1))
    assert zones(on) == ["HyperNode1"]
    # When there is room for it, the other one follows as a whole.
    world.delete(world.pods["uid-other-n0"])
    assert zones(started(world)) == ["HyperNode1", "HyperNode0"]


def test_job_management_a_partition_that_is_restarted_alone_comes_back_beside_the_others():
    world = cluster(gpus=2)
    before = started(world, group(4, PARTITIONS, tier=2), *partition(0), *partition(1))
    world.delete(*partition(1))
    after = started(world, *partition(1, again="2"))
    assert {name: node for name, node in after.items() if name in before} == {
        name: node for name, node in before.items() if name[0] == "0"
    }
    assert (len(after), zones(after)) == (8, ["HyperNode0", "HyperNode1"])


@pytest.mark.parametrize("least", [4, 8], ids=["one_is_needed", "both_are_needed"])
def test_job_management_a_partition_that_is_restarted_starts_as_a_whole(least):
    world = cluster(gpus=2)
    started(world, group(least, PARTITIONS, tier=2), *partition(0), *partition(1))
    world.delete(*partition(1))
    fill(world, n2=1)
    assert letters(started(world, *partition(1, again="2")), 1) == ""
    world.delete(world.pods["uid-other-n2"])
    assert letters(started(world), 1) == "abcd"


@pytest.mark.parametrize("least", [4, 8], ids=["one_is_needed", "both_are_needed"])
def test_job_management_a_partition_whose_pods_come_one_by_one_starts_with_the_last(least):
    world = cluster(gpus=2)
    started(world, group(least, PARTITIONS, tier=2), *partition(0), *partition(1))
    world.delete(*partition(1))
    for each in partition(1, again="2"):
        assert letters(started(world, each), 1) == ("abcd" if each.name == "1d2" else "")


@pytest.mark.parametrize("least", [4, 8], ids=["one_is_needed", "both_are_needed"])
@pytest.mark.parametrize("taken", [0, 1])
def test_job_management_a_partition_is_not_started_in_part_by_a_corral_that_is_restarted(
    least, taken
):
    world = cluster(gpus=2)
    job = group(least, PARTITIONS, tier=2)
    started(world, job, *partition(0), *partition(1))
    world.delete(*partition(1))
    fill(world, **{"n2": taken} if taken else {})
    *first, last = partition(1, again="2")
    world.put(*first)
    again = cluster(*world.pods.values(), gpus=2)
    assert letters(started(again, job), 1) == ""
    assert letters(started(again, last), 1) == ("" if taken else "abcd")
    assert again.held == {}


def test_job_management_nothing_is_held_for_a_partition_that_does_not_come_back():
    world = cluster(gpus=2)
    started(world, group(8, PARTITIONS, tier=2), *partition(0), *partition(1))
    world.delete(*partition(1))
    started(world, *partition(1, again="2")[:3])
    world.tick(world.settings.owed_seconds + 1)
    assert world.held == {}


@pytest.mark.parametrize("least", [4, 8], ids=["one_is_needed", "both_are_needed"])
def test_job_management_of_a_partition_that_runs_all_pods_that_are_missing_start_or_none(least):
    """The nodes of two pods fail, and there is room for one more pod beside the others."""
    world = cluster()
    part = sub_group("t0", 4, topology=TIER_2)
    started(world, group(least, part), *partition(0), *partition(1))
    lost = [world.pods[f"uid-1{letter}"] for letter in "ab"]
    world.delete(*(world.engine.books.nodes[each.node] for each in lost), *lost)
    again = partition(1, again="2")[:2]
    assert letters(started(world, *again, node(lost[0].node, gpus=1)), 1) == "cd"
    assert letters(started(world, node(lost[1].node, gpus=1)), 1) == "abcd"


def test_job_management_a_pod_more_than_a_partition_needs_starts_alone():
    world = cluster(gpus=2)
    part = sub_group("t0", 2, topology=TIER_1)
    its = partition(0)
    on = started(world, group(2, part), *its)
    assert letters(on, 0) == "abcd"
    world.delete(*its[2:])
    fill(world, **{on["0d"]: 1})
    assert letters(started(world, *partition(0, again="2")[2:]), 0) in ("abc", "abd")


def test_job_management_a_partition_that_shrinks_keeps_what_runs_and_starts_with_less():
    """One pod of each partition fewer: 0 runs, and 1 has not come back yet."""
    world = cluster(gpus=2)
    started(world, group(4, PARTITIONS, tier=2), *partition(0), *partition(1))
    world.delete(*partition(1), world.pods["uid-0d"])
    assert letters(started(world, *partition(1, again="2")[:3]), 1) == ""
    smaller = group(3, sub_group("t0", 3, topology=TIER_1), tier=2, version="2")
    on = started(world, smaller)
    assert (letters(on, 0), letters(on, 1)) == ("abc", "abc")


def test_job_management_a_partition_that_loses_a_node_before_it_starts_moves_as_a_whole():
    """n3 closes; of the others only those of HyperNode5 have room, which a new gang wants too."""
    world = cluster(gpus=2)
    part = sub_group("t0", 4, topology=TIER_2)
    started(world, group(8, part), *partition(0), *partition(1))
    world.delete(*partition(1))
    again = partition(1, again="2")
    world.put(*again)
    assert {world.held[each.uid] for each in again} == {"n2", "n3"}
    cordon(world, "n3")
    assert world.held == {}
    rivals = workers("a b c d e f g h", group="rival")
    world.put(group(8, tier=2, name="rival"), *rivals)
    world.tick()
    assert around(world.held[each.uid] for each in again) == "HyperNode2"
    assert (letters(started(world), 0), letters(started(world), 1)) == ("abcd", "abcd")


def letters(on, number):
    """Which pods of a partition have a node, once each."""
    return "".join(sorted({name[1] for name in on if name[0] == str(number)}))


# -- Volcano Job Controller ------------------------------------------------------------------------


def test_job_controller_its_pod_group_keeps_every_partition_together():
    """Partition 0 and 1 of task0 have 3 pods each, 0 to 3 of task1 have 2."""
    policies = [sub_group("task0", 3, topology=TIER_1), sub_group("task1", 2, topology=TIER_1)]
    partitions = [
        workers(" ".join(f"{task}-{at * size + each}" for each in range(size)), f"{at}", task=task)
        for task, number, size in (("task0", 2, 3), ("task1", 4, 2))
        for at in range(number)
    ]
    world = cluster(gpus=4)
    on = started(world, group(3, *policies, tier=2), *(each for its in partitions for each in its))
    tier_1 = [around(on[each.name] for each in its) for its in partitions]
    assert set(tier_1) == {"HyperNode0", "HyperNode1"}
    assert around(on.values()) == "HyperNode4"
