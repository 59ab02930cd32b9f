"""HyperNodes beside what else the engine does: making room, journals."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.kube.watch.events import Listed
from app.state.effects import WriteStatus
from app.state.journal.replay import replay
from tests.app.dialects.volcano.objects import by_labels, by_pattern, exact, record
from tests.app.state.domains.test_explicit import KINDS, TIER
from tests.app.state.journal.test_journal import RecordedWorld
from tests.app.state.preempt.test_making_room import gang
from tests.app.state.preempt.test_room_plans import Evicting, no_pod_goes
from tests.app.state.world import members
from tests.records import node

HERE = record("s0", 1, exact("Node", *(f"n{at}" for at in range(4))))


def making_room(**settings):
    """Two of four nodes of a HyperNode are free, and T of four has asked for the others."""
    nodes = [node(f"n{at}") for at in range(4)]
    kinds = (*KINDS, "PodDisruptionBudget")
    runs = gang("a", "n0", "n1", priority=1)
    world = Evicting(nodes, runs, silent=True, waiting=(), kinds=kinds, levels=(), **settings)
    world.apply(Listed("HyperNode", (HERE,)))
    world.put(*[replace(each, priority=1000) for each in members("T", 4, TIER(1))])
    world.tick()
    world.tick(10.0)
    return world


@pytest.mark.parametrize("when", ["asked", "checking"])
def test_no_pod_goes_for_a_place_whose_nodes_are_not_together_any_more(when):
    world = making_room()
    taken_apart = record("s0", 1, exact("Node", "n0", "n1", "n2"))
    no_pod_goes(world, when, lambda: world.put(taken_apart))


def test_pods_go_though_another_hyper_node_changes():
    world = making_room()
    world.answer()
    world.put(node("elsewhere"), record("s9", 1, exact("Node", "elsewhere")))
    world.silent = False
    world.run(1.0)
    assert world.evicted == ["a0", "a1"]


def test_a_journal_with_hyper_nodes_is_played_again():
    world = RecordedWorld([node(f"n{at}", gpus=1) for at in range(4)], kinds=KINDS, levels=())
    other = {"key": "rack", "operator": "NotIn", "values": ["b"]}
    world.apply(
        Listed(
            "HyperNode",
            (
                record("s0", 1, [*by_pattern("^n[01]$"), *by_pattern("(")]),
                record("s1", 1, by_labels(other), status={"conditions": [{"type": "Other"}]}),
            ),
        )
    )
    pods = members("g", 2, TIER(1), gpus=1)
    world.put(*pods)
    world.tick()
    assert len(world.schedule(*pods)) == 2
    assert len([each for each in world.effects if isinstance(each, WriteStatus)]) == 2
    assert list(replay(world.lines)) == []
