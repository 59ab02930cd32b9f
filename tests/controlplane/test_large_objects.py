"""Pods as large as the API server takes: the watch goes on, and what is not read is refused."""

from __future__ import annotations

import pytest

from app.kube.client.transport import LONGEST_OBJECT
from tests.cluster import GPU, RACK, Cluster, grid, pod
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, unschedulable
from tests.corral_process import CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
IN_ETCD = 1_450_000  # bytes of one text; with the rest of its pod a little less than 1.5 MiB
HUGE = 5


def test_pods_of_nine_mebibytes_neither_end_the_watch_nor_keep_a_restart_from_listing(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    for number in range(HUGE):
        container = {"name": "c", "image": "example.invalid/a", "args": ["<" * IN_ETCD]}
        cluster.create(pod(f"huge-{number}", scheduler="theirs", containers=[container]))
    sent = cluster.request("GET", "/api/v1/namespaces/default/pods/huge-0").content
    assert LONGEST_OBJECT / 2 < len(sent) < LONGEST_OBJECT

    cluster.create_all(members("before", 4, annotations=IN_RACK))
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "a gang beside them")
    cluster.patch("Pod", "huge-0", {"metadata": {"labels": {"changed": "yes"}}})
    corral.kill()
    corral.start()
    cluster.create_all(members("after", 4, annotations=IN_RACK))
    cluster.wait(lambda: len(cluster.bound()) == 8, START_SECONDS, "a gang after the restart")

    assert '"event":"watch"' not in corral.log.read_text()


def test_a_pod_with_more_labels_than_are_read_is_refused_by_name(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=1, nodes=1, gpus=8))
    labels = {f"label-{number}": "" for number in range(20_000)}
    cluster.create(pod("labelled", requests={GPU: "8"}, labels=labels))

    told = cluster.wait(lambda: unschedulable(cluster), START_SECONDS, "its refusal")
    assert "Pod default/labelled: metadata.labels is not read: it has 40000" in told["labelled"]
    cluster.create_all(members("gang", 1, annotations=IN_RACK))
    cluster.wait(lambda: list(cluster.bound()) == ["gang-0"], START_SECONDS, "another's pod")
