"""How near pods are to what their gang prefers: a number between 0 and 1."""

from __future__ import annotations

import pytest

from app.dialects.spec import GangKey, GangSpec, GroupSpec, LeafSpec
from app.state.cache.books import Books
from app.state.plan.nearness import everywhere, nearness
from tests.records import BLOCK, RACK, node
from topology.model.levels import NODE_LEVEL
from topology.model.request import Constraint

# b0: racks r0, r1 · b1: racks r2, r3; two nodes each
NODES = [node(f"b{rack // 2}/r{rack}/n{rack}{at}", gpus=8) for rack in range(4) for at in range(2)]


def topology():
    books = Books()
    books.set_topologies({"net": (BLOCK, RACK, NODE_LEVEL)})
    for each in NODES:
        books.put_node(each)
    books.refresh()
    return books.topologies["net"]


def near(constraint, *nodes, **leaves):
    """Of a gang of pods on these nodes; `leaves`: (constraint, nodes) of further groups."""
    placed = {"w": nodes} | {name: its for name, (_, its) in leaves.items()}
    groups = [
        GroupSpec(name, (LeafSpec(name, len(its)),), own) for name, (own, its) in leaves.items()
    ]
    root = GroupSpec("g", (LeafSpec("w", len(nodes)), *groups), constraint)
    spec = GangSpec(GangKey("default", "g", "grove"), root, "PodGang default/g")
    return nearness(spec, placed, everywhere(topology()))


@pytest.mark.parametrize(
    ("required", "preferred", "nodes", "score"),
    [
        pytest.param(None, RACK, ("n00", "n01"), 1.0, id="all_in_one_rack"),
        # Its block holds all of them, each rack a half: the mean of 1 and 1/2.
        pytest.param(None, RACK, ("n00", "n10"), 0.75, id="two_racks_of_a_block"),
        pytest.param(None, RACK, ("n00", "n20"), 0.5, id="two_blocks"),
        pytest.param(None, RACK, ("n00", "n00", "n01", "n10"), 0.875, id="three_of_four"),
        # The block is required, so only the level below it counts.
        pytest.param(BLOCK, RACK, ("n00", "n10"), 0.5, id="below_what_is_required"),
        pytest.param(BLOCK, NODE_LEVEL, ("n00", "n01"), 0.75, id="two_levels_below"),
        pytest.param(RACK, None, ("n00", "n01"), 1.0, id="required_alone"),
        pytest.param(RACK, RACK, ("n00", "n01"), 1.0, id="both_the_same"),
        pytest.param(RACK, BLOCK, ("n00", "n01"), 1.0, id="preferred_is_wider"),
        pytest.param(RACK, None, ("n00", "n10"), 0.5, id="not_where_it_has_to_be"),
        pytest.param(None, None, ("n00", "n20"), 1.0, id="no_level"),
        pytest.param(None, RACK, (), 1.0, id="no_pods"),
        pytest.param(None, BLOCK, ("n00", "gone"), 0.5, id="a_node_that_is_gone"),
    ],
)
def test_a_score_is_the_share_in_the_fullest_domain_on_average(required, preferred, nodes, score):
    assert near(Constraint(required, preferred), *nodes) == pytest.approx(score)


def test_parts_that_prefer_a_level_count_by_their_pods_and_others_do_not():
    prefers, requires = Constraint(preferred=BLOCK), Constraint(required=BLOCK)
    # Three pods in one block, and one pod, which is always together.
    both = {"a": (prefers, ("n00", "n10", "n20")), "b": (prefers, ("n30",))}
    assert near(requires, **both) == pytest.approx((3 * 2 / 3 + 1) / 4)
    only = {"a": (prefers, ("n00", "n20"))}
    assert near(requires, "n00", "n01", **only) == pytest.approx(0.5)
