"""Has gangs' questions answered in a thread, one at a time.

    effect ──queue──▶ a copy of all that the answer depends on ──thread──▶ answer ──▶ Engine
                      in steps

The search is Python, and gives way to the loop between its slices, some of which take milliseconds
(`app.kube.core.aside`). So the engine, which is told how long a search took, asks seldom.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

import structlog

from app.dialects.spec import GangKey
from app.kube.core import aside
from app.state.effects import PlaceAnswer, RoomAnswer, SeekPlace, SeekRoom

log = structlog.get_logger(__name__)

MOST_QUEUED = 16  # the engine asks one at a time

_Answer = TypeVar("_Answer")
_Given = TypeVar("_Given", covariant=True)


class Question(Protocol[_Given]):
    """What `preempt.room.RoomRequest` and `plan.search_on.LongSearch` of the state can do."""

    def answer(self) -> _Given: ...


class QuestionController(Generic[_Answer]):
    """Answers questions of one kind.

    ask: the gang's question now, copied in steps between which the loop goes on: the last yields
        it. None if it has none any more.
    outcome_of: an answer in one word.
    on_answer: called once for each that was taken, with None if there is no answer, and the seconds
        that the search took.
    on_outcome: called with that word, "dropped" (the gang asks no more) or "failed", and the same
        seconds.
    """

    def __init__(
        self,
        kind: str,
        ask: Callable[[GangKey], Iterable[Question[_Answer] | None]],
        outcome_of: Callable[[_Answer], str],
        on_answer: Callable[[GangKey, _Answer | None, float], None],
        on_outcome: Callable[[str, float], None],
    ) -> None:
        self._kind = kind
        self._ask = ask
        self._outcome_of = outcome_of
        self._on_answer = on_answer
        self._on_outcome = on_outcome
        self._queue = asyncio.Queue[GangKey](MOST_QUEUED)

    def take(self, effect: SeekRoom | SeekPlace) -> None:
        """Queue one; where too many wait, the engine asks again later."""
        if not self._queue.full():
            self._queue.put_nowait(effect.gang)

    async def run(self) -> None:
        """Serve the queue until cancelled; a search that has begun ends before the thread does."""
        while True:
            gang = await self._queue.get()
            answer, outcome, began = None, "dropped", time.monotonic()
            try:
                question: Question[_Answer] | None = None
                for step in self._ask(gang):
                    question = step
                    await asyncio.sleep(0)
                if question is not None:
                    answer = await aside.run(question.answer)
                    outcome = self._outcome_of(answer)
            except Exception:
                log.exception(self._kind, gang=str(gang))
                outcome = "failed"
            took = time.monotonic() - began
            self._on_outcome(outcome, took)
            self._on_answer(gang, answer, took)


def rooms(
    ask: Callable[[GangKey], Iterable[Question[RoomAnswer] | None]],
    on_answer: Callable[[GangKey, RoomAnswer | None, float], None],
    on_outcome: Callable[[str, float], None],
) -> QuestionController[RoomAnswer]:
    """Who would have to go for a gang that waits: "room" or "none"."""
    return QuestionController(
        "room", ask, lambda answer: "room" if answer.is_found else "none", on_answer, on_outcome
    )


def places(
    ask: Callable[[GangKey], Question[PlaceAnswer] | None],
    on_answer: Callable[[GangKey, PlaceAnswer | None, float], None],
    on_outcome: Callable[[str, float], None],
) -> QuestionController[PlaceAnswer]:
    """Where there is a place for a gang, if the loop has no time to find out: "place" or "none"."""
    return QuestionController(
        "place",
        lambda gang: (ask(gang),),
        lambda answer: "place" if answer.places else "none",
        on_answer,
        on_outcome,
    )
