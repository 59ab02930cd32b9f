"""A world of plain pods grows from no nodes at all and back, with the real engine beside it."""

from __future__ import annotations

import pytest

from app.kube.core.objects import Requirement, Shape, Term, Toleration
from tests.autoscaling.cluster_autoscaler.loop import ClusterAutoscaler, Settings
from tests.autoscaling.karpenter import Karpenter
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.reading.pods import request_of, required_terms
from tests.records import BLOCK, GPU, RACK, node, pod
from tests.sim.grown import SEED, Grown
from tests.sim.liveness import check_books, check_empty
from tests.sim.node_autoscaler import node_object, node_record, pod_object
from tests.sim.world import EMPTY_SECONDS, World

MACHINE = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
QUICK = Settings(unneeded=60.0, delay_after_add=0.0, provisioning_requests=False)
MOST_SECONDS = 200.0  # until all pods run


def rack(name: str, most: int) -> NodeGroup:
    labels = {BLOCK: "b0", RACK: name}
    delays = {"ready_seconds": 10.0, "label_seconds": 20.0, "resource_seconds": 40.0}
    return NodeGroup(name, most, MACHINE, late_labels=(labels,), tags=labels, **delays)


def test_the_seed_is_of_a_world_in_which_nothing_else_happens() -> None:
    world = World(SEED)
    others = (world.preemption, world.evictions, world.contest, world.is_failing)
    assert not any(others)
    assert (world.vocabularies, len(world.corrals), world.scheduler.oddities) == ((), 1, 0.0)


@pytest.mark.slow
def test_plain_pods_make_nodes_from_zero_and_these_go_again() -> None:
    world = Grown(ClusterAutoscaler([rack("r0", 2), rack("r1", 4)], QUICK))
    workload = world.plain(pods=5, gpus=8, seconds=300.0)
    world.clock.run_until(MOST_SECONDS)
    assert len(set(world.bound())) == len(world.bound()) == 5
    assert sorted(world.api.nodes) == ["r0-0", "r0-1", "r1-0", "r1-1", "r1-2"]
    check_books(world.api, world.corrals, world.clock)
    world.clock.run_until(MOST_SECONDS + 400.0)
    assert workload.name not in world.workloads.all
    assert (world.api.nodes, world.bound()) == ({}, [])
    check_books(world.api, world.corrals, world.clock)
    world.clock.run_until(world.clock.now + EMPTY_SECONDS)
    check_empty(world.corrals)


@pytest.mark.slow
def test_karpenter_packs_them_on_fewer_nodes() -> None:
    pool = NodeGroup("p", 9, MACHINE)
    world = Grown(Karpenter([pool]))
    world.plain(pods=5, gpus=4, seconds=300.0)
    world.clock.run_until(MOST_SECONDS)
    assert (len(world.bound()), len(world.api.nodes)) == (5, 3)
    world.clock.run_until(MOST_SECONDS + 400.0)
    assert world.api.nodes == {}


@pytest.mark.slow
def test_pods_that_fit_make_no_nodes() -> None:
    world = Grown(ClusterAutoscaler([rack("r0", 8)], QUICK))
    for name in ("n0", "n1"):
        world.api.create("Node", node(f"b9/r9/{name}"))
    world.plain(pods=2, gpus=8, seconds=1000.0)
    world.clock.run_until(MOST_SECONDS)
    assert (len(world.bound()), sorted(world.api.nodes)) == (2, ["n0", "n1"])


@pytest.mark.slow
def test_the_same_autoscaler_is_the_same_history() -> None:
    def digest() -> str:
        world = Grown(ClusterAutoscaler([rack("r0", 2), rack("r1", 4)], QUICK))
        world.plain(pods=5, gpus=8, seconds=60.0)
        world.clock.run_until(MOST_SECONDS)
        assert world.nodes.actions
        return world.history.digest()

    assert digest() == digest()


def test_a_node_is_the_same_there_and_back() -> None:
    one = node("b0/r0/n0", gpus=4, is_cordoned=True, labels={"a": "b"})
    assert node_record(node_object(one)) == one


def test_a_pod_says_all_that_an_autoscaler_reads() -> None:
    narrow = Term(fields=(Requirement("metadata.name", "In", ("n0",)),))
    label = Term(expressions=(Requirement("pool", "NotIn", ("a",)),))
    shape = Shape((("pool", "b"),), (narrow, label), (Toleration("gpu", "Exists", "", ""),))
    made = pod_object(pod("a", gpus=8, cpu=500, shape=shape, gates=("g",)))
    assert request_of(made) == {"cpu": 500, GPU: 8, "pods": 1}
    assert [bool(each["matchFields"]) for each in required_terms(made)] == [True, False]
    assert made["spec"]["nodeSelector"] == {"pool": "b"}
    assert [each["key"] for each in made["spec"]["tolerations"]] == ["gpu"]
    assert made["spec"]["schedulingGates"] == [{"name": "g"}]
