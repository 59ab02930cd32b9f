from __future__ import annotations

from typing import Any

import pytest

from tests.text import BLOCK, RACK, cluster, pods_per_node, vector
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
    invariants,
)
from topology.fit import fit

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


def request_of(gang: Gang, name: str) -> tuple[int, ...]:
    """What one pod of a pod set requests, or of the only leader there is."""
    [request] = [one.request for one in gang.pod_sets() if one.name == name] or [
        one.leader.request for one in gang.pod_sets() if one.leader is not None
    ]
    return request


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
    booked = [
        (slot, request_of(gang, name), pods)
        for name, entries in by_slot.items()
        for slot, pods in entries
    ]
    for entry in booked:
        capacity.use(*entry)
    answer = complete(tree, capacity, gang, {}, by_slot, options or Options())
    if isinstance(answer, NoFit):
        return answer
    for entry in booked:
        capacity.unuse(*entry)
    if options is None:
        invariants.check(tree, capacity, gang=gang, placement=answer)
    return pods_per_node(tree, answer)


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


def test_an_inner_slice_lost_whole_is_placed_in_the_rack_of_its_outer_slice() -> None:
    tree, capacity = cluster(TWO_RACKS)
    # One node is free in r2, the tighter rack, and two are in the rack of the outer slice.
    capacity.use(tree.slot_of["n5"], vector(capacity.axis, gpu=4))
    sliced = workers(capacity, 8, slices=(Slice(8, RACK), Slice(4, NODE_LEVEL)))
    answer = completed(tree, capacity, sliced, {"w": {"n1": 4}})
    assert answer in ({"w": {"n1": 4, "n2": 4}}, {"w": {"n1": 4, "n3": 4}})


def test_whole_inner_slices_that_are_lost_come_back_into_the_rack_of_their_outer_one() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=2\nb1/r1/n2 gpu=2\nb1/r2/n3 gpu=2")
    sliced = workers(capacity, 4, slices=(Slice(4, RACK), Slice(2, NODE_LEVEL)))
    at_once = Options(tries=0)  # without the search that follows where this finds no place
    answer = completed(tree, capacity, sliced, {"w": {"n1": 2}}, at_once)
    assert answer == {"w": {"n1": 2, "n2": 2}}


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


@pytest.mark.parametrize(
    ("used_of_n5", "boss"),
    [
        pytest.param(0, "n5", id="in_the_tightest_rack_that_takes_it"),
        pytest.param(1, "n2", id="outside_of_the_rack_of_its_slice"),
    ],
)
def test_a_leader_lost_with_part_of_a_slice_needs_no_place_in_that_slice(
    used_of_n5: int, boss: str
) -> None:
    tree, capacity = cluster(TWO_RACKS)
    capacity.use(tree.slot_of["n5"], vector(capacity.axis, gpu=used_of_n5))
    leader = Leader("boss", vector(capacity.axis, pods=1, gpu=4))
    led = workers(capacity, 8, slices=(Slice(4, RACK),), leader=leader)
    answer = completed(tree, capacity, led, {"w": {"n1": 4, "n4": 2}})
    assert answer == {"w": {"n1": 4, "n4": 4}, "boss": {boss: 1}}


def test_slices_lost_whole_go_elsewhere_if_they_do_not_fit_beside_one_lost_in_part() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=1\nb1/r1/n2 gpu=1\nb2/r2/n3 gpu=2")
    sliced = workers(capacity, 4, slices=(Slice(2, BLOCK),))
    answer = completed(tree, capacity, sliced, {"w": {"n1": 1}})
    assert answer == {"w": {"n1": 1, "n2": 1, "n3": 2}}
    as_kueue = completed(tree, capacity, sliced, {"w": {"n1": 1}}, Options(tries=0))
    assert isinstance(as_kueue, NoFit)
    assert (as_kueue.needed, as_kueue.available, as_kueue.is_proven) == (3, 1, False)


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


def group_of(*members: PodSet | Group, **fields: Any) -> Group:
    return Group("g", members, **fields)


def named(capacity: Capacity, name: str, pods: int, gpu: int, **fields: Any) -> PodSet:
    return PodSet(name, pods, vector(capacity.axis, pods=1, gpu=gpu), **fields)


