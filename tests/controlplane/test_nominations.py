"""Gangs without gates beside a kube-scheduler that samples: each pod is nominated for its node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import GPU, MERGE, RACK, Cluster, collection, grid, pod
from tests.controlplane.plane import ControlPlane
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
RACKS, NODES_PER_RACK = 30, 10  # of 300 nodes kube-scheduler looks at 144
PODS = 5
SECONDS = 60.0
SOON = 10.0  # kube-scheduler's back-off after refused bindings, and on a busy machine
ANCHOR = {"labelSelector": {"matchLabels": {"app": "anchor"}}, "topologyKey": RACK}
BESIDE = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ANCHOR]}}
REJECTED = 'corral_filter_answers_total{answer="rejected"}'
NOTED = "corral.dev/nominated"


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    cluster.create_all(grid(racks=RACKS, nodes=NODES_PER_RACK, gpus=8))
    kubeconfig = plane.kubeconfig("corral")
    with CorralProcess(kubeconfig, tmp_path) as corral:
        plane.start_scheduler(extender=corral.url)
        yield corral


def racks_of(cluster: Cluster, gang: str) -> list[str]:
    """The rack of each of its pods that is bound; nodes are named after their racks."""
    bound = cluster.bound().items()
    return [node.rpartition("-")[0] for name, node in bound if name.startswith(f"{gang}-")]


def all_whole(cluster: Cluster, gangs: list[str]) -> bool:
    return all(len(racks_of(cluster, gang)) == PODS for gang in gangs)


def test_gangs_without_gates_start_whole_though_nodes_are_sampled(
    cluster: Cluster, corral: CorralProcess
) -> None:
    gangs = [f"gang{number}" for number in range(10)]
    for gang in gangs:
        cluster.create_all(members(gang, PODS, annotations=IN_RACK, requests={GPU: 8}))
    cluster.wait(lambda: all_whole(cluster, gangs), SECONDS, "all gangs")
    assert [len(set(racks_of(cluster, gang))) for gang in gangs] == [1] * len(gangs)
    left = [each["status"].get("nominatedNodeName") for each in cluster.list("Pod", "default")]
    assert left == [None] * len(left)  # binding a pod takes it away
    assert corral.bugs() == {}


def test_ordinary_pods_that_want_their_nodes_tear_no_gang(
    cluster: Cluster, corral: CorralProcess
) -> None:
    gangs = [f"gang{number}" for number in range(8)]
    storm = [f"storm-{number}" for number in range(100)]
    for at, gang in enumerate(gangs):
        cluster.create_all(members(gang, PODS, annotations=IN_RACK, requests={GPU: 8}))
        cluster.create_all(pod(name, requests={GPU: 8}) for name in storm[at :: len(gangs)])
    cluster.wait(lambda: all_whole(cluster, gangs), SECONDS, "all gangs")
    assert [len(set(racks_of(cluster, gang))) for gang in gangs] == [1] * len(gangs)
    cluster.wait(lambda: len(cluster.bound()) == len(storm) + 40, SECONDS, "the storm")
    assert corral.bugs() == {}


def nominated(cluster: Cluster) -> dict[str, str]:
    """The pods that are nominated, and for which node."""
    found = {
        each["metadata"]["name"]: each["status"].get("nominatedNodeName")
        for each in cluster.list("Pod", "default")
    }
    return {name: node for name, node in found.items() if node}


def test_a_gang_whose_plan_is_lost_after_it_was_nominated_is_whole_soon(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """The nodes of its new plan are those that others of its pods were nominated for."""
    plane.nodes(grid(racks=1, nodes=PODS + 1, gpus=8))
    with scheduled(plane, tmp_path) as corral:
        *early, last = members("g", PODS, annotations=IN_RACK, requests={GPU: 8})
        last["spec"]["affinity"] = BESIDE  # which kube-scheduler alone looks at
        cluster.create_all(early)
        cluster.wait(
            lambda: corral.metric(REJECTED) >= len(early),
            SECONDS,
            "kube-scheduler has asked about each pod",
        )
        cluster.create(last)
        cluster.wait(lambda: len(nominated(cluster)) == len(early), SECONDS, "the nominations")
        on = nominated(cluster)[early[0]["metadata"]["name"]]
        cluster.patch("Node", on, {"spec": {"unschedulable": True}})
        cluster.wait(lambda: on not in nominated(cluster).values(), SECONDS, "the new plan")
        cluster.create(pod("anchor", scheduler="none", labels={"app": "anchor"}))
        cluster.bind("anchor", on)
        cluster.wait(lambda: len(cluster.bound()) == PODS + 1, SOON, "the whole gang")
        assert [name for name, node in cluster.bound().items() if node == on] == ["anchor"]
        assert nominated(cluster) == {}
        assert corral.bugs() == {}


@contextmanager
def without_status(plane: ControlPlane) -> Iterator[None]:
    """The ClusterRole of a Corral that did not nominate yet."""
    admin = plane.cluster()
    rules = (admin.get("ClusterRole", "corral") or {})["rules"]
    older = [each for each in rules if each["resources"] != ["pods/status"]]
    assert len(older) == len(rules) - 1
    admin.patch("ClusterRole", "corral", {"rules": older})
    try:
        yield
    finally:
        admin.patch("ClusterRole", "corral", {"rules": rules})


def test_with_rights_of_an_older_corral_gangs_start_and_one_write_is_refused(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=2, nodes=PODS, gpus=8))
    with without_status(plane), scheduled(plane, tmp_path) as corral:
        for gang in ("a", "b"):
            *early, last = members(gang, PODS, annotations=IN_RACK, requests={GPU: 8})
            before = corral.metric(REJECTED)
            cluster.create_all(early)
            cluster.wait(
                lambda n=before: corral.metric(REJECTED) >= n + PODS - 1, SECONDS, "rejections"
            )
            cluster.create(last)
            cluster.wait(lambda g=gang: len(racks_of(cluster, g)) == PODS, SECONDS, gang)
        assert corral.metric('corral_wakes_total{outcome="not_nominated"}') >= PODS - 1
        assert corral.bugs() == {}
    refused = plane.denials()
    # Of the first gang alone, whose pods may all be under way before the first is refused.
    once = {f"/api/v1/namespaces/default/pods/a-{number}/status" for number in range(PODS)}
    assert {each.path for each in refused} <= once
    assert 0 < len(refused) <= PODS


def test_what_corral_nominated_is_taken_back_after_a_restart_and_nothing_else(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """Pods that have left their gang: one with the note that the nomination is Corral's."""
    plane.nodes(grid(racks=1, nodes=1, gpus=8))
    cluster.create(pod("ours", annotations={NOTED: "b0-r0-n0"}))
    cluster.create(pod("theirs"))
    for name in ("ours", "theirs"):
        path = f"{collection('Pod', 'default')}/{name}/status"
        body = {"status": {"nominatedNodeName": "b0-r0-n0"}}
        cluster.request("PATCH", path, body=body, content_type=MERGE)
    with CorralProcess(plane.kubeconfig("corral"), tmp_path) as corral:
        cluster.wait(lambda: "ours" not in nominated(cluster), SOON, "it is taken back")
        assert nominated(cluster) == {"theirs": "b0-r0-n0"}
        assert NOTED not in (cluster.get("Pod", "ours") or {})["metadata"].get("annotations", {})
        assert corral.bugs() == {}
