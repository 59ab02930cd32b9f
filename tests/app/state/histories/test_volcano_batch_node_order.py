"""Pods of a PodGroup that come later, and where its others run.

Source: volcano docs/design/Network Topology Aware Scheduling.md, "New Implementation For
BatchNodeOrderFn", tasks with network topology constraints. Those without are in
tests/topology/fit/test_utilization.py.
"""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.volcano import pod_groups
from app.dialects.volcano.pod_groups import decode_pod_group
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Listed
from app.state.filter_result import Pinned
from tests.app.dialects.volcano.objects import exact, record
from tests.app.dialects.volcano.workloads import GROUP_NAME, network_topology, pod_group
from tests.app.state.world import LISTED, World
from tests.records import node, pod

KINDS = (*LISTED, "HyperNode", pod_groups.KIND)
SOFT = {"mode": "soft"}


def world_of(*strangers: PodRecord, topology=SOFT, least: int = 2) -> World:
    """Four racks of two nodes of 8 GPUs, two to a block; block 1 is fuller than block 0."""
    world = World([node(f"n{at}") for at in range(8)], strangers, kinds=KINDS, levels=())
    racks = [record(f"r{at}", 1, exact("Node", f"n{2 * at}", f"n{2 * at + 1}")) for at in range(4)]
    blocks = [
        record(f"b{at}", 2, exact("HyperNode", f"r{2 * at}", f"r{2 * at + 1}")) for at in (0, 1)
    ]
    group = pod_group("g", least, topology=topology)
    group["metadata"]["uid"] = "uid-g"
    world.apply(Listed("HyperNode", (*racks, *blocks)))
    world.apply(Listed(pod_groups.KIND, (decode_pod_group(msgspec.json.encode(group)),)))
    return world


def member(name: str, *, gpus: int = 4, on: str = "") -> PodRecord:
    phase = "Running" if on else "Pending"
    return pod(name, gpus=gpus, on=on, phase=phase, annotations={GROUP_NAME: "g"})


def stranger(name: str, on: str, gpus: int) -> PodRecord:
    return pod(name, gpus=gpus, on=on, phase="Running")


def place_of(world: World, late: PodRecord) -> str:
    world.put(late)
    world.tick()
    answer = world.filter(late)
    assert isinstance(answer, Pinned), answer
    return answer.node


def test_batch_node_order_fn_a_group_that_starts_is_drawn_to_no_node_by_its_own_pods():
    world = world_of(stranger("s", "n6", 4), topology=network_topology(1))
    world.put(member("a"), member("b"))
    world.tick()
    assert set(world.held.values()) <= {"n6", "n7"}, "the fullest rack that takes it"


@pytest.mark.parametrize(
    ("full", "places"),
    [
        pytest.param([], {"n0", "n1"}, id="in_the_same_rack"),
        pytest.param(["n0", "n1"], {"n2", "n3"}, id="else_in_the_same_block"),
        pytest.param(["n0", "n1", "n2", "n3"], {"n6", "n7"}, id="else_anywhere"),
    ],
)
def test_batch_node_order_fn_the_lower_the_tier_around_the_node_and_its_group_the_better(
    full, places
):
    """Rack 3 is the fullest of those with room, and in the other block."""
    strangers = [
        *(stranger(f"s-{name}", name, 8 - 2 * (name in ("n0", "n1"))) for name in full),
        stranger("t", "n6", 4),
    ]
    world = world_of(*strangers)
    world.put(member("a", gpus=2, on="n0"), member("b", gpus=2, on="n1"))
    assert place_of(world, member("late", gpus=2)) in places


@pytest.mark.parametrize(
    ("nodes", "places"),
    [
        pytest.param(["n0", "n2", "n3"], {"n2", "n3"}, id="rack_1"),
        pytest.param(["n0", "n1", "n2"], {"n0", "n1"}, id="rack_0"),
    ],
)
def test_batch_node_order_fn_of_racks_as_near_that_with_most_of_its_pods(nodes, places):
    world = world_of(least=3)
    world.put(*(member(f"at-{name}", gpus=1, on=name) for name in nodes))
    assert place_of(world, member("late", gpus=1)) in places
