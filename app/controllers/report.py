"""Tells owners what became of their gangs: one Event per (object, reason, sentence).

    EmitEvent ──queue──▶ token ──▶ POST event ──▶ written
                 ▲  └─ full ───────────────────────▶ dropped ─┐
                 └──── pause ◀── 429, 5xx, no answer ─▶ failed ┴─▶ the engine, which says it again
                                 403, 404, 422 … ────▶ failed      while it is true

The same sentence about the same object is written once per `REPEAT_SECONDS`, unless the opposite
was written since, and all events together are paced, because an event is a write like any other. A
newer sentence takes the place of one that still waits.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from random import Random
from typing import Protocol

import structlog

from app.errors import ApiError
from app.fair_queue import FairQueue
from app.kube.client.backoff import Backoff, asked_pause
from app.kube.client.deadline import answered_within
from app.kube.client.queue.work_queue import TokenBucket, WorkQueue
from app.state.effects import EmitEvent, ObjectRef
from app.state.report import events

log = structlog.get_logger(__name__)

REPEAT_SECONDS = 600.0  # events live an hour; the engine says again what still is so before that
MOST_REMEMBERED = 8_192  # latest sentences; beyond it the oldest may be repeated
MOST_QUEUED = 1_024
EVENT_SECONDS = 5.0  # one write
RETRY_SECONDS = 1.0  # pause after a try that failed, doubled each time
MOST_TRIES = 3  # of one event; then the engine decides whether it is still true
UNSAID_SECONDS = 60.0  # for who ended without saying so: until another has its Lease, and more
MOST_UNSAID = 1_024  # the latest that were left to another Corral

Said = tuple[ObjectRef, str, str]


class ReportClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def record_event(
        self, about: ObjectRef, reason: str, message: str, *, is_warning: bool, at: datetime
    ) -> None: ...


class ReportController:
    """Writes events, at most `per_minute` of them, namespaces taking turns.

    `on_outcome(outcome)` gets "written", "failed" or "dropped", once per report that was not a
    repetition; `on_lost(report)` is called for those that the API server did not refuse and that
    were not written, never from inside `take`.
    """

    def __init__(
        self,
        client: ReportClient,
        on_outcome: Callable[[str], None],
        on_lost: Callable[[EmitEvent], None],
        *,
        per_minute: float,
        event_seconds: float = EVENT_SECONDS,
        repeat_seconds: float = REPEAT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        most_queued: int = MOST_QUEUED,
        most_remembered: int = MOST_REMEMBERED,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._on_lost = on_lost
        self._event_seconds = event_seconds
        self._repeat_seconds = repeat_seconds
        self._most_remembered = most_remembered
        burst = max(1.0, per_minute / 2)
        rng = Random()
        self._said: OrderedDict[Said, float] = OrderedDict()
        self._queue = WorkQueue(
            "report",
            self._report,
            namespace=lambda report: report.gang.namespace,
            key=lambda report: (report.gang, report.about, report.reason),
            workers=1,
            most=most_queued,
            bucket=TokenBucket(per_minute / 60, burst, time.monotonic()),
            backoff=lambda: Backoff(rng, retry_seconds),
        )

    def take(self, report: EmitEvent) -> None:
        """Queue one report unless it repeats one of the last `repeat_seconds`."""
        # One that waits is to be replaced, also by what was said before it.
        if self._was_said(report) and not self._queue.awaits(report):
            return
        left_out = self._queue.put(report)
        if left_out is not None:
            self._on_outcome("dropped")
            asyncio.get_running_loop().call_soon(self._on_lost, left_out)

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _report(self, report: EmitEvent, tries: int) -> float | None:
        if self._was_said(report):
            return None
        failure = await self._write(report)
        if failure is None:
            self._note_said(report)
            self._on_outcome("written")
            return None
        refusal = failure if isinstance(failure, ApiError) else None
        may_pass = refusal is not None and refusal.may_pass
        if refusal is not None and may_pass and tries < MOST_TRIES:
            return asked_pause(refusal)
        about = f"{report.about.kind} {report.about.name}"
        bug = failure if refusal is None else None
        log.warning("report", about=about, problem=repr(failure), exc_info=bug)
        self._on_outcome("failed")
        if may_pass:
            self._on_lost(report)
        return None

    async def _write(self, report: EmitEvent) -> Exception | None:
        """Write the event; what kept it from being written."""
        try:
            async with answered_within(self._event_seconds):
                await self._client.record_event(
                    report.about,
                    report.reason,
                    report.sentence,
                    is_warning=report.is_warning,
                    at=datetime.now(UTC),
                )
        except Exception as error:  # a bug of ours must not stop the next event
            return error
        return None

    def _was_said(self, report: EmitEvent) -> bool:
        last = self._said.get(_said(report))
        return last is not None and time.monotonic() - last < self._repeat_seconds

    def _note_said(self, report: EmitEvent) -> None:
        said = _said(report)
        if over := events.OPPOSITES.get(report.reason):  # else no look at thousands of sentences
            about = report.about
            for each in [each for each in self._said if each[1] in over and each[0] == about]:
                del self._said[each]
        self._said[said] = time.monotonic()
        self._said.move_to_end(said)
        if len(self._said) > self._most_remembered:
            self._said.popitem(last=False)


class Unsaid:
    """Reports that were left to another Corral, which may have ended before it wrote them.

    Of a namespace with too many the oldest are forgotten, not those of others.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: FairQueue[int, tuple[float, EmitEvent]] = FairQueue()
        self._number = 0  # of the latest
        self._is_ours = asyncio.Event()

    def leave(self, report: EmitEvent) -> None:
        """Leave one to the Corral that leads now."""
        namespace = report.gang.namespace
        if len(self._left) >= MOST_UNSAID and self._left.make_room(namespace) is None:
            return
        self._number += 1
        self._left.put(namespace, self._number, (self._clock(), report))

    def lead(self) -> None:
        """Have those of the last `UNSAID_SECONDS` said by ourselves."""
        self._is_ours.set()

    async def ours(self) -> AsyncGenerator[EmitEvent, None]:
        """Those that are ours to say, from now on; the loop is left to others between two."""
        while True:
            await self._is_ours.wait()
            self._is_ours.clear()
            since = self._clock() - UNSAID_SECONDS
            while self._left:
                _, _, (at, report) = self._left.take()
                if at >= since:
                    yield report
                    await asyncio.sleep(0)


def _said(report: EmitEvent) -> Said:
    return (report.about, report.reason, report.sentence)
