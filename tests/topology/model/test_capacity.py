from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text import GPU, cluster, vector
from topology import Capacity, ResourceAxis, invariants
from topology.model.capacity import TAKEN_MAX
from topology.model.resources import AMOUNT_MAX

RACKS = """
    b1/r1/n1 gpu=8
    b1/r1/n2 gpu=8
    b1/r2/n3 gpu=4
"""


def gpus(capacity: Capacity, level: int) -> list[int]:
    row: list[int] = capacity.free_by_domain[level][capacity.axis.row(GPU)].tolist()
    return row


def test_free_is_what_is_neither_used_nor_held() -> None:
    _, capacity = cluster(RACKS)
    request = vector(capacity.axis, pods=1, gpu=2)
    capacity.use(0, request)
    capacity.hold(0, request, pods=2)
    row = capacity.axis.row(GPU)
    assert capacity.free()[row].tolist() == [2, 8, 4]
    assert capacity.free([row], np.array([2, 0])).tolist() == [[4, 2]]


def test_free_by_domain_follows_every_change() -> None:
    _, capacity = cluster(RACKS)
    request = vector(capacity.axis, pods=1, gpu=3)
    assert gpus(capacity, 1) == [16, 4]
    capacity.use(1, request)
    assert gpus(capacity, 1) == [13, 4]
    capacity.hold(2, request)
    assert gpus(capacity, 0) == [14]
    capacity.unuse(1, request)
    capacity.release(2, request)
    assert gpus(capacity, 0) == [20]


def test_a_closed_node_counts_for_nothing_until_it_opens() -> None:
    _, capacity = cluster(RACKS)
    offered = vector(capacity.axis, pods=110, gpu=8)
    capacity.set_node(0, offered, is_open=False)
    assert gpus(capacity, 1) == [8, 4]
    capacity.set_node(0, offered, is_open=True)
    assert gpus(capacity, 1) == [16, 4]


def test_an_overcommitted_node_takes_nothing_from_its_neighbours() -> None:
    _, capacity = cluster(RACKS)
    capacity.use(0, vector(capacity.axis, pods=1, gpu=30))
    assert capacity.free()[capacity.axis.row(GPU), 0] == -22
    assert gpus(capacity, 1) == [8, 4]


def test_a_resource_named_later_adds_a_row_of_zeros() -> None:
    _, capacity = cluster(RACKS)
    capacity.hold(1, vector(capacity.axis, pods=1, memory=5))
    capacity.set_node(2, vector(capacity.axis, pods=10, memory=7), is_open=True)
    assert capacity.free()[capacity.axis.row("memory")].tolist() == [0, -5, 7]
    invariants.check(capacity.tree, capacity)


def test_a_shorter_vector_leaves_the_rows_it_lacks_at_zero() -> None:
    _, capacity = cluster(RACKS)
    capacity.set_node(0, (50,), is_open=True)
    assert gpus(capacity, 1) == [8, 4]
    capacity.use(1, (1,))
    assert capacity.used[:, 1].tolist() == [1, 0, 0]


def test_a_row_nobody_offered_yet_is_free_of_everything() -> None:
    _, capacity = cluster(RACKS)
    row = capacity.axis.row("rdma/hca")
    assert capacity.free([row]).tolist() == [[0, 0, 0]]
    demand = vector(capacity.axis, **{"rdma/hca": 1})
    assert capacity.may_cover(1, demand).tolist() == [False, False]


def test_a_demand_of_nothing_of_a_resource_nobody_offers_is_covered() -> None:
    _, capacity = cluster(RACKS)
    capacity.axis.row("rdma/hca")
    demand = vector(capacity.axis, gpu=1)
    assert demand[-1] == 0
    assert capacity.may_cover(1, demand).tolist() == [True, True]


def test_releasing_more_than_was_held_is_refused_and_changes_nothing() -> None:
    _, capacity = cluster(RACKS)
    capacity.hold(0, vector(capacity.axis, pods=1, gpu=2))
    before = capacity.held.copy()
    with pytest.raises(ValueError, match="node n1"):
        capacity.release(0, vector(capacity.axis, pods=1, gpu=3))
    assert capacity.held.tolist() == before.tolist()


def test_amounts_of_two_exbibytes_are_counted_exactly_or_refused() -> None:
    _, capacity = cluster(f"r1/n1 memory={AMOUNT_MAX}\nr1/n2 memory={AMOUNT_MAX}")
    request = vector(capacity.axis, pods=1, memory=AMOUNT_MAX)
    capacity.use(0, request, pods=2)
    capacity.hold(0, request)
    row = capacity.axis.row("memory")
    assert capacity.free()[row].tolist() == [-2 * AMOUNT_MAX, AMOUNT_MAX]
    with pytest.raises(ValueError, match=str(TAKEN_MAX)):
        capacity.use(0, request)
    invariants.check(capacity.tree, capacity)


