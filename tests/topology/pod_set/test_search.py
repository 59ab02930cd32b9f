from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.text import BLOCK, GPU, RACK, cluster, vector
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
    ResourceAxis,
    Slice,
    Tree,
    build,
    find,
    invariants,
)
from topology.fit import fit
from topology.model.resources import AMOUNT_MAX

REQUIRED, PREFERRED = Constraint(required=RACK), Constraint(preferred=RACK)

CLUSTER = """
    b1/r1/n1 gpu=8
    b1/r1/n2 gpu=8
    b1/r2/n3 gpu=8
    b1/r2/n4 gpu=4
    b2/r3/n5 gpu=8
    b2/r3/n6 gpu=2
"""


def workers(capacity: Capacity, pods: int, gpu: int = 1, **fields: Any) -> PodSet:
    request = vector(capacity.axis, pods=1, gpu=gpu)
    return PodSet(**({"name": "workers", "pods": pods, "request": request} | fields))


def search(
    tree: Tree, capacity: Capacity, *pod_sets: PodSet, masks: Any = None
) -> Placement | NoFit:
    gang = Gang("ns/gang", Group("root", pod_sets))
    answer = find(tree, capacity, gang, masks or {})
    if isinstance(answer, Placement):
        invariants.check(tree, capacity, gang=gang, placement=answer, masks=masks)
    return answer


def placed(tree: Tree, answer: Placement | NoFit) -> dict[str, int]:
    """Pods per node of all pod sets together."""
    assert isinstance(answer, Placement), str(answer)
    pods: dict[str, int] = {}
    for pod_set in answer.pod_sets:
        for slot, number in pod_set.slots:
            pods[tree.nodes[slot]] = pods.get(tree.nodes[slot], 0) + number
    return pods


def test_required_rack_picks_the_tightest_rack_that_fits() -> None:
    tree, capacity = cluster(CLUSTER)
    answer = search(tree, capacity, workers(capacity, 11, constraint=REQUIRED))
    assert placed(tree, answer) == {"n3": 8, "n4": 3}


def test_the_first_of_equally_tight_racks_is_taken() -> None:
    tree, capacity = cluster("b1/r2/n1 gpu=4\nb1/r1/n2 gpu=4\nb0/r9/n3 gpu=5")
    answer = search(tree, capacity, workers(capacity, 4, constraint=REQUIRED))
    assert placed(tree, answer) == {"n2": 4}


def test_required_rack_that_no_rack_satisfies_says_how_many_the_best_one_takes() -> None:
    tree, capacity = cluster(CLUSTER)
    answer = search(tree, capacity, workers(capacity, 17, constraint=REQUIRED))
    assert answer == NoFit("workers", RACK, needed=17, available=16, nodes=6)


def test_remainders_of_nodes_that_add_up_to_enough_do_not_fit() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=6\nb1/r1/n2 gpu=6")
    answer = search(tree, capacity, workers(capacity, 3, gpu=4, constraint=REQUIRED))
    assert answer == NoFit("workers", RACK, needed=3, available=2, nodes=2)


def test_preferred_rack_stays_in_one_rack_where_one_fits() -> None:
    tree, capacity = cluster(CLUSTER)
    answer = search(tree, capacity, workers(capacity, 12, constraint=PREFERRED))
    assert isinstance(answer, Placement)
    assert answer.pod_sets[0].level == 1
    assert answer.pod_sets[0].domains == ((1, 12),)


def test_preferred_rack_widens_to_one_block() -> None:
    tree, capacity = cluster(CLUSTER)
    answer = search(tree, capacity, workers(capacity, 20, constraint=PREFERRED))
    assert isinstance(answer, Placement)
    assert (answer.pod_sets[0].level, answer.pod_sets[0].domains) == (0, ((0, 20),))
    assert placed(tree, answer) == {"n1": 8, "n2": 8, "n4": 4}


def test_preferred_rack_spreads_over_blocks_only_when_no_block_fits() -> None:
    tree, capacity = cluster(CLUSTER)
    answer = search(tree, capacity, workers(capacity, 30, constraint=PREFERRED))
    assert isinstance(answer, Placement)
    assert answer.pod_sets[0].level == 0
    # Below the blocks all nodes compete together: n5 is the tightest for the last six.
    assert answer.pod_sets[0].domains == ((0, 24), (1, 6))
    assert placed(tree, answer) == {"n1": 8, "n2": 8, "n3": 8, "n5": 6}


