"""Trees of domains that name their members, as deep as each branch happens to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import InvalidTopology
from topology.model.explicit_tree import Domain, Forest, has_tier

SPINE = Domain("spine", 3, ("leaf-a", "leaf-b"))
LEAF_A = Domain("leaf-a", 2, ("r1", "r2"))
LEAF_B = Domain("leaf-b", 2)
R1, R2 = Domain("r1", 1), Domain("r2", 1)
UNEVEN = (SPINE, LEAF_A, LEAF_B, R1, R2)
CLAIMS = {"a1": ["r1"], "a2": ["r1"], "a3": ["r2"], "a4": [], "b1": ["leaf-b"], "b2": ["leaf-b"]}
KEYS = {tier: f"tier-{tier}" for tier in range(40)}


def forest_of(domains: Iterable[Domain], claims: Mapping[str, Iterable[str]]) -> Forest:
    forest = Forest()
    for domain in domains:
        forest.put(domain)
    for node, names in claims.items():
        forest.place(node, list(names))
    return forest


def said(forest: Forest, name: str) -> list[str]:
    return [flaw.text for flaw in forest.flaws(name)]


def test_a_node_without_a_narrower_domain_stands_for_itself_there() -> None:
    tree = forest_of(UNEVEN, CLAIMS).tree(KEYS, generation=7)
    assert tree.levels[:3] == ("tier-3", "tier-2", "tier-1")
    assert {node: tree.path(tree.node_level, slot) for slot, node in enumerate(tree.nodes)} == {
        "a1": ("spine", "leaf-a", "r1", "a1"),
        "a2": ("spine", "leaf-a", "r1", "a2"),
        "a3": ("spine", "leaf-a", "r2", "a3"),
        "a4": ("node/a4", "node/a4", "node/a4", "a4"),
        "b1": ("spine", "leaf-b", "node/b1", "b1"),
        "b2": ("spine", "leaf-b", "node/b2", "b2"),
    }
    assert tree.generation == 7


def test_a_domain_without_a_wider_one_stands_for_itself_above() -> None:
    forest = forest_of((*UNEVEN, Domain("alone", 1)), {**CLAIMS, "a4": ["alone"]})
    assert forest.values("a4", forest.tiers) == ("alone", "alone", "alone")


def test_a_tier_that_a_branch_leaves_out_is_that_of_the_narrower_domain() -> None:
    domains = (Domain("wide", 3, ("near",)), Domain("near", 1), Domain("other", 2))
    forest = forest_of(domains, {"n": ["near"], "m": ["other"]})
    assert forest.values("n", (3, 2, 1)) == ("wide", "near", "near")
    assert forest.values("m", (3, 2, 1)) == ("other", "other", "node/m")


def test_nodes_are_counted_at_any_depth() -> None:
    forest = forest_of(UNEVEN, CLAIMS)
    assert [forest.size(name) for name in ("spine", "leaf-a", "r1", "leaf-b")] == [5, 3, 2, 2]
    forest.remove("a1")
    assert [forest.size(name) for name in ("spine", "leaf-a", "r1")] == [4, 2, 1]
    assert "a1" not in forest.nodes


def test_members_may_come_before_those_that_name_them_and_after() -> None:
    forest = Forest()
    forest.place("a1", ["r1"])
    assert forest.path("a1") == ()
    forest.put(LEAF_A)
    assert said(forest, "leaf-a") == ["there is no r1", "there is no r2"]
    assert forest.put(R1) == ["a1"]
    assert forest.path("a1") == ("r1", "leaf-a")
    assert said(forest, "leaf-a") == ["there is no r2"]
    assert forest.put(SPINE) == ["a1"]
    assert forest.path("a1") == ("r1", "leaf-a", "spine")
    assert forest.drop("leaf-a") == ["a1"]
    assert forest.path("a1") == ("r1",)
    assert said(forest, "spine") == ["there is no leaf-a", "there is no leaf-b"]


@pytest.mark.parametrize(
    ("domains", "about", "text"),
    [
        pytest.param(
            [Domain("a", 2, ("x",)), Domain("b", 2, ("x",)), Domain("x", 1)],
            "b",
            "x is a member of a already",
            id="two_parents",
        ),
        pytest.param(
            [Domain("a", 2, ("b",)), Domain("b", 3, ("a",))],
            "a",
            "b is of tier 3, which is not below 2",
            id="a_cycle",
        ),
        pytest.param(
            [Domain("a", 2, ("a",))], "a", "a is of tier 2, which is not below 2", id="itself"
        ),
        pytest.param(
            [Domain("a", 2, ("x", "x")), Domain("x", 1)], "a", "x is named twice", id="named_twice"
        ),
        pytest.param([Domain("a", 2, ("x",))], "a", "there is no x", id="not_there"),
    ],
)
def test_a_member_that_cannot_be_is_left_out_and_said(
    domains: list[Domain], about: str, text: str
) -> None:
    forest = forest_of(domains, {"n": ["x"]})
    assert said(forest, about) == [text]
    assert [said(forest, each.name) for each in domains if each.name != about] == [[]] * (
        len(domains) - 1
    )


def test_of_two_parents_the_next_takes_a_member_that_the_first_lets_go() -> None:
    forest = forest_of(
        [Domain("a", 2, ("x",)), Domain("b", 2, ("x",)), Domain("x", 1)], {"n": ["x"]}
    )
    forest.taken_touched()
    assert forest.put(Domain("a", 2)) == ["n"]
    assert forest.path("n") == ("x", "b")
    assert said(forest, "b") == []
    assert set(forest.taken_touched()) == {"a", "b", "x"}


def test_a_node_that_two_domains_name_is_in_the_closer_one_and_the_other_is_told() -> None:
    domains = [Domain("a", 1), Domain("b", 1), Domain("c", 2, ("a",)), Domain("d", 2)]
    forest = forest_of(domains, {"n": ["a", "b", "c", "d"]})
    assert forest.path("n") == ("a", "c")
    assert said(forest, "b") == said(forest, "d") == ["node n is in a already"]
    assert said(forest, "a") == said(forest, "c") == []  # c is around a: it has the node


def test_what_is_in_a_domain_moves_with_its_tier() -> None:
    forest = forest_of((*UNEVEN, Domain("far", 1)), {**CLAIMS, "a4": ["far"]})
    assert forest.values("a4", (3, 2, 1)) == ("far", "far", "far")
    assert forest.put(Domain("far", 2)) == ["a4"]
    assert forest.values("a4", (3, 2, 1)) == ("far", "far", "node/a4")


def test_a_change_that_is_none_moves_nothing_and_touches_nothing() -> None:
    forest = forest_of(UNEVEN, CLAIMS)
    forest.taken_touched()
    assert forest.put(LEAF_A) == []
    assert not forest.place("a1", ["r1"])
    assert forest.drop("nobody") == []
    assert forest.taken_touched() == []


def test_more_tiers_than_levels_are_refused() -> None:
    forest = forest_of([Domain(f"d{tier}", tier) for tier in range(17)], {"n": ["d0"]})
    with pytest.raises(InvalidTopology, match="a topology has 1 to 16"):
        forest.tree(KEYS, 1)


# Whatever happens to domains and nodes, what follows is what a look at all of them says

NAMES = ("a", "b", "c", "d", "e")
NODES = ("n1", "n2", "n3")
PUTS = st.tuples(
    st.just("put"),
    st.builds(
        Domain,
        st.sampled_from(NAMES),
        st.integers(1, 4),
        st.lists(st.sampled_from(NAMES), max_size=3).map(tuple),
    ),
)
DROPS = st.tuples(st.just("drop"), st.sampled_from(NAMES))
PLACES = st.tuples(
    st.just("place"),
    st.tuples(st.sampled_from(NODES), st.lists(st.sampled_from(NAMES), max_size=3)),
)
REMOVES = st.tuples(st.just("remove"), st.sampled_from(NODES))


def path_by_hand(domains: dict[str, Domain], claims: list[str]) -> tuple[str, ...]:
    """The domains around a node, from the definition alone."""
    claimed = sorted((domains[each].tier, each) for each in claims if each in domains)
    path: list[str] = []
    at = claimed[0][1] if claimed else None
    while at is not None:
        path.append(at)
        tier = domains[at].tier
        outer = [each.name for each in domains.values() if at in each.inner and each.tier > tier]
        at = min(outer, default=None)
    return tuple(path)


@given(st.lists(PUTS | DROPS | PLACES | REMOVES, max_size=25))
def test_a_forest_is_what_its_domains_and_nodes_say_whatever_came_before(
    changes: list[tuple[str, object]],
) -> None:
    forest, domains, claims = Forest(), dict[str, Domain](), dict[str, list[str]]()
    before: dict[str, list[tuple[str, int]]] = {}
    for what, value in changes:
        moved: list[str] = []
        match what, value:
            case "put", Domain() as domain:
                moved = forest.put(domain)
                domains[domain.name] = domain
            case "drop", str() as name:
                moved = forest.drop(name)
                domains.pop(name, None)
            case "place", (str() as node, list() as names):
                moved = [node] if forest.place(node, names) else []
                claims[node] = names
            case "remove", str() as node:
                forest.remove(node)
                claims.pop(node, None)
        paths = {node: path_by_hand(domains, names) for node, names in claims.items()}
        assert {node: forest.path(node) for node in forest.nodes} == paths
        tiers = {
            node: [(each, domains[each].tier) for each in path] for node, path in paths.items()
        }
        assert set(moved) == {node for node, path in tiers.items() if before.get(node) != path}
        for name in domains:
            assert forest.size(name) == sum(name in path for path in paths.values())
        before = tiers
    assert forest.tiers == tuple(sorted({each.tier for each in domains.values()}, reverse=True))


@given(st.lists(PUTS | DROPS | PLACES | REMOVES, max_size=25))
def test_whatever_changes_of_a_domain_is_among_what_was_touched(
    changes: list[tuple[str, object]],
) -> None:
    forest = Forest()
    shown: dict[str, tuple[int, list[str]]] = {}
    for what, value in changes:
        match what, value:
            case "put", Domain() as domain:
                forest.put(domain)
            case "drop", str() as name:
                forest.drop(name)
            case "place", (str() as node, list() as names):
                forest.place(node, names)
            case "remove", str() as node:
                forest.remove(node)
        now = {name: (forest.size(name), said(forest, name)) for name in forest.domains}
        touched = set(forest.taken_touched())
        assert {name for name, state in now.items() if shown.get(name) != state} <= touched
        shown = now


def test_a_level_says_which_of_its_domains_have_its_tier() -> None:
    """The others are narrower, or a node; a domain may have its node's name."""
    domains = (*UNEVEN, Domain("alone", 1), Domain("c1", 1))
    forest = forest_of(domains, {**CLAIMS, "a5": ["alone"], "c1": ["c1"]})
    tree = forest.tree(KEYS, generation=1)
    having = {
        level: [
            name
            for name, is_so in zip(tree.names[level], has_tier(tree, level).tolist(), strict=True)
            if is_so
        ]
        for level in range(3)
    }
    assert having == {0: ["spine"], 1: ["leaf-a", "leaf-b"], 2: ["alone", "c1", "r1", "r2"]}
