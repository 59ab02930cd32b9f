"""Where ordinary pods are led, by the domains around each node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.dialects.spec import TierPacking
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Listed
from tests.app.dialects.volcano.objects import by_labels, exact, record
from tests.app.state.world import LISTED, Names, World, members
from tests.records import BLOCK, RACK, node, pod, topology

KINDS = (*LISTED, "HyperNode")
TIER = "topology.volcano.sh/tier-{}".format
RACKS = (
    record("r0", 1, exact("Node", "n0", "n1")),
    record("r1", 1, exact("Node", "n2", "n3")),
    record("b0", 2, exact("HyperNode", "r0", "r1")),
    record("r2", 1, exact("Node", "n4", "n5")),
    record("b1", 2, exact("HyperNode", "r2")),
)


def world_of(*pods: PodRecord, hyper_nodes=RACKS, **settings) -> World:
    """Two racks of two nodes in block 0, one in block 1."""
    nodes = [node(f"n{at}") for at in range(6)]
    world = World(nodes, pods, **{"kinds": KINDS, "levels": (), **settings})
    world.apply(Listed("HyperNode", tuple(hyper_nodes)))
    return world


def scores(world: World, *names: str, **asked: int) -> dict[str, int]:
    """What an ordinary pod's candidates score; all nodes, unless some are named."""
    found = names or tuple(world.engine.books.nodes)
    given = world.inputs.prioritize(pod("asks", **asked), Names(found), world.now)
    return dict(zip(found, given, strict=True))


def running(name: str, on: str, **asked: int) -> PodRecord:
    return pod(name, on=on, phase="Running", **asked)


def test_the_fuller_hyper_nodes_score_higher_the_narrow_ones_most():
    world = world_of(running("a", "n0", gpus=2), running("b", "n2", gpus=1))
    found = scores(world, gpus=1)
    assert found["n0"] == found["n1"] == 10
    assert found["n0"] > found["n2"] == found["n3"] > found["n4"] == found["n5"] == 0


def test_a_tier_that_weighs_nothing_decides_nothing():
    packing = TierPacking(fading=0)
    world = world_of(running("a", "n0", gpus=2), packing=packing)
    assert scores(world, "n2", "n4", gpus=1) == {"n2": 0, "n4": 0}
    by_default = world_of(running("a", "n0", gpus=2))
    assert scores(by_default, "n2", "n4", gpus=1) == {"n2": 10, "n4": 0}


@pytest.mark.parametrize(
    ("resources", "fuller"),
    [
        pytest.param(None, "n4", id="all_alike"),
        pytest.param((("cpu", 1), ("memory", 1)), "n0", id="gpus_only_if_they_are_listed"),
        pytest.param((("cpu", 8), ("nvidia.com/gpu", 1)), "n0", id="cpu_weighs_more"),
        pytest.param((("cpu", 1), ("nvidia.com/gpu", 1)), "n4", id="both_alike"),
    ],
)
def test_resources_count_by_their_weights(resources, fuller):
    """n0 has more of its cores in use, n4 more of its GPUs."""
    world = world_of(
        running("a", "n0", gpus=1, cpu=32_000),
        running("b", "n4", gpus=8, cpu=1_000),
        packing=TierPacking(resources=resources, fading=0),
    )
    found = scores(world, "n1", "n5", gpus=1)
    assert max(found, key=lambda name: found[name]) == {"n0": "n1", "n4": "n5"}[fuller]


def test_nodes_outside_every_hyper_node_are_filled_first():
    world = world_of(running("a", "n0", gpus=8))
    world.put(node("free"))
    assert scores(world, gpus=1)["free"] == 10


def test_scores_can_be_left_to_kube_scheduler():
    packing = TierPacking(for_ordinary_pods=False)
    world = world_of(running("a", "n0", gpus=2), packing=packing)
    assert set(scores(world, gpus=1).values()) == {0}


def test_nodes_without_room_and_unknown_ones_score_nothing():
    """The full node is in the fullest rack, and sets no measure for the others."""
    world = world_of(running("a", "n0", gpus=8), running("b", "n2", gpus=1))
    world.put(node("n3", is_cordoned=True))
    assert scores(world, "n0", "nowhere", "n3", "n2", "n4", gpus=1) == {
        "n0": 0,
        "nowhere": 0,
        "n3": 0,
        "n2": 10,
        "n4": 0,
    }


def test_a_node_where_others_are_evicted_for_another_pod_is_the_last_choice():
    waits = replace(pod("waits", priority=5), nominated_node="n0")
    world = world_of(running("a", "n0", gpus=4), waits)
    found = scores(world, "n0", "n1", "n4", gpus=1)
    assert found == {"n0": 0, "n1": 10, "n4": 1}


def test_what_is_held_for_a_gang_counts_as_used():
    world = world_of()
    world.put(*members("g", 2, TIER(1), gpus=8))
    world.tick()
    (taken,) = {name for name in ("r0", "r1", "r2") if in_rack(name) == set(world.held.values())}
    beside = {"r0": "n2", "r1": "n0", "r2": "n0"}[taken]
    world.put(node("n6"), record(taken, 1, exact("Node", *in_rack(taken), "n6")))
    assert scores(world, "n6", beside, gpus=1) == {"n6": 10, beside: 0}


def in_rack(name: str) -> set[str]:
    at = 2 * int(name[1:])
    return {f"n{at}", f"n{at + 1}"}


def test_hyper_nodes_and_nodes_that_change_are_followed():
    hyper_nodes = (record("r0", 1, by_labels(leaf="a")), record("r1", 1, exact("Node", "n2")))
    world = world_of(running("a", "n0", gpus=4), hyper_nodes=hyper_nodes)
    for at in (0, 1):
        world.put(node(f"n{at}", labels={"leaf": "a"}))
    assert scores(world, "n1", "n2", gpus=1) == {"n1": 10, "n2": 0}
    world.put(node("n1"))  # alone: counts as full
    assert scores(world, "n0", "n1", "n2", gpus=1) == {"n0": 3, "n1": 10, "n2": 0}
    world.put(record("r1", 1, exact("Node", "n1", "n2")))
    assert scores(world, "n0", "n1", "n2", gpus=1) == {"n0": 10, "n1": 0, "n2": 0}


def test_without_hyper_nodes_whole_racks_stay_free_as_before():
    nodes = [node("b0/r0/n0"), node("b0/r0/n1"), node("b0/r1/n2"), node("b1/r2/n3")]
    world = World(nodes, [running("a", "n0", gpus=4)], kinds=KINDS)
    world.apply(Listed("HyperNode", ()))
    expected = {"n0": 5, "n1": 2, "n2": 1, "n3": 0}
    assert scores(world, gpus=1) == expected
    world.apply(Listed("HyperNode", (record("h", 1, exact("Node", "n3")),)))
    assert scores(world, gpus=1) != expected
    world.delete(record("h", 1, exact("Node", "n3")))
    assert scores(world, gpus=1) == expected


def test_hyper_nodes_come_before_topologies_by_label():
    world = World(
        [node("b0/r0/n0"), node("b0/r0/n1"), node("b0/r1/n2")],
        [running("a", "n0", gpus=4)],
        topologies=[topology("A", BLOCK, RACK)],
        kinds=KINDS,
    )
    hyper_nodes = (record("h0", 1, exact("Node", "n0", "n2")), record("h1", 1, exact("Node", "n1")))
    world.apply(Listed("HyperNode", hyper_nodes))
    assert scores(world, "n1", "n2", gpus=1) == {"n1": 0, "n2": 10}
