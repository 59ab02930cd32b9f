"""What is missing from a sample of the nodes was not refused, however few of all it is taken of."""

import pytest

from app.dialects import corral
from app.state.filter_result import Pinned, Rejected
from tests.app.state.world import World, members
from tests.records import node

RACK_NODES = 128  # more than kube-scheduler looks at in any case


def narrowed_to_a_rack():
    """A gang that is narrowed to one of two racks, its first pod and that one's planned node."""
    nodes = [node(f"b0/r{rack}/n{rack}{i:03}") for rack in range(2) for i in range(RACK_NODES)]
    gang = members("g", 2, gates=(corral.GATE,))
    world = World(nodes, gang, narrow_nodes=RACK_NODES)
    world.patch(list(world.effects))
    world.effects.clear()
    first = world.pods[gang[0].uid]
    return world, first, world.held[first.uid]


def offered_without(world, pod, planned, number):
    return sorted(world.gang().members[pod.uid].allowed - {planned})[:number]


def test_a_sample_of_the_nodes_that_a_member_is_narrowed_to_does_not_lose_the_plan():
    world, first, planned = narrowed_to_a_rack()
    assert isinstance(world.filter(first, offered_without(world, first, planned, 100)), Rejected)
    assert world.held[first.uid] == planned
    assert world.woken == ["g0"]  # nominated for its node, which is looked at first then
    assert world.filter(first, [planned]) == Pinned(planned)


@pytest.mark.parametrize("number", [99, 101, RACK_NODES - 1])
def test_of_any_other_number_of_them_the_planned_node_was_refused(number):
    world, first, planned = narrowed_to_a_rack()
    offered = offered_without(world, first, planned, number)
    assert world.filter(first, offered) == Pinned(world.held[first.uid])
    assert world.held[first.uid] != planned