def test_preferred_rack_that_does_not_fit_anywhere_names_no_level() -> None:
    tree, capacity = cluster(CLUSTER)
    answer = search(tree, capacity, workers(capacity, 39, constraint=PREFERRED))
    assert answer == NoFit("workers", "", needed=39, available=38, nodes=6)


def test_unconstrained_pods_take_the_tightest_node_that_holds_all() -> None:
    tree, capacity = cluster(CLUSTER)
    assert placed(tree, search(tree, capacity, workers(capacity, 3))) == {"n4": 3}


def test_unconstrained_pods_fill_the_smallest_holes_first() -> None:
    tree, capacity = cluster(CLUSTER)
    answer = search(tree, capacity, workers(capacity, 9))
    assert placed(tree, answer) == {"n6": 2, "n4": 4, "n1": 3}


def test_required_and_preferred_start_narrow_and_widen_up_to_what_is_required() -> None:
    tree, capacity = cluster(CLUSTER)
    both = Constraint(required=BLOCK, preferred=RACK)
    levels = []
    for pods in (12, 20):
        answer = search(tree, capacity, workers(capacity, pods, constraint=both))
        assert isinstance(answer, Placement)
        levels.append(answer.pod_sets[0].level)
    assert levels == [1, 0]


def test_required_and_preferred_never_leave_the_required_level() -> None:
    tree, capacity = cluster(CLUSTER)
    both = Constraint(required=RACK, preferred=NODE_LEVEL)
    assert search(tree, capacity, workers(capacity, 20, constraint=both)) == NoFit(
        "workers", RACK, needed=20, available=16, nodes=6
    )
    answer = search(tree, capacity, workers(capacity, 13, constraint=both))
    assert placed(tree, answer) == {"n1": 8, "n2": 5}


def test_a_preferred_level_wider_than_the_required_one_is_refused() -> None:
    tree, capacity = cluster(CLUSTER)
    both = Constraint(required=RACK, preferred=BLOCK)
    with pytest.raises(InvalidRequest, match=f"preferred level {BLOCK} is wider than .* {RACK}"):
        search(tree, capacity, workers(capacity, 1, constraint=both))


def test_pod_sets_assume_what_the_earlier_ones_took() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r2/n2 gpu=8")
    answer = search(
        tree,
        capacity,
        workers(capacity, 6, name="a", constraint=REQUIRED),
        workers(capacity, 6, name="b", constraint=REQUIRED),
        workers(capacity, 4, name="c"),
    )
    assert isinstance(answer, Placement)
    by_name = {pod_set.pod_set: pod_set.slots for pod_set in answer.pod_sets}
    assert by_name == {"a": ((0, 6),), "b": ((1, 6),), "c": ((0, 2), (1, 2))}


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    answer = search(
        tree,
        capacity,
        workers(capacity, 6, name="a"),
        workers(capacity, 3, name="b", constraint=REQUIRED),
    )
    assert answer == NoFit("b", RACK, needed=3, available=2, nodes=1)


def test_a_search_leaves_the_books_as_they_are() -> None:
    tree, capacity = cluster(CLUSTER)
    before = [capacity.used.copy(), capacity.held.copy(), *map(np.copy, capacity.free_by_domain)]
    search(tree, capacity, workers(capacity, 4, name="a"), workers(capacity, 99, name="b"))
    after = [capacity.used, capacity.held, *capacity.free_by_domain]
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))


def test_nodes_outside_the_mask_of_the_shape_and_closed_nodes_host_nothing() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8 closed\nb1/r1/n3 gpu=8")
    masks = {"picky": np.array([False, True, True])}
    picky = workers(capacity, 8, shape="picky", constraint=REQUIRED)
    assert placed(tree, search(tree, capacity, picky, masks=masks)) == {"n3": 8}
    other = workers(capacity, 16, shape="other", constraint=REQUIRED)
    assert placed(tree, search(tree, capacity, other, masks=masks)) == {"n1": 8, "n3": 8}


