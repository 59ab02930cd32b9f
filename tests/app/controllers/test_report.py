"""Events: one per sentence, paced, never more memory than agreed."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from app.controllers.report import (
    MOST_QUEUED,
    MOST_TRIES,
    MOST_UNSAID,
    UNSAID_SECONDS,
    ReportController,
    Unsaid,
)
from app.dialects.spec import GangKey
from app.errors import ApiError, Forbidden, TooManyRequests, Unreachable
from app.state.effects import EmitEvent, ObjectRef
from app.state.report.events import PLACED, WHY_WAITING
from tests.app.polling import until
from tests.app.running import running

GANG = GangKey("team", "train", "job")
JOB = ObjectRef("batch/v1", "Job", "team", "train", "uid-train")
OTHER = ObjectRef("batch/v1", "Job", "team", "eval", "uid-eval")


class Events:
    """Remembers events; raises what it was told to, or never answers."""

    def __init__(self, error=None, *, is_silent=False):
        self.error = error
        self.is_silent = is_silent
        self.written = []

    async def record_event(self, about, reason, message, *, is_warning, at):
        assert at.tzinfo is not None
        self.written.append((about, reason, message, is_warning))
        if self.is_silent:
            await asyncio.Event().wait()
        if self.error:
            raise self.error


def report(sentence="no rack has room", about=JOB, reason="NoFit", gang=GANG):
    return EmitEvent(gang, about, reason, sentence, is_warning=True)


def about(number):
    return ObjectRef("batch/v1", "Job", "team", f"train-{number}", f"uid-{number}")


@asynccontextmanager
async def controller(client, *, per_minute=60_000.0, **knobs):
    """A running controller, its outcomes, and the reports it gave up."""
    outcomes, lost = [], []
    reports = ReportController(
        client, outcomes.append, lost.append, per_minute=per_minute, retry_seconds=0.002, **knobs
    )
    async with running(reports):
        yield reports, outcomes, lost


async def test_a_sentence_about_an_object_is_said_once():
    client = Events()
    async with controller(client) as (reports, outcomes, _):
        for _ in range(5):
            reports.take(report())
        reports.take(report(about=OTHER))
        reports.take(report(reason="Waiting"))
        await until(lambda: len(outcomes) == 3)
        reports.take(report())
        reports.take(report("placed in r1"))
        await until(lambda: len(outcomes) == 4)
    assert outcomes == ["written"] * 4
    assert client.written == [
        (JOB, "NoFit", "no rack has room", True),
        (OTHER, "NoFit", "no rack has room", True),
        (JOB, "Waiting", "no rack has room", True),
        (JOB, "NoFit", "placed in r1", True),
    ]


@pytest.mark.parametrize("why", WHY_WAITING)
async def test_a_verdict_is_said_again_once_it_was_said_that_the_gang_has_a_place(why):
    """Else the last that its owner reads is that it has one."""
    client = Events()
    async with controller(client) as (reports, outcomes, _):
        told = (report(reason=why), report("planned", reason=PLACED))
        for count, each in enumerate((*told, *told, *told), start=1):
            reports.take(each)
            await until(lambda count=count: len(outcomes) == count)
        reports.take(told[1])
        reports.take(report(about=OTHER))
        await until(lambda: len(outcomes) == 7)
    reasons = [reason for _, reason, _, _ in client.written]
    assert reasons == [why, PLACED] * 3 + ["NoFit"]


async def test_a_sentence_is_said_again_after_a_while():
    async with controller(Events(), repeat_seconds=0.0) as (reports, outcomes, _):
        reports.take(report())
        await until(lambda: outcomes)
        reports.take(report())
        await until(lambda: len(outcomes) == 2)
    assert outcomes == ["written", "written"]


async def test_a_newer_sentence_takes_the_place_of_one_that_waits_but_not_of_another_gangs():
    """Two gangs may have one owner: the groups of a ReplicaSet."""
    client = Events()
    async with controller(client) as (reports, outcomes, _):
        reports.take(report("6 of 8 fit"))
        reports.take(report("1 of 8 fit", gang=GangKey("team", "other", "group")))
        reports.take(report("7 of 8 fit"))
        await until(lambda: len(outcomes) == 2)
    assert [sentence for _, _, sentence, _ in client.written] == ["7 of 8 fit", "1 of 8 fit"]


async def test_what_waits_gives_way_to_what_was_said_before_it_and_holds_again():
    client = Events()
    async with controller(client) as (reports, outcomes, _):
        reports.take(report("6 of 8 fit"))
        await until(lambda: outcomes)
        reports.take(report("7 of 8 fit"))
        reports.take(report("6 of 8 fit"))
        reports.take(report(about=OTHER))
        await until(lambda: len(outcomes) == 2)
    assert [(to, sentence) for to, _, sentence, _ in client.written] == [
        (JOB, "6 of 8 fit"),
        (OTHER, "no rack has room"),
    ]


@pytest.mark.parametrize(
    ("error", "tries", "is_lost"),
    [
        (Forbidden(403, "Forbidden"), 1, False),
        (ApiError(422, "Invalid"), 1, False),
        (RuntimeError("bug"), 1, False),
        (TooManyRequests(429, "TooManyRequests"), MOST_TRIES, True),
        (ApiError(503, "ServiceUnavailable"), MOST_TRIES, True),
        (Unreachable("x"), MOST_TRIES, True),
    ],
)
async def test_an_event_that_fails_does_not_stop_the_next(error, tries, is_lost):
    """Only one that the API server may take later is given back to be said again."""
    client = Events(error)
    async with controller(client) as (reports, outcomes, lost):
        reports.take(report("a"))
        await until(lambda: outcomes)
        assert len(client.written) == tries
        assert lost == ([report("a")] if is_lost else [])
        client.error = None
        reports.take(report("a"))  # it was not written, so it is no repetition
        await until(lambda: len(outcomes) == 2)
    assert outcomes == ["failed", "written"]


async def test_the_pause_the_server_asks_for_is_kept():
    client = Events(TooManyRequests(429, "TooManyRequests", "", 0.1))
    began = time.monotonic()
    async with controller(client) as (reports, _, _):
        reports.take(report())
        await until(lambda: len(client.written) == 2)
    assert time.monotonic() - began >= 0.1


async def test_an_event_that_is_not_answered_in_time_is_tried_again_and_then_given_back():
    client = Events(is_silent=True)
    async with controller(client, event_seconds=0.01) as (reports, outcomes, lost):
        reports.take(report())
        await until(lambda: lost)
    assert len(client.written) == MOST_TRIES
    assert (outcomes, lost) == (["failed"], [report()])


async def test_events_are_paced():
    began = time.monotonic()
    async with controller(Events(), per_minute=3000, most_queued=2000) as (reports, outcomes, _):
        for number in range(1504):
            reports.take(report(about=about(number)))
        await until(lambda: len(outcomes) == 1504)
    assert time.monotonic() - began >= 0.06


async def test_the_queue_and_the_memory_are_bounded_and_what_is_dropped_is_given_back():
    async with controller(Events(), most_queued=3, most_remembered=2) as (reports, outcomes, lost):
        for number in range(5):
            reports.take(report(about=about(number)))
        assert outcomes == ["dropped", "dropped"]
        assert lost == []  # never from inside `take`
        await until(lambda: len(outcomes) == 5)
    assert [each.about.name for each in lost] == ["train-3", "train-4"]
    assert len(reports._said) == 2


async def test_a_repetition_takes_no_room_in_the_queue():
    async with controller(Events(), most_queued=1) as (reports, outcomes, lost):
        reports.take(report())
        await until(lambda: outcomes)
        reports.take(report(about=OTHER))
        for _ in range(3):
            reports.take(report())
        await until(lambda: len(outcomes) == 2)
    assert (outcomes, lost) == (["written", "written"], [])


async def test_what_was_said_last_is_remembered_longest():
    client = Events()
    async with controller(client, most_remembered=2) as (reports, outcomes, _):
        for number in range(3):
            reports.take(report(about=about(number)))
        await until(lambda: len(outcomes) == 3)
        for number in (2, 1, 0):
            reports.take(report(about=about(number)))
        await until(lambda: len(outcomes) == 4)
    assert [to.name for to, *_ in client.written] == ["train-0", "train-1", "train-2", "train-0"]


async def test_an_event_says_whether_it_is_a_warning():
    client = Events()
    async with controller(client) as (reports, outcomes, _):
        for number, is_warning in enumerate((True, False)):
            each = EmitEvent(GANG, about(number), "Placed", "in r1", is_warning=is_warning)
            reports.take(each)
        await until(lambda: len(outcomes) == 2)
    assert [is_warning for *_, is_warning in client.written] == [True, False]


async def test_half_of_a_minutes_events_may_be_written_at_once_and_one_at_least():
    for per_minute, at_once in ((1.0, 1), (8.0, 4)):
        async with controller(Events(), per_minute=per_minute) as (reports, outcomes, _):
            for number in range(9):
                reports.take(report(about=about(number)))
            await until(lambda at_once=at_once, outcomes=outcomes: len(outcomes) == at_once)
            await asyncio.sleep(0.02)
            assert outcomes == ["written"] * at_once


async def test_one_tenants_2500_gangs_are_not_reported_before_anothers_first():
    client = Events()
    async with controller(client) as (reports, outcomes, lost):
        for number in range(2500):
            reports.take(report(about=about(number)))
        reports.take(report("no block has room", gang=GangKey("quiet", "g", "group")))
        await until(lambda: len(outcomes) == 2501)
    assert [each[2] for each in client.written].index("no block has room") == 1
    # The one that another namespace was given room for had been taken before.
    assert len(lost) == outcomes.count("dropped") == 2501 - MOST_QUEUED
    assert {each.gang for each in lost} == {GANG}


async def test_reports_left_long_ago_were_said_and_only_so_many_are_remembered():
    now = 0.0
    unsaid = Unsaid(clock=lambda: now)
    reports = [report(f"{number}") for number in range(MOST_UNSAID + 2)]
    unsaid.leave(reports[0])
    now = UNSAID_SECONDS + 1.0
    for each in reports[1:5]:
        unsaid.leave(each)
    unsaid.lead()
    ours = unsaid.ours()
    assert [await anext(ours) for _ in range(4)] == reports[1:5]
    for each in reports:
        unsaid.leave(each)
    assert await anext(ours) == reports[2]
    await ours.aclose()


async def test_reports_left_of_one_namespace_push_out_none_of_others_and_take_turns_with_them():
    unsaid = Unsaid()
    quiet = [report(f"{number}", gang=GangKey("quiet", "g", "group")) for number in range(3)]
    loud = [report(f"{number}") for number in range(2 * MOST_UNSAID)]
    for each in (*quiet, *loud):
        unsaid.leave(each)
    unsaid.lead()
    ours = unsaid.ours()
    first = [await anext(ours) for _ in range(6)]
    assert [each for each in first if each in quiet] == quiet
    rest = [await anext(ours) for _ in range(MOST_UNSAID - 6)]
    assert rest[-1] == loud[-1]
    await ours.aclose()
