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
    Occupant,
    Options,
    PodSet,
    Relaxations,
    Slice,
    Tree,
    WiderLevel,
    WithoutPods,
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


def occupants(tree: Tree, capacity: Capacity, text: str) -> list[Occupant]:
    """Occupants as lines: a key, an optional rank, and node=GPUs of its pods; counts them as used.

    job-a rank=10 n1=4 n2=4
    """
    found = []
    for key, *words in (line.split() for line in text.strip().splitlines()):
        fields = [word.split("=") for word in words]
        rank = next((int(number) for name, number in fields if name == "rank"), 0)
        its = tuple(
            (tree.slot_of[name], vector(capacity.axis, pods=1, gpu=gpu))
            for name, gpu in fields
            if name != "rank"
        )
        for slot, request in its:
            capacity.use(slot, request)
        found.append(Occupant(key, its, rank))
    return found


def without(answer: Relaxations) -> tuple[str, ...] | None:
    """The keys of those who would have to go."""
    one = next((one for one in answer.found if isinstance(one, WithoutPods)), None)
    return None if one is None else one.keys


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


# Occupants that leave


def test_the_rack_where_fewest_must_go_is_chosen() -> None:
    tree, capacity = cluster("""
        b1/r1/n1 gpu=8
        b1/r1/n2 gpu=8
        b1/r2/n3 gpu=8
        b1/r2/n4 gpu=8
    """)
    who = occupants(tree, capacity, "a n1=2\nb n2=2\nc n3=8\nd n4=0")
    answer = relaxed(tree, capacity, pods(capacity, 16, constraint=IN_RACK), occupants=who)
    assert without(answer) == ("c",)


def test_a_rack_that_looks_dearer_is_chosen_if_fewer_go_from_it() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=7\nb1/r2/n3 gpu=8")
    crowd = "\n".join(f"crowd{i} n1=1" for i in range(8))
    who = occupants(tree, capacity, f"x n3=1\ny n3=1\n{crowd}")
    answer = relaxed(tree, capacity, pods(capacity, 8, constraint=IN_RACK), occupants=who)
    assert without(answer) == ("crowd0",)


def test_of_three_racks_that_is_chosen_from_which_fewest_go_in_all() -> None:
    nodes = [f"b1/r{index // 4}/n{index} gpu=8" for index in range(12)]
    tree, capacity = cluster("\n".join(nodes))
    # One of the first two racks gives more GPUs for each that goes, but four have to go from it.
    four = "\n".join(f"four{index} n{index}=2" for index in range(8))
    who = occupants(tree, capacity, f"{four}\nx n8=1\ny n8=1\nz n8=1")
    answer = relaxed(tree, capacity, pods(capacity, 32, constraint=IN_RACK), occupants=who)
    assert without(answer) == ("x", "y", "z")


def test_many_that_are_not_in_the_way_cost_few_searches() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    idle = "\n".join(f"idle{i} n1=0" for i in range(100))
    who = occupants(tree, capacity, f"{idle}\nbusy n1=8")
    answer = relaxed(tree, capacity, pods(capacity, 1), occupants=who)
    assert without(answer) == ("busy",)
    assert answer.searches < 30


def test_those_that_are_not_in_the_way_stay() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8 cpu=64")
    who = occupants(tree, capacity, "small n1=1\nlarge n1=6\nidle n1=0")
    answer = relaxed(tree, capacity, pods(capacity, 6), occupants=who)
    assert without(answer) == ("large",)


def test_an_occupant_of_several_nodes_leaves_all_of_them() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8")
    who = occupants(tree, capacity, "x n1=4\ny n2=4\njob n1=4 n2=4")
    answer = relaxed(tree, capacity, pods(capacity, 8), occupants=who)
    assert without(answer) == ("job",)


