"""A thousand gangs at once, for half of which there is room."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cluster import GPU, RACK, Cluster, Objects, grid
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.plane import ControlPlane
from tests.corral_process import CorralProcess
from tests.workloads import asking, behind_gate, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

GANGS = 1_000
PODS = 4  # of a gang; together they fill a node
NODES = GANGS // 2
START_SECONDS = 240.0
SECOND_START_SECONDS = 120.0
MEMORY_MIB = 160  # above that of an idle Corral; a pod takes some 4 KiB


def herd() -> Objects:
    gangs = (
        members(f"g{number}", PODS, requests={GPU: 2}, annotations=asking(required=RACK))
        for number in range(GANGS)
    )
    return [behind_gate(one) for gang in gangs for one in gang]


def test_as_many_of_a_thousand_gangs_start_as_there_is_room_for_and_the_others_after_them(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=NODES // 10, nodes=10, gpus=8))
    idle = corral.resident()
    with Chronicle(plane, gpus_per_node=8) as chronicle:
        cluster.create_all(herd())
        room = NODES * 8 // 2
        cluster.wait(lambda: len(cluster.bound()) == room, START_SECONDS, "the first half")
        assert corral.resident() - idle <= MEMORY_MIB
        first = cluster.bound()
        sizes = Counter(name.rpartition("-")[0] for name in first)
        assert set(sizes.values()) == {PODS}
        for name in first:
            cluster.delete("Pod", name)
        cluster.wait(lambda: len(cluster.bound()) == room, SECOND_START_SECONDS, "the second half")
        assert not first.keys() & cluster.bound().keys()
        cluster.wait(lambda: chronicle.bindings == GANGS * PODS, 30, "the whole history")
        assert chronicle.problems == []
    cluster.delete_all("Pod")
