"""Trees of domains that name their members, as deep as each branch happens to be."""

from __future__ import annotations

import pytest

from topology import InvalidTopology
from topology.model.explicit_tree import Domain, Label, Member, build_explicit


def exact(*names: str, nodes: bool = True) -> tuple[Member, ...]:
    return tuple(Member(nodes, name=name) for name in names)


SPINE = Domain("spine", 3, exact("leaf-a", "leaf-b", nodes=False))
LEAF_A = Domain("leaf-a", 2, exact("r1", "r2", nodes=False))
LEAF_B = Domain("leaf-b", 2, (Member(True, pattern="^b"),))
R1 = Domain("r1", 1, exact("a1", "a2", "gone"))
R2 = Domain("r2", 1, (Member(True, labels=(("rack", "In", ("2",)), ("old", "DoesNotExist", ()))),))
NODES = {
    "a1": {},
    "a2": {},
    "a3": {"rack": "2"},
    "a4": {"rack": "2", "old": ""},
    "b1": {},
    "b2": {},
}


def test_a_domain_without_a_narrower_one_stands_for_itself_below() -> None:
    uneven = build_explicit([SPINE, LEAF_A, LEAF_B, R1, R2], NODES, generation=7)
    tree = uneven.tree
    assert tree.levels[:3] == ("tier-3", "tier-2", "tier-1")
    paths = {node: tree.path(tree.node_level, slot) for slot, node in enumerate(tree.nodes)}
    assert paths == {
        "a1": ("spine", "leaf-a", "r1", "a1"),
        "a2": ("spine", "leaf-a", "r1", "a2"),
        "a3": ("spine", "leaf-a", "r2", "a3"),
        "b1": ("spine", "leaf-b", "leaf-b", "b1"),
        "b2": ("spine", "leaf-b", "leaf-b", "b2"),
    }
    assert (uneven.outside, uneven.problems, tree.generation) == (("a4",), (), 7)


def test_a_domain_without_a_wider_one_stands_for_itself_above() -> None:
    alone = Domain("alone", 1, exact("a4"))
    tree = build_explicit([SPINE, LEAF_A, LEAF_B, R1, R2, alone], NODES, 1).tree
    assert tree.path(tree.node_level, tree.slot_of["a4"]) == ("alone", "alone", "alone", "a4")


def test_the_order_in_which_domains_come_changes_nothing() -> None:
    forwards = build_explicit([SPINE, LEAF_A, LEAF_B, R1, R2], NODES, 1)
    backwards = build_explicit([R2, R1, LEAF_B, LEAF_A, SPINE], dict(reversed(NODES.items())), 1)
    assert forwards.tree.names == backwards.tree.names
    assert forwards.tree.nodes == backwards.tree.nodes


def test_what_cannot_be_is_left_out_and_said() -> None:
    domains = [
        Domain("a", 2, exact("x", "missing", nodes=False)),
        Domain("b", 2, exact("x", nodes=False)),
        Domain("c", 1, exact("a", nodes=False)),
        Domain("d", 1, (Member(True, pattern="("),)),
        Domain("x", 1, exact("a1")),
        Domain("y", 1, exact("a1", "a2")),
        Domain("z", 2, (Member(False, pattern="x"),)),
    ]
    uneven = build_explicit(domains, NODES, 1)
    assert uneven.tree.nodes == ("a1", "a2")
    assert uneven.tree.path(0, 0) == ("a",)
    said = "\n".join(uneven.problems)
    for sentence in (
        "domain a: there is no domain missing",
        "domain x: claimed by a and by b",
        "domain c of tier 1: member a is of tier 2, which is not smaller",
        "domain d: pattern '('",
        "domain z: member domains go by exact name only",
        "node a1: claimed by x and by y",
    ):
        assert sentence in said
    assert len(uneven.problems) == 6


@pytest.mark.parametrize(
    ("label", "claimed"),
    [
        pytest.param(("rack", "In", ("1", "2")), ("a", "b"), id="in"),
        pytest.param(("rack", "NotIn", ("1",)), ("b", "c"), id="not_in_or_not_there"),
        pytest.param(("rack", "Exists", ()), ("a", "b"), id="exists"),
        pytest.param(("rack", "DoesNotExist", ()), ("c",), id="does_not_exist"),
    ],
)
def test_nodes_are_members_by_their_labels(label: Label, claimed: tuple[str, ...]) -> None:
    nodes: dict[str, dict[str, str]] = {"a": {"rack": "1"}, "b": {"rack": "2"}, "c": {}}
    found = build_explicit([Domain("d", 1, (Member(True, labels=(label,)),))], nodes, 1)
    assert found.tree.nodes == claimed
    assert set(found.outside) == nodes.keys() - set(claimed)


