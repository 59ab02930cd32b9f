"""Both replicas are replaced while a whole cluster's gangs wait: each is placed once, by one plan.

A gang's pods are narrowed for good when their gates go. A Corral that takes over has to learn of
the last of these patches before it gives the same rack to another gang, and here every rack is
needed for the gangs that are in it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from benchmarks.load import PODS as PODS_PATH
from benchmarks.load import create
from tests.cluster import GPU, RACK, Cluster, grid
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.pairs import for_root
from tests.controlplane.plane import ControlPlane
from tests.controlplane.rollout import PODS, Replicas, gated, pods_of
from tests.corral_process import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

RACKS, NODES, GPUS = 24, 16, 8
GANGS = RACKS * NODES * GPUS // (PODS * 2)  # of two GPUs a pod: nothing stays free
SLOW = {"ungate_concurrency": 1, "bind_concurrency": 1}  # or all is over before the first one ends
WHOLE_SECONDS = 150.0
TREE = Path(os.environ.get("CORRAL_TREE", ROOT))  # to see the test fail, that of another commit


@for_root
@pytest.mark.timeout(300)
def test_gangs_that_fill_a_cluster_are_whole_when_both_replicas_were_replaced_meanwhile(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=RACKS, nodes=NODES, gpus=GPUS))
    gangs = [f"g{number}" for number in range(GANGS)]
    with (
        Chronicle(plane, gpus_per_node=GPUS) as chronicle,
        Replicas(plane, tmp_path, "full", TREE, SLOW) as replicas,
    ):
        names = replicas.names()
        pods = [pod for name in gangs for pod in gated(name, PODS, {"cpu": "1", GPU: 2})]
        create(plane, PODS_PATH, map(msgspec.json.encode, pods))
        for name in names:  # each new one lists while gates are being removed
            replicas.start(TREE)
            replicas.end(name)
        every = {pod for name in gangs for pod in pods_of(name)}
        cluster.wait(lambda: cluster.bound().keys() >= every, WHOLE_SECONDS, "all gangs whole")
        bugs = [one.corral.bugs() for one in replicas.all()]
    rack_of = {
        node["metadata"]["name"]: node["metadata"]["labels"][RACK] for node in cluster.list("Node")
    }
    racks = defaultdict[str, set[str]](set)
    for pod, node in cluster.bound().items():
        racks[pod.rpartition("-")[0]].add(rack_of[node])
    assert {name: len(racks[name]) for name in gangs} == dict.fromkeys(gangs, 1)
    assert chronicle.problems == []
    assert bugs == [{}, {}]
