"""A late answer of the API server is none; what is not about the API server passes through."""

from __future__ import annotations

import asyncio

import pytest

from app.errors import Conflict, Unreachable
from app.kube.client.deadline import answered_within

AT_ONCE, LONG = 0.01, 60.0


async def never(seconds=LONG):
    """A request that the API server does not answer."""
    async with answered_within(seconds):
        await asyncio.Event().wait()


async def test_a_request_that_is_not_answered_in_time_is_unreachable_and_may_pass():
    with pytest.raises(Unreachable, match=r"no answer within 0\.01 s") as late:
        await never(AT_ONCE)
    assert late.value.may_pass
    assert isinstance(late.value.__cause__, TimeoutError)


async def test_what_is_answered_in_time_is_left_alone():
    async with answered_within(AT_ONCE):
        answer = "yes"
    await asyncio.sleep(2 * AT_ONCE)  # the time is over, and nothing is cancelled
    assert answer == "yes"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Conflict(409, "Conflict"), id="a_refusal"),
        pytest.param(Unreachable("no route"), id="no_connection"),
        pytest.param(TimeoutError("a bug"), id="a_timeout_of_its_own"),
        pytest.param(RuntimeError("a bug"), id="a_bug"),
    ],
)
async def test_an_error_inside_passes_as_it_is(error):
    with pytest.raises(type(error)) as passed:
        async with answered_within(LONG):
            raise error
    assert passed.value is error


async def test_a_cancellation_passes():
    task = asyncio.create_task(never())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_cancellation_at_the_moment_the_time_is_over_passes():
    task = asyncio.create_task(never(0.0))
    await asyncio.sleep(0)  # it has begun, and what ends it is next in the loop
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_time_limit_around_it_passes():
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(AT_ONCE):
            await never()


async def test_of_two_the_one_whose_time_is_over_speaks():
    with pytest.raises(Unreachable, match=r"within 0\.01 s"):
        async with answered_within(AT_ONCE):
            await never()
    with pytest.raises(Unreachable, match=r"within 0\.01 s"):
        async with answered_within(LONG):
            await never(AT_ONCE)