def test_a_higher_rank_goes_only_if_lower_ones_are_not_enough() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r2/n2 gpu=8")
    who = occupants(tree, capacity, "high rank=9 n1=8\nlow1 n2=4\nlow2 n2=4")
    whole_rack = pods(capacity, 8, constraint=IN_RACK)
    assert without(relaxed(tree, capacity, whole_rack, occupants=who)) == ("low1", "low2")
    assert without(relaxed(tree, capacity, pods(capacity, 16), occupants=who)) == (
        "high",
        "low1",
        "low2",
    )


def test_among_equals_the_earlier_goes() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    who = occupants(tree, capacity, "first n1=4\nsecond n1=4")
    assert without(relaxed(tree, capacity, pods(capacity, 4), occupants=who)) == ("first",)


def test_what_is_held_leaves_as_what_is_used_does() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    request = vector(capacity.axis, pods=1, gpu=8)
    capacity.hold(0, request)
    plan = Occupant("plan", ((0, request),))
    assert without(relaxed(tree, capacity, pods(capacity, 1), occupants=[plan])) == ("plan",)


def test_nothing_is_said_where_those_that_may_go_are_not_enough() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    who = occupants(tree, capacity, "may n1=4\nstays n1=4")
    answer = relaxed(tree, capacity, pods(capacity, 8), occupants=who[:1])
    assert without(answer) is None
    assert not of_kind(Never, answer)


def test_groups_in_racks_of_their_own_clear_as_few_racks_as_they_need() -> None:
    tree, capacity = cluster("""
        b1/r1/n1 gpu=8
        b1/r2/n2 gpu=8
        b1/r3/n3 gpu=8
        b1/r4/n4 gpu=8
    """)
    who = occupants(tree, capacity, "a1 n1=4\na2 n1=4\nb n2=8\nc1 n3=4\nc2 n3=4\nd n4=8")
    replicas = (
        pods(capacity, 8, name="x", constraint=IN_RACK),
        pods(capacity, 8, name="y", constraint=IN_RACK),
    )
    answer = relaxed(tree, capacity, *replicas, occupants=who)
    assert without(answer) == ("b", "d")


def test_slices_clear_nodes_of_their_own() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8\nb1/r1/n3 gpu=8")
    who = occupants(tree, capacity, "a1 n1=2\na2 n1=2\nb n2=4\nc n3=4")
    sliced = pods(capacity, 16, constraint=IN_RACK, slices=(Slice(8, NODE_LEVEL),))
    assert without(relaxed(tree, capacity, sliced, occupants=who)) == ("b", "c")


@pytest.mark.parametrize(
    ("in_a_rack", "around"),
    [
        pytest.param({"constraint": IN_RACK}, Constraint(), id="a_pod_set"),
        pytest.param({"slices": (Slice(2, RACK),)}, Constraint(), id="slices"),
        pytest.param({"constraint": IN_RACK}, IN_BLOCK, id="a_pod_set_in_a_block"),
    ],
)
def test_the_rack_of_a_part_is_the_one_from_which_fewest_go_in_all(
    in_a_rack: dict[str, Any], around: Constraint
) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r1/n2 gpu=4\nb1/r2/n3 gpu=4\nb1/r2/n4 gpu=4")
    # Four have to go from n4, and three each from n1 and n2; but six of r1, and five of r2.
    who = occupants(
        tree,
        capacity,
        """
        a n1=1
        b n1=1
        c n1=2
        d n2=1
        e n2=1
        f n2=2
        g n3=4
        h n4=1
        i n4=1
        j n4=1
        k n4=1
        """,
    )
    workers = pods(capacity, 2, gpu=4, **in_a_rack)
    beside = pods(capacity, 1, gpu=0, name="coordinator")
    answer = relaxed(tree, capacity, workers, beside, constraint=around, occupants=who)
    assert without(answer) == ("g", "h", "i", "j", "k")