def test_a_group_that_lost_a_node_stays_in_the_rack_its_other_pods_are_in() -> None:
    tree, capacity = cluster(TWO_RACKS)
    pods = [named(capacity, name, 3, 1) for name in ("prefill", "decode", "router")]
    group = group_of(*pods, constraint=REQUIRED)
    # All of decode is gone; r2 has more room for its three pods than r1 has.
    answer = completed(tree, capacity, group, {"prefill": {"n1": 2}, "router": {"n2": 3}})
    assert isinstance(answer, dict)
    assert sum(pods for here in answer.values() for pods in here.values()) == 9
    assert {node for here in answer.values() for node in here} <= {"n1", "n2", "n3"}
    assert answer["prefill"]["n1"] >= 2


def test_a_group_whose_pods_are_in_two_racks_by_now_goes_on_in_that_of_the_first() -> None:
    tree, capacity = cluster(TWO_RACKS)
    pods = [named(capacity, name, 2, 1) for name in ("prefill", "decode", "router")]
    group = group_of(*pods, constraint=REQUIRED)
    kept = {"prefill": {"n4": 2}, "decode": {"n1": 1}}
    answer = completed(tree, capacity, group, kept, Options())
    assert isinstance(answer, dict)
    assert answer["prefill"] == {"n4": 2}
    assert answer["decode"].pop("n1") == 1
    assert {node for here in answer.values() for node in here} <= {"n4", "n5"}
    assert sum(pods for here in answer.values() for pods in here.values()) == 5


def test_a_group_that_has_left_its_preferred_rack_may_go_anywhere_in_its_required_block() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r1/n2 gpu=4\nb1/r2/n3 gpu=2")
    pods = named(capacity, "prefill", 3, 1), named(capacity, "decode", 2, 1)
    group = group_of(*pods, constraint=Constraint(required=BLOCK, preferred=RACK))
    kept = {"prefill": {"n1": 1, "n3": 1}, "decode": {"n1": 1, "n2": 1}}
    answer = completed(tree, capacity, group, kept)
    assert answer == {"prefill": {"n1": 1, "n3": 2}, "decode": {"n1": 1, "n2": 1}}


def test_groups_in_groups_keep_the_rack_of_each_and_the_block_of_all() -> None:
    tree, capacity = cluster(
        "b1/r1/n1 gpu=4\nb1/r1/n2 gpu=4\nb1/r2/n3 gpu=4\nb2/r3/n4 gpu=8\nb2/r4/n5 gpu=8"
    )
    replicas = tuple(
        Group(f"replica-{index}", (named(capacity, f"w{index}", 4, 1),), REQUIRED)
        for index in range(2)
    )
    everything = Group("all", replicas, Constraint(required=BLOCK))
    answer = completed(tree, capacity, everything, {"w0": {"n1": 1}})
    assert isinstance(answer, dict)
    assert set(answer["w0"]) <= {"n1", "n2"}
    assert set(answer["w1"]) <= {"n1", "n2", "n3"}


@pytest.mark.parametrize(
    ("group_level", "level"),
    [
        pytest.param(BLOCK, RACK, id="a_rack_in_the_block_of_the_group"),
        pytest.param(RACK, BLOCK, id="a_block_around_the_rack_of_the_group"),
    ],
)
def test_many_lost_pods_go_where_both_they_and_their_group_may_be(
    group_level: str, level: str
) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=40\nb1/r1/n2 gpu=40\nb1/r2/n3 gpu=40\nb2/r3/n4 gpu=40")
    many = workers(capacity, 70, constraint=Constraint(required=level))
    inner = group_of(many, constraint=Constraint(required=group_level))
    answer = completed(tree, capacity, Group("all", (inner,)), {"w": {"n1": 40}})
    assert answer == {"w": {"n1": 40, "n2": 30}}


def test_a_preferred_group_leaves_the_rack_of_its_pods_only_where_that_is_full() -> None:
    tree, capacity = cluster(TWO_RACKS)
    two = [named(capacity, name, 4, 1) for name in ("a", "b", "c")]
    near = completed(
        tree, capacity, group_of(*two[:2], constraint=Constraint(preferred=RACK)), {"a": {"n4": 4}}
    )
    assert near == {"a": {"n4": 4}, "b": {"n5": 4}}
    tree, capacity = cluster(TWO_RACKS)
    far = completed(
        tree, capacity, group_of(*two, constraint=Constraint(preferred=RACK)), {"a": {"n4": 4}}
    )
    assert isinstance(far, dict)
    assert far["a"] == {"n4": 4}
    assert {sum(here.values()) for here in far.values()} == {4}


