"""Grove's own operator makes the pods, and no scheduler but kube-scheduler with Corral binds them.

First the cases of Grove's own end-to-end tests, then what happens to pods that run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster import STRATEGIC, Cluster, Object, Objects
from tests.controlplane.grove import (
    SCHEDULER,
    TOPOLOGY,
    bound,
    clear,
    clear_pods,
    clique,
    grove_operator,
    pod_clique_set,
    pods_of,
    scaling_group,
    why,
)
from tests.controlplane.grove_cases import CASES, EACH_GROUP, KEYS, LEVELS, Together, nodes
from tests.controlplane.kubelet import kubelets
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import scheduled

UPDATE_SECONDS = 40.0  # Grove looks every 5 s whether it may go on

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def grove(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with grove_operator(plane, tmp_path_factory.mktemp("grove"), LEVELS) as process:
        yield process


@pytest.fixture(scope="module")
def module_stage(
    plane: ControlPlane, grove: Process, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """28 nodes with kubelets, kube-scheduler and Corral."""
    cluster = plane.cluster()
    plane.nodes(nodes())
    folder = tmp_path_factory.mktemp("corral")
    with (
        scheduled(plane, folder, SCHEDULER, levels=()) as corral,
        kubelets(cluster),
    ):
        yield cluster
        assert corral.bugs() == {}
    plane.stop_scheduler()
    clear(cluster)
    cluster.delete_all("Node")


@pytest.fixture
def stage(module_stage: Cluster, grove: Process) -> Iterator[Cluster]:
    """The same, without pods again afterwards."""
    yield module_stage
    grove.check()
    clear_pods(module_stage)


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_groves_own(stage: Cluster, name: str) -> None:
    case, named = CASES[name], name.partition("-")[0]
    stage.create({**case.made, "metadata": {**case.made["metadata"], "name": named}})
    if not case.pods:
        told = stage.wait(lambda: why(stage, named), START_SECONDS, "it says why it waits")
        assert "7 of 10 pods fit" in told[f"{named}-0"]
        assert not any(each["spec"].get("nodeName") for each in pods_of(stage, named))
        return
    pods = all_bound(stage, named, case.pods)
    assert apart(stage, pods, *case.together) == []


def all_bound(cluster: Cluster, name: str, pods: int) -> Objects:
    """The pods of a PodCliqueSet, once there are that many and all have nodes."""

    def found() -> Objects:
        there = [each for each in pods_of(cluster, name) if each["spec"].get("nodeName")]
        return there if len(there) == pods else []

    return cluster.wait(found, START_SECONDS, f"{pods} pods have nodes")


def apart(cluster: Cluster, pods: Objects, *together: Together) -> list[Any]:
    """What of these pods is not in one domain."""
    nodes = {each["metadata"]["name"]: each for each in cluster.list("Node")}
    found = [(each, each.apart(pods, nodes)) for each in together]
    return [each for each in found if each[1]]


def test_scaling_moves_nothing_that_runs_and_each_new_replica_is_in_a_rack(stage: Cluster) -> None:
    workers = scaling_group("workers", "worker", replicas=1, pack="rack")
    made = pod_clique_set("scaled", clique("worker", 5), groups=[workers], pack="zone")
    stage.create(made)
    before = where(all_bound(stage, "scaled", 5))

    scale(stage, "scaled-0-workers", 3)
    pods = all_bound(stage, "scaled", 15)
    assert before.items() <= where(pods).items()
    assert apart(stage, pods, Together("rack", EACH_GROUP)) == []

    stage.create(pod_clique_set("next", clique("worker", 6), pack="rack"))
    all_bound(stage, "next", 6)
    stage.create(pod_clique_set("late", clique("worker", 6), pack="rack"))
    stage.wait(lambda: why(stage, "late"), START_SECONDS, "it says why it waits")
    scale(stage, "scaled-0-workers", 1)
    all_bound(stage, "late", 6)
    assert where(all_bound(stage, "scaled", 5)) == before


def test_scaled_gangs_go_to_the_block_of_their_base_gang_or_wait_with_that_reason(
    stage: Cluster,
) -> None:
    with closed(stage, "block", "block-0"):
        workers = scaling_group("workers", "worker", replicas=1, pack="rack")
        stage.create(pod_clique_set("anchor", clique("worker", 3), groups=[workers], pack="block"))
        all_bound(stage, "anchor", 3)
    scale(stage, "anchor-0-workers", 3)
    pods = all_bound(stage, "anchor", 6)
    assert apart(stage, pods, Together("block"), Together("rack", EACH_GROUP)) == []
    (told,) = stage.wait(lambda: why(stage, "anchor"), START_SECONDS, "it says why").values()
    assert "outside the domain of replica 0 of PodCliqueSet anchor 20" in told


def test_pods_that_are_lost_come_back_in_their_rack_and_wait_while_it_is_full(
    stage: Cluster,
) -> None:
    stage.create(pod_clique_set("lost", clique("worker", 5), clique("router", 2), pack="rack"))
    pods = all_bound(stage, "lost", 7)
    before = where(pods)
    gone = sorted(before)[0]
    node = before.pop(gone)
    with closed(stage, "host", node):
        stage.delete("Pod", gone)
        # Corral may hear of the pod before it hears of the node.
        stage.wait(
            lambda: "0 of 1 pods fit" in why(stage, "lost").get("lost-0", ""),
            START_SECONDS,
            "it says why it waits",
        )
        assert bound(stage, "lost") == before
    pods = all_bound(stage, "lost", 7)
    assert before.items() <= where(pods).items()
    assert apart(stage, pods, Together("rack")) == []


def test_an_update_replaces_pods_one_by_one_in_their_levels(stage: Cluster) -> None:
    workers = scaling_group("workers", "worker", replicas=2, least=2, pack="rack")
    cliques = (clique("worker", 2), clique("router", 3))
    made = pod_clique_set("update", *cliques, groups=[workers], pack="block")
    stage.create(made)
    first = {each["metadata"]["uid"] for each in all_bound(stage, "update", 7)}

    for each in cliques:
        each["spec"]["podSpec"]["containers"][0]["image"] = "example.invalid/work:2"
    stage.patch("PodCliqueSet", "update", {"spec": {"template": {"cliques": cliques}}})
    stage.wait(
        lambda: first.isdisjoint(each["metadata"]["uid"] for each in pods_of(stage, "update")),
        UPDATE_SECONDS,
        "all pods are new ones",
    )
    pods = all_bound(stage, "update", 7)
    assert apart(stage, pods, Together("block"), Together("rack", EACH_GROUP, ("worker",))) == []


def test_a_gang_says_whether_its_pods_are_ready_and_how_near_they_are(stage: Cluster) -> None:
    stage.create(pod_clique_set("said", clique("worker", 3), pack="rack"))
    pods = all_bound(stage, "said", 3)

    def says(**wanted: str) -> bool:
        status = (stage.get("PodGang", "said-0") or {}).get("status", {})
        said = {each["type"]: each["status"] for each in status.get("conditions", ())}
        return bool(
            {**said, **wanted, "Initialized": "True"} == said
            and status.get("placementScore") == 1.0
        )

    stage.wait(lambda: says(Ready="True", Unhealthy="False"), UPDATE_SECONDS, "it is ready")
    stage.wait(lambda: is_running(stage, pods[0]), START_SECONDS, "a kubelet has started it")
    fail(stage, pods[0])
    stage.wait(lambda: says(Ready="False", Unhealthy="True"), UPDATE_SECONDS, "it is not healthy")
    assert len(all_bound(stage, "said", 3)) == 3


def test_a_gang_that_is_terminated_starts_whole_in_another_rack(stage: Cluster) -> None:
    made = pod_clique_set("broken", clique("worker", 4), pack="rack", termination_delay="1s")
    stage.create(made)
    pods = all_bound(stage, "broken", 4)
    first = {each["metadata"]["uid"] for each in pods}
    (rack,) = racks_of(stage, pods)
    stage.wait(lambda: is_running(stage, pods[0]), START_SECONDS, "a kubelet has started it")
    with closed(stage, "rack", rack):
        fail(stage, pods[0])

        def all_new() -> Objects:
            found = [each for each in pods_of(stage, "broken") if each["spec"].get("nodeName")]
            is_new = first.isdisjoint(each["metadata"]["uid"] for each in found)
            return found if is_new and len(found) == 4 else []

        pods = stage.wait(all_new, UPDATE_SECONDS, "all pods are new ones")
    assert len(racks_of(stage, pods) - {rack}) == 1


def test_a_level_that_the_topology_has_no_more_holds_no_new_pods(stage: Cluster) -> None:
    made = pod_clique_set("level", clique("worker", 10), replicas=0, pack="rack")
    stage.create(made)
    topology = stage.get("ClusterTopology", TOPOLOGY)
    assert topology is not None
    levels = topology["spec"]["levels"]
    fewer = [each for each in levels if each["domain"] != "rack"]
    stage.patch("ClusterTopology", TOPOLOGY, {"spec": {"levels": fewer}})
    try:
        stage.patch("PodCliqueSet", "level", {"spec": {"replicas": 1}})
        assert len(racks_of(stage, all_bound(stage, "level", 10))) > 1
        stage.wait(lambda: unavailable(stage, "level") == "True", UPDATE_SECONDS, "it is told")
    finally:
        stage.patch("ClusterTopology", TOPOLOGY, {"spec": {"levels": levels}})


def unavailable(cluster: Cluster, name: str) -> str:
    """What the operator says of a PodCliqueSet's levels, see GREP-244 "Monitoring"."""
    made = cluster.get("PodCliqueSet", name)
    said = [] if made is None else made.get("status", {}).get("conditions", [])
    told = {each["type"]: each["status"] for each in said}
    return str(told.get("TopologyLevelsUnavailable", ""))


