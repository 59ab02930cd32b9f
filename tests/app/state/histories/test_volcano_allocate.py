"""A job and its sub-jobs, gradient by gradient.

Source: volcano docs/design/Network Topology Aware Scheduling.md, "Allocate Action".
"""

from __future__ import annotations

import pytest

from tests.app.dialects.volcano.objects import exact, record
from tests.app.dialects.volcano.workloads import sub_group
from tests.app.state.histories.test_pod_groups import group
from tests.app.state.volcano import TIER_1, around, cluster, cordon, fill, started, workers
from tests.records import node

# -- Two-Level Network Topology Aware Scheduling ---------------------------------------------------

SUB_JOBS = sub_group("worker", 2, min_sub_groups=2, topology=TIER_1)
JOB_0 = group(4, SUB_JOBS, tier=2)
TASKS = [*workers("a b", "0"), *workers("c d", "1")]


def sub_jobs(on):
    """Where sub-job 0 and sub-job 1 are."""
    return [around((on["a"], on["b"])), around((on["c"], on["d"]))] if on else []


@pytest.mark.parametrize(
    ("gpus", "closed", "expected"),
    [
        pytest.param(2, (), ["HyperNode0", "HyperNode0"], id="gradient_0_has_room_for_both"),
        pytest.param(
            2, ("n0", "n3", "n4"), ["HyperNode3", "HyperNode3"], id="the_last_of_gradient_0"
        ),
        pytest.param(1, (), ["HyperNode0", "HyperNode1"], id="gradient_1"),
        pytest.param(1, ("n0",), ["HyperNode2", "HyperNode3"], id="the_last_of_gradient_1"),
        pytest.param(1, ("n0", "n4"), [], id="no_next_gradient"),
    ],
)
def test_two_levels_a_job_is_tried_in_each_hyper_node_of_its_gradients(gpus, closed, expected):
    world = cluster(gpus=gpus)
    cordon(world, *closed)
    assert sub_jobs(started(world, JOB_0, *TASKS)) == expected


def test_two_levels_a_sub_job_without_a_topology_is_anywhere_in_the_hyper_node_of_its_job():
    world = cluster()
    cordon(world, "n0")  # HyperNode5 is the only one with room for four
    policy = sub_group("worker", 2, min_sub_groups=2)
    its = [*workers("a b", "0"), *workers("c d", "1")]
    assert around(started(world, group(4, policy, tier=2), *its).values()) == "HyperNode5"


@pytest.mark.parametrize(
    ("least", "room", "first"),
    [(1, 1, ""), (1, 2, "a b"), (1, 3, "a b"), (1, 4, "a b c d"), (2, 3, ""), (2, 4, "a b c d")],
)
def test_two_levels_at_least_min_sub_groups_start_and_each_whole(least, room, first):
    world = cluster()
    cordon(world, *(f"n{at}" for at in range(room, 8)))
    policy = sub_group("worker", 2, min_sub_groups=least, topology=TIER_1)
    assert " ".join(sorted(started(world, group(1, policy, tier=2), *TASKS))) == first


def test_two_levels_a_job_of_which_a_sub_job_is_missing_waits_with_all_others():
    world = cluster()
    assert started(world, JOB_0, *TASKS[:2]) == {}
    assert len(started(world, *TASKS[2:])) == 4


# -- HyperNode Selection Preference ----------------------------------------------------------------


def test_selection_preference_of_a_job_is_the_hyper_node_that_is_fullest_with_its_sub_jobs():
    """No HyperNode of tier 1 has room for both. 4 and 5 have as much left, of 8 and of 20."""
    world = cluster(gpus=2)
    world.put(node("n5", gpus=8), node("n7", gpus=8))
    fill(world, n0=1, n2=1, n4=2, n5=5, n6=2, n7=5)
    assert sub_jobs(started(world, JOB_0, *TASKS)) == ["HyperNode2", "HyperNode3"]


def test_selection_preference_of_a_job_is_the_sum_of_the_best_scores_of_its_sub_jobs():
    """In wide0 the sub-jobs fill tight0 and tight1, and roomy0 stays free.

    wide1 as a whole is fuller, since full0 and full1 are, but the sub-jobs get half0 and half1.
    """
    sizes = {"tight0": 4, "tight1": 4, "roomy0": 3, "half0": 4, "half1": 4, "full0": 4, "full1": 4}
    names = list(sizes)
    world = cluster(
        hyper_nodes=(
            *(record(name, 1, exact("Node", name)) for name in names),
            record("wide0", 2, exact("HyperNode", *names[:3])),
            record("wide1", 2, exact("HyperNode", *names[3:])),
        )
    )
    world.put(*(node(name, gpus=gpus) for name, gpus in sizes.items()))
    fill(world, tight0=2, tight1=2, half0=1, half1=1, full0=4, full1=4)
    assert set(started(world, JOB_0, *TASKS).values()) == {"tight0", "tight1"}