def test_pod_sets_that_lost_pods_are_packed_where_one_by_one_they_do_not_fit() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=5\nb1/r1/n2 gpu=3\nb1/r1/n3 gpu=2")
    small, large = named(capacity, "small", 4, 1), named(capacity, "large", 2, 3)
    gang = Gang("ns/gang", Group("root", (small, large)))
    capacity.use(0, small.request)
    kept = {"small": [(0, 1)]}
    # One by one three small pods fill n2, the tightest place; then one large one has none.
    assert isinstance(complete(tree, capacity, gang, {}, kept, Options(tries=0)), NoFit)
    answer = complete(tree, capacity, gang, {}, kept)
    assert isinstance(answer, Placement)
    assert [placed.slots for placed in answer.pod_sets] == [((0, 2), (2, 2)), ((0, 1), (1, 1))]


def test_pods_of_slices_in_a_group_are_replaced_in_their_slice() -> None:
    tree, capacity = cluster(TWO_RACKS)
    sliced = workers(capacity, 8, slices=(Slice(4, RACK),))
    other = named(capacity, "other", 2, 1)
    group = group_of(sliced, other, constraint=Constraint(required=BLOCK))
    answer = completed(tree, capacity, group, {"w": {"n1": 1, "n4": 4}})
    assert isinstance(answer, dict)
    assert sum(pods for node, pods in answer["w"].items() if node in {"n1", "n2", "n3"}) == 4
    assert sum(answer["other"].values()) == 2


def test_a_member_with_pods_that_stay_is_completed_before_one_without_takes_its_room() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4")
    started, other = named(capacity, "started", 4, 1), named(capacity, "other", 3, 1)
    either = group_of(other, started, needed=1)
    answer = completed(tree, capacity, either, {"started": {"n1": 1}})
    assert answer == {"other": {}, "started": {"n1": 4}}


def test_pods_that_stay_do_so_where_their_group_does_without_the_rest_of_them() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=2\nb1/r2/n2 gpu=4")
    either = group_of(
        named(capacity, "a", 4, 1, constraint=REQUIRED), named(capacity, "b", 4, 1), needed=1
    )
    gang = Gang("ns/gang", Group("root", (either,)))
    capacity.use(0, vector(capacity.axis, pods=1, gpu=1))
    answer = complete(tree, capacity, gang, {}, {"a": [(0, 1)]})
    assert isinstance(answer, Placement)
    assert [placed.slots for placed in answer.pod_sets] == [((0, 1),), ((1, 4),)]


def test_where_slices_may_be_smaller_those_that_lack_least_are_completed() -> None:
    tree, capacity = cluster(TWO_RACKS)
    sliced = workers(capacity, 6, slices=(Slice(4, RACK),), partial_last_slice=True)
    # Both slices lost two pods, or ended in part: the one that lacks one gets it, and no other.
    answer = completed(tree, capacity, sliced, {"w": {"n1": 2, "n4": 3}})
    assert isinstance(answer, dict)
    assert sum(pods for node, pods in answer["w"].items() if node in {"n4", "n5"}) == 4
    assert answer["w"]["n1"] == 2


def test_a_smaller_last_slice_comes_after_whole_ones_with_inner_slices() -> None:
    tree, capacity = cluster(TWO_RACKS)
    layers = (Slice(8, RACK), Slice(4, NODE_LEVEL))
    sliced = workers(capacity, 18, slices=layers, partial_last_slice=True)
    answer = completed(tree, capacity, sliced, {"w": {"n1": 4, "n2": 4}})
    assert answer == {"w": {"n1": 4, "n2": 4, "n3": 2, "n4": 4, "n5": 4}}


def test_a_leader_lost_beside_a_smaller_last_slice_is_replaced() -> None:
    tree, capacity = cluster(TWO_RACKS)
    leader = Leader("boss", vector(capacity.axis, pods=1, gpu=3))
    fields = {"slices": (Slice(4, RACK),), "partial_last_slice": True, "leader": leader}
    answer = completed(tree, capacity, workers(capacity, 10, **fields), {"w": {"n1": 4}})
    assert isinstance(answer, dict)
    assert answer["w"]["n1"] == 4
    assert sum(answer["w"].values()) == 10
    assert sum(answer["boss"].values()) == 1
