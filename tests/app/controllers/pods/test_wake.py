"""Waking pods: each once, each time with another value, never faster than allowed."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from app.controllers.pods.wake import MOST_TRIES, WakeController
from app.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    NotLeading,
    TooManyRequests,
    Unreachable,
)
from app.kube.client.queue.refusals import FIRST_SECONDS
from app.state.effects import Requeue
from tests.app.polling import until
from tests.app.running import running


class Patches:
    """Remembers patches; fails with the error a pod's name stands for, or never answers."""

    def __init__(self, errors=None, *, is_silent=False):
        self.errors = errors or {}
        self.patched = []
        self.is_silent = is_silent
        self.nominated = []
        self.refused = None

    async def annotate_pod(self, namespace, name, uid, annotations):
        self.patched.append((namespace, name, uid, dict(annotations)))
        if self.is_silent:
            await asyncio.Event().wait()
        if name in self.errors:
            raise self.errors[name]

    async def nominate_pod(self, namespace, name, uid, node, annotations):
        assert annotations == {"corral.dev/nominated": node}  # tells our own from others'
        self.nominated.append((namespace, name, uid, node))
        if self.refused is not None:
            raise self.refused


def wake(name, nominated=None):
    return Requeue("team", name, f"uid-{name}", nominated)


@asynccontextmanager
async def controller(client, *, per_second=10_000.0, burst=1000, **knobs):
    outcomes = []
    wakes = WakeController(
        client, outcomes.append, per_second=per_second, burst=burst, retry_seconds=0.001, **knobs
    )
    async with running(wakes):
        yield wakes, outcomes


async def test_a_wake_changes_our_annotation_and_nothing_else():
    client = Patches()
    async with controller(client) as (wakes, outcomes):
        wakes.take(wake("a"))
        await until(lambda: outcomes)
        wakes.take(wake("a"))
        await until(lambda: len(outcomes) == 2)
    assert outcomes == ["woken", "woken"]
    assert [call[:3] for call in client.patched] == [("team", "a", "uid-a")] * 2
    values = [call[3] for call in client.patched]
    assert all(list(value) == ["corral.dev/wake"] for value in values)
    assert values[0] != values[1]


@pytest.mark.parametrize(("nominated", "written"), [("n1", "n1"), ("", None)])
async def test_a_wake_that_nominates_is_one_write(nominated, written):
    client = Patches()
    async with controller(client) as (wakes, outcomes):
        wakes.take(wake("a", nominated))
        await until(lambda: outcomes)
    assert outcomes == ["woken"]
    assert client.nominated == [("team", "a", "uid-a", written)]
    assert client.patched == []


def forbidding():
    client = Patches()
    client.refused = Forbidden(403, "Forbidden", "no")
    return client


async def test_where_pods_may_not_be_nominated_each_wake_is_one_write_from_then_on():
    client, told = forbidding(), []
    async with controller(client, on_forbidden=lambda *each: told.append(each)) as (
        wakes,
        outcomes,
    ):
        for name in ("a", "b", "c"):
            wakes.take(wake(name, "n1"))
            await until(lambda: client.patched and client.patched[-1][1] == name)  # noqa: B023
    assert [call[1] for call in client.nominated] == ["a"]
    assert [call[1] for call in client.patched] == ["a", "b", "c"]
    assert outcomes == ["not_nominated"] * 3
    assert told == [("team", FIRST_SECONDS)]


async def test_what_is_forbidden_in_one_namespace_is_done_in_the_others():
    client = forbidding()
    async with controller(client) as (wakes, outcomes):
        wakes.take(wake("a", "n1"))
        await until(lambda: outcomes)
        client.refused = None
        wakes.take(Requeue("other", "b", "uid-b", "n2"))
        await until(lambda: len(outcomes) == 2)
    assert outcomes == ["not_nominated", "woken"]
    assert client.nominated[1:] == [("other", "b", "uid-b", "n2")]


async def test_nominating_is_tried_again_after_a_while():
    client = forbidding()
    async with controller(client, forbidden_seconds=0.0) as (wakes, outcomes):
        wakes.take(wake("a", "n1"))
        await until(lambda: client.nominated)
        client.refused = None
        await until(lambda: outcomes)
    assert outcomes == ["woken"]
    assert client.patched == []


async def test_the_log_says_once_which_right_is_missing():
    client = forbidding()
    with capture_logs() as lines:
        async with controller(client) as (wakes, outcomes):
            for namespace in ("x", "y"):
                wakes.take(Requeue(namespace, "a", f"uid-{namespace}", "n1"))
            await until(lambda: len(outcomes) == 2)
    (said,) = lines
    assert "pods/status in ClusterRole corral" in said["missing"]


