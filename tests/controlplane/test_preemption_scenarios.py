"""More scenarios of preemption on the real kube-scheduler, each with its own Corral.

Nodes of 8 GPUs and pods of 8; `hp` is of priority 1000. No kubelet runs here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import GPU, MERGE, RACK, Cluster, collection, grid, job, node, pod
from tests.controlplane import kubelet, node_faults
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.test_barrier import NEAR_ANCHOR
from tests.controlplane.test_preemption import (
    QUIET_SECONDS,
    SECONDS,
    classes,
    is_bound,
    live,
    start,
    urgent,
)
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("classes")]

__all__ = ["classes"]
MIDDLE = "middle"
PART = "example.com/part"  # of a rack


def begin(cluster: Cluster, name: str, at: str) -> None:
    """Its kubelet has started the pod."""
    path = f"{collection('Pod', 'default')}/{name}/status"
    status = {"phase": "Running", "startTime": at}
    cluster.request("PATCH", path, body={"status": status}, content_type=MERGE)


def protect(cluster: Cluster, app: str, allowed: int) -> None:
    """A budget for the pods of this label, as its controller has counted them."""
    selector = {"matchLabels": {"app": app}} if app != "empty" else {}
    cluster.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": selector},
        }
    )
    path = f"{collection('PodDisruptionBudget', 'default')}/{app}/status"
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1}
    status |= {"expectedPods": 1, "observedGeneration": 1}
    cluster.request("PATCH", path, body={"status": status}, content_type=MERGE)


@pytest.mark.parametrize(
    ("started", "budgets", "gone"),
    [
        pytest.param((1, 2), {}, "b", id="the_later_one"),
        pytest.param((2, 1), {}, "a", id="the_later_one_again"),
        pytest.param((1, 2), {"b": 0}, "a", id="not_the_protected_one"),
        pytest.param((1, 2), {"b": 1}, "b", id="what_the_budget_allows"),
        pytest.param((1, 2), {"empty": 0}, "b", id="an_empty_selector_protects_nobody"),
        pytest.param((1, 2), {"a": 0, "b": 0}, "b", id="both_protected"),
    ],
)
def test_the_stock_scheduler_chooses_victims_as_the_sandbox_does(
    plane: ControlPlane,
    cluster: Cluster,
    started: tuple[int, int],
    budgets: dict[str, int],
    gone: str,
) -> None:
    """The same cases as in tests/app/sandbox/scheduler/test_scheduler.py."""
    plane.nodes(grid(racks=1, nodes=2, gpus=8))
    for app, allowed in budgets.items():
        protect(cluster, app, allowed)
    plane.start_scheduler()
    for name, day in zip("ab", started, strict=True):
        one = pod(name, requests={GPU: 8}, terminationGracePeriodSeconds=0)
        one["metadata"]["labels"] = {"app": name}
        cluster.create(one)
        cluster.wait(partial(is_bound, cluster, name), START_SECONDS, name)
        begin(cluster, name, f"2026-01-0{day}T00:00:00Z")
    cluster.create(urgent("hp"))
    cluster.wait(partial(is_bound, cluster, "hp"), SECONDS, "the pod that preempts")
    assert {"a", "b"} - cluster.bound().keys() == {gone}


@pytest.fixture
def middle(cluster: Cluster) -> Iterator[None]:
    """A priority between those of gangs and of pods that preempt."""
    cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": MIDDLE},
            "value": 500,
        }
    )
    yield
    cluster.delete("PriorityClass", MIDDLE)


@pytest.mark.usefixtures("middle")
@pytest.mark.parametrize(
    ("setting", "lost"), [("by_priority", "gang"), ("last", "single"), ("never", "single")]
)
def test_whether_a_gang_or_a_pod_of_higher_priority_goes_is_set(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, setting: str, lost: str
) -> None:
    plane.nodes([*grid(racks=1, nodes=3, gpus=8), node("fourth", gpus=8)])
    with scheduled(plane, tmp_path, gangs_as_victims=setting) as corral:
        single = pod(
            "single", requests={GPU: 8}, priorityClassName=MIDDLE, terminationGracePeriodSeconds=0
        )
        single["spec"]["nodeName"] = "fourth"
        cluster.create(single)
        gang = start(cluster, "gang", 3)
        cluster.create(urgent("hp"))
        cluster.wait(partial(is_bound, cluster, "hp"), SECONDS, "the pod that preempts")
        time.sleep(QUIET_SECONDS)
        assert len(live(cluster, "gang-")) == len(gang) - (lost == "gang")
        assert len(live(cluster, "single")) == (lost != "single")
        assert corral.bugs() == {}


@pytest.mark.usefixtures("corral")
def test_a_job_that_makes_the_pod_anew_at_once_loses_one_and_no_more(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    train = job("train", pods=4, requests={GPU: 8}, annotations=asking(required=RACK))
    train["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    cluster.create(train)
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the Job's start")
    before = set(cluster.bound())
    cluster.create(urgent("hp"))
    cluster.wait(partial(is_bound, cluster, "hp"), SECONDS, "the pod that preempts")
    cluster.wait(lambda: len(live(cluster, "train-")) == 4, SECONDS, "the Job's next pod")
    time.sleep(3 * QUIET_SECONDS)
    pods = live(cluster, "train-")
    assert len(pods & before) == 3, "one is lost"
    (again,) = pods - before
    assert not is_bound(cluster, again), "its node is another's now"
    cluster.delete("Pod", "hp")
    cluster.wait(partial(is_bound, cluster, again), SECONDS, "the replacement, with room again")


@pytest.mark.usefixtures("corral")
def test_where_the_freed_node_closes_one_more_pod_goes_and_no_third(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    gang = start(cluster, "gang", 4, grace=30)
    before = dict(cluster.bound())
    cluster.create(urgent("hp"))
    cluster.wait(lambda: len(live(cluster, "gang-")) == 3, SECONDS, "the victim")
    (lost,) = gang - live(cluster, "gang-")
    node_faults.cordon(cluster, before[lost])
    kubelet.end_deleted_pods(cluster)  # which has kube-scheduler look at the pod again
    cluster.wait(lambda: len(live(cluster, "gang-")) == 2, SECONDS, "the second victim")
    kubelet.end_deleted_pods(cluster)
    cluster.wait(partial(is_bound, cluster, "hp"), SECONDS, "the pod that preempts")
    time.sleep(QUIET_SECONDS)
    assert len(live(cluster, "gang-")) == 2


def hold_six_of_eight(cluster: Cluster, corral: CorralProcess) -> set[str]:
    """Returns when six members of a gang are at /bind, on nodes n0 to n5, and two are not.

    Those have no node for kube-scheduler until an anchor runs: it does not ask about them. Nodes n6
    and n7 are only held for them. The uids of all eight.
    """
    annotations = asking(required=RACK)
    fields: dict[str, Any] = {"annotations": annotations, "terminationGracePeriodSeconds": 0}
    late = {"affinity": NEAR_ANCHOR, "nodeSelector": {PART: "late"}}
    made = cluster.create_all(
        [
            *members("gang", 8, numbers=range(6), nodeSelector={PART: "early"}, **fields),
            *members("gang", 8, numbers=(6, 7), **late, **fields),
        ]
    )
    cluster.wait(lambda: corral.metric("corral_held_binds") == 6, START_SECONDS, "six held binds")
    assert cluster.bound() == {}
    return {one["metadata"]["uid"] for one in made}


@pytest.mark.parametrize(
    ("part", "node_of_hp"),
    [
        pytest.param("late", ("b0-r0-n6", "b0-r0-n7"), id="where_they_are_only_held"),
        pytest.param("early", tuple(f"b0-r0-n{at}" for at in range(6)), id="where_six_are"),
    ],
)
def test_no_pod_ends_for_a_node_of_a_gang_that_is_not_bound_yet(
    plane: ControlPlane,
    cluster: Cluster,
    corral: CorralProcess,
    part: str,
    node_of_hp: tuple[str, ...],
) -> None:
    """18: the gang plans again, and starts once there is room."""
    rack = grid(racks=1, nodes=8, gpus=8)
    for number, one in enumerate(rack):
        one["metadata"]["labels"][PART] = "early" if number < 6 else "late"
    plane.nodes(rack)
    uids = hold_six_of_eight(cluster, corral)
    hp = urgent("hp")
    hp["spec"]["nodeSelector"] = {PART: part}
    cluster.create(hp)
    cluster.wait(partial(is_bound, cluster, "hp"), SECONDS, "the pod that preempts")
    assert cluster.bound() == {"hp": cluster.bound()["hp"]}
    assert cluster.bound()["hp"] in node_of_hp
    cluster.wait(lambda: corral.metric("corral_held_binds") == 0, SECONDS, "the binds' refusal")
    anchor = pod("anchor", scheduler="none", labels={"app": "anchor"})
    cluster.create(anchor)
    cluster.bind("anchor", "b0-r0-n0")
    time.sleep(QUIET_SECONDS)
    assert cluster.bound().keys() == {"hp", "anchor"}, "seven nodes are left for eight pods"
    cluster.delete("Pod", "hp")
    gang = {f"gang-{number}" for number in range(8)}
    cluster.wait(lambda: gang <= cluster.bound().keys(), 2 * START_SECONDS, "the gang's start")
    there = {one["metadata"]["uid"] for one in cluster.list("Pod", "default")}
    assert uids <= there, "none has ended"


@pytest.mark.usefixtures("corral")
def test_a_node_that_another_scheduler_freed_for_its_pod_is_left_to_it(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    start(cluster, "gang", 4)
    on = cluster.bound()["gang-3"]
    hp = urgent("hp")
    hp["spec"]["schedulerName"] = "another"  # which does as follows
    cluster.create(hp)
    path = f"{collection('Pod', 'default')}/hp/status"
    body = {"status": {"nominatedNodeName": on}}
    cluster.request("PATCH", path, body=body, content_type=MERGE)
    cluster.delete("Pod", "gang-3")
    fields: dict[str, Any] = {
        "annotations": asking(required=RACK),
        "terminationGracePeriodSeconds": 0,
    }
    cluster.create_all(members("gang", 4, numbers=[3], **fields))
    time.sleep(2 * QUIET_SECONDS)
    assert not is_bound(cluster, "gang-3"), "the node is free, and another's"
    cluster.delete("Pod", "hp")
    cluster.wait(partial(is_bound, cluster, "gang-3"), SECONDS, "the replacement")
    assert cluster.bound()["gang-3"] == on
