"""Members that were narrowed by one plan, placed by another."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from app.dialects.corral import NARROWED, NODES
from app.kube.core.objects import Requirement, Shape, Term
from tests.app.state.seats import in_tree_order, indexed, nodes_of, running
from tests.app.state.world import World, four_racks, members, racks
from tests.records import PREFERRED, RACK, SLICE_LEVEL, SLICE_SIZE, group, job, pod


def test_narrowed_members_stay_where_their_nodes_are():
    """Two were narrowed to rack 2 before a restart: the gang must go there with all its members."""
    pods = indexed("j", 4, RACK)
    world = World(four_racks(), jobs=[job("j", 4)])
    narrowed = [narrowed_to(each, [f"n2{i}" for i in range(4)]) for each in pods[:2]]
    world.put(*narrowed, *pods[2:])
    assert {name[:2] for name in world.held.values()} == {"n2"}
    assert in_tree_order(world, nodes_of(world, pods))


def test_members_narrowed_to_different_racks_are_no_gang_for_one_rack():
    pods = indexed("j", 4, RACK)
    world = World(four_racks(), jobs=[job("j", 4)])
    ranges = [[f"n{rack}{i}" for i in range(4)] for rack in (1, 2)]
    world.put(*(narrowed_to(each, ranges[place // 2]) for place, each in enumerate(pods)))
    assert world.held == {}


def test_narrowed_members_and_new_ones_share_a_rack_when_the_node_of_one_that_runs_has_gone():
    pods = members("g", 4)
    on_lost_node = msgspec.structs.replace(pods[0], node="gone", phase="Running")
    narrowed = [narrowed_to(each, [f"n2{i}" for i in range(4)]) for each in pods[1:3]]
    # Alone, the new one would go to rack 0, where there is room for no other.
    others = [pod(f"other{i}", on=f"n0{i}", phase="Running") for i in range(3)]
    world = World(four_racks(), [on_lost_node, *narrowed, pods[3], *others])
    world.tick(5)
    assert racks(world.held) == {"n2"}


def test_members_narrowed_to_different_racks_go_to_both_where_a_rack_is_only_preferred():
    pods = [
        msgspec.structs.replace(each, annotations={PREFERRED: RACK}) for each in indexed("j", 6)
    ]
    world = World(four_racks(), jobs=[job("j", 6)])
    ranges = [[f"n{rack}{i}" for i in range(4)] for rack in (1, 2)]
    world.put(*(narrowed_to(each, ranges[place % 2]) for place, each in enumerate(pods)))
    nodes = nodes_of(world, pods)
    assert [name[:2] for name in nodes] == ["n1", "n2"] * 3


SLICED = {SLICE_LEVEL: RACK, SLICE_SIZE: "2"}


def test_slices_of_members_that_were_narrowed_differently_are_not_counted_again():
    pods = [pod(f"g{i}", annotations=group("g", 4, **SLICED)) for i in range(4)]
    world = World(four_racks())
    ranges = [[f"n{rack}{i}" for i in range(4)] for rack in (1, 2)]
    world.put(*(narrowed_to(each, ranges[place > 0]) for place, each in enumerate(pods)))
    assert [name[:2] for name in nodes_of(world, pods)] == ["n1", "n2", "n2", "n2"]


@pytest.mark.parametrize("first", [0, 1])
def test_a_new_member_shares_its_slice_with_one_that_was_narrowed(first):
    """Alone, the new one would go to rack 0, where there is room for no other."""
    pods = [pod(f"g{i}", annotations=group("g", 2, **SLICED)) for i in range(2)]
    others = [pod(f"other{i}", on=f"n0{i}", phase="Running") for i in range(3)]
    world = World(four_racks(), others)
    narrowed = narrowed_to(pods[first], [f"n2{i}" for i in range(4)])
    world.put(narrowed, pods[1 - first])
    assert [name[:2] for name in nodes_of(world, pods)] == ["n2", "n2"]


@pytest.mark.parametrize("ages", list(permutations(range(3))), ids=str)
def test_members_with_slices_stay_where_they_were_narrowed_to_however_old_a_new_one_is(ages):
    """Slices of one pod: the first two were narrowed to different racks, the third was not."""
    pods = [
        pod(
            f"g{i}",
            annotations=group("g", 3, **{SLICE_LEVEL: RACK, SLICE_SIZE: "1"}),
            created=f"2026-01-01T00:00:0{age}Z",
        )
        for i, age in enumerate(ages)
    ]
    ranges = [[f"n{rack}{i}" for i in range(4)] for rack in (1, 2)]
    narrowed = [narrowed_to(each, ranges[place]) for place, each in enumerate(pods[:2])]
    world = World(four_racks())
    world.put(*narrowed, pods[2])
    assert [name[:2] for name in nodes_of(world, pods[:2])] == ["n1", "n2"]


def test_a_slice_that_runs_is_completed_by_those_that_may_go_there():
    pods = [pod(f"g{i}", annotations=group("g", 4, **SLICED)) for i in range(3)]
    ranges = [[f"n{rack}{i}" for i in range(4)] for rack in (1, 2)]
    late = [narrowed_to(each, ranges[place]) for place, each in enumerate(pods[1:])]
    world = World(four_racks(), [*running(pods[:1], ["n20"]), *late])
    assert [name[:2] for name in nodes_of(world, pods[1:])] == ["n1", "n2"]


def test_narrowed_and_new_members_share_a_rack_beside_a_pod_set_whose_slices_run_in_part():
    sliced = [pod(f"a{i}", annotations=group("g", 4, **SLICED)) for i in range(2)]
    first, second = (pod(f"b{i}", gpus=4, annotations=group("g", 4, RACK)) for i in range(2))
    narrowed = narrowed_to(first, [f"n2{i}" for i in range(4)])
    # Alone, the second would go to rack 0, where there is room for no other.
    full = [pod(f"other{i}", on=f"n0{i}", phase="Running") for i in range(3)]
    full.append(pod("half", on="n03", gpus=4, phase="Running"))
    world = World(four_racks(), [*running(sliced[:1], ["n30"]), sliced[1], narrowed, second, *full])
    assert [on[:2] for on in nodes_of(world, [sliced[1], narrowed, second])] == ["n3", "n2", "n2"]


def narrowed_to(record, nodes):
    """The pod as the API server has it once we have narrowed it."""
    terms = tuple(Term(fields=(Requirement("metadata.name", "In", (name,)),)) for name in nodes)
    return msgspec.structs.replace(
        record,
        shape=Shape(terms=terms),
        annotations={**record.annotations, NARROWED: NODES},
    )
