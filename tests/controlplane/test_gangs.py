"""Gangs through the real kube-scheduler: the bind barrier, crashes, and what they leave behind."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.cluster import GPU, RACK, Cluster, Object, Objects, collection, grid, node, pod
from tests.controlplane.history import Moment, bindings, first_binding, last_creation, since
from tests.controlplane.plane import ControlPlane, binaries, free_ports, wait_ready
from tests.controlplane.process import Process
from tests.corral_process import CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

START_SECONDS = 20.0  # a gang's start with every back-off of kube-scheduler (1, 2, 4 … 10 s)
IN_RACK = asking(required=RACK)
ANYWHERE = asking(unconstrained=True)


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """Corral with the rights that are shipped, and a kube-scheduler that asks it."""
    with CorralProcess(plane.kubeconfig("corral"), tmp_path) as corral:
        plane.start_scheduler(extender=corral.url)
        yield corral


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
    assert first_binding(changes) > last_creation(changes)


def test_a_gang_survives_kill_9_at_ten_moments_of_its_start(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=16, gpus=8))
    undisturbed = started(cluster, "undisturbed")
    clear(cluster)

    for moment in range(10):
        before = Moment.now(cluster)
        with ThreadPoolExecutor(1) as creator:
            began = time.monotonic()
            creation = creator.submit(cluster.create_all, sixteen("gang"))
            time.sleep(undisturbed * moment / 10)  # the moment itself, not a wait for anything
            corral.kill()
            at_kill = len(cluster.bound())
            print("moment", moment, time.monotonic() - began, "bound", at_kill)
            created = creation.result(START_SECONDS)
        corral.start()
        cluster.wait(lambda: len(cluster.bound()) == 16, START_SECONDS, "the gang's start")
        print("after", time.monotonic() - began)

        changes = since(before, cluster)
        assert sorted(uid for uid, _ in bindings(changes)) == sorted(
            one["metadata"]["uid"] for one in created
        )
        assert len(racks_of(cluster)) == 1
        fill_what_is_left(cluster, began)
        clear(cluster)


def sixteen(name: str) -> Objects:
    """A gang that takes three quarters of every node of one of the two racks."""
    return members(name, 16, requests={GPU: 6}, annotations=IN_RACK)


def started(cluster: Cluster, name: str) -> float:
    """Seconds from the first creation to the last binding."""
    began = time.monotonic()
    cluster.create_all(sixteen(name))
    cluster.wait(lambda: len(cluster.bound()) == 16, START_SECONDS, "the gang's start")
    return time.monotonic() - began


def fill_what_is_left(cluster: Cluster, began: float) -> None:
    """Places ordinary pods on every GPU the gang has left; held capacity would keep one away."""
    left = [pod(f"whole-{at}", requests={GPU: 8}) for at in range(16)]
    left += [pod(f"rest-{at}", requests={GPU: 2}) for at in range(16)]
    cluster.create_all(left)
    cluster.wait(lambda: len(cluster.bound()) == 48, START_SECONDS, "no capacity is held")


def racks_of(cluster: Cluster) -> set[str]:
    return {on.rsplit("-", 1)[0] for on in cluster.bound().values()}


def clear(cluster: Cluster) -> None:
    """No pods; the nodes stay."""
    cluster.delete_all("Pod")
    cluster.wait(lambda: not cluster.list("Pod", "default"), 10, "no pod left")


def unschedulable(cluster: Cluster) -> dict[str, str]:
    """Pod name -> what it is told, for the pods that kube-scheduler has given up for now."""
    return {
        one["metadata"]["name"]: condition["message"]
        for one in cluster.list("Pod", "default")
        for condition in one.get("status", {}).get("conditions", [])
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    }
