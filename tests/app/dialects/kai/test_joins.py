"""Constraints of one PodGroup on several Topologies: inside one another, or beside each other."""

from __future__ import annotations

import pytest

from app.dialects.declared import JOINED
from app.dialects.kai.joins import MOST_PARTS
from tests.app.dialects.kai.objects import group, sub_group, within

ZONES = within("zone", topology="zones")
BLOCKS = within("block", topology="zones")
RACKS = within("rack", topology="racks")
CLIQUES = within("clique", topology="nvlink")


def on(name, constraint, parent="", **more):
    least = None if "minSubGroup" in more else 1
    return sub_group(name, least, parent, topologyConstraint=constraint, **more)


def inside(record):
    """(topology, levels, level it ends at) of each, the outermost first."""
    assert record.flaw == ""
    return [
        (part.topology.removeprefix("kai.scheduler/"), part.levels, part.ends_at)
        for part in record.join.parts
    ]


def test_what_is_on_one_topology_joins_none():
    assert group("pg", None, on("a", ZONES), on("b", BLOCKS)).join is None
    assert group("pg", 4, on=ZONES).join is None
    assert group("pg", 4).join is None


def test_a_sub_group_is_inside_the_level_that_is_required_around_it():
    record = group("pg", None, on("a", RACKS), on=ZONES)
    assert inside(record) == [("zones", ("zone",), "zone"), ("racks", ("rack",), "")]
    assert record.topology == "zones"


def test_the_inner_one_may_be_written_first():
    record = group("pg", None, on("a", RACKS, "whole"), on("whole", ZONES, minSubGroup=1))
    assert inside(record) == [("zones", ("zone",), "zone"), ("racks", ("rack",), "")]


def test_of_several_levels_around_it_the_innermost_counts():
    parts = (on("half", BLOCKS, minSubGroup=1), on("a", RACKS, "half"))
    assert inside(group("pg", None, *parts, on=ZONES)) == [
        ("zones", ("block", "zone"), "block"),
        ("racks", ("rack",), ""),
    ]


def test_three_are_each_inside_the_one_before():
    parts = (
        on("half", RACKS, minSubGroup=1),
        on("a", within("", "clique", topology="nvlink"), "half"),
        on("b", within("clique", "partition", topology="nvlink"), "half"),
    )
    assert inside(group("pg", None, *parts, on=ZONES)) == [
        ("zones", ("zone",), "zone"),
        ("racks", ("rack",), "rack"),
        ("nvlink", ("clique", "partition"), ""),
    ]


def test_groups_with_one_combination_have_one_tree():
    one = group("pg", None, on("a", RACKS), on=ZONES)
    other = group("other", None, on("a", within("room", topology="racks")), on=ZONES)
    apart = group("pg", None, on("a", RACKS), on=BLOCKS)
    assert one.join.name == other.join.name != apart.join.name
    assert one.join.name == f"{JOINED}kai.scheduler/zones to zone, kai.scheduler/racks"


def parts(record):
    """(leaves, topologies) of each part."""
    assert record.flaw == ""
    assert record.join is None
    return [
        (
            "".join(sorted(part.leaves)),
            () if part.topology is None
            else (part.topology.removeprefix("kai.scheduler/"),) if part.join is None
            else tuple(each.topology.removeprefix("kai.scheduler/") for each in part.join.parts),
        )
        for part in record.parts
    ]  # fmt: skip


def test_what_one_tree_serves_has_no_parts():
    assert group("pg", None, on("a", ZONES), on("b", BLOCKS), sub_group("c", 1)).parts == ()
    assert group("pg", None, on("a", RACKS), on=ZONES).parts == ()
    assert group("pg", 4).parts == ()


def test_sub_groups_beside_each_other_are_a_part_for_each_topology():
    record = group("pg", None, on("a", RACKS), on("b", ZONES), on("c", RACKS))
    assert parts(record) == [("ac", ("racks",)), ("b", ("zones",))]
    assert record.topology == "racks"


def test_sub_groups_without_a_constraint_are_a_part_that_may_be_anywhere():
    record = group("pg", None, on("a", RACKS), sub_group("b", 1), on("c", ZONES), sub_group("d", 1))
    assert parts(record) == [("a", ("racks",)), ("bd", ()), ("c", ("zones",))]