async def test_a_pod_that_is_bound_meanwhile_needs_no_nomination():
    client = Patches()
    client.refused = ApiError(422, "Invalid", "may not be set on pods that are already bound")
    async with controller(client) as (wakes, outcomes):
        wakes.take(wake("a", "n1"))
        await until(lambda: outcomes)
    assert outcomes == ["gone"]
    assert client.patched == []


async def test_what_a_queued_wake_says_last_is_written():
    client = Patches()
    async with controller(client) as (wakes, outcomes):
        wakes.take(wake("a", "n1"))
        wakes.take(wake("a", ""))
        await until(lambda: outcomes)
    assert client.nominated == [("team", "a", "uid-a", None)]


async def test_a_pod_that_is_queued_is_not_queued_again():
    client = Patches()
    async with controller(client) as (wakes, outcomes):
        for name in ("a", "b", "a", "a"):
            wakes.take(wake(name))
        await until(lambda: len(outcomes) == 2)
    assert sorted(call[1] for call in client.patched) == ["a", "b"]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotFound(404, "NotFound"), "gone"),
        (Conflict(409, "Conflict"), "gone"),
        (Forbidden(403, "Forbidden"), "failed"),
        (ApiError(500, "InternalError"), "failed"),
        (Unreachable("no route"), "failed"),
        (RuntimeError("bug"), "failed"),
    ],
)
async def test_a_wake_that_fails_does_not_stop_the_next(error, outcome):
    async with controller(Patches({"a": error})) as (wakes, outcomes):
        wakes.take(wake("a"))
        await until(lambda: outcomes)
        wakes.take(wake("b"))
        await until(lambda: len(outcomes) == 2)
    assert outcomes == [outcome, "woken"]


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ApiError(503, "ServiceUnavailable"), MOST_TRIES),
        (TooManyRequests(429, "TooManyRequests"), MOST_TRIES),
        (NotLeading(), MOST_TRIES),
        (Unreachable("no route"), MOST_TRIES),
        (Forbidden(403, "Forbidden"), 1),
    ],
)
async def test_a_wake_that_may_succeed_later_is_tried_again_so_often(error, tries):
    client = Patches({"a": error})
    async with controller(client) as (wakes, outcomes):
        wakes.take(wake("a"))
        await until(lambda: outcomes)
    assert outcomes == ["failed"]
    assert len(client.patched) == tries


async def test_the_pause_the_server_asks_for_is_kept():
    client = Patches({"a": TooManyRequests(429, "TooManyRequests", "", 0.1)})
    began = time.monotonic()
    async with controller(client) as (wakes, _):
        wakes.take(wake("a"))
        await until(lambda: len(client.patched) == 2)
    assert time.monotonic() - began >= 0.1


async def test_a_wake_that_is_not_answered_in_time_is_tried_again_as_often():
    client = Patches(is_silent=True)
    async with controller(client, patch_seconds=0.01) as (wakes, outcomes):
        wakes.take(wake("a"))
        await until(lambda: outcomes)
    assert outcomes == ["failed"]
    assert len(client.patched) == MOST_TRIES


async def test_a_wake_that_succeeds_at_last_is_one_wake():
    client = Patches({"a": Unreachable("no route")})
    async with controller(client) as (wakes, outcomes):
        wakes.take(wake("a"))
        await until(lambda: client.patched)
        client.errors.clear()
        await until(lambda: outcomes)
    assert outcomes == ["woken"]


async def test_wakes_are_paced_beyond_the_burst():
    client = Patches()
    began = time.monotonic()
    async with controller(client, per_second=100, burst=5) as (wakes, outcomes):
        for number in range(15):
            wakes.take(wake(f"p{number}"))
        await until(lambda: len(outcomes) == 15)
    assert time.monotonic() - began >= 0.09


async def test_the_queue_is_bounded_and_forgets_the_oldest():
    client = Patches()
    outcomes = []
    wakes = WakeController(client, outcomes.append, per_second=1000, burst=10, most_queued=2)
    for name in ("a", "b", "c"):
        wakes.take(wake(name))
    assert outcomes == ["dropped"]
    wakes.take(wake("b"))
    assert outcomes == ["dropped"]
    task = asyncio.create_task(wakes.run())
    await until(lambda: len(outcomes) == 3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert sorted(call[1] for call in client.patched) == ["b", "c"]
