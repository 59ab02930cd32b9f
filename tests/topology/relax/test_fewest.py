"""Which few nodes that are away make a gang fit, and in which order they are tried."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from tests.text import BLOCK, RACK, cluster, vector
from topology import NODE_LEVEL, Capacity, Constraint, Gang, Group, Options, PodSet, Slice, Tree
from topology.model.changed.capacity import Changes, returning
from topology.nested.parts import root_of
from topology.relax.feasibility import Feasibility
from topology.relax.fewest import DOMAINS, _Outlook, _shared_level, fewest

ANYWHERE = Constraint()
IN_RACK, IN_BLOCK = Constraint(required=RACK), Constraint(required=BLOCK)
PREFERS_RACK = Constraint(preferred=RACK)


@dataclass(frozen=True)
class Question:
    """A gang, and the nodes that are closed: each may return."""

    tree: Tree
    capacity: Capacity
    gang: Gang
    away: Sequence[int]

    @property
    def changes(self) -> Changes:
        return returning(self.capacity, self.away, {}, None)

    def feasibility(self, searches: int = 1_000) -> Feasibility:
        return Feasibility(self.tree, self.capacity, self.gang, {}, Options(), searches)

    def names(self, ones: Sequence[int]) -> str:
        return " ".join(self.tree.nodes[self.away[one]] for one in ones)

    def fewest(self, searches: int = 1_000) -> str | None:
        found = fewest(self.feasibility(searches), self.changes)
        return None if found is None else self.names(found)

    def outlook(self) -> _Outlook:
        return _Outlook(self.feasibility(), self.changes, list(range(len(self.away))))

    def ordered(self) -> str:
        return self.names(self.outlook().ordered)

    def domains(self) -> list[str]:
        return [self.names(ones) for ones in self.outlook().domains()]


def question(text: str, *members: str | Group, constraint: Constraint = IN_RACK) -> Question:
    """`members`: how many pods, what each requests, and the size of slices that need one rack."""
    tree, capacity = cluster(text)
    gang = Gang(
        "ns/gang",
        Group("root", tuple(_member(capacity, member) for member in members), constraint),
    )
    return Question(tree, capacity, gang, np.flatnonzero(~capacity.is_open).tolist())


def _member(capacity: Capacity, member: str | Group) -> PodSet | Group:
    if isinstance(member, Group):
        return member
    pods, *words = member.split()
    amounts = dict(word.split("=") for word in words)
    slices = (Slice(int(amounts.pop("slice")), RACK),) if "slice" in amounts else ()
    request = vector(capacity.axis, pods=1, **amounts)
    return PodSet(member, int(pods), request, slices=slices)


RACKS = """
    b1/r1/n1 gpu=8 closed
    b1/r1/n2 gpu=8 closed
    b1/r2/n3 gpu=8 closed
    b1/r2/n4 gpu=8
    b2/r3/n5 gpu=4 closed
    b2/r3/n6 gpu=4 closed
