"""Which domains are nearest to one."""

from __future__ import annotations

from app.state.plan.siblings import nodes_beside
from tests.app.state.world import World
from tests.records import BLOCK, RACK, node


def topology():
    """Two blocks of two racks of two nodes."""
    nodes = [node(f"b{r // 2}/r{r}/n{r}{i}") for r in range(4) for i in range(2)]
    world = World(nodes)
    world.engine.books.refresh()
    (found,) = [each for each in world.engine.books.topologies.values() if RACK in each.levels]
    return found


def test_the_rack_of_the_same_block_comes_first():
    assert nodes_beside(topology(), RACK, "n20", 4) == ("n30", "n31", "n10", "n11")


def test_only_whole_domains_are_named():
    assert nodes_beside(topology(), RACK, "n20", 3) == ("n30", "n31")
    assert nodes_beside(topology(), RACK, "n20", 1) == ()


def test_of_a_wider_level_it_is_the_other_block():
    assert nodes_beside(topology(), BLOCK, "n00", 4) == ("n20", "n21", "n30", "n31")


def test_a_node_that_is_in_no_domain_has_none_beside():
    assert nodes_beside(topology(), RACK, "gone", 4) == ()
