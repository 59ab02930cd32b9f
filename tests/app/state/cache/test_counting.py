from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.state.cache.books import ALL_NODES, Books
from app.state.cache.counting import is_countable, slots_by_request, summed
from app.state.cache.resource_rows import MOST_BOOKED
from tests.records import node
from topology.model.capacity import TAKEN_MAX, Capacity

REQUESTS = st.sampled_from(((("cpu", 3), ("pods", 1)), (("cpu", 0), ("pods", 1)), (("pods", 1),)))
PODS = st.lists(st.tuples(st.integers(0, 3), REQUESTS), max_size=20)
BOOKS = ("used", "held", "allocatable", "is_open", "free_now")


@given(pods=PODS)
def test_sums_are_those_of_each_pod_by_itself(pods):
    by_hand = np.zeros((2, 4), dtype=np.int64)
    for slot, request in pods:
        by_hand[:, slot] += (dict(request).get("cpu", 0), 1)

    def counted(request):
        return (dict(request).get("cpu", 0), 1)

    assert summed(slots_by_request(pods), counted, (2, 4)).tolist() == by_hand.tolist()


@given(pods=PODS)
def test_books_counted_anew_are_those_counted_pod_by_pod(pods):
    books = Books()
    for number in range(4):
        books.put_node(node(f"n{number}", is_ready=number != 2))
    books.refresh()
    for at, (slot, request) in enumerate(pods):
        (books.bind if at % 2 else books.hold)(f"u{at}", f"n{slot}", request)
    before = books.topologies[ALL_NODES].capacity.copy()
    books.recount()
    after = books.topologies[ALL_NODES].capacity
    for name in BOOKS:
        assert np.array_equal(getattr(before, name), getattr(after, name)), name
    assert all(map(np.array_equal, before.free_by_domain, after.free_by_domain))


def test_pods_that_could_pass_what_a_node_may_have_are_not_added_up_at_once():
    def counted(_request):
        return (MOST_BOOKED,)

    request, enough = (("memory", MOST_BOOKED),), TAKEN_MAX // MOST_BOOKED
    assert is_countable({request: [0] * enough}, counted)
    assert not is_countable({request: [0] * (enough + 1)}, counted)


def test_such_pods_are_counted_as_far_as_they_can_be():
    books, enough = Books(), TAKEN_MAX // MOST_BOOKED
    books.put_node(node("n0"))
    with books.counted_together():
        for number in range(enough + 8):
            books.bind(f"u{number}", "n0", (("cpu", MOST_BOOKED), ("pods", 1)))
    used = books.topologies[ALL_NODES].capacity.used[books.axis.row("cpu"), 0]
    assert TAKEN_MAX - 4_096 * MOST_BOOKED <= used <= TAKEN_MAX


@pytest.mark.parametrize(
    ("row", "wrong"),
    [pytest.param(0, -1, id="below_0"), pytest.param(1, TAKEN_MAX + 1, id="too_much")],
)
def test_books_that_no_node_can_have_are_refused(row, wrong):
    books = Books()
    books.put_node(node("n0"))
    books.refresh()
    capacity = books.topologies[ALL_NODES].capacity
    anew = Capacity(capacity.axis, capacity.tree)
    used = capacity.used.copy()
    used[row, 0] = wrong
    with pytest.raises(ValueError, match=r"below 0|taken"):
        anew.set_all(capacity.allocatable, capacity.is_open, used, capacity.held)
    assert not anew.used.any()
