"""What would fit instead, on clusters small enough to see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.text import BLOCK, RACK, cluster, vector
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    FewerMembers,
    FewerPods,
    Gang,
    Group,
    InvalidRequest,
    Leader,
    Leeway,
    Never,
    NodesBack,
    NoFit,
    Options,
    PodSet,
    Relaxations,
    Slice,
    Tree,
    WiderLevel,
    relaxations,
)
from topology.fit.fit import NOT_OPEN
from topology.model.answer import SENTENCE_MAX, Relaxation

IN_RACK, IN_BLOCK = Constraint(required=RACK), Constraint(required=BLOCK)
TWO_RACKS = """
    b1/r1/n1 gpu=8
    b1/r1/n2 gpu=8
    b1/r2/n3 gpu=8
    b2/r3/n4 gpu=8
"""


def pods(capacity: Capacity, number: int, gpu: int = 1, **fields: Any) -> PodSet:
    request = vector(capacity.axis, pods=1, gpu=gpu)
    return PodSet(**({"name": "workers", "pods": number, "request": request} | fields))


def relaxed(
    tree: Tree,
    capacity: Capacity,
    *members: PodSet | Group,
    constraint: Constraint | None = None,
    masks: Any = None,
    **leeway: Any,
) -> Relaxations:
    gang = Gang("ns/gang", Group("root", members, constraint or Constraint()))
    return relaxations(tree, capacity, gang, masks or {}, leeway=Leeway(**leeway))


def of_kind(kind: type[Any], answer: Relaxations) -> list[Relaxation]:
    return [one for one in answer.found if isinstance(one, kind)]


# A gang that fits


def test_a_gang_that_fits_needs_no_relaxation_and_one_search() -> None:
    tree, capacity = cluster(TWO_RACKS)
    answer = relaxed(tree, capacity, pods(capacity, 16, constraint=IN_RACK))
    assert answer == Relaxations((), searches=1)


def test_a_level_nobody_knows_is_refused_as_by_the_search() -> None:
    tree, capacity = cluster(TWO_RACKS)
    unknown = Constraint(required="building")
    with pytest.raises(InvalidRequest, match="level building is unknown"):
        relaxed(tree, capacity, pods(capacity, 1, constraint=unknown))


# A wider level


def test_the_next_wider_level_is_told_where_that_is_enough() -> None:
    tree, capacity = cluster(TWO_RACKS)
    answer = relaxed(tree, capacity, pods(capacity, 20, constraint=IN_RACK))
    assert of_kind(WiderLevel, answer) == [WiderLevel(("workers",), BLOCK)]


def test_levels_that_are_not_wide_enough_are_passed_over() -> None:
    tree, capacity = cluster(TWO_RACKS)
    on_a_node = Constraint(required=NODE_LEVEL)
    answer = relaxed(tree, capacity, pods(capacity, 20, constraint=on_a_node))
    assert of_kind(WiderLevel, answer) == [WiderLevel(("workers",), BLOCK)]


def test_where_no_one_domain_is_wide_enough_the_level_is_only_preferred() -> None:
    tree, capacity = cluster(TWO_RACKS)
    answer = relaxed(tree, capacity, pods(capacity, 30, constraint=IN_RACK))
    assert of_kind(WiderLevel, answer) == [WiderLevel(("workers",), "")]


def test_what_is_unconstrained_has_no_wider_level() -> None:
    tree, capacity = cluster(TWO_RACKS)
    for constraint in (Constraint(), Constraint(preferred=RACK)):
        answer = relaxed(tree, capacity, pods(capacity, 33, constraint=constraint))
        assert of_kind(WiderLevel, answer) == []


def test_only_those_that_are_in_the_way_are_widened() -> None:
    tree, capacity = cluster(TWO_RACKS)
    small = pods(capacity, 8, name="small", constraint=IN_RACK)
    large = pods(capacity, 20, name="large", constraint=IN_RACK)
    answer = relaxed(tree, capacity, small, large)
    assert of_kind(WiderLevel, answer) == [WiderLevel(("large",), BLOCK)]


def test_a_group_is_widened_and_what_is_inside_it_stays_as_narrow() -> None:
    tree, capacity = cluster(TWO_RACKS)
    on_a_node = Constraint(required=NODE_LEVEL)
    members = tuple(pods(capacity, 8, name=f"m{i}", constraint=on_a_node) for i in range(3))
    answer = relaxed(tree, capacity, Group("replica", members, IN_RACK))
    assert of_kind(WiderLevel, answer) == [WiderLevel(("replica",), BLOCK)]


def test_slices_are_widened_up_to_the_level_they_fit_in() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=3\nb1/r1/n2 gpu=3\nb1/r2/n3 gpu=3\nb1/r2/n4 gpu=3")
    on_nodes = pods(capacity, 8, constraint=IN_BLOCK, slices=(Slice(4, NODE_LEVEL),))
    answer = relaxed(tree, capacity, on_nodes)
    assert of_kind(WiderLevel, answer) == [WiderLevel(("workers",), RACK, of_slices=True)]


def test_slices_that_fit_no_domain_are_none_at_last() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=3\nb2/r2/n2 gpu=3\nb3/r3/n3 gpu=2")
    on_nodes = pods(capacity, 8, slices=(Slice(4, NODE_LEVEL),))
    answer = relaxed(tree, capacity, on_nodes)
    assert of_kind(WiderLevel, answer) == [WiderLevel(("workers",), "", of_slices=True)]


def test_layers_of_slices_that_would_share_a_level_become_one() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=3\nb1/r1/n2 gpu=1")
    layers = (Slice(4, RACK), Slice(2, NODE_LEVEL))
    answer = relaxed(tree, capacity, pods(capacity, 4, constraint=IN_BLOCK, slices=layers))
    assert of_kind(WiderLevel, answer) == [WiderLevel(("workers",), RACK, of_slices=True)]


def test_the_coarsest_of_the_layers_that_share_a_level_is_kept() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=3\nb1/r1/n2 gpu=3\nb2/r2/n3 gpu=1\nb2/r2/n4 gpu=1")
    layers = (Slice(4, RACK), Slice(2, NODE_LEVEL))
    answer = relaxed(tree, capacity, pods(capacity, 8, slices=layers))
    assert of_kind(WiderLevel, answer) == [WiderLevel(("workers",), "", of_slices=True)]


def test_wider_layers_stay_where_narrower_slices_are_widened() -> None:
    tree, capacity = cluster(
        "b1/r1/n1 gpu=1\nb1/r1/n2 gpu=1\nb1/r2/n3 gpu=1\nb1/r2/n4 gpu=1\nb2/r3/n5 gpu=1"
    )
    layers = (Slice(4, BLOCK), Slice(2, NODE_LEVEL))
    answer = relaxed(tree, capacity, pods(capacity, 4, slices=layers))
    assert of_kind(WiderLevel, answer) == [WiderLevel(("workers",), RACK, of_slices=True)]


# Fewer


def test_as_many_pods_are_told_as_fit_at_the_level_asked_for() -> None:
    tree, capacity = cluster(TWO_RACKS)
    answer = relaxed(tree, capacity, pods(capacity, 20, constraint=IN_RACK))
    assert of_kind(FewerPods, answer) == [FewerPods("workers", 16, 20)]


def test_pods_in_slices_are_fewer_by_whole_slices() -> None:
    tree, capacity = cluster(TWO_RACKS)
    sliced = pods(capacity, 18, constraint=IN_RACK, slices=(Slice(3, NODE_LEVEL),))
    answer = relaxed(tree, capacity, sliced)
    assert of_kind(FewerPods, answer) == [FewerPods("workers", 12, 18)]


def test_fewer_pods_than_are_needed_are_told_of_a_pod_set_that_may_lack_some() -> None:
    tree, capacity = cluster(TWO_RACKS)
    answer = relaxed(tree, capacity, pods(capacity, 30, constraint=IN_RACK, needed=20))
    assert of_kind(FewerPods, answer) == [FewerPods("workers", 16, 20)]


def test_pods_that_are_needed_are_rounded_up_to_whole_slices() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r1/n2 gpu=2")
    sliced = pods(capacity, 12, slices=(Slice(4, NODE_LEVEL),), needed=5)
    answer = relaxed(tree, capacity, sliced)
    assert of_kind(FewerPods, answer) == [FewerPods("workers", 4, 5)]


def test_each_pod_set_is_told_how_many_fit_with_all_others_as_asked() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    answer = relaxed(
        tree, capacity, pods(capacity, 6, name="a"), pods(capacity, 2, gpu=2, name="b")
    )
    assert of_kind(FewerPods, answer) == [FewerPods("a", 4, 6), FewerPods("b", 1, 2)]


def test_the_leader_stays_where_workers_are_fewer() -> None:
    tree, capacity = cluster(TWO_RACKS)
    leader = Leader("leader", vector(capacity.axis, pods=1, gpu=3))
    answer = relaxed(tree, capacity, pods(capacity, 16, constraint=IN_RACK, leader=leader))
    assert of_kind(FewerPods, answer) == [FewerPods("workers", 13, 16)]


def test_fewer_groups_are_told_of_a_group_of_groups() -> None:
    tree, capacity = cluster(TWO_RACKS)
    replicas = tuple(
        Group(f"replica{i}", (pods(capacity, 8, name=f"w{i}"),), Constraint(required=NODE_LEVEL))
        for i in range(5)
    )
    answer = relaxed(tree, capacity, *replicas)
    assert of_kind(FewerMembers, answer) == [FewerMembers("root", 4, 5)]


# Nodes that return


def test_the_rack_that_lacks_fewest_nodes_is_the_one_they_return_to() -> None:
    tree, capacity = cluster("""
        b1/r1/n1 gpu=8 closed
        b1/r1/n2 gpu=8 closed
        b1/r2/n3 gpu=8 closed
        b1/r2/n4 gpu=8
    """)
    answer = relaxed(tree, capacity, pods(capacity, 16, constraint=IN_RACK))
    assert of_kind(NodesBack, answer) == [NodesBack(((2, "n3", NOT_OPEN),))]


def test_only_nodes_that_are_named_return_and_with_their_reason() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8 closed\nb1/r1/n2 gpu=8 closed")
    answer = relaxed(tree, capacity, pods(capacity, 8), away={1: "cordoned"})
    assert of_kind(NodesBack, answer) == [NodesBack(((1, "n2", "cordoned"),))]
    both = relaxed(tree, capacity, pods(capacity, 9), away={1: "cordoned"})
    assert of_kind(NodesBack, both) == []


def test_an_open_node_that_the_masks_close_may_return_too() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8")
    now, back = np.array([True, False]), np.array([False, True])
    answer = relaxed(
        tree,
        capacity,
        pods(capacity, 16, shape="s"),
        masks={"s": now},
        away={1: "refused"},
        # What these say of nodes that are not away is not looked at.
        masks_back={"s": back},
    )
    assert of_kind(NodesBack, answer) == [NodesBack(((1, "n2", "refused"),))]


def test_a_node_returns_with_what_still_runs_on_it() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=5/8 closed\nb1/r1/n2 gpu=8 closed\nb1/r1/n3 gpu=1")
    answer = relaxed(tree, capacity, pods(capacity, 6))
    assert of_kind(NodesBack, answer) == [NodesBack(((1, "n2", NOT_OPEN),))]


def test_a_slot_that_is_not_there_is_refused_by_name_and_number() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    with pytest.raises(ValueError, match="away: slot -1 is not one of 1 nodes"):
        relaxed(tree, capacity, pods(capacity, 9), away={-1: "gone"})


# Never


def test_what_does_not_fit_the_empty_cluster_never_fits() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8 closed")
    capacity.use(0, vector(capacity.axis, pods=1, gpu=8))
    answer = relaxed(tree, capacity, pods(capacity, 17))
    assert answer.found == (Never(NoFit("workers", "", needed=17, available=16, nodes=2)),)


def test_what_never_fits_may_still_do_so_in_a_wider_level_or_with_fewer_pods() -> None:
    tree, capacity = cluster(TWO_RACKS)
    answer = relaxed(tree, capacity, pods(capacity, 20, constraint=IN_RACK))
    assert list(map(type, answer.found)) == [WiderLevel, FewerPods, Never]


def test_masks_hold_also_for_empty_nodes() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8")
    answer = relaxed(
        tree,
        capacity,
        pods(capacity, 9, shape="s"),
        masks={"s": np.array([True, False])},
    )
    assert [one.why.available for one in answer.found if isinstance(one, Never)] == [8]


def test_without_nodes_nothing_ever_fits() -> None:
    tree, capacity = cluster("")
    answer = relaxed(tree, capacity, PodSet("workers", 1, (1,), constraint=IN_RACK))
    assert [type(one) for one in answer.found] == [Never]


# The budget


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 8])
def test_the_budget_is_kept_and_what_it_ends_is_said(budget: int) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=16\nb1/r2/n2 gpu=16\nb2/r3/n3 gpu=16 closed")
    for slot in range(2):
        capacity.use(slot, vector(capacity.axis, pods=15, gpu=15))
    asked = pods(capacity, 14, constraint=IN_RACK)
    answer = relaxed(tree, capacity, asked, budget=budget)
    assert answer.searches <= budget
    assert answer.is_cut_short
    enough = relaxed(tree, capacity, asked)
    assert not enough.is_cut_short
    assert enough.searches <= 200


def test_a_budget_without_a_search_is_refused() -> None:
    with pytest.raises(ValueError, match="budget 0 is less than one search"):
        Leeway(budget=0)


# What is said


@pytest.mark.parametrize(
    ("relaxation", "sentence"),
    [
        pytest.param(
            WiderLevel(("workers",), BLOCK),
            f"would fit with workers in one {BLOCK}",
            id="wider_level",
        ),
        pytest.param(
            WiderLevel(("a", "b", "c", "d", "e"), ""),
            "would fit with a, b, c and 2 more spread over several domains",
            id="no_level",
        ),
        pytest.param(
            WiderLevel(("workers",), RACK, of_slices=True),
            f"would fit with each slice of workers in one {RACK}",
            id="wider_slices",
        ),
        pytest.param(
            WiderLevel(("workers",), "", of_slices=True),
            "would fit with workers not in slices",
            id="no_slices",
        ),
        pytest.param(
            FewerPods("workers", 12, 16, is_cut_short=True),
            "would fit with 12 of 16 pods of workers, not everything was tried",
            id="fewer_pods",
        ),
        pytest.param(
            FewerMembers("root", 3, 4), "would fit with 3 of 4 groups of root", id="fewer_groups"
        ),
        pytest.param(
            NodesBack(((4, "n4", "cordoned"),)),
            "would fit with nodes back: n4 (cordoned)",
            id="nodes_back",
        ),
        pytest.param(
            Never(NoFit("w", RACK, 20, 16)),
            "never fits as it is, even if all nodes are open and empty:"
            f" 16 of 20 pods fit in one {RACK}",
            id="never",
        ),
        pytest.param(
            Never(NoFit("w", "", 20, 16, is_proven=False)),
            "no place was found, even if all nodes are open and empty: 16 of 20 pods fit",
            id="not_proven",
        ),
    ],
)
def test_a_relaxation_is_said_in_one_sentence(relaxation: Relaxation, sentence: str) -> None:
    assert str(relaxation) == sentence


@pytest.mark.parametrize(
    "relaxation",
    [
        WiderLevel(("n" * 400,) * 9, "l" * 400, is_cut_short=True),
        FewerPods("n" * 400, 1, 2),
        FewerMembers("n" * 400, 1, 2),
        NodesBack(((1, "n" * 400, "r" * 400),) * 9, is_cut_short=True),
        Never(NoFit("w", "l" * 400, 2, 1, layers=(("l" * 400, 1, 2),) * 9)),
    ],
)
def test_no_sentence_is_longer_than_the_limit(relaxation: Relaxation) -> None:
    assert 0 < len(str(relaxation)) <= SENTENCE_MAX


def test_the_options_are_those_of_every_search() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8 cpu=4\nb1/r1/n2 gpu=0 cpu=8")
    # The first takes the tighter node, which is the only one for the second.
    first = PodSet("first", 1, vector(capacity.axis, pods=1, cpu=4))
    second = PodSet("second", 1, vector(capacity.axis, pods=1, gpu=8, cpu=1))
    gang = Gang("ns/gang", Group("root", (first, second)))
    assert relaxations(tree, capacity, gang, {}, Options(tries=9)) == Relaxations((), searches=1)
    [never] = relaxations(tree, capacity, gang, {}, Options(tries=0)).found
    assert isinstance(never, Never)
    assert not never.why.is_proven