"""


@pytest.mark.parametrize(
    ("members", "constraint", "found"),
    [
        pytest.param(["16 gpu=1"], IN_RACK, "n3", id="the_rack_that_lacks_fewest"),
        pytest.param(["17 gpu=1"], IN_RACK, None, id="none_are_enough"),
        pytest.param(["9 gpu=1"], ANYWHERE, "n1", id="the_first_of_those_alike"),
        pytest.param(["2 gpu=8"], IN_BLOCK, "n1", id="anywhere_in_a_block"),
        pytest.param(["3 gpu=4", "1 gpu=8"], IN_BLOCK, "n1 n2", id="of_two_kinds"),
        pytest.param(["32 gpu=1"], IN_BLOCK, "n1 n2 n3", id="all_of_a_block"),
        pytest.param(["36 gpu=1"], ANYWHERE, "n1 n2 n3 n5", id="large_ones_first"),
        pytest.param(["32 gpu=1 slice=16"], ANYWHERE, "n1 n2 n3", id="in_slices"),
    ],
)
def test_a_few_nodes_that_are_enough(
    members: list[str], constraint: Constraint, found: str | None
) -> None:
    assert question(RACKS, *members, constraint=constraint).fewest() == found


def test_without_changes_or_searches_there_are_none() -> None:
    asked = question(RACKS, "16 gpu=1")
    assert fewest(asked.feasibility(), returning(asked.capacity, (), {}, None)) is None
    assert asked.fewest(searches=0) is None
    open_ones = question(RACKS.replace(" closed", ""), "40 gpu=1", constraint=ANYWHERE)
    assert open_ones.fewest() is None


@pytest.mark.parametrize(
    ("members", "constraint", "domains"),
    [
        pytest.param(["16 gpu=1"], IN_RACK, ["n3", "n1 n2"], id="fewest_first_none_too_small"),
        pytest.param(["8 gpu=1"], IN_RACK, ["n3", "n1 n2", "n5 n6"], id="a_roomy_one_first"),
        pytest.param(["9 gpu=1"], IN_RACK, ["n3", "n1 n2"], id="one_node_more"),
        pytest.param(["9 gpu=1"], IN_BLOCK, ["n1 n2 n3"], id="of_a_wider_level"),
        pytest.param(["9 gpu=1"], ANYWHERE, [], id="no_level"),
        pytest.param(["9 gpu=1"], PREFERS_RACK, [], id="a_level_that_is_preferred"),
        pytest.param(["4 gpu=1", "4 gpu=2"], IN_RACK, ["n3", "n1 n2", "n5 n6"], id="kinds"),
        pytest.param(["2 gpu=1", "1 gpu=8"], IN_RACK, ["n3", "n1 n2"], id="a_kind_too_large"),
        pytest.param(["40 gpu=1"], IN_RACK, [], id="none"),
        pytest.param(["4 gpu=1"], ANYWHERE, [], id="no_level_though_a_node_takes_all"),
    ],
)
def test_domains_worth_a_try_are_those_that_may_take_all_the_cheapest_first(
    members: list[str], constraint: Constraint, domains: list[str]
) -> None:
    assert question(RACKS, *members, constraint=constraint).domains() == domains


def test_no_more_domains_are_tried_than_a_number() -> None:
    nodes = "\n".join(f"b1/r{at:02}/n{at:02} gpu=8 closed" for at in range(DOMAINS + 3))
    asked = question(nodes, "8 gpu=1")
    assert asked.domains() == [f"n{at:02}" for at in range(DOMAINS)]


def test_a_domain_with_room_costs_nothing_and_comes_first() -> None:
    nodes = "b1/r1/n1 gpu=8 closed\nb1/r2/n2 gpu=8\nb1/r2/n3 gpu=8 closed"
    assert question(nodes, "8 gpu=1").domains() == ["n3", "n1"]


def test_a_domain_that_lacks_one_pod_has_no_room() -> None:
    nodes = "b1/r1/n1 gpu=7\nb1/r1/n2 gpu=8 closed\nb1/r2/n3 gpu=8\nb1/r2/n4 gpu=8 closed"
    assert question(nodes, "8 gpu=1").domains() == ["n4", "n2"]


def test_what_open_nodes_take_is_counted_once() -> None:
    nodes = "b1/r1/n1 gpu=4\nb1/r1/n2 gpu=4 closed\nb1/r1/n3 gpu=4 closed\nb1/r2/n4 gpu=12 closed"
    assert question(nodes, "12 gpu=1").domains() == ["n4", "n2 n3"]


def test_of_domains_that_need_as_many_the_first_is_taken() -> None:
    nodes = "b1/r1/n1 gpu=8 closed\nb1/r2/n2 gpu=8 closed"
    assert question(nodes, "8 gpu=1").fewest() == "n1"


def test_a_domain_that_looks_no_better_and_needs_fewer_is_taken() -> None:
    """In r1 either kind would fit with one node back, but not both."""
    nodes = "b1/r1/n1 gpu=4 closed\nb1/r1/n2 gpu=4 closed\nb1/r2/n3 gpu=8 closed"
    asked = question(nodes, "4 gpu=1", "1 gpu=4")
    assert asked.domains() == ["n1 n2", "n3"]
    assert asked.fewest() == "n3"


@pytest.mark.parametrize(
    ("first", "found", "searches"),
    [
        # All together, the first that are enough, those used alone, each of these left out.
        pytest.param("n0 gpu=4 closed", "n0 n6", 1 + 4 + 1 + 2, id="two_of_them"),
        pytest.param("n0 gpu=4", "n6", 1 + 4 + 1, id="one_of_them"),
    ],
)
def test_nodes_that_are_not_used_are_left_out_together(
    first: str, found: str, searches: int
) -> None:
    """All look alike: n6 alone has CPUs, and of the others one is enough."""
    others = "".join(f"b1/r1/n{at} gpu=4 closed\n" for at in range(1, 6))
    asked = question(
        f"b1/r1/{first}\n{others}b1/r1/n6 cpu=1 closed", "4 gpu=1", "1 cpu=1", constraint=ANYWHERE
    )
    feasibility = asked.feasibility(100)
    few = fewest(feasibility, asked.changes)
    assert few is not None
    assert (asked.names(few), 100 - feasibility.left) == (found, searches)


def test_of_several_levels_inside_the_widest_decides_the_order() -> None:
    nodes = "b1/r1/n1 gpu=3 closed\nb1/r1/n2 gpu=3 closed\nb1/r2/n3 gpu=2 closed\nb1/r2/n4 gpu=5"
    _, capacity = cluster(nodes)
    request = vector(capacity.axis, pods=1, gpu=1)
    on_a_node = Group("g0", (PodSet("w0", 1, request),), Constraint(required=NODE_LEVEL))
    in_a_rack = Group("g1", (PodSet("w1", 6, request),), IN_RACK)
    for inner in ([on_a_node, in_a_rack], [in_a_rack, on_a_node]):
        assert question(nodes, *inner, constraint=IN_BLOCK).ordered() == "n3 n1 n2"


def test_of_a_group_with_a_preferred_level_it_is_the_required_one() -> None:
    nodes = "b1/r1/n1 gpu=3 closed\nb1/r2/n2 gpu=3 closed\nb2/r3/n3 gpu=2 closed\nb2/r4/n4 gpu=4"
    _, capacity = cluster(nodes)
    request = vector(capacity.axis, pods=1, gpu=1)
    inner = [
        Group(f"g{at}", (PodSet(f"w{at}", 6, request),), Constraint(required=BLOCK, preferred=RACK))
        for at in range(2)
    ]
    assert question(nodes, *inner, constraint=ANYWHERE).ordered() == "n3 n1 n2"


@pytest.mark.parametrize(
    ("nodes", "members", "constraint", "ordered"),
    [
        pytest.param(
            "b1/r1/n1 gpu=2 closed\nb1/r1/n2 gpu=8 closed\nb1/r1/n3 gpu=4 closed",
            ["9 gpu=1"],
            ANYWHERE,
            "n2 n3 n1",
            id="what_takes_most_first",
        ),
        pytest.param(
            "b1/r1/n1 gpu=4 cpu=0 closed\nb1/r1/n2 gpu=0 cpu=2 closed",
            ["4 gpu=1", "1 cpu=1"],
            ANYWHERE,
            "n2 n1",
            id="of_each_kind_by_its_share",
        ),
        pytest.param(
            "b1/r1/n1 gpu=0 closed\nb1/r1/n2 gpu=1 closed",
            ["1 gpu=1"],
            ANYWHERE,
            "n2 n1",
            id="what_takes_nothing_last",
        ),
        pytest.param(
            "b1/r1/n1 gpu=4 closed\nb1/r1/n2 gpu=2\nb1/r2/n3 gpu=3 closed\nb1/r2/n4 gpu=3 closed",
            ["12 gpu=1 slice=6"],
            ANYWHERE,
            "n1 n3 n4",
            id="by_the_cost_of_the_rack_of_a_slice",
        ),
        pytest.param(
            "b1/r1/n1 gpu=3 closed\nb1/r1/n2 gpu=3 closed\nb1/r2/n3 gpu=2 closed\nb1/r2/n4 gpu=4",
            ["12 gpu=1 slice=6"],
            IN_BLOCK,
            "n3 n1 n2",
            id="one_small_node_before_two_large",
        ),
        pytest.param(
            "b1/r1/n1 gpu=3 closed\nb1/r1/n2 gpu=3 closed\nb1/r2/n3 gpu=2 closed\nb1/r2/n4 gpu=4",
            ["12 gpu=1"],
            IN_BLOCK,
            "n1 n2 n3",
            id="no_rack_need_be_shared",
        ),
    ],
)
def test_those_that_look_cheapest_come_first(
    nodes: str, members: list[str], constraint: Constraint, ordered: str
) -> None:
    assert question(nodes, *members, constraint=constraint).ordered() == ordered


def test_groups_inside_that_need_a_rack_each_have_its_nodes_together() -> None:
    nodes = "b1/r1/n1 gpu=3 closed\nb1/r1/n2 gpu=3 closed\nb1/r2/n3 gpu=2 closed\nb1/r2/n4 gpu=4"
    _, capacity = cluster(nodes)
    request = vector(capacity.axis, pods=1, gpu=1)
    inner = [Group(f"g{at}", (PodSet(f"w{at}", 6, request),), IN_RACK) for at in range(2)]
    asked = question(nodes, *inner, constraint=IN_BLOCK)
    assert asked.ordered() == "n3 n1 n2"
    assert asked.domains() == ["n3 n1 n2"]


@pytest.mark.parametrize(
    ("root", "level"),
    [
        pytest.param(Group("r", (PodSet("w", 2, (1,)),), IN_RACK), RACK, id="all_pods"),
        pytest.param(Group("r", (PodSet("w", 2, (1,), constraint=IN_RACK),)), RACK, id="of_a_set"),
        pytest.param(
            Group("r", (Group("g", (PodSet("v", 2, (1,)), PodSet("w", 3, (1,))), IN_RACK),)),
            RACK,
            id="of_the_only_group",
        ),
        pytest.param(
            Group(
                "r",
                (
                    PodSet("v", 2, (1,), constraint=IN_RACK),
                    PodSet("w", 3, (1,), constraint=IN_RACK),
                ),
            ),
            None,
            id="of_two_each_has_its_own",
        ),
        pytest.param(
            Group(
                "r", (PodSet("w", 2, (1,), constraint=Constraint(required=BLOCK, preferred=RACK)),)
            ),
            BLOCK,
            id="the_widest_that_will_do",
        ),
        pytest.param(Group("r", (PodSet("w", 2, (1,), constraint=PREFERS_RACK),)), None, id="none"),
    ],
)
def test_the_level_that_must_take_everything(root: Group, level: str | None) -> None:
    tree, _ = cluster("b1/r1/n1 gpu=8")
    part = root_of(tree, Gang("ns/gang", root), Options().unconstrained)
    assert _shared_level(part) == (-1 if level is None else tree.levels.index(level))


@pytest.mark.slow
def test_with_those_found_the_gang_fits_and_without_any_of_them_it_does_not() -> None:
    chance = random.Random(1)
    extra = sizes = 0
    for _ in range(150):
        asked = _random_question(chance)
        feasibility, changes = asked.feasibility(), asked.changes

        def fits(ones: Sequence[int]) -> bool:
            books = changes.books(asked.capacity, ones)  # noqa: B023
            return feasibility.place(capacity=books) is not None  # noqa: B023

        everyone = range(len(asked.away))
        found = fewest(feasibility, changes)
        assert (found is not None) == (len(everyone) > 0 and fits(everyone))
        if found is None or fits(()):
            continue
        assert found == sorted(set(found))
        assert fits(found)
        assert not any(fits([each for each in found if each != one]) for one in found)
        least = next(
            size
            for size in range(1, len(found) + 1)
            if any(fits(ones) for ones in combinations(everyone, size))
        )
        sizes += least
        extra += len(found) - least
    assert extra <= sizes / 20


def _random_question(chance: random.Random) -> Question:
    nodes = "\n".join(
        f"b{rack // 2}/r{rack}/n{rack}{at} gpu={chance.randint(0, 8)}"
        + (" closed" if chance.random() < 0.6 else "")
        for rack in range(chance.randint(1, 3))
        for at in range(chance.randint(1, 3))
    )
    members = [f"{chance.randint(1, 8)} gpu={gpu}" for gpu in chance.sample((1, 2, 4), 2)]
    if chance.random() < 0.3:
        members = [f"{2 * chance.randint(1, 4)} gpu=1 slice=2"]
    constraint = chance.choice([ANYWHERE, IN_RACK, IN_BLOCK, PREFERS_RACK])
    if "slice" in members[0] and constraint.required == RACK:
        constraint = IN_BLOCK
    return question(nodes, *members[: chance.randint(1, 2)], constraint=constraint)
