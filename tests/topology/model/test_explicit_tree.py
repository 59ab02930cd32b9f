"""Trees of domains that name their members, as deep as each branch happens to be."""

from __future__ import annotations

from topology.model.explicit_tree import Domain, Member, build_explicit


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
