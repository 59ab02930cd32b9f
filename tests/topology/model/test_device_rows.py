"""What fits on devices that pods share: never less than some way to put them there has room for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology.model import device_rows
from topology.model.device_rows import ROWS
from topology.model.resources import AMOUNT_MAX, ResourceAxis

PARTS = 1000
SHARED = "example.com/gpu-milli"


def fits(devices: int, *pods: int, parts: int = PARTS) -> bool:
    """Whether the rows, and the sum, let such pods stand beside each other on one node."""
    taken = [sum(row) for row in zip(*(device_rows.taken(pod, parts) for pod in pods), strict=True)]
    has = device_rows.offered(devices * parts, parts)
    return sum(pods) <= devices * parts and all(t <= h for t, h in zip(taken, has, strict=True))


@st.composite
def packed(draw: st.DrawFn) -> tuple[int, int, list[int]]:
    """Parts to a device, devices, and pods that were put on them."""
    parts = draw(st.sampled_from([1, 2, 7, 100, PARTS, 16_384]))
    devices, pods = draw(st.integers(1, 6)), list[int]()
    whole = draw(st.integers(0, devices))
    if whole:
        pods.append(whole * parts)
    for _ in range(devices - whole):
        left = parts
        while left and (amount := draw(st.integers(0, left))):
            pods.append(amount)
            left -= amount
    return parts, devices, pods


@settings(max_examples=400)
@given(packed())
def test_what_was_put_on_devices_fits(case: tuple[int, int, list[int]]) -> None:
    parts, devices, pods = case
    if pods:
        assert fits(devices, *pods, parts=parts)


@pytest.mark.parametrize("amount", range(PARTS // (ROWS + 1) + 1, PARTS + 1, 13))
def test_of_equal_parts_just_as_many_fit_as_on_the_devices(amount: int) -> None:
    each, devices = PARTS // amount, 3
    assert fits(devices, *[amount] * each * devices)
    assert not fits(devices, *[amount] * (each * devices + 1))


@pytest.mark.parametrize(
    ("devices", "pods"),
    [
        pytest.param(2, (600, 600, 500), id="a_half_where_each_device_has_less"),
        pytest.param(3, (600, 600, 600, 1000), id="a_whole_device_where_none_is_free"),
        pytest.param(2, (400, 400, 400, 400, 400), id="a_fifth_where_two_fit_on_each"),
    ],
)
def test_what_fits_by_sum_alone_does_not(devices: int, pods: tuple[int, ...]) -> None:
    *there, _ = pods
    assert sum(pods) <= devices * PARTS
    assert fits(devices, *there)
    assert not fits(devices, *pods)


def test_what_may_be_spread_in_many_ways_is_left_to_the_sum() -> None:
    assert fits(2, 600, 1400)
    assert device_rows.taken(1500, PARTS) == (0,) * ROWS


def test_a_device_that_is_not_whole_counts_as_one() -> None:
    assert device_rows.offered(1500, PARTS) == device_rows.offered(2000, PARTS)


def test_amounts_of_no_device_or_of_too_many_stay_in_bounds() -> None:
    assert device_rows.taken(0, PARTS) == device_rows.offered(0, PARTS) == (0,) * ROWS
    assert max(device_rows.taken(AMOUNT_MAX, 1)) == AMOUNT_MAX


def test_only_shared_resources_have_such_rows_and_no_resource_has_their_names() -> None:
    axis = ResourceAxis({SHARED: PARTS})
    assert [axis.row(name) for name in ("memory", SHARED, "other")] == [2, 3, 4 + ROWS]
    assert set(axis.of_devices) == set(range(4, 4 + ROWS))
    assert set(axis.of_devices.values()) == {SHARED}
    assert [axis.names[row] for row in axis.of_devices] == list(device_rows.names(SHARED))
    assert all(" " in name for name in device_rows.names(SHARED))
    assert axis.request(((SHARED, 600), ("other", 1)))[3:] == (600, 2, 3, 8, 12, 1)
    assert axis.offer(axis.request(((SHARED, 1500),)))[3:] == (1500, 4, 12, 24, 40, 0)
    plain = ResourceAxis()
    plain.row(SHARED)
    assert not plain.of_devices
    assert plain.offer((1, 2, 3)) == (1, 2, 3)
