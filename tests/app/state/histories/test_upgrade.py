"""Pods as an earlier release has left them, and as an earlier one would find ours.

The first release wrote three annotations: `corral.dev/narrowed` with the patch that ungates, and
`corral.dev/gang` and `corral.dev/domain` with the Binding. Others came later, and may be missing;
what the first one read is written as it was.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.dialects.corral import GATE
from app.kube.core.objects import Requirement, Shape, Term
from app.state.effects import Bind, Evict, RejectBind, Ungate
from tests.app.state.world import World, four_racks, members, racks

NARROWED = {"corral.dev/narrowed": "nodes"}
RACK_2 = tuple(f"n2{at}" for at in range(4))


def narrowed(pod):
    """Ungated, with one term for each node of rack 2."""
    terms = tuple(Term(fields=(Requirement("metadata.name", "In", (name,)),)) for name in RACK_2)
    return replace(
        pod,
        shape=Shape(pod.shape.selector, terms, pod.shape.tolerations),
        annotations={**pod.annotations, **NARROWED},
    )


def bound(pod, node):
    """As the first release bound it: without the sizes of pod sets."""
    said = {"corral.dev/gang": "default/g", "corral.dev/domain": "b1/r2"}
    pod = narrowed(pod)
    return replace(pod, node=node, phase="Running", annotations={**pod.annotations, **said})


def gated(pod):
    return replace(pod, gates=(GATE,))


@pytest.mark.parametrize("running", range(5))
def test_a_gang_that_was_narrowed_and_bound_in_part_goes_on_where_it_was(running):
    pods = members("g", 4)
    there = [bound(each, on) for each, on in zip(pods[:running], RACK_2, strict=False)]
    world = World(four_racks(), [*there, *(narrowed(each) for each in pods[running:])])
    placed = world.schedule(*(world.pods[each.uid] for each in pods))
    assert sorted(placed.values()) == list(RACK_2)
    assert {each.node for each in there} <= set(placed.values())
    assert world.told(Evict) == world.told(RejectBind) == []
    assert world.held == {}


def test_a_pod_that_such_a_gang_loses_comes_again_in_its_rack():
    pods = members("g", 4)
    there = [bound(each, on) for each, on in zip(pods, RACK_2, strict=True)]
    world = World(four_racks(), there)
    assert world.effects == []
    world.delete(there[1])
    again = gated(replace(pods[1], name="again", uid="uid-again"))
    world.put(again)
    world.tick(1.0)
    world.patch(world.told(Ungate))
    assert world.schedule(again) == {"again": "n21"}


def test_pods_that_still_wait_behind_the_gate_are_planned_together():
    world = World(four_racks(), [gated(each) for each in members("g", 4)])
    world.patch(world.told(Ungate))
    assert len(racks(world.schedule(*members("g", 4)))) == 1


def test_what_the_first_release_read_is_written_as_it_was():
    world = World(four_racks(), [gated(each) for each in members("g", 4)])
    patches = world.told(Ungate)
    assert len(patches) == 4
    for patch in patches:
        assert patch.gate == "corral.dev/gang"
        assert patch.annotations == (("corral.dev/narrowed", "nodes"),)
        assert len(patch.nodes) == 4
    world.patch(patches)
    world.schedule(*members("g", 4))
    for binding in world.told(Bind):
        said = dict(binding.annotations)
        assert said["corral.dev/gang"] == "default/g"
        assert said["corral.dev/domain"]
