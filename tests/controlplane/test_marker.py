"""Corral is asked about members alone: ordinary pods pay nothing, and gangs are whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.kube.decoding.requests import MARKERS
from tests.app.dialects.grove.objects import POD_CLIQUE, POD_GANG, pod_gang, pod_group, within
from tests.cluster import GPU, RACK, Cluster, Object, grid, job, pod
from tests.controlplane.kinds import served
from tests.controlplane.plane import SCHEDULER_CONFIG, ControlPlane, profiles
from tests.controlplane.test_grove import QUIET_SECONDS, create, create_topology, lift, member
from tests.controlplane.test_grove import SCHEDULER as GROVES
from tests.controlplane.webhook import Webhook, installed
from tests.workloads import asking

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CONFIG = SCHEDULER_CONFIG.with_name("1.36-marker.yaml")
MARKS = {"marker_resource": True, "needs_nodes": "off"}
IN_RACK = asking(required=RACK)
RACKS, NODES_PER_RACK = 8, 4
SECONDS = 60.0


@pytest.fixture(params=[0, 10], ids=["gated", "born"])
def webhook(
    request: pytest.FixtureRequest, plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> Iterator[Webhook]:
    cluster.create_all(grid(racks=RACKS, nodes=NODES_PER_RACK, gpus=8))
    settings = {"born_seconds": request.param, "levels": (RACK,), **MARKS}
    with installed(plane, tmp_path, **settings) as webhook:
        plane.start_scheduler(CONFIG, extender=webhook.corral.url)
        yield webhook


def asked_about(webhook: Webhook) -> float:
    """The pods that /filter was asked about, however it was answered; a metric is 0 at first."""
    answers = ("passed", "pinned", "rejected", "failed")
    return sum(
        webhook.corral.metric(f'corral_filter_answers_total{{answer="{answer}"}}')
        for answer in answers
    )


def racks_of(cluster: Cluster, gang: str) -> list[str]:
    """The rack of each of its pods that is bound."""
    rack_of = {
        node["metadata"]["name"]: node["metadata"]["labels"][RACK] for node in cluster.list("Node")
    }
    found = [node for name, node in cluster.bound().items() if name.startswith(f"{gang}-")]
    return [rack_of[node] for node in found]


def marked(cluster: Cluster) -> set[str]:
    """The pods by whose limits kube-scheduler knows that it is to ask about them."""

    every = cluster.list("Pod", "default")
    return {each["metadata"]["name"] for each in every if has_markers(each)}


def has_markers(one: Object) -> bool:
    return set(MARKERS) <= set(one["spec"]["containers"][0].get("resources", {}).get("limits", ()))


def test_a_gang_starts_in_one_rack_and_ordinary_pods_do_not_come_to_corral(
    webhook: Webhook,
) -> None:
    cluster = webhook.cluster
    cluster.create_all(pod(f"ordinary-{number}", requests={GPU: 1}) for number in range(20))
    cluster.wait(lambda: len(cluster.bound()) == 20, SECONDS, "ordinary pods")
    assert asked_about(webhook) == 0
    cluster.create(job("train", pods=NODES_PER_RACK, annotations=IN_RACK, requests={GPU: 2}))
    racks = cluster.wait(
        lambda: len(racks_of(cluster, "train")) == NODES_PER_RACK and racks_of(cluster, "train"),
        SECONDS,
        "the gang",
    )
    assert len(set(racks)) == 1
    assert asked_about(webhook) >= NODES_PER_RACK
    assert marked(cluster) == {
        each["metadata"]["name"]
        for each in cluster.list("Pod", "default")
        if each["metadata"]["name"].startswith("train-")
    }
    assert webhook.corral.bugs() == {}


def test_a_member_of_every_vocabulary_has_the_markers(webhook: Webhook) -> None:
    """Kubernetes' own PodGroups are in test_native.py: this API server has none."""
    asked = [
        pod("kueue", annotations=IN_RACK),
        pod("volcano", annotations={"scheduling.k8s.io/group-name": "g"}),
        pod("volcano-asking", annotations={"volcano.sh/network-topology-mode": "hard"}),
        pod("kai", annotations={"pod-group-name": "g"}),
        pod("grove", labels={POD_GANG: "g", POD_CLIQUE: "worker"}),
    ]
    stored = [webhook.tried(each) for each in [pod("ordinary"), *asked]]
    assert [has_markers(each) for each in stored] == [False, *[True] * len(asked)]


def test_a_storm_of_ordinary_pods_tears_no_gang(webhook: Webhook) -> None:
    cluster = webhook.cluster
    gangs = [f"gang{number}" for number in range(5)]
    storm = [f"storm-{number}" for number in range(12)]
    for at, name in enumerate(gangs):
        cluster.create(job(name, pods=NODES_PER_RACK, annotations=IN_RACK, requests={GPU: 8}))
        cluster.create_all(pod(each, requests={GPU: 8}) for each in storm[at::5])
    cluster.wait(
        lambda: sum(name in cluster.bound() for name in storm) == len(storm), SECONDS, "the storm"
    )
    for name in storm:
        cluster.delete("Pod", name)
    cluster.wait(
        lambda: all(len(racks_of(cluster, gang)) == NODES_PER_RACK for gang in gangs),
        SECONDS,
        "all gangs",
    )
    assert [len(set(racks_of(cluster, gang))) for gang in gangs] == [1] * len(gangs)
    nodes = [node for name, node in cluster.bound().items() if name.startswith("gang")]
    assert len(set(nodes)) == len(nodes)
    assert webhook.corral.bugs() == {}


def test_a_gang_of_groves_has_markers_without_a_gate_and_is_placed_whole_in_its_rack(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create_all(grid(racks=RACKS, nodes=NODES_PER_RACK, gpus=8))
    names = [f"worker-{at}" for at in range(NODES_PER_RACK)]
    settings = {"levels": (), "scheduler_name": f"corral,{GROVES}", **MARKS}
    with served(cluster, ("PodGang", "ClusterTopology")):
        create_topology(cluster, "grove-topology", RACK)
        with installed(plane, tmp_path, **settings) as webhook:
            mine = profiles(GROVES, CONFIG)
            plane.start_scheduler(CONFIG, extender=webhook.corral.url, profiles=mine)
            cluster.create_all(map(member, names))
            create(cluster, pod_gang("g", pod_group("worker", len(names)), on=within(RACK)))
            assert marked(cluster) == set(names)
            lift(cluster, *names[1:])
            cluster.create(pod("ordinary", scheduler=GROVES, requests={GPU: 1}))
            cluster.wait(lambda: "ordinary" in cluster.bound(), SECONDS, "an ordinary pod")
            time.sleep(QUIET_SECONDS)
            assert set(cluster.bound()) == {"ordinary"}

            lift(cluster, names[0])
            cluster.wait(lambda: len(cluster.bound()) == 1 + len(names), SECONDS, "the gang")
            assert len(set(racks_of(cluster, "worker"))) == 1
            assert webhook.corral.bugs() == {}
