"""Tells owners what became of their gangs: one Event per (object, reason, sentence).

The same sentence about the same object is written once per `REPEAT_SECONDS`, and all events
together are paced, because an event is a write like any other. What does not fit into the queue
is dropped and counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

import structlog

from app.errors import ApiError
from app.kube.client.work_queue import TokenBucket, WorkQueue
from app.state.effects import EmitEvent, ObjectRef

log = structlog.get_logger(__name__)

REPEAT_SECONDS = 600.0  # events live an hour; a gang that still waits says so six times
MOST_REMEMBERED = 8_192  # latest sentences; beyond it the oldest may be repeated
MOST_QUEUED = 1_024
EVENT_SECONDS = 5.0  # one write

Said = tuple[ObjectRef, str, str]


class ReportClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def record_event(
        self, about: ObjectRef, reason: str, message: str, *, is_warning: bool, at: datetime
    ) -> None: ...


class ReportController:
    """Writes events, at most `per_minute` of them.

    `on_outcome` gets "written", "failed" or "dropped", once per report that was not a repetition.
    """

    def __init__(
        self,
        client: ReportClient,
        on_outcome: Callable[[str], None],
        *,
        per_minute: float,
        repeat_seconds: float = REPEAT_SECONDS,
        most_queued: int = MOST_QUEUED,
        most_remembered: int = MOST_REMEMBERED,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._repeat_seconds = repeat_seconds
        self._most_remembered = most_remembered
        burst = max(1.0, per_minute / 2)
        self._said: OrderedDict[Said, float] = OrderedDict()
        self._queue = WorkQueue(
            "report",
            self._report,
            workers=1,
            most=most_queued,
            bucket=TokenBucket(per_minute / 60, burst, time.monotonic()),
        )

    def take(self, report: EmitEvent) -> None:
        """Queue one report unless it repeats one of the last `repeat_seconds`."""
        now = time.monotonic()
        said = _said(report)
        last = self._said.get(said)
        if last is not None and now - last < self._repeat_seconds:
            return
        if self._queue.put(report) is not None:
            self._on_outcome("dropped")
            return
        self._said[said] = now
        self._said.move_to_end(said)
        if len(self._said) > self._most_remembered:
            self._said.popitem(last=False)

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _report(self, report: EmitEvent, _tries: int) -> None:
        self._on_outcome(await self._write(report))

    async def _write(self, report: EmitEvent) -> str:
        about = report.about
        try:
            async with asyncio.timeout(EVENT_SECONDS):
                await self._client.record_event(
                    about,
                    report.reason,
                    report.sentence,
                    is_warning=report.is_warning,
                    at=datetime.now(UTC),
                )
        except (ApiError, TimeoutError) as error:
            log.warning("report", about=f"{about.kind} {about.name}", problem=repr(error))
            return "failed"
        except Exception:
            log.exception("report", about=f"{about.kind} {about.name}")
            return "failed"
        return "written"


def _said(report: EmitEvent) -> Said:
    return (report.about, report.reason, report.sentence)
