"""Books as if pods had left or come, or nodes were back; those asked about stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.text import GPU, cluster, vector
from topology import Capacity, Pairs, invariants
from topology.model.changed.capacity import Occupant, arrived, leaving, returning

NODES = """
    b1/r1/n1 gpu=8
    b1/r1/n2 gpu=8
    b1/r2/n3 gpu=8 closed
"""


def gpus(capacity: Capacity) -> list[int]:
    free: list[int] = capacity.free()[capacity.axis.row(GPU)].tolist()
    return free


def occupied() -> tuple[Capacity, list[Occupant]]:
    """n1: 2 GPUs of a, 1 of b, 1 held for b; n2: 4 of a in two pods."""
    _, capacity = cluster(NODES)
    one, two, three = (vector(capacity.axis, pods=1, gpu=gpus) for gpus in (1, 2, 3))
    capacity.use(0, two)
    capacity.use(0, one)
    capacity.hold(0, one)
    capacity.use(1, one)
    capacity.use(1, three)
    occupants = [
        Occupant("a", ((0, two), (1, one), (1, three))),
        Occupant("b", ((0, one), (0, one))),
    ]
    return capacity, occupants


@pytest.mark.parametrize(
    ("chosen", "free"),
    [
        pytest.param([], [4, 4, 8], id="nobody"),
        pytest.param([0], [6, 8, 8], id="from_two_nodes"),
        pytest.param([1], [6, 4, 8], id="bound_and_held_on_one_node"),
        pytest.param([0, 1], [8, 8, 8], id="both"),
        pytest.param([1, 0], [8, 8, 8], id="both_in_another_order"),
    ],
)
def test_what_leaves_frees_what_it_took(chosen: list[int], free: list[int]) -> None:
    capacity, occupants = occupied()
    books = leaving(capacity, occupants).books(capacity, chosen)
    assert gpus(books) == free
    assert books.is_open.tolist() == [True, True, False], "no node opens"
    invariants.check(capacity.tree, books)
    assert gpus(capacity) == [4, 4, 8], "the books asked about stay as they are"
    invariants.check(capacity.tree, capacity)


def test_occupants_reach_into_the_domains_their_pods_are_in() -> None:
    capacity, occupants = occupied()
    changes = leaving(capacity, occupants)
    assert changes.number == 2
    nodes = capacity.tree.domain_of[2]
    assert [changes.within(nodes, node) for node in range(3)] == [{0, 1}, {0}, set()]
    racks = capacity.tree.domain_of[1]
    assert [changes.within(racks, rack) for rack in range(2)] == [{0, 1}, set()]


def test_occupants_allow_nodes_what_they_allowed() -> None:
    capacity, occupants = occupied()
    masks = {"": np.array([True, False, True])}
    assert leaving(capacity, occupants).allowed(masks, [0]) is masks


def test_nobody_leaves_nothing_free() -> None:
    capacity, _ = occupied()
    changes = leaving(capacity, [])
    assert changes.number == 0
    assert gpus(changes.books(capacity, [])) == gpus(capacity)


def test_a_pod_that_requests_more_rows_than_are_taken_leaves_with_those() -> None:
    capacity, _ = occupied()
    request = (*vector(capacity.axis, pods=1, gpu=2), 0)
    books = leaving(capacity, [Occupant("a", ((0, request),))]).books(capacity, [0])
    assert gpus(books) == [6, 4, 8]


@pytest.mark.parametrize(
    ("pods", "says"),
    [
        pytest.param(
            ((3, (1, 0, 0)),), "occupant odd: slot 3 is not one of 3 nodes", id="slot_too_large"
        ),
        pytest.param(
            ((-1, (1, 0, 0)),), "occupant odd: slot -1 is not one of 3 nodes", id="slot_below_0"
        ),
        pytest.param(
            ((0, (1, 0, 5)),),
            "occupants: node n1 has 1 less of nvidia.com/gpu taken than they take",
            id="more_than_is_taken",
        ),
        pytest.param(
            ((0, (1, 0, 2)), (0, (1, 0, 3))),
            "occupants: node n1 has 1 less of nvidia.com/gpu taken",
            id="more_than_is_taken_in_two_pods",
        ),
        pytest.param(
            ((0, (1, -1, 0)),), "occupant odd: request row 1 is -1", id="less_than_nothing"
        ),
        pytest.param(
            ((0, (1, 0, 0, 7)),),
            "occupant odd: request row 3 is 7, and no node has that taken",
            id="a_row_of_no_node",
        ),
    ],
)
def test_what_was_never_taken_cannot_leave(
    pods: tuple[tuple[int, tuple[int, ...]], ...], says: str
) -> None:
    capacity, occupants = occupied()
    with pytest.raises(ValueError, match=f"^{says}"):
        leaving(capacity, [occupants[1], Occupant("odd", pods)][1:])


def test_all_that_is_taken_may_leave() -> None:
    capacity, _ = occupied()
    taken = tuple((capacity.used + capacity.held)[:, 0].tolist())
    books = leaving(capacity, [Occupant("all", ((0, taken),))]).books(capacity, [0])
    assert gpus(books) == [8, 4, 8]


def test_pods_that_arrive_take_what_they_request() -> None:
    capacity, _ = occupied()
    short, long = (1,), (*vector(capacity.axis, pods=1, gpu=2), 9)
    books = arrived(capacity, [(long, Pairs.of([(0, 1), (1, 2)])), (short, Pairs.of([(1, 3)]))])
    assert gpus(books) == [2, 0, 8]
    assert books.free()[0].tolist() == [106, 103, 110]
    assert books.is_open.tolist() == [True, True, False]
    invariants.check(capacity.tree, books)
    assert gpus(capacity) == [4, 4, 8]


def test_nodes_that_are_back_are_open() -> None:
    capacity, _ = occupied()
    changes = returning(capacity, [2, 0], {}, None)
    assert changes.books(capacity, []).is_open.tolist() == [True, True, False]
    for chosen in ([0], [0, 1]):
        books = changes.books(capacity, chosen)
        assert books.is_open.tolist() == [True, True, True]
        assert gpus(books) == [4, 4, 8]
        invariants.check(capacity.tree, books)
    assert capacity.is_open.tolist() == [True, True, False]


def test_what_a_node_that_is_back_may_host_is_said_by_the_masks_of_then() -> None:
    _, capacity = cluster("r1/n1\nr1/n2 closed\nr1/n3 closed\nr1/n4")
    now = {
        "large": np.array([True, False, False, False]),
        "small": np.array([True, True, True, False]),
    }
    then = {"large": np.array([False, True, False, True])}
    changes = returning(capacity, [1, 2, 3], now, then)
    assert changes.allowed(now, [])["large"].tolist() == [True, False, False, False]
    after = changes.allowed(now, [0, 1])
    assert after["large"].tolist() == [True, True, False, False]
    assert after["small"].tolist() == [True, True, True, False], "nothing is said of it then"
    assert changes.allowed(now, [2])["large"].tolist() == [True, False, False, True]
    assert now["large"].tolist() == [True, False, False, False]


def test_a_node_that_is_open_may_host_then_what_it_may_host_now() -> None:
    _, capacity = cluster("r1/n1\nr1/n2 closed")
    now, then = {"": np.array([True, True])}, {"": np.array([False, False])}
    after = returning(capacity, [0, 1], now, then).allowed(now, [0, 1])
    assert after[""].tolist() == [True, False]


def test_masks_that_hold_now_and_then_stay_as_they_are() -> None:
    capacity, _ = occupied()
    masks = {"": np.array([True, True, True])}
    assert returning(capacity, [2], masks, None).allowed(masks, [0]) is masks


@pytest.mark.parametrize("slot", [-1, 3])
def test_a_node_that_is_not_in_the_tree_cannot_be_back(slot: int) -> None:
    capacity, _ = occupied()
    with pytest.raises(ValueError, match=f"away: slot {slot} is not one of 3 nodes"):
        returning(capacity, [0, slot], {}, None)
