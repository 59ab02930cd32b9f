"""All that an explanation depends on, copied while the event loop waits: milliseconds.

What is searched on it may take a hundred times as long, and runs in a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from app.dialects.spec import GangKey
from app.explain.gangs import view
from app.explain.view import Attempt, GangView
from app.state.cache.books import is_open
from app.state.engine import Engine
from app.state.gang.gang import PLANNABLE, Gang, Phase
from app.state.plan.exclusions import Told
from app.state.plan.request import SearchRequest
from app.state.preempt.room import RoomRequest, copied
from topology.fit.view import Visits

UNSTARTED = (*PLANNABLE, Phase.PLACED)


@dataclass(frozen=True, slots=True)
class Asking:
    """One gang's question, on books of its own."""

    gang: GangView
    retry_seconds: float | None
    attempts: tuple[Attempt, ...]
    searches: tuple[Told, ...]
    """On each topology that may serve it; none: it waits for something else than a place."""
    room: RoomRequest | None
    """Who would have to go."""
    gang_of: Mapping[str, GangKey]
    """By uid: of members, and of places that are held for pods to come."""
    away: Mapping[str, str]
    """Nodes that take no pods now, by name, and why."""


def asking(engine: Engine, gang: Gang, now: float) -> Asking:
    """The gang's question as things are now."""
    shown = view(gang, now)
    pause = gang.back_off.not_before - now
    retry_seconds = pause if pause > 0 and gang.phase in PLANNABLE else None
    attempts = tuple(_attempts(gang, now))
    if gang.phase not in PLANNABLE:
        return Asking(shown, retry_seconds, attempts, (), None, {}, {})
    engine.planner.refresh()
    searches = tuple(replace(each, request=_apart(each)) for each in engine.planner.told(gang))
    room = engine.making_room.question(gang, now) if searches else None
    gang_of = dict(engine.gangs.key_of)
    for each in engine.gangs.by_key.values():
        if each.placeholders:
            gang_of.update(dict.fromkeys(each.placeholders, each.key))
    away = {
        name: "cordoned" if node.is_unschedulable else "not ready"
        for name, node in engine.books.nodes.items()
        if not is_open(node)
    }
    return Asking(shown, retry_seconds, attempts, searches, room, gang_of, away)


def _attempts(gang: Gang, now: float) -> Iterator[Attempt]:
    """What was tried for a gang that has not started; nothing of one that runs."""
    for each in reversed(gang.reporting.attempts if gang.phase in UNSTARTED else ()):
        yield Attempt(
            reason=each.reason,
            message=each.sentence,
            times=each.times,
            first_seconds_ago=max(0.0, now - each.first_at),
            last_seconds_ago=max(0.0, now - each.last_at),
        )


def _apart(told: Told) -> SearchRequest:
    """The search on books of its own; what it looks at is not counted for the gang's namespace."""
    request = copied(told.request)
    return replace(request, options=replace(request.options, visits=Visits()))