def test_no_fit_counts_each_node_that_takes_none_by_its_reason() -> None:
    tree, capacity = cluster("r1/n1 gpu=8\nr1/n2 gpu=8 closed\nr1/n3 gpu=3/3\nr1/n4 gpu=8")
    masks = {"picky": np.array([True, True, True, False])}
    answer = search(tree, capacity, workers(capacity, 9, shape="picky"), masks=masks)
    assert isinstance(answer, NoFit)
    assert answer.excluded == (
        ("insufficient nvidia.com/gpu", 1),
        (fit.NOT_ALLOWED, 1),
        (fit.NOT_OPEN, 1),
    )
    assert str(answer) == (
        "8 of 9 pods fit; excluded nodes: insufficient nvidia.com/gpu 1, "
        "node selector, affinity or taint 1, not ready or unschedulable 1"
    )


def test_racks_the_sums_rule_out_change_neither_the_answer_nor_its_numbers() -> None:
    used = [8 - rack % 3 for rack in range(40)]
    lines = [f"b1/r{rack}/n{rack} gpu={gpus}/8" for rack, gpus in enumerate(used)]
    tree, capacity = cluster("\n".join([*lines, "b1/r9x/n9x gpu=8", "b1/r9y/n9y gpu=7"]))
    seven = workers(capacity, 7, constraint=REQUIRED)
    assert placed(tree, search(tree, capacity, seven)) == {"n9y": 7}
    nine = search(tree, capacity, workers(capacity, 9, constraint=REQUIRED))
    full = ((f"insufficient {GPU}", used.count(8)),)
    assert nine == NoFit("workers", RACK, needed=9, available=8, excluded=full, nodes=42)


def test_an_over_committed_node_does_not_rule_out_its_rack() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=20/8\nb1/r1/n2 gpu=8")
    answer = search(tree, capacity, workers(capacity, 8, constraint=REQUIRED))
    assert placed(tree, answer) == {"n2": 8}


def test_no_nodes_fit_nothing() -> None:
    tree = build([BLOCK, RACK], {}, generation=1)
    capacity = Capacity(ResourceAxis(), tree)
    answers = [
        search(tree, capacity, workers(capacity, 1, constraint=constraint))
        for constraint in (REQUIRED, PREFERRED, Constraint())
    ]
    assert answers == [NoFit("workers", level, 1, 0) for level in (RACK, "", "")]


@pytest.mark.parametrize("constraint", [REQUIRED, PREFERRED, Constraint()])
def test_one_node_is_a_cluster(constraint: Constraint) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    assert placed(tree, search(tree, capacity, workers(capacity, 8, constraint=constraint))) == {
        "n1": 8
    }


def test_a_tree_of_sixteen_levels_is_climbed_one_by_one() -> None:
    shared = "/".join(f"d{level}" for level in range(13))
    tree, capacity = cluster(f"{shared}/x/r1/n1 gpu=2\n{shared}/x/r2/n2 gpu=2\n{shared}/y/r/n3")
    assert len(tree.levels) == 16
    preferred = Constraint(preferred=tree.levels[14])
    answer = search(tree, capacity, workers(capacity, 4, constraint=preferred))
    assert isinstance(answer, Placement)
    assert answer.pod_sets[0].level == 13


