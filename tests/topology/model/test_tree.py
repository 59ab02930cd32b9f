from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text import BLOCK, RACK, cluster
from topology import NODE_LEVEL, InvalidTopology, build, invariants, levels_that_do_not_nest

TWO_BLOCKS = """
    b1/r1/n1
    b1/r1/n2
    b1/r2/n3
    b2/r1/n4
"""


def test_slots_follow_the_paths_and_then_the_names() -> None:
    tree, _ = cluster("b2/r1/a\nb1/r2/b\nb1/r1/d\nb1/r1/c")
    assert tree.nodes == ("c", "d", "b", "a")
    assert [tree.slot_of[name] for name in tree.nodes] == [0, 1, 2, 3]


def test_domains_are_ranges_of_slots() -> None:
    tree, _ = cluster(TWO_BLOCKS)
    assert [starts.tolist() for starts in tree.starts] == [[0, 3], [0, 2, 3], [0, 1, 2, 3]]
    assert tree.slots(0, 0) == slice(0, 3)
    assert tree.slots(1, 2) == slice(3, 4)


def test_the_same_rack_name_in_two_blocks_is_two_racks() -> None:
    tree, _ = cluster(TWO_BLOCKS)
    assert tree.names[1] == ("r1", "r2", "r1")
    assert [tree.path(1, domain) for domain in range(3)] == [
        ("b1", "r1"),
        ("b1", "r2"),
        ("b2", "r1"),
    ]


def test_parents_and_domains_of_slots_name_the_domain_around() -> None:
    tree, _ = cluster(TWO_BLOCKS)
    assert [parents.tolist() for parents in tree.parents] == [[0, 0], [0, 0, 1], [0, 0, 1, 2]]
    assert [domains.tolist() for domains in tree.domain_of[:2]] == [[0, 0, 0, 1], [0, 0, 1, 2]]


def test_children_and_slots_of_several_domains_come_in_order() -> None:
    tree, _ = cluster(TWO_BLOCKS)
    assert tree.children(0, np.array([0, 1])).tolist() == [0, 1, 2]
    assert tree.children(1, np.array([0, 2])).tolist() == [0, 1, 3]
    assert tree.slots_of(1, np.array([1, 2])).tolist() == [2, 3]
    assert tree.slots_of(1, np.array([], dtype=np.intp)).tolist() == []


def test_the_first_child_of_each_domain_is_known_at_every_level() -> None:
    tree, _ = cluster(TWO_BLOCKS)
    assert tree.node_level == 2
    assert [tree.first_children(level).tolist() for level in (0, 1)] == [[0, 2], [0, 2, 3]]
    assert tree.ends[1].tolist() == [2, 3, 4]


def test_slots_of_one_domain_or_of_several_in_any_order_are_those_it_owns() -> None:
    tree, _ = cluster(TWO_BLOCKS)
    assert tree.slots_of(0, np.array([0])).tolist() == [0, 1, 2]
    assert tree.slots_of(1, np.array([2, 0])).tolist() == [3, 0, 1]
    assert tree.slots_of(0, np.array([0, 1])).dtype == np.intp


def test_a_path_leads_from_the_widest_level_to_the_domain() -> None:
    tree, _ = cluster(TWO_BLOCKS)
    assert tree.path(0, 1) == ("b2",)
    assert tree.path(2, 2) == ("b1", "r2", "n3")


def test_no_nodes_make_a_tree_without_domains() -> None:
    tree = build([BLOCK, RACK], {}, generation=7)
    assert tree.nodes == ()
    assert [starts.size for starts in tree.starts] == [0, 0, 0]
    assert tree.generation == 7


def test_two_nodes_that_claim_one_hostname_stay_two_nodes() -> None:
    tree = build([RACK], {"n1": ["r1", "same"], "n2": ["r1", "same"]}, generation=1)
    assert tree.nodes == ("n1", "n2")
    assert tree.starts[1].tolist() == [0, 1]


def test_a_node_without_a_value_for_every_level_is_refused_by_name() -> None:
    with pytest.raises(InvalidTopology, match="node n2: 1 values for 2 levels"):
        build([RACK], {"n1": ["r1", "n1"], "n2": ["n2"]}, generation=1)


def test_levels_that_do_not_nest_are_reported_with_both_paths() -> None:
    tree, _ = cluster(TWO_BLOCKS)
    (split,) = levels_that_do_not_nest(tree)
    assert (split.level, split.value) == (RACK, "r1")
    assert split.paths == (("b1", "r1"), ("b2", "r1"))


def test_levels_that_nest_report_nothing() -> None:
    tree, _ = cluster("b1/r1/n1\nb1/r1/n2\nb2/r2/n3")
    assert levels_that_do_not_nest(tree) == ()


def test_a_value_split_below_a_split_value_is_reported_where_its_own_parents_differ() -> None:
    tree = build(
        [BLOCK, RACK, NODE_LEVEL],
        {"n1": ["b1", "r1", "x"], "n2": ["b1", "r1", "x"], "n3": ["b1", "r2", "x"]},
        generation=1,
    )
    (split,) = levels_that_do_not_nest(tree)
    assert (split.level, split.value) == (NODE_LEVEL, "x")
    assert split.paths == (("b1", "r1", "x"), ("b1", "r2", "x"))


def test_values_that_do_not_nest_are_reported_from_the_widest_level_on_and_by_value() -> None:
    tree = build(
        ["zone", BLOCK, RACK],
        {
            "n1": ["z1", "b2", "r1", "n1"],
            "n2": ["z2", "b2", "r1", "n2"],
            "n3": ["z1", "b1", "r2", "n3"],
            "n4": ["z2", "b1", "r3", "n4"],
        },
        generation=1,
    )
    found = levels_that_do_not_nest(tree)
    assert [(split.level, split.value) for split in found] == [
        (BLOCK, "b1"),
        (BLOCK, "b2"),
        (RACK, "r1"),
    ]
    assert found[1].paths == (("z1", "b2"), ("z2", "b2"))


def test_a_node_with_more_values_than_levels_is_refused_by_name() -> None:
    with pytest.raises(InvalidTopology, match="node n1: 3 values for 2 levels"):
        build([RACK], {"n1": ["r1", "n1", "more"]}, generation=1)


@pytest.mark.slow
@given(
    depth=st.integers(1, 16),
    seed=st.lists(st.lists(st.sampled_from("abc"), min_size=15, max_size=15), max_size=12),
)
def test_any_tree_up_to_sixteen_levels_keeps_its_invariants(
    depth: int, seed: list[list[str]]
) -> None:
    levels = [*(f"level-{level}" for level in range(depth - 1)), NODE_LEVEL]
    nodes = {f"n{index}": [*values[: depth - 1], f"n{index}"] for index, values in enumerate(seed)}
    tree = build(levels, nodes, generation=1)
    assert len(tree.levels) == depth
    invariants.check_slots_are_sorted(tree)
    invariants.check_starts_increase(tree)
    invariants.check_levels_nest(tree)
    shuffled = build(levels, dict(reversed(nodes.items())), generation=1)
    assert shuffled.nodes == tree.nodes
    assert shuffled.names == tree.names