def test_what_is_inside_a_constraint_is_in_its_part():
    whole = on("whole", ZONES, minSubGroup=2)
    inner = (on("a", RACKS, "whole"), sub_group("b", 1, "whole"), on("c", RACKS))
    assert parts(group("pg", None, whole, *inner)) == [
        ("c", ("racks",)),
        ("ab", ("zones", "racks")),
    ]


def test_one_topology_inside_two_levels_of_another_is_two_parts():
    outer = (on("x", ZONES, minSubGroup=1), on("y", BLOCKS, minSubGroup=1))
    record = group("pg", None, *outer, on("a", RACKS, "x"), on("b", RACKS, "y"))
    assert parts(record) == [("a", ("zones", "racks")), ("b", ("zones", "racks"))]
    assert len({part.topology for part in record.parts}) == 2


def test_parts_of_one_tree_name_the_levels_of_all_and_are_one():
    rooms = within("room", topology="racks")
    outer = (on("x", ZONES, minSubGroup=1), on("y", ZONES, minSubGroup=1))
    inner = (on("a", RACKS, "x"), on("b", rooms, "y"), on("c", rooms, "x"))
    record = group("pg", None, *outer, *inner, on("d", rooms))
    assert parts(record) == [("d", ("racks",)), ("abc", ("zones", "racks"))]
    assert record.parts[1].join.parts[1].levels == ("rack", "room")


@pytest.mark.parametrize(
    ("more", "root", "least"),
    [
        pytest.param((), None, None, id="all_of_them"),
        pytest.param((), None, 2, id="as_many_as_there_are"),
        pytest.param((on("half", None, minSubGroup=1), on("c", RACKS, "half"),
                      on("d", RACKS, "half")), None, None, id="some_of_those_on_one"),
    ],
)  # fmt: skip
def test_all_that_are_on_different_topologies_are_needed(more, root, least):
    spec = {} if least is None else {"minSubGroup": least}
    assert group("pg", None, on("a", RACKS), on("b", ZONES), *more, on=root, **spec).flaw == ""


@pytest.mark.parametrize(
    ("made", "where"),
    [
        pytest.param(
            group("pg", None, on("a", RACKS), on("b", ZONES), minSubGroup=1),
            "minSubGroup: Invalid value: 1: its 2 sub-groups",
            id="pod_group",
        ),
        pytest.param(
            group("pg", None, on("half", None, minSubGroup=1), on("a", RACKS, "half"),
                  sub_group("b", 1, "half"), on("c", ZONES)),
            "subGroups[0].minSubGroup: Invalid value: 1: its 2 sub-groups",
            id="sub_group",
        ),
    ],
)  # fmt: skip
def test_a_minimum_that_lets_a_part_wait_is_told_by_name(made, where):
    assert made.flaw == (
        f"PodGroup default/pg: spec.{where} are on different Topologies, of which neither is inside"
        " the other: these start all together"
    )


def test_there_are_so_many_parts_at_most():
    def beside(count):
        return [on(f"s{at}", within("rack", topology=f"t{at}")) for at in range(count)]

    assert len(group("pg", None, *beside(MOST_PARTS)).parts) == MOST_PARTS == 8
    flaw = group("pg", None, *beside(8), sub_group("a", 1)).flaw
    assert "spec.subGroups: Too many: 9: must have at most 8 parts on different Topologies" in flaw


def test_parts_are_in_one_domain_of_what_is_required_around_them():
    record = group("pg", None, on("a", RACKS), on("b", CLIQUES), sub_group("c", 1), on=ZONES)
    assert parts(record) == [
        ("a", ("zones", "racks")),
        ("b", ("zones", "nvlink")),
        ("c", ("zones",)),
    ]
    assert record.topology == "zones"
    assert record.parts[1].join.parts[0].levels == ("zone",)


def test_a_sub_group_may_be_divided_beside_one_that_is_not():
    whole = on("whole", ZONES, minSubGroup=2)
    inner = (on("a", RACKS, "whole"), on("b", CLIQUES, "whole"))
    assert parts(group("pg", None, whole, *inner, on("c", CLIQUES))) == [
        ("c", ("nvlink",)),
        ("a", ("zones", "racks")),
        ("b", ("zones", "nvlink")),
    ]


