"""What is known of fragments is what would be found anew, whatever has changed."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topology.fragments.devices import Devices
from topology.fragments.growth import growth, unusable, usual
from topology.fragments.known import KnownFragments

GPU, PARTS = 2, 4
amounts = st.integers(0, 12)
requests = st.tuples(st.just(1), amounts, amounts)
weighted = st.lists(st.tuples(requests, st.integers(0, 9)), max_size=6)
nodes = st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 24), amounts), min_size=3, max_size=3)
lefts = st.lists(st.lists(st.integers(0, PARTS), min_size=2, max_size=2), min_size=3, max_size=3)
REQUESTS = ((1, 1), (1, 0, 2), (1, 2, 8))


def arrays(columns, left):
    free = np.array(columns, dtype=np.int64).T.copy()
    devices = np.array([[*sorted(each, reverse=True), 0] for each in left], dtype=np.int64)
    return free, Devices(GPU, PARTS, devices.T.copy())


def anew(request, free, device, of):
    before = np.vstack([free, device.free()])
    after = np.vstack([free, device.beside(request)])
    for row, amount in enumerate(request):
        after[row] -= amount
    return growth(unusable(before, of), unusable(after, of)).tolist()


@given(st.lists(st.tuples(nodes, lefts), min_size=2, max_size=5), weighted, weighted)
def test_what_is_known_of_nodes_follows_every_change(histories, first, then):
    known = KnownFragments(most_requests=2)
    kinds = usual(first, [GPU]), usual(then, [GPU])
    for (columns, left), of, request in product(histories, kinds, REQUESTS):
        free, device = arrays(columns, left)
        found = known.growth(request, free, [device], of)
        assert found.tolist() == anew(request, free, device, of)


@given(nodes, lefts, weighted, st.lists(st.integers(0, 2), max_size=8))
def test_a_request_that_was_not_asked_about_for_a_while_knows_of_all_changes(
    columns, left, requested, changes
):
    known, of = KnownFragments(), usual(requested, [GPU])
    free, device = arrays(columns, left)
    known.growth(REQUESTS[0], free, [device], of)
    for at in changes:
        free[:, at] -= 1
        known.growth(REQUESTS[1], free, [device], of)
    found = known.growth(REQUESTS[0], free, [device], of)
    assert found.tolist() == anew(REQUESTS[0], free, device, of)


def test_no_more_is_kept_than_there_is_room_for():
    free, device = arrays([(9, 24, 8)] * 3, [(4, 4)] * 3)
    of = usual([((1, 1, 4), 1)], [GPU])
    known = KnownFragments(most_amounts=9)
    for cores in range(20):
        known.growth((1, cores), free, [device], of)
    assert len(known) == 3


def test_nodes_that_come_are_known_as_well():
    of, known = usual([((1, 1, 4), 1)], [GPU]), KnownFragments()
    for number in (3, 5, 2):
        free, device = arrays([(9, 24, each) for each in range(number)], [(4, 0)] * number)
        found = known.growth((1, 1, 1), free, [device], of)
        assert found.tolist() == anew((1, 1, 1), free, device, of)