def test_the_screen_says_no_only_where_the_sum_does_not_suffice() -> None:
    _, capacity = cluster(RACKS)
    assert capacity.may_cover(1, vector(capacity.axis, gpu=4)).tolist() == [True, True]
    assert capacity.may_cover(1, vector(capacity.axis, gpu=16)).tolist() == [True, False]
    assert capacity.may_cover(0, vector(capacity.axis, gpu=21)).tolist() == [False]


def test_the_screen_never_denies_what_huge_nodes_have() -> None:
    _, capacity = cluster("\n".join(f"r1/n{n} memory={AMOUNT_MAX}" for n in range(8)))
    demand = [0] * len(capacity.axis)
    demand[capacity.axis.row("memory")] = 8 * AMOUNT_MAX
    assert capacity.may_cover(0, demand).tolist() == [True]


def test_moving_to_another_tree_keeps_the_columns_of_nodes_that_stay() -> None:
    _, capacity = cluster(RACKS)
    capacity.use(2, vector(capacity.axis, pods=1, gpu=1))
    tree, _ = cluster("b0/r9/n3\nb1/r1/n0\nb1/r1/n2", generation=2)
    moved = capacity.move(tree)
    assert moved.generation == 2
    assert moved.free()[moved.axis.row(GPU)].tolist() == [3, 0, 8]
    assert moved.is_open.tolist() == [True, False, True]
    invariants.check(tree, moved)


@pytest.mark.parametrize("slot", range(3))
@pytest.mark.parametrize("other_slot", range(3))
def test_a_node_keeps_its_books_from_any_slot_to_any_slot(slot: int, other_slot: int) -> None:
    """Also from and to the first one, whose index is 0."""
    tree, _ = cluster("r1/n0\nr1/n1\nr1/n2")
    capacity = Capacity(ResourceAxis(), tree)
    capacity.set_node(slot, (110, 64), is_open=True)
    capacity.use(slot, (1, 8))
    capacity.hold(slot, (2, 4))
    names = [*("a0", "a1")[:other_slot], tree.nodes[slot], *("z0", "z1")[: 2 - other_slot]]
    other, _ = cluster("\n".join(f"r1/{name}" for name in names), generation=2)
    moved = capacity.move(other)
    assert other.slot_of[tree.nodes[slot]] == other_slot
    assert moved.is_open.nonzero()[0].tolist() == [other_slot]
    for books, amounts in (
        (moved.allocatable, (110, 64)),
        (moved.used, (1, 8)),
        (moved.held, (2, 4)),
        (moved.free_now, (107, 52)),
    ):
        assert books[:, other_slot].tolist() == list(amounts)
        assert books.sum() == sum(amounts)
    invariants.check(other, moved)


def test_moving_a_capacity_does_not_tie_it_to_the_one_it_came_from() -> None:
    tree, capacity = cluster(RACKS)
    moved = capacity.move(tree)
    moved.hold(0, vector(capacity.axis, pods=1, gpu=8))
    assert capacity.held.sum() == 0


def test_a_copy_has_the_same_books_and_changes_no_more_with_them() -> None:
    tree, capacity = cluster(RACKS)
    request = vector(capacity.axis, pods=1, gpu=2)
    capacity.use(0, request)
    capacity.hold(1, request)
    capacity.set_node(2, vector(capacity.axis, pods=110, gpu=4), is_open=False)
    copy = capacity.copy()
    for name in ("allocatable", "used", "held", "is_open", "free_now"):
        assert getattr(copy, name).tolist() == getattr(capacity, name).tolist()
    assert [sums.tolist() for sums in copy.free_by_domain] == [
        sums.tolist() for sums in capacity.free_by_domain
    ]
    before = gpus(capacity, 2)
    copy.hold(0, request)
    copy.unuse(0, request)
    copy.use(1, request)
    copy.set_node(2, vector(capacity.axis, pods=110, gpu=9), is_open=True)
    assert gpus(capacity, 2) == before == [6, 6, 0]
    assert gpus(copy, 2) == [6, 4, 9]
    invariants.check(tree, capacity)
    invariants.check(tree, copy)