def test_where_a_level_is_only_preferred_they_go_from_several_domains_if_that_is_fewer() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r1/n2 gpu=4\nb2/r2/n3 gpu=4\nb2/r2/n4 gpu=4")
    who = occupants(tree, capacity, "a n1=4\nb n2=2\nc n2=2\nd n3=4\ne n4=2\nf n4=2")
    asked = pods(capacity, 2, gpu=4, constraint=Constraint(preferred=RACK))
    assert without(relaxed(tree, capacity, asked, occupants=who)) == ("a", "d")


def test_all_go_where_the_search_finds_no_place_while_one_that_is_not_in_the_way_stays() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=6\nb1/r2/n2 gpu=3")
    who = occupants(tree, capacity, "idle n1=1\nlarge n1=3")
    # Beside the idle one n1 takes as many of the first pod set as n2 does, and comes first.
    members = (
        pods(capacity, 1, gpu=3, name="first", constraint=IN_RACK),
        pods(capacity, 1, gpu=4, name="second", constraint=IN_RACK),
    )
    gang = Gang("ns/gang", Group("root", members))
    at_once = Options(tries=0)
    answer = relaxations(tree, capacity, gang, {}, at_once, Leeway(occupants=who))
    assert without(answer) == ("idle", "large")


def test_occupants_that_take_more_than_is_taken_are_refused_by_node_and_resource() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    ghost = Occupant("ghost", ((0, vector(capacity.axis, pods=1, gpu=8)),))
    with pytest.raises(ValueError, match="node n1 has 1 less of pods taken"):
        relaxed(tree, capacity, pods(capacity, 9), occupants=[ghost])


@pytest.mark.parametrize(
    ("row", "amount"),
    [
        pytest.param(0, -1, id="less_than_nothing"),
        pytest.param(9, 1, id="a_resource_that_the_books_do_not_have"),
    ],
)
def test_an_occupant_of_what_no_node_has_taken_is_refused_by_its_row(row: int, amount: int) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    odd = Occupant("odd", ((0, tuple(amount if each == row else 0 for each in range(10))),))
    with pytest.raises(ValueError, match=f"occupant odd: request row {row} is {amount}, and no"):
        relaxed(tree, capacity, pods(capacity, 9), occupants=[odd])


def test_a_slot_that_is_not_there_is_refused_by_name_and_number() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    with pytest.raises(ValueError, match="occupant lost: slot 1 is not one of 1 nodes"):
        relaxed(tree, capacity, pods(capacity, 9), occupants=[Occupant("lost", ((1, (1,)),))])
    with pytest.raises(ValueError, match="away: slot -1 is not one of 1 nodes"):
        relaxed(tree, capacity, pods(capacity, 9), away={-1: "gone"})


# Never


def test_what_does_not_fit_the_empty_cluster_never_fits_and_nobody_need_go() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8 closed")
    who = occupants(tree, capacity, "a n1=8")
    answer = relaxed(tree, capacity, pods(capacity, 17), occupants=who)
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


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 8, 13])
def test_the_budget_is_kept_and_what_it_ends_is_said(budget: int) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=16\nb1/r2/n2 gpu=16\nb2/r3/n3 gpu=16 closed")
    text = "\n".join(f"o{i} n{1 + i % 2}=1" for i in range(30))
    who = occupants(tree, capacity, text)
    asked = pods(capacity, 14, constraint=IN_RACK)
    answer = relaxed(tree, capacity, asked, occupants=who, budget=budget)
    assert answer.searches <= budget
    assert answer.is_cut_short
    enough = relaxed(tree, capacity, asked, occupants=who)
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
            WithoutPods(("ns/a", "ns/b")), "would fit without ns/a, ns/b", id="without_pods"
        ),
        pytest.param(
            Never(NoFit("w", RACK, 20, 16)),
            f"never fits, even if all nodes are open and empty: 16 of 20 pods fit in one {RACK}",
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
        WithoutPods(("k" * 400,) * 9),
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