def test_all_labels_of_a_member_hold_and_any_member_claims() -> None:
    nodes = {"a": {"x": "1", "y": "1"}, "b": {"x": "1"}, "c": {"y": "2"}, "d": {}}
    both = Member(True, labels=(("x", "In", ("1",)), ("y", "In", ("1",))))
    named = Member(True, name="d")
    assert build_explicit([Domain("d1", 1, (both, named))], nodes, 1).tree.nodes == ("a", "d")


def test_a_pattern_is_found_anywhere_in_a_name_and_a_name_is_exact() -> None:
    nodes: dict[str, dict[str, str]] = {"gpu-1": {}, "cpu-1": {}, "gpu-12": {}}
    pattern = Domain("p", 1, (Member(True, pattern="pu-1$"),))
    exactly = Domain("e", 1, (Member(True, name="gpu-1"),))
    assert build_explicit([pattern], nodes, 1).tree.nodes == ("cpu-1", "gpu-1")
    assert build_explicit([exactly], nodes, 1).tree.nodes == ("gpu-1",)


def test_a_member_that_names_nothing_claims_nothing() -> None:
    found = build_explicit([Domain("d", 1, (Member(True),))], {"a": {}}, 1)
    assert (found.tree.nodes, found.outside, found.problems) == ((), ("a",), ())


def test_a_broken_pattern_leaves_the_other_members() -> None:
    members = (Member(True, pattern="("), Member(True, name="a"))
    found = build_explicit([Domain("d", 1, members)], {"a": {}}, 1)
    assert found.tree.nodes == ("a",)
    assert len(found.problems) == 1


def test_tiers_have_the_level_keys_they_are_given_and_else_their_number() -> None:
    domains = [Domain("wide", 5, (Member(False, name="inner"),)), Domain("inner", 2, exact("a"))]
    found = build_explicit(domains, {"a": {}}, 1, level_of_tier={5: "spine", 9: "unused"})
    assert found.level_of_tier == {5: "spine", 2: "tier-2"}
    assert found.tree.levels == ("spine", "tier-2", "kubernetes.io/hostname")


def test_a_node_claimed_again_by_a_domain_around_its_own_is_no_problem() -> None:
    domains = [
        Domain("around", 3, (Member(False, name="middle"), *exact("a"))),
        Domain("middle", 2, (Member(False, name="inner"), *exact("a"))),
        Domain("inner", 1, exact("a")),
    ]
    found = build_explicit(domains, {"a": {}}, 1)
    assert found.problems == ()
    assert found.tree.path(0, 0) == ("around",)
    assert found.tree.names == (("around",), ("middle",), ("inner",), ("a",))


def test_a_node_claimed_by_an_unrelated_wider_domain_is_said() -> None:
    domains = [Domain("wide", 2, exact("a")), Domain("inner", 1, exact("a"))]
    found = build_explicit(domains, {"a": {}}, 1)
    assert found.problems == ("node a: claimed by inner and by wide",)


def test_a_domain_cannot_be_inside_one_of_its_own_tier() -> None:
    domains = [Domain("a", 1, (Member(False, name="b"),)), Domain("b", 1, exact("n"))]
    found = build_explicit(domains, {"n": {}}, 1)
    assert found.problems == ("domain a of tier 1: member b is of tier 1, which is not smaller",)
    assert found.tree.names[0] == ("b",)


def test_more_tiers_than_levels_may_be_are_refused() -> None:
    domains = [Domain(f"d{tier}", tier, exact(f"n{tier}")) for tier in range(17)]
    nodes: dict[str, dict[str, str]] = {f"n{tier}": {} for tier in range(17)}
    with pytest.raises(InvalidTopology, match="18 given, a topology has 1 to 16"):
        build_explicit(domains, nodes, 1)
    assert build_explicit(domains[:16], nodes, 1).tree.node_level == 16
