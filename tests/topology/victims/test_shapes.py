"""Who has to go for gangs of every shape, on clusters small enough to see."""

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
    Options,
    PodSet,
    Slice,
    Tree,
)
from topology.victims.choose import victims
from topology.victims.table import Table
from topology.victims.trial import SEARCH
from topology.victims.victim import NoVictims, Victim, Victims

IN_RACK, IN_BLOCK = Constraint(required=RACK), Constraint(required=BLOCK)


def pods(capacity: Capacity, number: int, gpu: int = 1, **fields: Any) -> PodSet:
    request = vector(capacity.axis, pods=1, gpu=gpu)
    return PodSet(**({"name": "workers", "pods": number, "request": request} | fields))


def occupants(tree: Tree, capacity: Capacity, text: str) -> list[Victim]:
    """Who may go, as lines: a key, an optional rank, node=GPUs of its pods; counts them as used.

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
        found.append(Victim(key, its, rank))
    return found


def gone(
    tree: Tree,
    capacity: Capacity,
    *members: PodSet | Group,
    who: list[Victim],
    constraint: Constraint | None = None,
) -> tuple[str, ...] | None:
    """The keys of those who have to go; None: none who may make room."""
    gang = Gang("ns/gang", Group("root", members, constraint or Constraint()))
    return keys(victims(tree, capacity, gang, {}, Table(capacity, who), {}))


def keys(answer: Victims | NoVictims) -> tuple[str, ...] | None:
    return answer.keys if isinstance(answer, Victims) else None


def test_the_rack_where_fewest_must_go_is_chosen() -> None:
    tree, capacity = cluster("""
        b1/r1/n1 gpu=8
        b1/r1/n2 gpu=8
        b1/r2/n3 gpu=8
        b1/r2/n4 gpu=8
    """)
    who = occupants(tree, capacity, "a n1=2\nb n2=2\nc n3=8\nd n4=0")
    assert gone(tree, capacity, pods(capacity, 16, constraint=IN_RACK), who=who) == ("c",)


def test_a_rack_that_looks_dearer_is_chosen_if_fewer_go_from_it() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=7\nb1/r2/n3 gpu=8")
    crowd = "\n".join(f"crowd{i} n1=1" for i in range(8))
    who = occupants(tree, capacity, f"x n3=1\ny n3=1\n{crowd}")
    assert gone(tree, capacity, pods(capacity, 8, constraint=IN_RACK), who=who) == ("crowd0",)


def test_of_three_racks_that_is_chosen_from_which_fewest_go_in_all() -> None:
    nodes = [f"b1/r{index // 4}/n{index} gpu=8" for index in range(12)]
    tree, capacity = cluster("\n".join(nodes))
    # One of the first two racks gives more GPUs for each that goes, but four have to go from it.
    four = "\n".join(f"four{index} n{index}=2" for index in range(8))
    who = occupants(tree, capacity, f"{four}\nx n8=1\ny n8=1\nz n8=1")
    assert gone(tree, capacity, pods(capacity, 32, constraint=IN_RACK), who=who) == ("x", "y", "z")


def test_many_that_are_not_in_the_way_cost_few_searches() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    idle = "\n".join(f"idle{i} n1=0" for i in range(100))
    who = occupants(tree, capacity, f"{idle}\nbusy n1=8")
    asked = Gang("ns/gang", Group("root", (pods(capacity, 1),)))
    answer = victims(tree, capacity, asked, {}, Table(capacity, who), {})
    assert keys(answer) == ("busy",)
    assert answer.visits < 30 * SEARCH


def test_those_that_are_not_in_the_way_stay() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8 cpu=64")
    who = occupants(tree, capacity, "small n1=1\nlarge n1=6\nidle n1=0")
    assert gone(tree, capacity, pods(capacity, 6), who=who) == ("large",)


def test_an_occupant_of_several_nodes_leaves_all_of_them() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8")
    who = occupants(tree, capacity, "x n1=4\ny n2=4\njob n1=4 n2=4")
    assert gone(tree, capacity, pods(capacity, 8), who=who) == ("job",)


def test_a_higher_rank_goes_only_if_lower_ones_are_not_enough() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r2/n2 gpu=8")
    who = occupants(tree, capacity, "high rank=9 n1=8\nlow1 n2=4\nlow2 n2=4")
    whole_rack = pods(capacity, 8, constraint=IN_RACK)
    assert gone(tree, capacity, whole_rack, who=who) == ("low1", "low2")
    assert gone(tree, capacity, pods(capacity, 16), who=who) == (
        "high",
        "low1",
        "low2",
    )


def test_among_equals_the_earlier_goes() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    who = occupants(tree, capacity, "first n1=4\nsecond n1=4")
    assert gone(tree, capacity, pods(capacity, 4), who=who) == ("first",)


def test_what_is_held_leaves_as_what_is_used_does() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    request = vector(capacity.axis, pods=1, gpu=8)
    capacity.hold(0, request)
    plan = Victim("plan", ((0, request),))
    assert gone(tree, capacity, pods(capacity, 1), who=[plan]) == ("plan",)


def test_nothing_is_said_where_those_that_may_go_are_not_enough() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    who = occupants(tree, capacity, "may n1=4\nstays n1=4")
    assert gone(tree, capacity, pods(capacity, 8), who=who[:1]) is None


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
    assert gone(tree, capacity, *replicas, who=who) == ("b", "d")


def test_slices_clear_nodes_of_their_own() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8\nb1/r1/n3 gpu=8")
    who = occupants(tree, capacity, "a1 n1=2\na2 n1=2\nb n2=4\nc n3=4")
    sliced = pods(capacity, 16, constraint=IN_RACK, slices=(Slice(8, NODE_LEVEL),))
    assert gone(tree, capacity, sliced, who=who) == ("b", "c")


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
    assert gone(tree, capacity, workers, beside, constraint=around, who=who) == (
        "g",
        "h",
        "i",
        "j",
        "k",
    )


def test_where_a_level_is_only_preferred_they_go_from_several_domains_if_that_is_fewer() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r1/n2 gpu=4\nb2/r2/n3 gpu=4\nb2/r2/n4 gpu=4")
    who = occupants(tree, capacity, "a n1=4\nb n2=2\nc n2=2\nd n3=4\ne n4=2\nf n4=2")
    asked = pods(capacity, 2, gpu=4, constraint=Constraint(preferred=RACK))
    assert gone(tree, capacity, asked, who=who) == ("a", "d")


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
    assert keys(victims(tree, capacity, gang, {}, Table(capacity, who), {}, at_once)) == (
        "idle",
        "large",
    )


def test_occupants_that_take_more_than_is_taken_are_refused_by_node_and_resource() -> None:
    _, capacity = cluster("b1/r1/n1 gpu=8")
    ghost = Victim("ghost", ((0, vector(capacity.axis, pods=1, gpu=8)),))
    with pytest.raises(ValueError, match="node n1 has 1 less of pods taken"):
        Table(capacity, [ghost])


@pytest.mark.parametrize(
    ("row", "amount"),
    [
        pytest.param(0, -1, id="less_than_nothing"),
        pytest.param(9, 1, id="a_resource_that_the_books_do_not_have"),
    ],
)
def test_an_occupant_of_what_no_node_has_taken_is_refused_by_its_row(row: int, amount: int) -> None:
    _, capacity = cluster("b1/r1/n1 gpu=8")
    odd = Victim("odd", ((0, tuple(amount if each == row else 0 for each in range(10))),))
    with pytest.raises(ValueError, match=f"occupant odd: request row {row} is {amount}, and no"):
        Table(capacity, [odd])


def test_a_slot_that_is_not_there_is_refused_by_name_and_number() -> None:
    _, capacity = cluster("b1/r1/n1 gpu=8")
    with pytest.raises(ValueError, match="occupant lost: slot 1 is not one of 1 nodes"):
        Table(capacity, [Victim("lost", ((1, (1,)),))])
