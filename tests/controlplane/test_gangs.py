"""Whole or not at all, through the real kube-scheduler."""

from __future__ import annotations

import random

import pytest

from tests.cluster import GPU, RACK, Cluster, grid, pod
from tests.controlplane.history import Moment, bindings, first_binding, last_creation, since
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, unschedulable
from tests.corral_process import CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
ANYWHERE = asking(unconstrained=True)


@pytest.mark.parametrize("seed", range(5))
def test_two_gangs_created_interleaved_never_share_the_last_rack(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, seed: int
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    pods = [*members("red", 4, annotations=IN_RACK), *members("blue", 4, annotations=IN_RACK)]
    random.Random(seed).shuffle(pods)
    for one in pods:
        cluster.create(one)

    cluster.wait(lambda: len(cluster.bound()) >= 4, START_SECONDS, "one gang's binding")
    told = cluster.wait(lambda: unschedulable(cluster), 10, "the other's verdict")
    assert len({name.split("-")[0] for name in cluster.bound()}) == 1
    assert sorted(cluster.bound().values()) == ["b0-r0-n0", "b0-r0-n1", "b0-r0-n2", "b0-r0-n3"]
    assert {name.split("-")[0] for name in told}.isdisjoint(
        name.split("-")[0] for name in cluster.bound()
    )


def test_gangs_that_wait_for_one_rack_follow_each_other_within_five_seconds(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    waiting = {f"gang{number}" for number in range(6)}
    for name in sorted(waiting):
        cluster.create_all(members(name, 4, annotations=IN_RACK))

    while waiting:
        cluster.wait(lambda: len(cluster.bound()) == 4, 5, f"one of {sorted(waiting)}")
        (running,) = {name.split("-")[0] for name in cluster.bound()}
        waiting.remove(running)
        for number in range(4):
            cluster.delete("Pod", f"{running}-{number}")
    assert cluster.bound() == {}


def test_pods_of_a_controller_whose_size_is_not_read_are_refused_by_its_name(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=2, gpus=8))
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray", "uid": "1-2-3"}
    for number in range(2):
        one = pod(f"worker-{number}", requests={GPU: "8"}, annotations=IN_RACK)
        one["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        cluster.create(one)

    told = cluster.wait(
        lambda: len(found := unschedulable(cluster)) == 2 and found, START_SECONDS, "two refusals"
    )
    assert all("its controller is the RayCluster ray" in sentence for sentence in told.values())
    assert cluster.bound() == {}


def test_512_pods_on_512_nodes_start_whole_through_the_bind_barrier(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(blocks=4, racks=8, nodes=16, gpus=8))
    before = Moment.now(cluster)
    cluster.create_all(members("big", 512, annotations=ANYWHERE))

    cluster.wait(lambda: len(cluster.bound()) == 512, 60, "512 bindings")
    changes = since(before, cluster)
    assert len(set(cluster.bound().values())) == 512
    assert len(bindings(changes)) == 512
    assert corral.metric('corral_binds_total{outcome="bound"}') == 512
    assert first_binding(changes) > last_creation(changes)
