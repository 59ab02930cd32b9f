"""Which whole devices, and which parts of one, nodes have left for pods that share them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.fragments import growth
from topology.fragments.devices import MOST_DEVICES, Devices, asked, left

WHOLE = 10  # parts to a device
GPU = 2  # the row
taken = st.lists(st.one_of(st.integers(0, WHOLE - 1), st.sampled_from([10, 20, 40])), max_size=12)


def devices_of(*nodes) -> Devices:
    """Nodes as lists of what is left of each device."""
    columns = [sorted(node, reverse=True) + [0] * (MOST_DEVICES + 1 - len(node)) for node in nodes]
    return Devices(GPU, WHOLE, np.array(columns, dtype=np.int64).T.copy())


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], [10, 10, 10], id="none"),
        pytest.param([6, 4], [10, 10, 0], id="parts_share_a_device"),
        pytest.param([4, 6, 5, 5], [10, 0, 0], id="in_order_of_size"),
        pytest.param([20, 3], [7, 0, 0], id="whole_ones_are_alone"),
        pytest.param([7, 7, 2], [10, 3, 1], id="on_the_fullest_that_has_room"),
        pytest.param([8, 8, 8, 5], [2, 2, 0], id="more_than_there_is_room_for"),
        pytest.param([40], [0, 0, 0], id="more_than_there_are"),
    ],
)
def test_pods_are_taken_to_be_packed_tightly(pods, expected):
    assert left(3, WHOLE, pods) == expected


@given(st.integers(0, MOST_DEVICES), taken)
def test_what_is_left_does_not_depend_on_the_order_of_the_pods(devices, pods):
    found = left(devices, WHOLE, pods)
    assert found == left(devices, WHOLE, pods[::-1])
    assert found == sorted(found, reverse=True)
    assert len(found) == devices
    assert all(0 <= free <= WHOLE for free in found)


def test_a_pod_of_more_devices_than_there_can_be_takes_no_time():
    assert left(2, WHOLE, [2**61]) == [0, 0]
    assert left(0, WHOLE, [5]) == []


nodes = st.lists(st.integers(0, WHOLE), min_size=1, max_size=5)


@given(nodes, st.sampled_from([0, 1, 4, 9, 10, 20, 30]))
def test_beside_a_pod_is_what_one_gets_by_placing_it(node, amount):
    """By hand: a part on the fullest device that has room, whole ones on free devices."""
    after = sorted(node)
    if 0 < amount < WHOLE:
        fits = [free for free in after if free >= amount]
        if not fits:
            return
        after[after.index(fits[0])] -= amount
    else:
        for _ in range(amount // WHOLE):
            if WHOLE not in after:
                return
            after[after.index(WHOLE)] = 0
    found = devices_of(node).beside((1, 1, amount))
    assert found.tolist() == [[WHOLE * after.count(WHOLE)], [max(after)]]


def test_a_request_is_for_whole_devices_or_for_a_part_of_one():
    assert [asked(amount, WHOLE) for amount in (0, 9, 10, 20)] == [(0, 0), (0, 9), (10, 0), (20, 0)]


def test_free_parts_of_a_device_in_use_are_a_fragment_for_whole_ones_only():
    """Of 20 free parts 10 are one device; the pod of whole devices can use these alone."""
    free = np.array([[9], [9], [20], [10], [10]])  # pods, cores, parts, of whole devices, of one
    shared = {GPU: 3}
    whole = growth.usual([((1, 1, 10, *asked(10, WHOLE)), 1)], [GPU], shared)
    part = growth.usual([((1, 1, 5, *asked(5, WHOLE)), 1)], [GPU], shared)
    steps = growth.STEPS
    assert growth.unusable(free, whole).tolist() == [steps * (20 - 10) / 10]
    assert growth.unusable(free, part).tolist() == [0]
    none_whole = np.array([[9], [9], [20], [0], [7]])
    assert growth.unusable(none_whole, whole).tolist() == [steps * 20 / 10]
    none_large = np.array([[9], [9], [20], [0], [4]])
    assert growth.unusable(none_large, part).tolist() == [steps * 20 / 5]


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), min_size=1, max_size=5),
    st.integers(0, 40),
    nodes,
)
def test_fragments_of_shared_devices_are_what_their_definition_says(pods, cores, node):
    requests = [((1, 10, amount, *asked(amount, WHOLE)), weight) for amount, weight in pods]
    together = sum(amount * weight for amount, weight in pods)
    devices = devices_of(node)
    free = np.vstack([[[9], [cores], [sum(node)]], devices.free()])
    expected = 0.0
    for amount, weight in pods:
        usable = sum(node) if amount < WHOLE else WHOLE * node.count(WHOLE)
        room = max(node) if amount < WHOLE else usable
        fits = cores >= 10 and room >= amount and sum(node) >= amount
        expected += weight * (sum(node) - (usable if fits else 0))
    of = growth.usual(requests, [GPU], {GPU: 3})
    found = growth.unusable(free, of).tolist()
    assert found == pytest.approx([growth.STEPS * expected / together])