def where(pods: Objects) -> dict[str, str]:
    return {each["metadata"]["name"]: each["spec"]["nodeName"] for each in pods}


def racks_of(cluster: Cluster, pods: Objects) -> set[str]:
    nodes = {each["metadata"]["name"]: each for each in cluster.list("Node")}
    return {nodes[on]["metadata"]["labels"][LEVELS["rack"]] for on in where(pods).values()}


@contextmanager
def closed(cluster: Cluster, level: str, domain: str) -> Iterator[None]:
    """The nodes of a domain take no new pods while the block lasts."""
    inside = cluster.list("Node", labelSelector=f"{KEYS[level]}={domain}")
    names = [each["metadata"]["name"] for each in inside]
    try:
        for name in names:
            cluster.patch("Node", name, {"spec": {"unschedulable": True}})
        yield
    finally:
        for name in names:
            cluster.patch("Node", name, {"spec": {"unschedulable": False}})


def scale(cluster: Cluster, group: str, replicas: int) -> None:
    """As an autoscaler does: the scaling group of one replica of its PodCliqueSet."""
    cluster.patch("PodCliqueScalingGroup", group, {"spec": {"replicas": replicas}})


def is_running(cluster: Cluster, pod: Object) -> bool:
    there = cluster.get("Pod", pod["metadata"]["name"])
    return there is not None and there["status"].get("phase") == "Running"


def fail(cluster: Cluster, pod: Object) -> None:
    """What a kubelet says of a pod whose container ends whenever it is started."""
    ended = {
        "name": pod["spec"]["containers"][0]["name"],
        "image": "",
        "imageID": "",
        "ready": False,
        "restartCount": 1,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
    }
    ready = [{"type": kind, "status": "False"} for kind in ("ContainersReady", "Ready")]
    status = {"status": {"conditions": ready, "containerStatuses": [ended]}}
    name = f"{pod['metadata']['name']}/status"
    cluster.patch("Pod", name, status, content_type=STRATEGIC)
