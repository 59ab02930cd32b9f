"""Removing pods: paced, patient with budgets, and never somebody else's pod."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from app.controllers.pods.evict import EvictController
from app.dialects.spec import GangKey
from app.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    NotLeading,
    TooManyRequests,
    Unreachable,
)
from app.state.effects import Delete, Evict, Suspend, TryEviction
from tests.app.polling import until
from tests.app.running import running

GANG = GangKey("team", "train", "job")
NO_BUDGET = TooManyRequests(429, "TooManyRequests", "", 0.0)


class Removals:
    """Remembers calls; each pod's calls take the next entry of its script, errors are raised."""

    def __init__(self, **scripts):
        self.scripts = {name: list(script) for name, script in scripts.items()}
        self.calls = []
        self.changes = []

    async def evict_pod(self, namespace, name, uid, *, is_dry_run=False):
        self._answer("try" if is_dry_run else "evict", namespace, name, uid)

    async def delete_pod(self, namespace, name, uid):
        self._answer("delete", namespace, name, uid)

    async def change(self, path, name, uid, version, patch):
        self.changes.append((path, name, uid, version, patch))
        self._answer("change", path, name, uid)

    def _answer(self, how, namespace, name, uid):
        self.calls.append((how, namespace, name, uid))
        script = self.scripts.get(name)
        if script and (said := script.pop(0)) is not None:
            raise said

    @property
    def names(self):
        return [call[2] for call in self.calls]


def evict(name):
    return Evict("team", name, f"uid-{name}", "its node is gone")


def delete(name):
    return Delete(GANG, "team", name, f"uid-{name}", "one too many")


@asynccontextmanager
async def controller(client, *, per_second=10_000.0, retry_seconds=0.002, **knobs):
    outcomes = []
    evicts = EvictController(
        client,
        lambda removal, outcome: outcomes.append((removal.name, outcome)),
        per_second=per_second,
        retry_seconds=retry_seconds,
        **knobs,
    )
    async with running(evicts):
        yield evicts, outcomes


async def test_what_a_policy_evicts_goes_through_the_eviction_api_and_excess_is_deleted():
    client = Removals()
    async with controller(client) as (evicts, outcomes):
        evicts.take(evict("a"))
        evicts.take(delete("b"))
        await until(lambda: len(outcomes) == 2)
    assert client.calls == [("evict", "team", "a", "uid-a"), ("delete", "team", "b", "uid-b")]
    assert outcomes == [("a", "done"), ("b", "done")]


@pytest.mark.parametrize(
    ("script", "outcome", "calls"),
    [
        pytest.param([NotFound(404, "NotFound")], "gone", 1, id="deleted"),
        pytest.param([Conflict(409, "Conflict")], "gone", 1, id="recreated"),
        pytest.param([ApiError(500, "InternalError")] * 9, "failed", 3, id="two_budgets"),
        pytest.param([Unreachable("no route"), None], "done", 2, id="nobody_knows"),
        pytest.param([NotLeading(), None], "done", 2, id="leads_in_a_moment"),
        pytest.param([Forbidden(403, "Forbidden")], "refused", 1, id="a_role_is_missing"),
        pytest.param([RuntimeError("bug")], "refused", 1, id="our_bug"),
        pytest.param([NO_BUDGET, NO_BUDGET, None], "done", 3, id="budget_opens"),
        pytest.param([NO_BUDGET, NotFound(404, "")], "gone", 2, id="gone_meanwhile"),
        pytest.param([NO_BUDGET] * 9, "failed", 3, id="budget_stays_shut"),
    ],
)
async def test_what_becomes_of_an_eviction(script, outcome, calls):
    client = Removals(a=script)
    async with controller(client, most_tries=3) as (evicts, outcomes):
        evicts.take(evict("a"))
        await until(lambda: outcomes)
        evicts.take(evict("b"))
        await until(lambda: len(outcomes) == 2)
    assert outcomes == [("a", outcome), ("b", "done")]
    assert client.names == ["a"] * calls + ["b"]


async def test_what_is_only_tried_is_a_dry_run():
    client = Removals()
    async with controller(client) as (evicts, outcomes):
        evicts.take(TryEviction("team", "a", "uid-a"))
        await until(lambda: outcomes)
    assert client.calls == [("try", "team", "a", "uid-a")]
    assert outcomes == [("a", "done")]


@pytest.mark.parametrize("how", [evict, delete])
async def test_a_removal_that_is_wanted_no_more_is_not_sent_not_even_at_its_next_try(how):
    wanted = {"uid-a"}
    client = Removals(a=[NO_BUDGET])
    async with controller(client, is_wanted=lambda each: each.uid in wanted) as (evicts, outcomes):
        evicts.take(how("b"))
        await until(lambda: outcomes)
        evicts.take(how("a"))
        await until(lambda: client.calls)
        wanted.clear()
        await until(lambda: len(outcomes) == 2)
    assert outcomes == [("b", "dropped"), ("a", "dropped")]
    assert client.names == ["a"]


