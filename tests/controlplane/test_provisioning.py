"""Gangs that ask for nodes by a ProvisioningRequest, on a real API server with the real CRD.

Its own rules for PodTemplates and requests, its garbage collector's rights and deploy/policy.yaml
are in effect. Who serves the requests is the test, or the simulated autoscaler.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from benchmarks.costs import writes
from tests.autoscaling.cluster_autoscaler.loop import ClusterAutoscaler
from tests.autoscaling.objects import ATOMIC_SCALE_UP, CLASS_NAME, CONSUME
from tests.autoscaling.on_cluster import autoscaling
from tests.autoscaling.plays import SPEED, rack
from tests.cluster import BLOCK, GPU, RACK, Cluster, Object, grid
from tests.controlplane import kinds
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, behind_gate, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

REQUEST, TEMPLATE = "ProvisioningRequest", "PodTemplate"
ROLE = "corral-provisioning"
IN_RACK = asking(required=RACK)
ASKED = 'corral_node_asks_total{how="request",result="written"}'
QUIET_SECONDS = 3.0  # in which nothing more is to be written
LATE_SECONDS = 60.0  # until a kind is read that came after Corral: it looks every 30 s


@contextmanager
def asking_corral(plane: ControlPlane, folder: Path) -> Iterator[CorralProcess]:
    """A Corral whose gangs ask by requests."""
    with (
        plane.granted(ROLE),
        scheduled(
            plane, folder, needs_nodes_seconds=1.0, provisioning_class=ATOMIC_SCALE_UP
        ) as corral,
    ):
        yield corral
        assert corral.bugs() == {}
        assert plane.denials() == []


@pytest.fixture
def requests(plane: ControlPlane, cluster: Cluster) -> Iterator[None]:
    """ProvisioningRequests are served, and nothing of them stays."""
    with kinds.served(plane.cluster(), (REQUEST,)):
        yield
        cluster.clear(TEMPLATE)


@pytest.fixture
def corral(
    plane: ControlPlane, cluster: Cluster, requests: None, tmp_path: Path
) -> Iterator[CorralProcess]:
    with asking_corral(plane, tmp_path) as corral:
        yield corral


def gated(name: str, pods: int) -> list[Object]:
    return [behind_gate(one) for one in members(name, pods, annotations=IN_RACK, requests={GPU: 8})]


def the_request(cluster: Cluster) -> Object:
    """The only one, once it is there and its template is its own."""

    def whole() -> Object | None:
        found, templates = cluster.list(REQUEST, "default"), cluster.list(TEMPLATE, "default")
        owners = [own["kind"] for each in templates for own in each["metadata"]["ownerReferences"]]
        return found[0] if len(found) == 1 and owners == [REQUEST] else None

    request = cluster.wait(whole, START_SECONDS, "a request with its template")
    assert request is not None
    return request


def answer(cluster: Cluster, request: Object, *conditions: tuple[str, str, str]) -> None:
    """Who serves it says this: (type, status, reason)."""
    said = [
        {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": f"said {reason}",
            "lastTransitionTime": "2026-11-21T13:00:00Z",
        }
        for type_, status, reason in conditions
    ]
    name = request["metadata"]["name"]
    cluster.patch(REQUEST, f"{name}/status", {"status": {"conditions": said}})


def shown(corral: CorralProcess, name: str) -> Object:
    """What /v1 says that a gang needs."""
    found = httpx.get(f"{corral.url}/v1/gangs/default/{name}", timeout=5.0).json()
    return dict((found.get("gang") or found).get("needs_nodes") or {})


def gone(cluster: Cluster) -> bool:
    return not (cluster.list(REQUEST, "default") or cluster.list(TEMPLATE, "default"))


def marked(cluster: Cluster) -> list[str]:
    return [
        one["metadata"]["name"]
        for one in cluster.list("Pod", "default")
        for condition in one["status"].get("conditions", ())
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable"
    ]


def test_a_request_is_made_answered_consumed_and_deleted(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=2, gpus=8))  # too few in each, and excluded
    before = writes(plane)
    cluster.create_all(gated("g", 4))
    request = the_request(cluster)
    assert request["spec"]["provisioningClassName"] == ATOMIC_SCALE_UP
    assert [each["count"] for each in request["spec"]["podSets"]] == [4]
    (template,) = cluster.list(TEMPLATE, "default")
    affinity = template["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert len(term["matchFields"]) == 4
    time.sleep(QUIET_SECONDS)
    written = writes(plane) - before
    assert (written["PATCH pods/status"], written["PATCH pods"]) == (0, 0)
    assert written["POST provisioningrequests"] == 1
    assert marked(cluster) == []
    assert corral.metric(ASKED) == 1

    answer(cluster, request, ("Accepted", "True", "Accepted"), ("Provisioned", "True", "Ordered"))
    cluster.create_all(grid(racks=3, nodes=4, gpus=8)[8:])  # the third rack
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the gang's start")
    for one in cluster.list("Pod", "default"):
        said = one["metadata"]["annotations"]
        assert said[CONSUME] == request["metadata"]["name"]
        assert said[CLASS_NAME] == ATOMIC_SCALE_UP
    cluster.wait(lambda: gone(cluster), START_SECONDS, "no request and no template")


def test_a_killed_corral_finds_its_request_and_makes_no_other(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    cluster.create_all(gated("g", 2))
    request = the_request(cluster)
    answer(cluster, request, ("Accepted", "True", "Accepted"))
    before = writes(plane)
    corral.kill()
    corral.start()
    name = request["metadata"]["name"]
    cluster.wait(lambda: shown(corral, "g").get("request") == name, START_SECONDS, "its request")
    time.sleep(QUIET_SECONDS)
    written = writes(plane) - before
    assert (written["POST provisioningrequests"], written["POST podtemplates"]) == (0, 0)
    assert [each["metadata"]["uid"] for each in cluster.list(REQUEST, "default")] == [
        request["metadata"]["uid"]
    ]
    cluster.clear("Pod")
    cluster.wait(lambda: gone(cluster), 2 * START_SECONDS, "no request of a gang that is gone")


def test_requests_that_come_after_corral_are_read_and_their_messages_shown(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with asking_corral(plane, tmp_path) as corral:
        time.sleep(QUIET_SECONDS)
        with kinds.served(plane.cluster(), (REQUEST,)):
            cluster.create_all(gated("g", 2))
            request = the_request(cluster)
            said = ("Accepted", "True", "Accepted"), ("Provisioned", "False", "CapacityIsNotFound")
            answer(cluster, request, *said)

            def is_told() -> bool:
                needs = shown(corral, "g")
                return "said CapacityIsNotFound" in needs.get("message", "")

            cluster.wait(is_told, LATE_SECONDS, "the message of its request")
            assert shown(corral, "g")["ask"] == "request"
            cluster.clear("Pod")
            cluster.wait(lambda: gone(cluster), 2 * START_SECONDS, "no request")


def test_the_simulated_autoscaler_brings_the_rack_that_is_asked_for(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    labels = {BLOCK: "b0", RACK: "r0"}
    group = rack(max=12, late_labels=(labels,), tags=labels)
    with autoscaling(cluster, ClusterAutoscaler([group]), speed=SPEED) as driver:
        cluster.create_all(gated("g", 8))
        cluster.wait(lambda: len(cluster.bound()) == 8, 2 * START_SECONDS, "the gang's start")
        cluster.wait(lambda: gone(cluster), START_SECONDS, "no request and no template")
        assert len(cluster.list("Node")) == len(driver.autoscaler.cloud.machines) == 8
        assert marked(cluster) == []
    cluster.clear("Pod")
    cluster.clear("Node")