def test_two_exbibytes_per_node_are_placed_exactly() -> None:
    lines = [f"b1/r1/n{node} memory={AMOUNT_MAX}" for node in range(8)]
    tree, capacity = cluster("\n".join(lines))
    request = vector(capacity.axis, pods=1, memory=AMOUNT_MAX // 4)
    pods = PodSet("workers", 32, request, constraint=REQUIRED)
    answer = search(tree, capacity, pods)
    assert placed(tree, answer) == {f"n{node}": 4 for node in range(8)}
    more = search(tree, capacity, PodSet("workers", 33, request, constraint=REQUIRED))
    assert more == NoFit("workers", RACK, needed=33, available=32, nodes=8)


def test_a_resource_no_node_offers_excludes_every_node() -> None:
    tree, capacity = cluster("r1/n1 gpu=8\nr1/n2 gpu=8")
    request = vector(capacity.axis, pods=1, **{"rdma/hca": 1})
    answer = search(tree, capacity, PodSet("workers", 1, request, constraint=REQUIRED))
    assert answer == NoFit(
        "workers", RACK, needed=1, available=0, excluded=(("insufficient rdma/hca", 2),), nodes=2
    )


@pytest.mark.parametrize("constraint", [Constraint(), REQUIRED, PREFERRED])
def test_a_resource_no_node_offers_stands_in_the_way_of_no_later_gang(
    constraint: Constraint,
) -> None:
    """Requests that are written from then on have a row of 0 which the books do not have."""
    tree, capacity = cluster(CLUSTER)
    unknown = vector(capacity.axis, pods=1, **{"example.com/fpga": 1})
    refused = search(tree, capacity, PodSet("fpgas", 1, unknown, constraint=constraint))
    assert isinstance(refused, NoFit)
    ordinary = workers(capacity, 2, gpu=4, constraint=constraint)
    assert ordinary.request[-1] == 0
    assert sum(placed(tree, search(tree, capacity, ordinary)).values()) == 2


def test_a_tree_and_a_capacity_of_different_generations_are_the_callers_bug() -> None:
    _, capacity = cluster(CLUSTER)
    newer, _ = cluster(CLUSTER, generation=2)
    with pytest.raises(ValueError, match="generation 2, capacity of generation 1"):
        search(newer, capacity, workers(capacity, 1))


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        pytest.param(
            {"constraint": Constraint(required="row")},
            "required: level row is unknown",
            id="required",
        ),
        pytest.param(
            {"constraint": Constraint(preferred="row")}, f"level row .* {RACK}", id="preferred"
        ),
        pytest.param({"slices": (Slice(2, "row"),)}, "slices: level row is unknown", id="slices"),
        pytest.param(
            {"slices": (Slice(2, RACK),), "constraint": Constraint(required=NODE_LEVEL)},
            "slices at level .*rack are wider than the level .*hostname",
            id="slices_above_the_pod_set",
        ),
        pytest.param(
            {"slices": (Slice(2, NODE_LEVEL), Slice(1, RACK))},
            "slices of 1 at level .*rack lie in slices at level .*hostname, which is not wider",
            id="inner_slices_above_outer_ones",
        ),
        pytest.param(
            {
                "slices": (Slice(3, RACK),),
                "partial_last_slice": True,
                "leader": Leader("boss", (1,)),
            },
            "partial_last_slice leaves a slice of 1 of 3 pods, which beside leader boss is not",
            id="partial_last_slice_and_leader",
        ),
        pytest.param(
            {"constraint": Constraint(required=RACK, balanced=True)},
            "balanced placement without a preferred level alone is not enforced yet",
            id="balanced_and_required",
        ),
    ],
)
def test_a_pod_set_that_cannot_be_enforced_is_refused_by_name(
    fields: dict[str, Any], names: str
) -> None:
    tree, capacity = cluster(CLUSTER)
    with pytest.raises(InvalidRequest, match=f"pod set workers.*{names}"):
        search(tree, capacity, workers(capacity, 4, **fields))


def test_needing_every_pod_and_every_member_is_what_happens_anyway() -> None:
    tree, capacity = cluster(CLUSTER)
    root = Group("root", (workers(capacity, 2, needed=2),), needed=1)
    assert isinstance(find(tree, capacity, Gang("ns/gang", root), {}), Placement)


@pytest.mark.parametrize("full", [0, 4])
def test_full_racks_do_not_decide_whether_a_preferred_node_does(full: int) -> None:
    lines = ["b1/r1/n1 gpu=2", "b1/r2/n2 gpu=1"]
    tree, capacity = cluster(
        "\n".join([*lines, *(f"b2/f{each}/f{each} gpu=1" for each in range(full))])
    )
    for slot in range(2, 2 + full):
        capacity.use(slot, vector(capacity.axis, gpu=1))
    leader = Leader("leader", vector(capacity.axis, pods=1))
    gang = Gang(
        "ns/gang",
        Group(
            "root", (workers(capacity, 2, leader=leader, constraint=Constraint(RACK, NODE_LEVEL)),)
        ),
    )
    scores = np.zeros(len(tree.nodes), dtype=np.int64)
    scores[tree.slot_of["n2"]] = 5
    answer = find(tree, capacity, gang, {}, Options(scores={"": scores}))
    assert isinstance(answer, Placement)
    assert {tree.levels[placed.level] for placed in answer.pod_sets} == {RACK}