async def test_a_pod_whose_budget_says_no_does_not_hold_up_the_others():
    client = Removals(a=[NO_BUDGET] * 3)
    async with controller(client, retry_seconds=60.0) as (evicts, outcomes):
        for name in ("a", "b", "c"):
            evicts.take(evict(name))
        await until(lambda: len(outcomes) == 2)
        evicts.take(evict("a"))  # it still waits for its next try
        evicts.take(evict("d"))
        await until(lambda: len(outcomes) == 3)
    assert client.names == ["a", "b", "c", "d"]


async def test_a_pod_that_is_being_removed_is_not_removed_again():
    may_answer = asyncio.Event()

    class Slow(Removals):
        async def evict_pod(self, *pod, is_dry_run=False):
            await super().evict_pod(*pod, is_dry_run=is_dry_run)
            await may_answer.wait()

    client = Slow()
    async with controller(client) as (evicts, outcomes):
        evicts.take(evict("a"))
        await until(lambda: client.calls)
        evicts.take(evict("a"))
        may_answer.set()
        evicts.take(evict("b"))
        await until(lambda: ("b", "done") in outcomes)
    assert client.names == ["a", "b"]
    assert outcomes == [("a", "done"), ("b", "done")]


async def test_an_eviction_that_is_not_answered_in_time_is_tried_again():
    class Silent(Removals):
        async def evict_pod(self, *pod, is_dry_run=False):
            await super().evict_pod(*pod, is_dry_run=is_dry_run)
            await asyncio.Event().wait()

    client = Silent()
    async with controller(client, write_seconds=0.01, most_tries=2) as (evicts, outcomes):
        evicts.take(evict("a"))
        await until(lambda: outcomes)
    assert outcomes == [("a", "failed")]
    assert client.names == ["a", "a"]


async def test_a_pod_whose_eviction_failed_is_tried_anew_when_it_is_asked_for_again():
    client = Removals(a=[Unreachable("no route"), None])
    async with controller(client, most_tries=1) as (evicts, outcomes):
        evicts.take(evict("a"))
        await until(lambda: outcomes)
        evicts.take(evict("a"))
        await until(lambda: len(outcomes) == 2)
    assert outcomes == [("a", "failed"), ("a", "done")]


async def test_the_pause_the_server_asks_for_is_kept():
    began = time.monotonic()
    async with controller(Removals(a=[TooManyRequests(429, "", "", 0.1)])) as (evicts, outcomes):
        evicts.take(evict("a"))
        await until(lambda: outcomes)
    assert outcomes == [("a", "done")]
    assert time.monotonic() - began >= 0.1


async def test_removals_are_paced():
    began = time.monotonic()
    async with controller(Removals(), per_second=50.0) as (evicts, outcomes):
        for number in range(60):
            evicts.take(evict(f"p{number}"))
        await until(lambda: len(outcomes) == 60)
    assert time.monotonic() - began >= 0.18  # fifty at once, then ten at 50 a second


async def test_the_queue_is_bounded_and_a_pod_is_in_it_once():
    outcomes = []
    evicts = EvictController(
        Removals(),
        lambda one, outcome: outcomes.append((one.name, outcome)),
        per_second=1,
        most_queued=1,
    )
    for name in ("a", "a", "b"):
        evicts.take(evict(name))
    assert outcomes == [("b", "dropped")]


JOBS = "/apis/batch/v1/namespaces/team/jobs"


def suspension(*, ends):
    return Suspend(JOBS, "team", "train", "uid-train", "7", "it starts elsewhere", ends)


@pytest.mark.parametrize(("ends", "said"), [(False, "true"), (True, None)])
async def test_a_job_is_suspended_or_goes_on_with_a_word_that_says_by_whom(ends, said):
    client = Removals()
    async with controller(client) as (evicts, outcomes):
        evicts.take(suspension(ends=ends))
        await until(lambda: outcomes)
    ((path, name, uid, version, patch),) = client.changes
    assert (path, name, uid, version) == (JOBS, "train", "uid-train", "7")
    assert patch["spec"] == {"suspend": not ends}
    assert patch["metadata"] == {"annotations": {"corral.dev/suspended": said}}
    assert outcomes == [("train", "done")]


async def test_a_job_that_has_changed_is_not_suspended():
    client = Removals(train=[Conflict(409, "Conflict", "", None)])
    async with controller(client) as (evicts, outcomes):
        evicts.take(suspension(ends=False))
        await until(lambda: outcomes)
    assert outcomes == [("train", "gone")]
    assert len(client.calls) == 1


async def test_a_suspension_that_is_not_wanted_any_more_is_not_sent():
    client = Removals()
    async with controller(client, is_wanted=lambda _: False) as (evicts, outcomes):
        evicts.take(suspension(ends=False))
        await until(lambda: outcomes)
    assert outcomes == [("train", "dropped")]
    assert client.calls == []
