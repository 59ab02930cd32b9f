"""Gangs whose pods the real kube-apiserver has gated, whatever gates and checks them there.

One Corral serves all of these tests: each has nodes and a kube-scheduler of its own.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.cluster import GPU, RACK, Cluster, Object, Objects, grid, job, pod
from tests.controlplane.admission import Admission
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, racks_of
from tests.controlplane.ways_of_gating import admission_of_all
from tests.workloads import GATE, GROUP, MANAGED, QUEUE, asking, gates_of, member, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

__all__ = ["admission_of_all"]
IN_RACK = asking(required=RACK)
ROLE_HASH = "kueue.x-k8s.io/role-hash"
SETS = "kueue.x-k8s.io/pod-group-sets"
ROLE = "kueue.x-k8s.io/pod-group-role"
FAST = "kueue.x-k8s.io/pod-group-fast-admission"
SERVING = "kueue.x-k8s.io/pod-group-serving"


@pytest.fixture
def admission(plane: ControlPlane, cluster: Cluster, admission_of_all: Admission) -> Admission:
    """What gates and checks pods, none of which it has gated yet, and a kube-scheduler."""
    plane.start_scheduler(extender=admission_of_all.corral.url)
    return replace(admission_of_all, gated_before=admission_of_all.pods_gated())


def test_a_gated_gang_starts_whole_in_one_rack(plane: ControlPlane, admission: Admission) -> None:
    cluster = admission.cluster
    plane.nodes(grid(blocks=1, racks=2, nodes=4, gpus=8))
    for thing in members("red", 4, annotations=IN_RACK)[:3]:
        assert gates_of(cluster.create(thing)) == [GATE]
    assert cluster.bound() == {}
    cluster.create(members("red", 4, annotations=IN_RACK)[3])
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "four bindings")
    assert len(racks_of(cluster)) == 1


def test_an_opted_out_gang_starts_gateless(plane: ControlPlane, admission: Admission) -> None:
    cluster = admission.cluster
    plane.nodes(grid(blocks=1, racks=2, nodes=4, gpus=8))
    for thing in members("red", 4, annotations=IN_RACK):
        thing["metadata"]["labels"] = {MANAGED: "false"}
        assert gates_of(cluster.create(thing)) == []
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "four bindings")
    assert len(racks_of(cluster)) == 1
    assert admission.pods_gated() == 0


def test_a_group_of_two_roles_starts_whole_with_and_without_role_hashes(
    plane: ControlPlane, admission: Admission
) -> None:
    cluster = admission.cluster
    plane.nodes(grid(blocks=1, racks=2, nodes=4, gpus=8))
    first, *workers = members("red", 4, annotations=IN_RACK)
    first["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    for thing in (*workers, first):
        assert cluster.bound() == {}
        created = cluster.create(thing)
        assert gates_of(created) == [GATE]
        assert (ROLE_HASH in created["metadata"]["annotations"]) == admission.hashes_roles
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "four bindings")
    assert len(racks_of(cluster)) == 1


def test_a_pod_with_a_queue_name_alone_waits_behind_the_gate_until_there_is_room(
    plane: ControlPlane, admission: Admission
) -> None:
    cluster = admission.cluster
    plane.nodes(grid(blocks=1, racks=1, nodes=1, gpus=8))
    first, second = (
        pod(name, requests={GPU: 8}, labels={QUEUE: "team"}) for name in ("first", "second")
    )
    assert gates_of(cluster.create(first)) == [GATE]
    wait_bound(cluster, first)
    assert gates_of(cluster.create(second)) == [GATE]
    cluster.wait(lambda: told_by_event(cluster, "cannot be placed"), START_SECONDS, "a refusal")
    assert "second" not in cluster.bound()
    cluster.delete("Pod", "first")
    wait_bound(cluster, second)


def test_a_job_of_64_pods_is_gated_and_starts_whole_in_one_rack(
    plane: ControlPlane, admission: Admission
) -> None:
    cluster = admission.cluster
    plane.nodes(grid(racks=3, nodes=16, gpus=8))  # 64 pods of 2 GPUs fill a rack
    cluster.create(job("train", pods=64, requests={GPU: 2}, annotations=IN_RACK))
    cluster.wait(lambda: len(cluster.bound()) == 64, START_SECONDS, "64 bindings")
    assert len(racks_of(cluster)) == 1
    assert admission.pods_gated() == (64 if admission.is_gated_by_corral else 0)
    assert are_managed(cluster)


def test_workers_that_a_driver_declares_join_it_in_its_rack_when_they_come(
    plane: ControlPlane, admission: Admission
) -> None:
    cluster = admission.cluster
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    workers = [worker(number) for number in range(4)]
    declaring = driver(workers)
    assert gates_of(cluster.create(declaring)) == [GATE]
    wait_bound(cluster, declaring)
    create_rivals(cluster, besides=1)

    cluster.create_all(workers)
    cluster.wait(lambda: len(cluster.bound()) == 1 + 4 + 4, START_SECONDS, "the workers' bindings")
    assert len(racks_of_gang(cluster, "driver", "worker")) == 1
    assert admission.pods_gated() == (1 + 4 + 8 if admission.is_gated_by_corral else 0)
    assert are_managed(cluster)


def test_a_serving_group_that_is_admitted_fast_starts_pod_by_pod_in_one_rack(
    plane: ControlPlane, admission: Admission
) -> None:
    cluster = admission.cluster
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    said = {**IN_RACK, FAST: "true", SERVING: "true"}
    first, *others = members("web", 4, annotations=said)
    assert gates_of(cluster.create(first)) == [GATE]
    wait_bound(cluster, first)
    create_rivals(cluster, besides=1)
    for one in others:
        cluster.create(one)
        wait_bound(cluster, one)

    # A pod that serves is never done: the fifth takes the place of the one that has ended.
    cluster.patch("Pod", "web-1/status", {"status": {"phase": "Succeeded"}})
    fifth = member("web", 4, 4, annotations=said)
    cluster.create(fifth)
    wait_bound(cluster, fifth)
    assert len(racks_of_gang(cluster, "web")) == 1
    assert admission.pods_gated() == (5 + 8 if admission.is_gated_by_corral else 0)
    assert are_managed(cluster)


def worker(number: int) -> Object:
    """One of the pods that the driver declares; only the driver says how many there are."""
    said = {GROUP: "story", **IN_RACK}
    return pod(f"worker-{number}", requests={GPU: 8}, labels={ROLE: "workers"}, annotations=said)


def driver(workers: Objects) -> Object:
    """A pod without GPUs that declares these pods beside itself, before they exist."""
    template = {"spec": workers[0]["spec"]}
    sets = [
        {"name": "driver", "count": 1},
        {"name": "workers", "count": len(workers), "template": template},
    ]
    said = {GROUP: "story", SETS: json.dumps(sets), **IN_RACK}
    return pod("driver", requests={"cpu": "1"}, annotations=said)


def create_rivals(cluster: Cluster, *, besides: int) -> None:
    """Two gangs of a rack each, where one rack is free: the other is that of pods still to come.

    `besides`: pods of others that are bound by now.
    """
    for name in ("red", "blue"):
        cluster.create_all(members(name, 4, annotations=IN_RACK))
    bound = besides + 4
    cluster.wait(lambda: len(cluster.bound()) >= bound, START_SECONDS, "the first rival's start")
    cluster.wait(lambda: told_by_event(cluster, "cannot be placed"), START_SECONDS, "a refusal")
    assert len(cluster.bound()) == bound


def wait_bound(cluster: Cluster, thing: Object) -> None:
    name = thing["metadata"]["name"]
    cluster.wait(lambda: name in cluster.bound(), START_SECONDS, f"the binding of {name}")


def told_by_event(cluster: Cluster, text: str) -> bool:
    return any(text in event["message"] for event in cluster.list("Event", "default"))


def racks_of_gang(cluster: Cluster, *prefixes: str) -> set[str]:
    """The racks of the bound pods whose names begin so, where `grid` has named the nodes."""
    return {
        node.rsplit("-", 1)[0]
        for name, node in cluster.bound().items()
        if name.startswith(prefixes)
    }


def are_managed(cluster: Cluster) -> bool:
    """Whether the webhook has taken every pod in; nobody else writes that label here."""
    return all(
        one["metadata"].get("labels", {}).get(MANAGED) == "true"
        for one in cluster.list("Pod", "default")
    )
