"""Gangs whose pods are stored where they belong: no gate, no patch, one binding a pod."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import GPU, RACK, Cluster, job, node
from tests.controlplane.plane import ControlPlane
from tests.controlplane.webhook import GATED, Webhook, installed
from tests.workloads import asking, gates_of, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
FAST = {"kueue.x-k8s.io/pod-group-fast-admission": "true"}
BORN = "corral_pods_born_total"
SECONDS = 30.0


@pytest.fixture
def webhook(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Webhook]:
    for rack in range(2):
        cluster.create_all(
            node(f"r{rack}-{number}", labels={RACK: f"r{rack}"}, gpus=8) for number in range(4)
        )
    with installed(plane, tmp_path, levels=(RACK,), born_seconds=10) as webhook:
        plane.start_scheduler(extender=webhook.corral.url)
        yield webhook


def racks_of(cluster: Cluster, name: str) -> list[str]:
    return sorted(node[:2] for pod, node in cluster.bound().items() if pod.startswith(name))


def test_the_pods_of_a_job_are_born_in_one_rack_and_start_together(webhook: Webhook) -> None:
    cluster, corral = webhook.cluster, webhook.corral
    gated = corral.metric(GATED)
    for name in ("first", "second"):
        cluster.create(job(name, pods=4, annotations=IN_RACK, requests={GPU: 8}))
    for name in ("first", "second"):
        racks = cluster.wait(
            lambda n=name: len(racks_of(cluster, n)) == 4 and racks_of(cluster, n), SECONDS, name
        )
        assert len(set(racks)) == 1
    pods = cluster.list("Pod", "default")
    assert [gates_of(each) for each in pods] == [[]] * 8
    assert all(each["spec"]["affinity"]["nodeAffinity"] for each in pods)
    assert corral.metric(GATED) == gated
    assert corral.metric(BORN) == 8


def test_a_gang_that_finds_no_rack_waits_behind_the_gate(webhook: Webhook) -> None:
    cluster = webhook.cluster
    cluster.create(job("large", pods=5, annotations=IN_RACK, requests={GPU: 8}))
    cluster.wait(lambda: len(cluster.list("Pod", "default")) == 5, SECONDS, "its pods")
    assert all(gates_of(each) for each in cluster.list("Pod", "default"))
    cluster.create(node("r0-4", labels={RACK: "r0"}, gpus=8))
    cluster.wait(lambda: len(racks_of(cluster, "large")) == 5, SECONDS, "its start")


def test_a_pod_group_with_fast_admission_is_born_too(webhook: Webhook) -> None:
    cluster = webhook.cluster
    cluster.create_all(members("g", 4, annotations=IN_RACK | FAST, requests={GPU: 8}))
    cluster.wait(lambda: len(racks_of(cluster, "g")) == 4, SECONDS, "its start")
    assert webhook.corral.metric(BORN) == 4
