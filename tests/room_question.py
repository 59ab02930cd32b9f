"""A gang's question for room, fetched from the engine that asks it."""

from __future__ import annotations

from app.dialects.spec import GangKey
from app.state.engine import Engine
from app.state.preempt.room import RoomRequest


def question_of(engine: Engine, key: GangKey) -> RoomRequest | None:
    """The question, made at once; None: the gang has none."""
    *_, question = None, *engine.making_room.request(key)
    return question
