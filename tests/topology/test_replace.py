from __future__ import annotations

from typing import Any

import pytest

from tests.text import BLOCK, RACK, cluster, vector
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    Gang,
    Group,
    InvalidRequest,
    Leader,
    NoFit,
    Options,
    Placement,
    PodSet,
    Slice,
    Tree,
    complete,
    find,
    fit,
    invariants,
)

REQUIRED = Constraint(required=RACK)

# One GPU is taken by each pod that is kept in the tests.
TWO_RACKS = """
    b1/r1/n1 gpu=4
    b1/r1/n2 gpu=4
    b1/r1/n3 gpu=4
    b1/r2/n4 gpu=4
    b1/r2/n5 gpu=4
"""


def workers(capacity: Capacity, pods: int, **fields: Any) -> PodSet:
    return PodSet("w", pods, vector(capacity.axis, pods=1, gpu=1), **fields)


def completed(
    tree: Tree,
    capacity: Capacity,
    pod_set: PodSet | Group,
    kept: dict[str, dict[str, int]],
    options: Options | None = None,
) -> dict[str, dict[str, int]] | NoFit:
    """Pods per node of each pod set; the kept ones are put on the books first."""
    gang = Gang("ns/gang", Group("root", (pod_set,)))
    by_slot = {
        name: [(tree.slot_of[node], pods) for node, pods in nodes.items()]
        for name, nodes in kept.items()
    }
    for name, entries in by_slot.items():
        [request] = [one.request for one in gang.pod_sets() if one.name == name] or [
            one.leader.request for one in gang.pod_sets() if one.leader is not None
        ]
        for slot, pods in entries:
            capacity.use(slot, request, pods)
    answer = complete(tree, capacity, gang, {}, by_slot, options or Options())
    if isinstance(answer, NoFit):
        return answer
    for name, entries in by_slot.items():
        [request] = [one.request for one in gang.pod_sets() if one.name == name] or [
            one.leader.request for one in gang.pod_sets() if one.leader is not None
        ]
        for slot, pods in entries:
            capacity.unuse(slot, request, pods)
    if options is None:
        invariants.check(tree, capacity, gang=gang, placement=answer)
    return {
        placed.pod_set: {tree.nodes[slot]: pods for slot, pods in placed.slots}
        for placed in answer.pod_sets
    }


def test_lost_pods_of_a_required_rack_go_to_the_rack_of_the_others() -> None:
    tree, capacity = cluster(TWO_RACKS)
    # The tightest place is n5 in the other rack; n2 was lost and is not open any more.
    capacity.use(tree.slot_of["n5"], vector(capacity.axis, gpu=2))
    capacity.set_node(tree.slot_of["n2"], vector(capacity.axis, pods=110, gpu=4), is_open=False)
    answer = completed(tree, capacity, workers(capacity, 5, constraint=REQUIRED), {"w": {"n1": 3}})
    assert answer == {"w": {"n1": 3, "n3": 2}}


def test_what_does_not_fit_beside_the_others_says_how_many_nodes_are_elsewhere() -> None:
    tree, capacity = cluster(TWO_RACKS)
    answer = completed(
        tree, capacity, workers(capacity, 13, constraint=REQUIRED), {"w": {"n1": 4, "n2": 4}}
    )
    assert isinstance(answer, NoFit)
    assert (answer.needed, answer.available, answer.is_proven) == (5, 4, False)
    assert (fit.OUTSIDE, 2) in answer.excluded


def test_a_slice_is_completed_where_the_rest_of_it_is() -> None:
    tree, capacity = cluster(TWO_RACKS)
    sliced = workers(capacity, 8, slices=(Slice(4, RACK),))
    # Of the slice in r1 one pod is left, the slice in r2 is whole.
    answer = completed(tree, capacity, sliced, {"w": {"n1": 1, "n4": 4}})
    assert isinstance(answer, dict)
    assert sum(pods for node, pods in answer["w"].items() if node in {"n1", "n2", "n3"}) == 4


def test_slices_broken_in_two_racks_are_each_completed() -> None:
    tree, capacity = cluster(TWO_RACKS)
    sliced = workers(capacity, 8, slices=(Slice(4, RACK),))
    answer = completed(tree, capacity, sliced, {"w": {"n1": 3, "n4": 3}})
    assert isinstance(answer, dict)
    assert sum(pods for node, pods in answer["w"].items() if node in {"n4", "n5"}) == 4


