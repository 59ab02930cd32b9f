"""Gangs whose pods were narrowed to nodes already, and lack one: which new nodes would help."""

from __future__ import annotations

import msgspec

from app.dialects import corral
from app.kube.core.objects import Requirement, Shape, Term
from app.state.effects import EmitEvent, Ungate
from tests.app.state.autoscaling.marking import Marking, gated
from tests.records import node

PATIENCE = 30.0


def rack(number: int = 0) -> list:
    return [node(f"b0/r{number}/n{number}{i}") for i in range(4)]


def stranded(**more: object) -> Marking:
    """Its gate was taken off, and before it could start one of its nodes has gone."""
    world = Marking(rack(), gated("g", 4, **more))
    world.patch(world.told(Ungate))
    assert all(corral.is_narrowed(each) and not each.gates for each in world.pods.values())
    world.delete(rack()[0])
    return world


def told(world: Marking, reason: str) -> list[str]:
    return [each.sentence for each in world.told(EmitEvent) if each.reason == reason]


def test_a_gang_that_may_have_no_new_node_asks_for_none_and_its_owner_is_told_why():
    """No autoscaler makes nodes for pods that name those they may go to."""
    world = stranded()
    world.wait(PATIENCE + 30)
    assert list(world.engine.marks.asking()) == []
    assert told(world, "NeedsNodes") == []
    (said,) = told(world, "NoNodesCome")
    assert "narrowed to nodes" in said
    assert "create them anew" in said


def test_no_new_node_is_kept_for_it():
    world = stranded()
    world.wait(PATIENCE + 30)
    world.put(node("b0/r0/new"), node("unlabelled"))
    world.tick()
    assert world.engine.new_nodes.nodes() == frozenset()


def test_once_its_node_is_back_it_is_placed():
    world = stranded()
    world.wait(PATIENCE + 30)
    world.put(rack()[0])
    world.wait(5)
    assert len(world.gang().plan.nodes) == 4


def test_made_anew_behind_the_gate_its_pods_are_marked():
    world = stranded()
    world.wait(PATIENCE + 30)
    world.delete(*world.pods.values())
    again = [msgspec.structs.replace(each, uid=f"again-{each.uid}") for each in gated("g", 4)]
    world.put(*again)
    world.wait(PATIENCE + 5)
    assert world.marked == ["g0", "g1", "g2", "g3"]


def test_a_gang_that_was_narrowed_by_labels_asks_for_nodes_that_have_them():
    expression = Requirement("kubernetes.io/hostname", "NotIn", ("elsewhere",))
    world = stranded(shape=Shape(terms=(Term(expressions=(expression,)),)))
    assert all(corral.narrowed_labels(each) for each in world.pods.values())
    world.wait(PATIENCE + 5)
    assert len(told(world, "NeedsNodes")) == 1
    assert told(world, "NoNodesCome") == []
