from __future__ import annotations

import numpy as np

from tests.text import RACK, cluster
from topology import (
    Constraint,
    Gang,
    Group,
    Leader,
    Pairs,
    PodSet,
    PodSetPlacement,
    Slice,
    Strategy,
    Tree,
    assignment,
)
from topology.fit import fit
from topology.fit.unit import units_of
from topology.pod_set import assign


def down(
    tree: Tree, per_node: list[int], level: int, domains: list[int], workers: PodSet
) -> tuple[list[int], list[int], int | None]:
    """Slots, pods on them and the slot of the leader, which takes the room of one worker."""
    [unit] = units_of(tree, Gang("ns/gang", Group("root", (workers,))), Strategy.LEAST_FREE)
    pods = np.array(per_node, dtype=np.int64)
    led = None if unit.leader is None else (np.maximum(pods - 1, 0), pods > 0)
    nodes = fit.of_nodes(pods, unit.layers, tree.node_level, led=led)
    above = {above: tree.first_children(above) for above in range(level, tree.node_level)}
    fits = fit.roll_up(nodes, above, unit.layers, tree.node_level)
    share = assign.down(tree, fits, unit, level, np.array(domains))
    assert share is not None
    in_order = np.argsort(share.domains)
    return share.domains[in_order].tolist(), share.pods[in_order].tolist(), share.leader


def workers(pods: int, **fields: object) -> PodSet:
    constraint = Constraint(
        preferred="kubernetes.io/hostname" if not fields.get("slices") else RACK
    )
    return PodSet("w", pods, (1,), constraint=constraint, **fields)  # type: ignore[arg-type]


def test_ranks_fill_the_slots_in_slot_order() -> None:
    placement = PodSetPlacement(
        "w", 1, domains=Pairs.of([(0, 5)]), slots=Pairs.of([(2, 3), (4, 2)])
    )
    assert assignment(placement).tolist() == [2, 2, 2, 4, 4]


def test_inside_a_rack_the_roomiest_node_is_filled_first() -> None:
    tree, _ = cluster("r1/n1\nr1/n2\nr1/n3\nr2/n4")
    assert down(tree, [3, 5, 2, 9], 0, [0], workers(7)) == ([1, 2], [5, 2], None)


def test_children_of_all_chosen_domains_compete_together() -> None:
    # b1 has 7 and b2 has 6: both are needed for 12, and b2's rack of 6 is the roomiest of all.
    tree, _ = cluster("b1/r1/n1\nb1/r2/n2\nb2/r3/n3")
    assert down(tree, [4, 3, 6], 0, [0, 1], workers(12)) == ([0, 1, 2], [4, 2, 6], None)


def test_one_node_takes_all_where_the_domain_is_a_node() -> None:
    tree, _ = cluster("r1/n1\nr1/n2")
    assert down(tree, [3, 5], 1, [1], workers(4)) == ([1], [4], None)


def test_inside_a_slice_the_smallest_node_is_filled_first() -> None:
    tree, _ = cluster("r1/n1\nr1/n2\nr1/n3")
    sliced = workers(8, slices=(Slice(4, RACK),))
    assert down(tree, [5, 2, 3], 0, [0], sliced) == ([0, 1, 2], [3, 2, 3], None)


def test_inner_slices_are_never_cut() -> None:
    tree, _ = cluster("r1/n1\nr1/n2\nr1/n3")
    sliced = workers(8, slices=(Slice(8, RACK), Slice(2, "kubernetes.io/hostname")))
    assert down(tree, [5, 3, 3], 0, [0], sliced) == ([0, 1, 2], [4, 2, 2], None)


def test_the_leader_sits_with_its_workers() -> None:
    tree, _ = cluster("r1/n1\nr1/n2")
    led = workers(5, leader=Leader("l", (1,)))
    assert down(tree, [4, 2], 0, [0], led) == ([0, 1], [3, 2], 0)
