"""Has gangs' questions for room answered in a thread, one at a time.

    SeekRoom ──queue──▶ a copy of all that the answer depends on ──thread──▶ answer ──▶ Engine

The search is Python, and gives way to the loop between its slices, some of which take milliseconds
(`app.kube.core.aside`). So the engine, which is told how long a search took, asks seldom.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from app.dialects.spec import GangKey
from app.kube.core import aside
from app.state.effects import RoomAnswer, SeekRoom

log = structlog.get_logger(__name__)

MOST_QUEUED = 16  # the engine asks one at a time


class Question(Protocol):
    """What `app.state.preempt.room.RoomRequest` can do."""

    def answer(self) -> RoomAnswer: ...


class RoomController:
    """Answers questions.

    ask: the gang's question now; None if it has none any more.
    on_answer: called once for each that was taken, with None if there is no answer, and the seconds
        that the search took.
    on_outcome: called with "room", "none", "dropped" (the gang asks no more) or "failed", and the
        same seconds.
    """

    def __init__(
        self,
        ask: Callable[[GangKey], Question | None],
        on_answer: Callable[[GangKey, RoomAnswer | None, float], None],
        on_outcome: Callable[[str, float], None],
    ) -> None:
        self._ask = ask
        self._on_answer = on_answer
        self._on_outcome = on_outcome
        self._queue = asyncio.Queue[GangKey](MOST_QUEUED)

    def take(self, effect: SeekRoom) -> None:
        """Queue one; where too many wait, the engine asks again later."""
        if not self._queue.full():
            self._queue.put_nowait(effect.gang)

    async def run(self) -> None:
        """Serve the queue until cancelled; a search that has begun ends before the thread does."""
        while True:
            gang = await self._queue.get()
            answer, outcome, began = None, "dropped", time.monotonic()
            try:
                question = self._ask(gang)
                if question is not None:
                    answer = await aside.run(question.answer)
                    outcome = "room" if answer.is_found else "none"
            except Exception:
                log.exception("room", gang=str(gang))
                outcome = "failed"
            took = time.monotonic() - began
            self._on_outcome(outcome, took)
            self._on_answer(gang, answer, took)
