"""Events: one per sentence, paced, never more memory than agreed."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from app.controllers.report import ReportController
from app.errors import Forbidden, Unreachable
from app.state.effects import EmitEvent, ObjectRef
from tests.app.polling import until

JOB = ObjectRef("batch/v1", "Job", "team", "train", "uid-train")
OTHER = ObjectRef("batch/v1", "Job", "team", "eval", "uid-eval")


class Events:
    """Remembers events; raises what it was told to."""

    def __init__(self, error=None):
        self.error = error
        self.written = []

    async def record_event(self, about, reason, message, *, is_warning, at):
        assert at.tzinfo is not None
        self.written.append((about, reason, message, is_warning))
        if self.error:
            raise self.error


def report(sentence="no rack has room", about=JOB, reason="NoFit"):
    return EmitEvent(about, reason, sentence, is_warning=True)


@asynccontextmanager
async def controller(client, *, per_minute=60_000.0, **knobs):
    outcomes = []
    reports = ReportController(client, outcomes.append, per_minute=per_minute, **knobs)
    task = asyncio.create_task(reports.run())
    try:
        yield reports, outcomes
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_sentence_about_an_object_is_said_once():
    client = Events()
    async with controller(client) as (reports, outcomes):
        for _ in range(5):
            reports.take(report())
        reports.take(report("placed in r1"))
        reports.take(report(about=OTHER))
        reports.take(report(reason="Waiting"))
        await until(lambda: len(outcomes) == 4)
    assert outcomes == ["written"] * 4
    assert client.written[0] == (JOB, "NoFit", "no rack has room", True)
    assert len(set(client.written)) == 4


async def test_a_sentence_is_said_again_after_a_while():
    async with controller(Events(), repeat_seconds=0.0) as (reports, outcomes):
        reports.take(report())
        reports.take(report())
        await until(lambda: len(outcomes) == 2)
    assert outcomes == ["written", "written"]


@pytest.mark.parametrize(
    "error", [Forbidden(403, "Forbidden"), Unreachable("x"), TimeoutError(), RuntimeError("bug")]
)
async def test_an_event_that_fails_does_not_stop_the_next(error):
    client = Events(error)
    async with controller(client) as (reports, outcomes):
        reports.take(report("a"))
        await until(lambda: outcomes)
        client.error = None
        reports.take(report("b"))
        await until(lambda: len(outcomes) == 2)
    assert outcomes == ["failed", "written"]


async def test_events_are_paced():
    began = time.monotonic()
    async with controller(Events(), per_minute=3000) as (reports, outcomes):
        for number in range(1000, 1000 + 1504):
            reports.take(report(f"sentence {number}"))
            await asyncio.sleep(0)
        await until(lambda: len(outcomes) == 1504)
    assert time.monotonic() - began >= 0.06


async def test_the_queue_and_the_memory_are_bounded():
    outcomes = []
    reports = ReportController(
        Events(), outcomes.append, per_minute=60_000, most_queued=3, most_remembered=2
    )
    for number in range(5):
        reports.take(report(f"sentence {number}"))
    assert outcomes == ["dropped", "dropped"]
    assert len(reports._said) == 2
