"""One tenant tries to keep the others from the cluster, on the real control plane.

2,500 half gangs: the other's first event comes at most 2 s later than it would alone. Alone it
comes `gather_seconds` after its pod, so it is measured from then on. Rate and burst are as shipped.

A gang that starves: no more nodes are kept for it than its pods need, from pods of DaemonSets too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.controllers.report import MOST_QUEUED
from tests.cluster import BLOCK, GPU, HOSTNAME, Cluster, Object, grid, pod
from tests.controlplane.plane import ControlPlane
from tests.corral_process import CorralProcess, scheduled
from tests.tenants import LOUD, QUIET, about_half_gangs, half_gang, half_gangs
from tests.workloads import asking, members

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.timeout(300),
]

GANGS = 2500
GATHER_SECONDS = 3.0
DELAY_SECONDS = 2.0  # what the other tenant may notice
BURST = 60  # events at once: half of report_per_minute
DROPPED = 'corral_reports_total{outcome="dropped"}'
WRITTEN = 'corral_reports_total{outcome="written"}'


@pytest.fixture
def tenants(cluster: Cluster) -> Iterator[Cluster]:
    """Two namespaces; their pods and events are gone afterwards."""
    for name in (LOUD, QUIET):
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield cluster
    for name in (LOUD, QUIET):
        for kind in ("Pod", "Event"):
            cluster.delete_all(kind, name)
        cluster.delete("Namespace", name)
    for name in (LOUD, QUIET):
        cluster.wait(lambda name=name: cluster.get("Namespace", name) is None, 60, f"{name} gone")


def test_2500_half_gangs_of_one_tenant_delay_anothers_first_event_by_two_seconds_at_most(
    plane: ControlPlane, tenants: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=1, nodes=2, gpus=8))
    tenants.create_all(half_gangs(GANGS))  # before Corral: all are due at one moment
    kubeconfig = plane.kubeconfig("corral")
    with CorralProcess(kubeconfig, tmp_path, gather_seconds=GATHER_SECONDS) as corral:
        tenants.wait(lambda: corral.metric(WRITTEN) >= BURST, 60, "the burst to be used up")
        most = GANGS - MOST_QUEUED - BURST
        tenants.wait(lambda: corral.metric(DROPPED) >= most, 60, "most events to be dropped")
        delays = [delay_of(tenants, f"g{number}") for number in range(3)]
        written = len(about_half_gangs(tenants.list("Event", LOUD)))

    print(f"{QUIET}'s events came {', '.join(f'{delay:.2f}' for delay in delays)} s late")
    assert max(delays) <= DELAY_SECONDS
    assert written < GANGS / 10, "the other tenant's events were written before"


def delay_of(cluster: Cluster, name: str) -> float:
    """Seconds from when a half gang is due until its event can be read."""
    cluster.create(half_gang(QUIET, name))
    due = time.monotonic() + GATHER_SECONDS

    def is_reported() -> bool:
        return f"{QUIET}/{name}-0" in about_half_gangs(cluster.list("Event", QUIET))

    cluster.wait(is_reported, 60, "the event of the one half gang")
    return time.monotonic() - due


def test_a_gang_that_starves_closes_no_more_nodes_than_its_pods_need(
    plane: ControlPlane, tenants: Cluster, tmp_path: Path
) -> None:
    nodes = grid(racks=4, nodes=10, gpus=8)
    names = [node["metadata"]["name"] for node in nodes]
    plane.nodes(nodes)
    tenants.create_all(whole_node(f"filler-{name}", LOUD, nodeName=name) for name in names)
    starves = members("big", 8, annotations=asking(required=BLOCK))
    for each in starves:
        each["metadata"]["namespace"] = LOUD
    with scheduled(plane, tmp_path, starvation_seconds=1.0) as corral:
        tenants.create_all(starves)
        tenants.wait(lambda: corral.metric("corral_earmarked_nodes") == 8, 30, "nodes to be kept")

        for name in (names[0], *names[-6:]):  # one of those that are kept, and too few for the gang
            tenants.delete("Pod", f"filler-{name}", LOUD)
        claims = whole_node("claims", LOUD, nodeSelector={HOSTNAME: names[0]})
        claims["metadata"]["ownerReferences"] = [
            owned_by(tenants.create(daemon_set("exporter", LOUD)))
        ]
        claims = tenants.create(claims)
        tenants.create_all(whole_node(f"plain-{number}", QUIET) for number in range(6))
        tenants.wait(lambda: len(tenants.bound(QUIET)) == 6, 30, "the other tenant's pods to run")
        tenants.wait(lambda: tenants.events(claims), 30, "kube-scheduler to try the pod")
    assert set(tenants.bound(QUIET).values()) == set(names[-6:])
    assert "claims" not in tenants.bound(LOUD)


def daemon_set(name: str, namespace: str) -> Object:
    """One whose controller does not run here; without it the garbage collector takes its pods."""
    labels = {"app": name}
    containers = [{"name": "main", "image": "registry.k8s.io/pause"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def owned_by(owner: Object) -> Object:
    """The reference of a pod to its controller."""
    about = {key: owner[key] for key in ("apiVersion", "kind")}
    named = {key: owner["metadata"][key] for key in ("name", "uid")}
    return {**about, **named, "controller": True}


def whole_node(name: str, namespace: str, **spec: Any) -> Object:
    """A pod with all GPUs of a node."""
    return pod(name, namespace=namespace, requests={GPU: 8}, **spec)
