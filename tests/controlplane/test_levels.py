"""Where Kueue is installed, its Topology objects say which levels there are."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.cluster import (
    BLOCK,
    GPU,
    HOSTNAME,
    RACK,
    Cluster,
    Object,
    Objects,
    Refused,
    collection,
    grid,
)
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, clear, racks_of, unschedulable
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROUNDS = int(os.environ.get("CORRAL_FAULT_ROUNDS", "1"))  # each edit in each
IN_RACK = asking(required=RACK)
TOPOLOGY_VERSION = "kueue.x-k8s.io/v1beta2"
TOPOLOGY_CRD = yaml.safe_load("""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: topologies.kueue.x-k8s.io}
spec:
  group: kueue.x-k8s.io
  scope: Cluster
  names: {kind: Topology, listKind: TopologyList, plural: topologies, singular: topology}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              levels:
                type: array
                items: {type: object, properties: {nodeLabel: {type: string}}}
""")


@pytest.fixture
def topology_crd(cluster: Cluster) -> Iterator[None]:
    """Topology as Kueue defines it, as far as Corral reads it."""
    cluster.create(TOPOLOGY_CRD)
    cluster.wait(lambda: serves_topologies(cluster), 10, "the CRD is served")
    yield
    cluster.delete("CustomResourceDefinition", "topologies.kueue.x-k8s.io")


def test_levels_come_from_a_kueue_topology_object(
    plane: ControlPlane, cluster: Cluster, topology_crd: None, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=2, nodes=2, gpus=8))
    with scheduled(plane, tmp_path, levels=()):
        cluster.create_all(members("early", 2, annotations=IN_RACK))
        cluster.wait(lambda: is_told_to_all(cluster, f"not known: {RACK}"), 10, "the verdict")

        cluster.create(topology("fabric", BLOCK, RACK, HOSTNAME))
        cluster.wait(lambda: len(cluster.bound()) == 2, START_SECONDS, "the gang's start")
    assert len(racks_of(cluster)) == 1


SILENT = 'corral_watch_silent_seconds{kind="Topology"}'
UNKNOWN, UNLABELLED = "topology level not known", "without a label of every level"
# What is edited into the levels, and what pods are told then that require a rack.
WRONG = {
    "the_levels_upside_down": ((HOSTNAME, RACK, BLOCK), UNKNOWN),
    "one_level_twice": ((BLOCK, RACK, RACK, HOSTNAME), UNKNOWN),
    "no_levels": ((), UNKNOWN),
    "a_label_that_no_node_has": (("example.com/row", RACK, HOSTNAME), UNLABELLED),
    "seventeen_levels": (tuple(f"example.com/level-{at}" for at in range(17)), UNKNOWN),
    "no_label_key": (("not a key", RACK), UNLABELLED),
}


@pytest.mark.timeout(90 + 60 * ROUNDS)
def test_a_topology_that_is_edited_in_whatever_way_breaks_nothing(
    plane: ControlPlane, cluster: Cluster, topology_crd: None, tmp_path: Path
) -> None:
    """Each edit finds a gang that is there in part; once it is undone, that is whole in a rack."""
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    good = (BLOCK, RACK, HOSTNAME)
    with scheduled(plane, tmp_path, levels=()) as corral:
        cluster.create(topology("fabric", *good))
        for name, (levels, told) in ROUNDS * [*WRONG.items()]:
            cluster.create_all(in_rack(name, 4, numbers=range(3)))
            edit(cluster, corral, levels)
            cluster.create_all(in_rack(name, 4, numbers=[3]))
            cluster.wait(
                partial(is_told_to_all, cluster, told, 4), START_SECONDS, f"{name}: {told}"
            )
            assert cluster.bound() == {}
            edit(cluster, corral, good)
            cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, f"{name}: the gang")
            assert len(racks_of(cluster)) == 1, name
            clear(cluster)
        cluster.delete("Topology", "fabric")
        cluster.create_all(in_rack("none", 4, numbers=range(4)))
        cluster.wait(lambda: is_told_to_all(cluster, UNKNOWN, 4), START_SECONDS, "the verdict")
        cluster.create(topology("fabric", *good))
        cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the gang after all")
        assert len(racks_of(cluster)) == 1
        assert corral.bugs() == {}


def in_rack(name: str, total: int, numbers: Collection[int]) -> Objects:
    gang = f"g-{name.replace('_', '-')}"
    return members(gang, total, numbers=numbers, requests={GPU: 8}, annotations=IN_RACK)


def edit(cluster: Cluster, corral: CorralProcess, levels: Collection[str]) -> None:
    """Edit the Topology, and wait until Corral has heard of it: pods are watched apart from it."""
    began = time.monotonic()
    cluster.patch("Topology", "fabric", {"spec": topology("fabric", *levels)["spec"]})
    cluster.wait(
        lambda: corral.metric(SILENT) < time.monotonic() - began, START_SECONDS, "the edit is heard"
    )


def is_told_to_all(cluster: Cluster, text: str, pods: int = 2) -> bool:
    told = unschedulable(cluster)
    return len(told) == pods and all(text in sentence for sentence in told.values())


def topology(name: str, *levels: str) -> Object:
    return {
        "apiVersion": TOPOLOGY_VERSION,
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [{"nodeLabel": level} for level in levels]},
    }


def serves_topologies(cluster: Cluster) -> bool:
    try:
        cluster.request("GET", collection("Topology", api_version=TOPOLOGY_VERSION))
    except Refused:
        return False
    return True
