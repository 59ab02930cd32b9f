from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text import BLOCK, RACK
from topology import NODE_LEVEL, InvalidTopology, build, invariants
from topology.model.changed.tree import GONE, changed
from topology.model.tree import Tree

LEVELS = (BLOCK, RACK, NODE_LEVEL)
VALUES = st.tuples(*(st.sampled_from("ab"),) * 2)
NODES = st.dictionaries(st.sampled_from("nopqrstu"), VALUES, max_size=8)


def paths_of(nodes: dict[str, tuple[str, str]], levels: int) -> dict[str, tuple[str, ...]]:
    return {name: (*values[: levels - 1], name) for name, values in nodes.items()}


def assert_same(one: Tree, other: Tree) -> None:
    for name in ("generation", "levels", "nodes", "names", "slot_of"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("starts", "ends", "parents", "domain_of"):
        pairs = list(zip(getattr(one, name), getattr(other, name), strict=True))
        assert all(np.array_equal(*pair) for pair in pairs), name
        assert all(left.dtype == right.dtype for left, right in pairs), name


@given(before=NODES, after=NODES, levels=st.integers(1, 3))
def test_a_changed_tree_is_the_one_that_is_built_from_all_nodes(
    before: dict[str, tuple[str, str]], after: dict[str, tuple[str, str]], levels: int
) -> None:
    was, now = paths_of(before, levels), paths_of(after, levels)
    tree = build(LEVELS[-levels:], was, generation=1)
    gone = [name for name in was if now.get(name) != was[name]]
    came = {name: path for name, path in now.items() if was.get(name) != path}
    made = changed(tree, gone, came, generation=2)
    assert_same(made.tree, build(LEVELS[-levels:], now, generation=2))
    invariants.check_starts_increase(made.tree)
    invariants.check_levels_nest(made.tree)
    slots = [tree.slot_of.get(each, GONE) for each in made.tree.nodes]
    assert made.slots_before.tolist() == slots


def test_a_changed_tree_leaves_the_one_before_as_it_was() -> None:
    nodes = {"n": ("a", "n"), "o": ("b", "o")}
    tree = build(LEVELS[1:], nodes, generation=1)
    changed(tree, ["n"], {"m": ("b", "m")}, generation=2)
    assert_same(tree, build(LEVELS[1:], nodes, generation=1))


def test_a_node_with_too_few_values_is_refused_by_name() -> None:
    tree = build(LEVELS[1:], {}, generation=1)
    with pytest.raises(InvalidTopology, match="node n: 1 values for 2 levels"):
        changed(tree, [], {"n": ("n",)}, generation=2)
