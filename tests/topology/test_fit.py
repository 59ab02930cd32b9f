from __future__ import annotations

import numpy as np
import pytest

from tests.text import cluster, vector
from topology import fit
from topology.request import PODS_MAX
from topology.resources import AMOUNT_MAX


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
    assert fit.sum_by_domain(tree, pods, level=1).tolist() == per_rack


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


def test_sums_of_children_are_the_sums_of_nodes() -> None:
    tree, _ = cluster("b1/r1/n1\nb1/r1/n2\nb1/r2/n3\nb2/r1/n4")
    per_node = np.array([1, 2, 4, 8], dtype=np.int64)
    racks = fit.sum_by_domain(tree, per_node, 1)
    assert racks.tolist() == [3, 4, 8]
    assert fit.sum_of_children(tree, racks, 1).tolist() == [7, 8]
    assert fit.sum_of_children(tree, per_node, 2).tolist() == racks.tolist()


def test_sums_over_some_domains_read_only_their_nodes() -> None:
    tree, _ = cluster("b1/r1/n1\nb1/r1/n2\nb1/r2/n3\nb2/r1/n4")
    per_node = np.array([1, 2, 4, 8], dtype=np.int64)
    assert fit.sum_over(tree, per_node, 1, np.array([0, 2])).tolist() == [3, 8]
    assert fit.sum_over(tree, per_node, 2, np.array([1, 3])).tolist() == [2, 8]


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
