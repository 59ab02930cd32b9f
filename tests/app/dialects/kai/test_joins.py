"""Constraints of one PodGroup on several Topologies: how these are inside one another."""

from __future__ import annotations

import pytest

from app.dialects.declared import JOINED
from tests.app.dialects.kai.objects import group, sub_group, within

ZONES = within("zone", topology="zones")
BLOCKS = within("block", topology="zones")
RACKS = within("rack", topology="racks")


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


ONE_TREE = "a gang is placed on one Topology, or on one inside a required domain of another"


@pytest.mark.parametrize(
    ("root", "parts", "flaw"),
    [
        pytest.param(
            None,
            [on("a", RACKS), on("b", ZONES)],
            'subGroups[1].topologyConstraint.topology: Invalid value: "zones": sub-group b is on'
            f" this Topology and sub-group a on racks, and neither is inside the other: {ONE_TREE}",
            id="beside_each_other",
        ),
        pytest.param(
            ZONES,
            [on("a", RACKS), on("b", within("clique", topology="nvlink"))],
            'subGroups[1].topologyConstraint.topology: Invalid value: "nvlink": sub-group b is on'
            f" this Topology and sub-group a on racks, and neither is inside the other: {ONE_TREE}",
            id="beside_each_other_inside_a_third",
        ),
        pytest.param(
            None,
            [on("whole", ZONES, minSubGroup=1), on("a", RACKS, "whole"), on("b", RACKS)],
            'subGroups[2].topologyConstraint.topology: Invalid value: "racks": sub-group b is on'
            " this Topology and sub-group whole on zones, and neither is inside the other:"
            f" {ONE_TREE}",
            id="one_inside_and_one_beside",
        ),
        pytest.param(
            within("", "zone", topology="zones"),
            [on("a", RACKS)],
            'subGroups[0].topologyConstraint.topology: Invalid value: "racks": sub-group a is on'
            " this Topology, inside the PodGroup itself on zones, where no level is required:"
            f" {ONE_TREE}",
            id="inside_a_level_that_is_only_preferred",
        ),
        pytest.param(
            ZONES,
            [on("half", BLOCKS, minSubGroup=1), on("a", RACKS, "half"), on("b", RACKS)],
            'subGroups[1].topologyConstraint.topology: Invalid value: "racks": sub-group a is on'
            " this Topology inside level block of zones, and sub-group b inside level zone:"
            f" {ONE_TREE}",
            id="inside_two_levels",
        ),
        pytest.param(
            ZONES,
            [on("half", RACKS, minSubGroup=1), on("a", BLOCKS, "half")],
            'subGroups[1].topologyConstraint.topology: Invalid value: "zones": sub-group a is on'
            f" this Topology, inside sub-group half on racks: {ONE_TREE}",
            id="the_outer_one_again_inside",
        ),
    ],
)
def test_topologies_that_are_not_inside_one_another_are_told_by_name(root, parts, flaw):
    record = group("pg", None, *parts, on=root)
    assert record.flaw == f"PodGroup default/pg: spec.{flaw}"
    assert record.join is None


def test_a_circle_of_sub_groups_is_told_as_one():
    circle = (on("a", RACKS, "b", minSubGroup=1), on("b", ZONES, "a", minSubGroup=1))
    record = group("pg", None, *circle, on=ZONES)
    assert "inside itself" in record.flaw
