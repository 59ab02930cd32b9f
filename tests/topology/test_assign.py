from __future__ import annotations

import numpy as np

from tests.text import cluster
from topology import PodSetPlacement, assignment
from topology.assign import down


def test_ranks_fill_the_slots_in_slot_order() -> None:
    placement = PodSetPlacement("w", 1, domains=((0, 5),), slots=((2, 3), (4, 2)))
    assert assignment(placement).tolist() == [2, 2, 2, 4, 4]


def test_inside_a_rack_the_roomiest_node_is_filled_first() -> None:
    tree, _ = cluster("r1/n1\nr1/n2\nr1/n3\nr2/n4")
    per_node = np.array([3, 5, 2, 9], dtype=np.int64)
    slots, pods = down(tree, per_node, 0, np.array([0]), 7)
    assert (slots.tolist(), pods.tolist()) == ([1, 2], [5, 2])


def test_children_of_all_chosen_domains_compete_together() -> None:
    # b1 has 7 and b2 has 6: both are needed for 12, and b2's rack of 6 is the roomiest of all.
    tree, _ = cluster("b1/r1/n1\nb1/r2/n2\nb2/r3/n3")
    per_node = np.array([4, 3, 6], dtype=np.int64)
    slots, pods = down(tree, per_node, 0, np.array([0, 1]), 12)
    assert (slots.tolist(), pods.tolist()) == ([0, 1, 2], [4, 2, 6])


def test_one_node_takes_all_where_the_domain_is_a_node() -> None:
    tree, _ = cluster("r1/n1\nr1/n2")
    slots, pods = down(tree, np.array([3, 5], dtype=np.int64), 1, np.array([1]), 4)
    assert (slots.tolist(), pods.tolist()) == ([1], [4])