def test_what_is_inside_two_levels_of_one_topology_is_two_parts_of_it():
    half = on("half", BLOCKS, minSubGroup=1)
    record = group("pg", None, half, on("a", RACKS, "half"), on("b", RACKS), on=ZONES)
    assert [each.join.parts[0].ends_at for each in record.parts] == ["zone", "block"]


@pytest.mark.parametrize("narrower", [BLOCKS, within("", "block", topology="zones")])
def test_a_narrower_level_beside_another_topology_is_in_a_part_of_its_own(narrower):
    """It would cut the domains of the other one, were they in one tree."""
    record = group("pg", None, on("a", narrower), on("b", RACKS), sub_group("c", 1), on=ZONES)
    assert parts(record) == [("ac", ("zones",)), ("b", ("zones", "racks"))]
    whole = on("whole", ZONES, minSubGroup=2)
    record = group("pg", None, whole, on("a", narrower, "whole"), on("b", RACKS, "whole"))
    assert parts(record) == [("a", ("zones",)), ("b", ("zones", "racks"))]


def test_the_same_level_beside_another_topology_is_in_one_tree_with_it():
    record = group("pg", None, on("a", ZONES), on("b", RACKS), on=ZONES)
    assert inside(record) == [("zones", ("zone",), "zone"), ("racks", ("rack",), "")]
    half = on("half", BLOCKS, minSubGroup=1)
    record = group("pg", None, half, on("a", RACKS, "half"), on("b", BLOCKS), on=ZONES)
    assert inside(record) == [("zones", ("block", "zone"), "block"), ("racks", ("rack",), "")]


ONE_TREE = (
    "a Topology is inside a required domain of another, and those beside each other are inside one"
    " at most"
)
HALF = on("half", RACKS, minSubGroup=1)


@pytest.mark.parametrize(
    ("root", "parts", "flaw"),
    [
        pytest.param(
            ZONES,
            [HALF, on("a", CLIQUES, "half"), on("b", within("pod", topology="pods"), "half")],
            'subGroups[2].topologyConstraint.topology: Invalid value: "pods": sub-group b is on'
            " this Topology and sub-group a on nvlink, and neither is inside the other:"
            f" {ONE_TREE}",
            id="beside_each_other_inside_two",
        ),
        pytest.param(
            within("", "zone", topology="zones"),
            [on("a", RACKS), on("b", CLIQUES)],
            'subGroups[0].topologyConstraint.topology: Invalid value: "racks": sub-group a is on'
            " this Topology, inside the PodGroup itself on zones, where no level is required:"
            f" {ONE_TREE}",
            id="inside_a_level_that_is_only_preferred",
        ),
        pytest.param(
            ZONES,
            [HALF, on("room", within("room", topology="racks"), "half", minSubGroup=1),
             on("a", CLIQUES, "room"), on("b", CLIQUES, "half")],
            'subGroups[2].topologyConstraint.topology: Invalid value: "nvlink": sub-group a is on'
            " this Topology inside level room of racks, and sub-group b inside level rack:"
            f" {ONE_TREE}",
            id="inside_two_levels_inside_another",
        ),
        pytest.param(
            ZONES,
            [HALF, on("a", BLOCKS, "half")],
            'subGroups[1].topologyConstraint.topology: Invalid value: "zones": sub-group a is on'
            f" this Topology, inside sub-group half on racks: {ONE_TREE}",
            id="the_outer_one_again_inside",
        ),
    ],
)  # fmt: skip
def test_topologies_that_are_not_inside_one_another_are_told_by_name(root, parts, flaw):
    record = group("pg", None, *parts, on=root)
    assert record.flaw == f"PodGroup default/pg: spec.{flaw}"
    assert record.join is None


def test_a_circle_of_sub_groups_is_told_as_one():
    circle = (on("a", RACKS, "b", minSubGroup=1), on("b", ZONES, "a", minSubGroup=1))
    record = group("pg", None, *circle, on=ZONES)
    assert "inside itself" in record.flaw
