"""What a walk is given: the gang as parts, with what each needs and where it is looked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.text import BLOCK, RACK, cluster
from tests.work import lines_run
from topology import (
    NODE_LEVEL,
    Constraint,
    Gang,
    Group,
    InvalidRequest,
    Leader,
    PodSet,
    Slice,
    Strategy,
)
from topology.nested.parts import Part, grown, is_nested, root_of, wanted

TREE, _ = cluster("b1/r1/n1\nb1/r2/n2")
IN_RACK, IN_BLOCK = Constraint(required=RACK), Constraint(required=BLOCK)


def pods(name: str, number: int = 4, **fields: Any) -> PodSet:
    return PodSet(name, number, **({"request": (1,)} | fields))


def root(*members: Group | PodSet, **fields: Any) -> Group:
    return Group("root", members, **fields)


def parts_of(*members: Group | PodSet, **fields: Any) -> Part:
    return root_of(TREE, Gang("ns/g", root(*members, **fields)), Strategy.LEAST_FREE)


ONE, TWO = pods("one", 1), pods("two")


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        pytest.param(root(ONE, TWO), False, id="pod_sets"),
        pytest.param(root(replace(ONE, constraint=IN_RACK), TWO), False, id="each_its_own_level"),
        pytest.param(root(ONE, constraint=IN_RACK), False, id="one_pod_set_in_a_rack"),
        pytest.param(root(ONE, TWO, constraint=IN_RACK), False, id="one_pod_and_its_workers"),
        pytest.param(root(TWO, pods("three"), constraint=IN_RACK), True, id="two_of_several_pods"),
        pytest.param(root(ONE, TWO, pods("a", 1), constraint=IN_RACK), True, id="three_in_a_rack"),
        pytest.param(
            root(replace(ONE, constraint=IN_RACK), TWO, constraint=IN_BLOCK), True, id="inner_level"
        ),
        pytest.param(
            root(ONE, replace(TWO, leader=Leader("l", (1,))), constraint=IN_RACK),
            True,
            id="workers_with_a_leader_already",
        ),
        pytest.param(
            root(replace(TWO, leader=Leader("l", (1,))), constraint=IN_RACK), False, id="led_alone"
        ),
        pytest.param(root(replace(TWO, needed=3)), True, id="fewer_pods_needed"),
        pytest.param(root(replace(TWO, needed=4)), False, id="all_pods_needed"),
        pytest.param(root(ONE, TWO, needed=1), True, id="fewer_members_needed"),
        pytest.param(root(ONE, TWO, needed=2), False, id="all_members_needed"),
        pytest.param(root(Group("g", (TWO,), IN_RACK), ONE), False, id="a_group_of_one_pod_set"),
        pytest.param(root(Group("g", (ONE, TWO), IN_RACK)), False, id="a_group_with_a_leader"),
        pytest.param(root(Group("g", (TWO, pods("a"), ONE))), False, id="a_group_of_no_level"),
        pytest.param(
            root(Group("g", (TWO, pods("a"), replace(ONE, constraint=IN_RACK)))),
            True,
            id="a_group_of_no_level_with_one_inside",
        ),
        pytest.param(
            root(Group("g", (TWO, pods("a"), ONE), needed=2)), True, id="a_group_that_needs_fewer"
        ),
        pytest.param(
            root(Group("g", (TWO, pods("a"), ONE), needed=3)), False, id="a_group_that_needs_all"
        ),
        pytest.param(
            root(Group("g", (TWO, pods("a")), IN_RACK)), True, id="a_group_of_several_in_a_rack"
        ),
        pytest.param(root(Group("g", (Group("h", (TWO,)),))), True, id="a_group_in_a_group"),
        pytest.param(root(Group("g", (TWO,), IN_RACK, needed=0)), True, id="a_group_of_no_need"),
    ],
)
def test_a_gang_is_nested_if_it_is_more_than_units(group: Group, expected: bool) -> None:
    assert is_nested(Gang("ns/g", group)) is expected


@pytest.mark.parametrize(
    ("constraint", "levels", "may_spread"),
    [
        pytest.param(Constraint(), (), True, id="anywhere"),
        pytest.param(IN_RACK, (1,), False, id="required"),
        pytest.param(Constraint(preferred=RACK), (1, 0), True, id="preferred"),
        pytest.param(Constraint(BLOCK, RACK), (1, 0), False, id="up_to_the_required"),
        pytest.param(Constraint(RACK, RACK), (1,), False, id="both_the_same"),
        pytest.param(Constraint(BLOCK, NODE_LEVEL), (2, 1, 0), False, id="from_the_node"),
    ],
)
def test_a_domain_of_each_level_from_the_preferred_to_the_required_is_tried(
    constraint: Constraint, levels: tuple[int, ...], may_spread: bool
) -> None:
    several = (TWO, pods("a"), ONE)
    group = parts_of(Group("g", several, constraint), ONE_MORE).members[0]
    assert (group.levels, group.may_spread) == (levels, may_spread)
    leaf = parts_of(replace(TWO, constraint=constraint), ONE_MORE).members[0]
    assert (leaf.levels, leaf.may_spread) == (levels, may_spread)


ONE_MORE = pods("more", 2)


def test_a_leaf_without_a_level_has_that_of_the_nearest_group_that_has_one() -> None:
    inner = Group("inner", (pods("a"), pods("b"), pods("c", constraint=IN_RACK)))
    top = parts_of(Group("outer", (inner, pods("d")), IN_BLOCK), pods("e"))
    units = {leaf.name: leaf.unit for leaf in top.leaves()}
    firsts = {name: (unit.first, unit.last) for name, unit in units.items() if unit}
    assert firsts == {"a": (0, 0), "b": (0, 0), "c": (1, 1), "d": (0, 0), "e": (2, 2)}
    assert all(leaf.levels == () for leaf in top.leaves() if leaf.name != "c"), "the group has it"


def test_slices_wider_than_the_group_around_keep_their_pods_out_of_its_level() -> None:
    for level, first in ((BLOCK, 0), (RACK, 1), (NODE_LEVEL, 1)):
        sliced = pods("a", slices=(Slice(2, level),))
        top = parts_of(Group("g", (sliced, TWO, ONE), IN_RACK))
        unit = next(top.leaves()).unit
        assert unit is not None
        assert unit.first == first
        assert unit.is_free is (level == BLOCK)


@pytest.mark.parametrize(
    ("pod_set", "pods_of_unit", "pods_of_floor", "is_optional"),
    [
        pytest.param(pods("a", 8), 8, 8, False, id="all"),
        pytest.param(pods("a", 8, needed=8), 8, 8, False, id="all_said"),
        pytest.param(pods("a", 8, needed=3), 8, 3, False, id="some"),
        pytest.param(pods("a", 8, needed=0), 8, 1, True, id="none"),
        pytest.param(
            pods("a", 8, needed=3, slices=(Slice(2, RACK),)), 8, 4, False, id="whole_slices"
        ),
        pytest.param(
            pods("a", 8, needed=4, slices=(Slice(2, RACK),)), 8, 4, False, id="so_many_slices"
        ),
        pytest.param(
            pods("a", 7, needed=7, slices=(Slice(2, RACK),), partial_last_slice=True),
            7,
            7,
            False,
            id="a_smaller_last_slice",
        ),
    ],
)
def test_the_floor_of_a_leaf_is_the_fewest_pods_that_will_do(
    pod_set: PodSet, pods_of_unit: int, pods_of_floor: int, is_optional: bool
) -> None:
    leaf = parts_of(pod_set, ONE_MORE).members[0]
    assert leaf.unit is not None
    assert leaf.floor is not None
    assert leaf.unit.workers.pods == pods_of_unit
    assert leaf.floor.workers.pods == pods_of_floor
    assert leaf.is_optional is is_optional
    assert leaf.is_elastic is (pods_of_floor < pods_of_unit)
    assert leaf.demand == ((((1,), ""), pods_of_floor),)


def test_a_leaf_demands_its_leader_too() -> None:
    apart = parts_of(pods("a", leader=Leader("l", (2,))), ONE_MORE).members[0]
    assert dict(apart.demand) == {((1,), ""): 4, ((2,), ""): 1}
    alike = parts_of(pods("a", leader=Leader("l", (1,))), ONE_MORE).members[0]
    assert dict(alike.demand) == {((1,), ""): 5}


@pytest.mark.parametrize(
    ("needed", "demand", "is_optional", "is_elastic"),
    [
        pytest.param(None, 9, False, False, id="all"),
        pytest.param(3, 9, False, False, id="all_said"),
        pytest.param(2, 5, False, True, id="the_two_least"),
        pytest.param(1, 2, False, True, id="the_least"),
        pytest.param(0, 0, True, True, id="none"),
    ],
)
def test_a_group_demands_what_its_least_members_do(
    needed: int | None, demand: int, is_optional: bool, is_elastic: bool
) -> None:
    members = (pods("a", 4), pods("b", 2), pods("c", 3))
    group = parts_of(Group("g", members, needed=needed), ONE_MORE).members[0]
    assert sum(number for _, number in group.demand) == demand
    assert group.needed == (3 if needed is None else needed)
    assert (group.is_optional, group.is_elastic) == (is_optional, is_elastic)


@pytest.mark.parametrize("elastic", [0, 1, 2])
def test_a_group_is_elastic_if_any_of_its_members_is(elastic: int) -> None:
    members = tuple(pods(f"p{at}", 4, needed=2 if at < elastic else None) for at in range(2))
    group = parts_of(Group("g", (*members, ONE)), ONE_MORE).members[0]
    assert group.is_elastic is (elastic > 0)


def test_members_of_other_kinds_are_demanded_only_where_none_may_be_left_out() -> None:
    members = (pods("a", 4), pods("b", 2, request=(2,)))
    both = parts_of(Group("g", members), ONE_MORE).members[0]
    assert dict(both.demand) == {((1,), ""): 4, ((2,), ""): 2}
    either = parts_of(Group("g", members, needed=1), ONE_MORE).members[0]
    assert either.demand == ()


def test_what_a_group_demands_is_added_up_in_as_many_steps_as_its_members_have_kinds() -> None:
    def steps(members: int) -> int:
        ones = [pods(f"{each}", shape=f"{each}") for each in range(members)]
        return lines_run(lambda: parts_of(*ones))

    assert steps(400) < 5 * steps(100)


def test_a_group_that_needs_no_more_than_its_optional_members_is_optional() -> None:
    members = (pods("a", needed=0), pods("b", needed=0), pods("c"))
    optional = [
        parts_of(Group("g", members, needed=needed), ONE_MORE).members[0].is_optional
        for needed in (1, 2, 3)
    ]
    assert optional == [True, True, False]


def test_what_is_wanted_of_an_optional_part_is_the_least_that_is_of_use() -> None:
    members = (pods("a", 4), pods("b", 2), pods("c", 3, needed=0))
    group = parts_of(Group("g", members, needed=0), ONE_MORE).members[0]
    use = wanted(group)
    assert (use.needed, use.is_optional) == (1, False)
    assert [member.is_optional for member in use.members] == [False, False, False]
    assert use.demand == ((((1,), ""), 1),), "one pod of the last"
    two = wanted(replace(group, needed=2))
    assert (two.needed, two.demand) == (2, ((((1,), ""), 3),))


def test_a_part_is_small_if_each_of_its_pod_sets_is() -> None:
    small, large = pods("a", 2), pods("b", 100)
    assert parts_of(small, ONE).is_small
    assert not parts_of(small, large).is_small
    assert not parts_of(Group("g", (small, large)), ONE).is_small


def test_the_leaves_come_in_the_order_they_are_written() -> None:
    inner = Group("inner", (pods("b"), pods("c"), pods("d", constraint=IN_RACK)))
    top = parts_of(pods("a"), Group("outer", (inner, pods("e")), IN_BLOCK), pods("f"))
    assert [leaf.name for leaf in top.leaves()] == list("abcdef")


def test_sixteen_groups_may_be_around_a_pod_set_and_not_more() -> None:
    def deep(groups: int) -> Group:
        group = Group("inmost", (pods("a"), pods("b"), ONE))
        for number in range(groups):
            group = Group(f"g{number}", (group,))
        return group

    root_of(TREE, Gang("ns/g", deep(15)), Strategy.LEAST_FREE)
    with pytest.raises(InvalidRequest, match="group inmost: more than 16 groups around it"):
        root_of(TREE, Gang("ns/g", deep(16)), Strategy.LEAST_FREE)


def test_depth_is_counted_on_the_deepest_way() -> None:
    group = Group("inmost", (pods("a"), pods("b"), ONE))
    for number in range(16):
        group = Group(f"g{number}", (pods(f"p{number}"), group))
    with pytest.raises(InvalidRequest, match="group inmost: more than 16"):
        root_of(TREE, Gang("ns/g", group), Strategy.LEAST_FREE)


def test_a_unit_that_has_grown_has_a_last_slice_of_what_is_left() -> None:
    leaf = parts_of(
        pods("a", 7, slices=(Slice(3, RACK),), partial_last_slice=True), ONE_MORE
    ).members[0]
    assert leaf.unit is not None
    for number, remainder in ((3, 0), (6, 0), (7, 1)):
        more = grown(leaf.unit, number)
        assert (more.workers.pods, more.layers.remainder) == (number, remainder)


def test_a_root_with_a_level_and_one_pod_set_is_a_leaf() -> None:
    assert parts_of(TWO, constraint=IN_RACK).unit is not None
    top = parts_of(TWO)
    assert top.unit is None
    assert [member.name for member in top.members] == ["two"]