def test_a_part_has_the_books_of_its_slots_alone() -> None:
    _, capacity = cluster(RACKS)
    request = vector(capacity.axis, pods=1, gpu=2)
    capacity.use(1, request)
    capacity.hold(2, request)
    capacity.set_node(0, vector(capacity.axis, pods=110, gpu=8), is_open=False)
    inner, _ = cluster("b1/r1/n2\nb1/r2/n3")
    part = capacity.part(inner, slice(1, 3))
    row = capacity.axis.row(GPU)
    for name, amounts in (
        ("allocatable", [8, 4]),
        ("used", [2, 0]),
        ("held", [0, 2]),
        ("free_now", [6, 2]),
    ):
        assert getattr(part, name)[row].tolist() == amounts
    assert part.is_open.tolist() == [True, True]
    assert [gpus(part, level) for level in range(3)] == [[8], [6, 2], [6, 2]]


def test_a_node_is_closed_until_it_is_said_to_be_open() -> None:
    tree, _ = cluster(RACKS)
    capacity = Capacity(ResourceAxis(), tree)
    assert capacity.is_open.tolist() == [False, False, False]
    capacity.set_node(1, (110,), is_open=True)
    assert capacity.is_open.tolist() == [False, True, False]


def test_a_node_that_offers_less_later_has_less_of_every_resource() -> None:
    _, capacity = cluster(RACKS)
    capacity.set_node(0, (50,), is_open=True)
    assert capacity.allocatable[:, 0].tolist() == [50, 0, 0]


def test_no_node_counts_for_so_much_that_the_sum_would_leave_an_int64() -> None:
    _, capacity = cluster("r1/n1 memory=1\nr1/n2 memory=1\nr1/n3 memory=1")
    for slot in range(3):
        capacity.set_node(slot, vector(capacity.axis, pods=1, memory=AMOUNT_MAX), is_open=True)
        capacity.set_node(slot, (1, 0, 2**62), is_open=True)
    assert capacity.counted_max == (2**63 - 1) // 3
    row = capacity.axis.row("memory")
    assert capacity.free_by_domain[0][row].tolist() == [3 * capacity.counted_max]
    assert capacity.may_cover(0, (0, 0, 2**62)).tolist() == [True]
    invariants.check_free_by_domain_is_current(capacity)


def test_books_may_be_taken_up_to_their_limit_and_back_to_nothing() -> None:
    _, capacity = cluster(f"r1/n1 memory={AMOUNT_MAX}")
    request = vector(capacity.axis, memory=AMOUNT_MAX)
    capacity.use(0, request, pods=2)
    capacity.hold(0, request)
    assert capacity.used.sum() + capacity.held.sum() == TAKEN_MAX
    with pytest.raises(ValueError, match=rf"would go from {AMOUNT_MAX} to {AMOUNT_MAX + 1}, with"):
        capacity.hold(0, vector(capacity.axis, memory=1))
    capacity.unuse(0, request, pods=2)
    capacity.release(0, request)
    assert (capacity.used.sum(), capacity.held.sum()) == (0, 0)
    with pytest.raises(ValueError, match="node n1: memory would go from 0 to -1"):
        capacity.unuse(0, vector(capacity.axis, memory=1))


def test_taking_back_a_resource_no_node_ever_had_is_refused() -> None:
    for verb in ("unuse", "release"):
        _, capacity = cluster(RACKS)
        request = vector(capacity.axis, **{"rdma/hca": 1})
        with pytest.raises(ValueError, match="node n2: rdma/hca would go from 0 to -1"):
            getattr(capacity, verb)(1, request)


changes = st.lists(
    st.tuples(
        st.sampled_from(["use", "hold", "set", "close", "undo"]),
        st.integers(0, 4),
        st.tuples(st.integers(1, 3), st.integers(0, AMOUNT_MAX // 8), st.integers(0, 9)),
    ),
    max_size=30,
)


@pytest.mark.slow
@given(changes)
def test_any_sequence_of_changes_keeps_the_books_and_their_sums(
    steps: list[tuple[str, int, tuple[int, ...]]],
) -> None:
    tree, _ = cluster("b1/r1/n1\nb1/r1/n2\nb1/r2/n3\nb2/r1/n4\nb2/r3/n5")
    capacity = Capacity(ResourceAxis(), tree)
    capacity.axis.row(GPU)
    tables: dict[str, list[tuple[int, tuple[int, ...]]]] = {"use": [], "hold": []}
    for verb, slot, amounts in steps:
        if verb in ("set", "close"):
            capacity.set_node(slot, amounts, is_open=verb == "set")
        elif verb != "undo":
            getattr(capacity, verb)(slot, amounts)
            tables[verb].append((slot, amounts))
        elif tables["use"]:
            capacity.unuse(*tables["use"].pop())
        elif tables["hold"]:
            capacity.release(*tables["hold"].pop())
        assert len(capacity.free_by_domain) == 3
        invariants.check(tree, capacity, bound=tables["use"], reserved=tables["hold"])
