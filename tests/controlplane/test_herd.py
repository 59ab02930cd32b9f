"""Ten thousand pods at once, in a thousand gangs, for a tenth of which there is room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.cluster import GPU, RACK, Cluster, Objects, grid
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.plane import ControlPlane
from tests.corral_process import CorralProcess
from tests.workloads import asking, behind_gate, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(900)]

GANGS = 1_000
PODS = 10  # of a gang, with a GPU each
NODES = 120  # of 8 GPUs
ROOM = NODES * 8  # pods: 96 gangs, eight of which fill a rack of ten nodes
START_SECONDS = 360.0
SECOND_START_SECONDS = 240.0
MEMORY_MIB = 96  # above that of an idle Corral; a pod takes some 4 KiB
CONNECTIONS = 8


def herd() -> Objects:
    gangs = (
        members(f"g{number}", PODS, requests={GPU: 1}, annotations=asking(required=RACK))
        for number in range(GANGS)
    )
    return [behind_gate(one) for gang in gangs for one in gang]


def test_as_many_of_ten_thousand_pods_start_as_there_is_room_for_and_others_after_them(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=NODES // 10, nodes=10, gpus=8))
    idle = corral.resident()
    with Chronicle(plane, gpus_per_node=8) as chronicle:
        # The history counts: to list ten thousand pods again and again would be the herd itself.
        cluster.create_all(herd())
        cluster.wait(lambda: chronicle.bindings == ROOM, START_SECONDS, "as many as there is room")
        assert corral.resident() - idle <= MEMORY_MIB
        first = whole_gangs(chronicle)
        delete(cluster, first)
        cluster.wait(
            lambda: chronicle.bindings == 2 * ROOM, SECOND_START_SECONDS, "as many once more"
        )
        assert not first & whole_gangs(chronicle)
        assert corral.resident() - idle <= MEMORY_MIB
        assert chronicle.problems == []
        assert corral.bugs() == {}
    # Without those who would start others in their place; one DELETE of them all takes minutes.
    corral.kill()
    plane.stop_scheduler()
    delete(cluster, [one["metadata"]["name"] for one in cluster.list("Pod", "default")])


def delete(cluster: Cluster, names: Collection[str]) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(partial(cluster.delete, "Pod"), names))


def whole_gangs(chronicle: Chronicle) -> set[str]:
    """The pods on nodes, of which every gang has all or none."""
    names = {seen.name for seen in chronicle.pods() if seen.node and seen.is_live}
    sizes = Counter(name.rpartition("-")[0] for name in names)
    assert set(sizes.values()) == {PODS}
    assert len(names) == ROOM
    return names