def test_inner_slices_lost_on_two_nodes_are_each_completed_on_their_node() -> None:
    tree, capacity = cluster(TWO_RACKS)
    sliced = workers(capacity, 8, slices=(Slice(8, RACK), Slice(2, NODE_LEVEL)))
    answer = completed(tree, capacity, sliced, {"w": {"n1": 1, "n2": 1, "n3": 4}})
    assert answer == {"w": {"n1": 2, "n2": 2, "n3": 4}}


def test_kept_pods_that_no_slices_can_be_made_of_are_refused() -> None:
    tree, capacity = cluster(TWO_RACKS)
    sliced = workers(capacity, 4, slices=(Slice(4, RACK),))
    with pytest.raises(InvalidRequest, match="pod set w: 4 more pods are needed to make whole"):
        completed(tree, capacity, sliced, {"w": {"n1": 1, "n4": 1}})


def test_a_gang_that_grows_keeps_its_places() -> None:
    tree, capacity = cluster(TWO_RACKS)
    answer = completed(
        tree, capacity, workers(capacity, 6, constraint=REQUIRED), {"w": {"n4": 2, "n5": 2}}
    )
    assert isinstance(answer, dict)
    assert answer["w"].keys() == {"n4", "n5"}
    assert sum(answer["w"].values()) == 6


def test_growth_may_leave_the_required_domain_only_when_told_so() -> None:
    asked = {"w": {"n4": 4, "n5": 4}}
    tree, capacity = cluster(TWO_RACKS)
    nine = workers(capacity, 9, constraint=REQUIRED)
    assert isinstance(completed(tree, capacity, nine, asked), NoFit)
    tree, capacity = cluster(TWO_RACKS)
    answer = completed(tree, capacity, nine, asked, Options(kept_bind=False))
    assert answer == {"w": {"n1": 1, "n4": 4, "n5": 4}}


def test_a_gang_that_shrinks_keeps_its_first_places() -> None:
    tree, capacity = cluster(TWO_RACKS)
    gang = Gang("ns/gang", Group("root", (workers(capacity, 3),)))
    kept = {"w": [(tree.slot_of["n4"], 2), (tree.slot_of["n1"], 3)]}
    answer = complete(tree, capacity, gang, {}, kept)
    assert isinstance(answer, Placement)
    assert answer.pod_sets[0].slots == ((0, 1), (3, 2))


def test_a_lost_leader_goes_to_the_rack_of_its_workers() -> None:
    tree, capacity = cluster(TWO_RACKS)
    leader = Leader("boss", vector(capacity.axis, pods=1, gpu=2))
    led = workers(capacity, 6, constraint=REQUIRED, leader=leader)
    answer = completed(tree, capacity, led, {"w": {"n4": 4, "n5": 2}})
    assert answer == {"w": {"n4": 4, "n5": 2}, "boss": {"n5": 1}}


def test_a_leader_lost_with_part_of_a_slice_needs_no_place_in_that_slice() -> None:
    tree, capacity = cluster(TWO_RACKS)
    leader = Leader("boss", vector(capacity.axis, pods=1, gpu=4))
    led = workers(capacity, 8, slices=(Slice(4, RACK),), leader=leader)
    # r2 has room for the two pods its slice lacks, and then for no leader of four GPUs.
    answer = completed(tree, capacity, led, {"w": {"n1": 4, "n4": 2}})
    assert isinstance(answer, dict)
    assert answer["w"]["n1"] == 4
    assert sum(pods for node, pods in answer["w"].items() if node in {"n4", "n5"}) == 4
    assert answer["boss"].keys() <= {"n2", "n3", "n5"}


def test_a_gang_none_of_whose_pods_are_kept_is_placed_as_a_new_one() -> None:
    tree, capacity = cluster(TWO_RACKS)
    led = workers(
        capacity,
        8,
        constraint=Constraint(required=BLOCK),
        slices=(Slice(4, RACK),),
        leader=Leader("boss", vector(capacity.axis, pods=1, gpu=2)),
    )
    gang = Gang("ns/gang", Group("root", (led,)))
    assert complete(tree, capacity, gang, {}, {}) == find(tree, capacity, gang, {})
