from __future__ import annotations

import numpy as np
import pytest

from tests.text import RACK, cluster, vector
from topology import NODE_LEVEL, Gang, Group, Leader, PodSet, Slice, Strategy, Tree
from topology.fit import fit
from topology.fit.unit import Unit, units_of
from topology.model.request import PODS_MAX
from topology.model.resources import AMOUNT_MAX


@pytest.mark.parametrize(
    ("nodes", "per_rack"),
    [
        pytest.param("b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8\nb1/r2/n3 gpu=4", [4, 1], id="sums_of_a_rack"),
        pytest.param(
            "b1/r1/n1 gpu=8\nb2/r1/n2 gpu=8", [2, 2], id="same_rack_name_in_two_blocks_is_two_racks"
        ),
        pytest.param(
            "b1/r1/n1 gpu=6\nb1/r1/n2 gpu=6", [2], id="does_not_glue_remainders_of_two_nodes"
        ),
        pytest.param("b1/r1/n1 gpu=8 pods=1", [1], id="pod_slots_bound_it_too"),
        pytest.param("b1/r1/n1 gpu=12/8\nb1/r1/n2 gpu=4", [1], id="overcommitted_node_counts_zero"),
    ],
)
def test_pods_per_rack(nodes: str, per_rack: list[int]) -> None:
    tree, capacity = cluster(nodes)
    request = vector(capacity.axis, pods=1, gpu=4)
    pods = fit.pods_per_node(capacity.free(), request)
    layers = unit_of(tree).layers
    nodes = fit.of_nodes(pods, layers, tree.node_level)
    racks = fit.of_parents(nodes, tree.first_children(1), 1, layers)
    assert racks.pods.tolist() == racks.slices.tolist() == per_rack


def test_a_resource_asked_with_zero_does_not_bound_the_fit() -> None:
    free = np.array([[10], [0], [-5]], dtype=np.int64)
    assert fit.pods_per_node(free, (2, 0, 0)).tolist() == [5]


def test_an_empty_request_is_the_callers_bug() -> None:
    with pytest.raises(ValueError, match="empty request"):
        fit.pods_per_node(np.ones((2, 3), dtype=np.int64), (0, 0))


def test_exact_multiples_of_large_amounts_fit_exactly() -> None:
    free = np.array([[AMOUNT_MAX, AMOUNT_MAX - 1]], dtype=np.int64)
    assert fit.pods_per_node(free, (AMOUNT_MAX // 8,)).tolist() == [8, 7]


def test_a_node_counts_for_no_more_pods_than_kubernetes_can_count() -> None:
    free = np.full((1, 4), AMOUNT_MAX, dtype=np.int64)
    assert fit.pods_per_node(free, (1,)).tolist() == [PODS_MAX] * 4


def rolled_up(tree: Tree, per_node: list[int], **fields: object) -> dict[int, fit.LevelFit]:
    """The fit of all levels; a leader takes the room of two workers."""
    unit = unit_of(tree, **fields)
    pods = np.array(per_node, dtype=np.int64)
    led = None if unit.leader is None else (np.maximum(pods - 2, 0), pods > 1)
    nodes = fit.of_nodes(pods, unit.layers, tree.node_level, led=led)
    above = {level: tree.first_children(level) for level in range(tree.node_level)}
    return fit.roll_up(nodes, above, unit.layers, tree.node_level)


def unit_of(tree: Tree, pods: int = 12, **fields: object) -> Unit:
    pod_set = PodSet("w", pods, (1,), **fields)  # type: ignore[arg-type]
    [unit] = units_of(tree, Gang("ns/gang", Group("root", (pod_set,))), Strategy.BEST_FIT)
    return unit


FOUR = "b1/r1/n1\nb1/r1/n2\nb1/r2/n3\nb2/r1/n4"


def test_sums_of_children_are_the_sums_of_nodes() -> None:
    tree, _ = cluster(FOUR)
    fits = rolled_up(tree, [1, 2, 4, 8])
    assert fits[1].pods.tolist() == [3, 4, 8]
    assert fits[0].pods.tolist() == [7, 8]


def test_slices_are_counted_at_their_level_and_added_up_above_it() -> None:
    tree, _ = cluster(FOUR)
    fits = rolled_up(tree, [1, 2, 4, 8], slices=(Slice(3, RACK),))
    assert fits[1].slices.tolist() == [1, 1, 2]
    assert fits[0].slices.tolist() == [2, 2]  # not 7 // 3 + 8 // 3: no slice spans two racks


def test_a_domain_counts_no_pods_that_do_not_fill_an_inner_slice() -> None:
    tree, _ = cluster(FOUR)
    fits = rolled_up(tree, [1, 3, 5, 8], slices=(Slice(4, RACK), Slice(2, NODE_LEVEL)))
    assert fits[1].pods.tolist() == [2, 4, 8]
    assert fits[1].slices.tolist() == [0, 1, 2]


def test_the_leader_sits_where_least_is_lost() -> None:
    tree, _ = cluster(FOUR)
    fits = rolled_up(tree, [1, 3, 1, 8], leader=Leader("l", (1,)))
    assert fits[1].may_lead is not None
    assert fits[1].may_lead.tolist() == [True, False, True]
    assert fits[1].pods_led.tolist() == [2, 0, 6]
    assert fits[0].pods_led.tolist() == [3, 6]


def test_an_excluded_node_is_counted_once_by_its_first_reason() -> None:
    _, capacity = cluster("n1 gpu=0 cpu=0 closed\nn2 gpu=0 cpu=0\nn3 gpu=0 cpu=1\nn4 gpu=8 cpu=0")
    capacity.use(3, (110,))
    names = capacity.axis.names
    request = vector(capacity.axis, pods=1, gpu=1, cpu=1)
    found = fit.exclusions(
        capacity.free(),
        list(zip(names, request, strict=True)),
        capacity.is_open,
        np.array([False, False, True, True]),
    )
    assert found == (
        ("insufficient cpu", 1),
        ("insufficient nvidia.com/gpu", 1),
        (fit.NOT_ALLOWED, 1),
        (fit.NOT_OPEN, 1),
    )


def test_the_most_frequent_reason_comes_first() -> None:
    _, capacity = cluster("n1 gpu=8 closed\nn2 gpu=0\nn3 gpu=0")
    request = vector(capacity.axis, pods=1, gpu=1)
    asked = list(zip(capacity.axis.names, request, strict=True))
    everywhere = np.ones(3, dtype=np.bool_)
    found = fit.exclusions(capacity.free(), asked, capacity.is_open, everywhere)
    assert found == (("insufficient nvidia.com/gpu", 2), (fit.NOT_OPEN, 1))
