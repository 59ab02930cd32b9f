"""Why a gang waits is said again while that is so: the API server keeps events for an hour.

said ──30 min──▶ does it still wait for that? ──▶ said again, one gang at a time
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from app.dialects.spec import GangKey
from app.state.gang.gang import PLANNABLE, Gang
from app.state.report import events, sentences

# An eighth of the events that are written may be of these.
AGAIN_SECONDS, AGAIN_PAUSE_SECONDS = 1_800.0, 4.0
MOST_LOOKED_AT = 64  # gangs per tick, of which most wait no more


@dataclass(slots=True)
class SaidAgain:
    """Of which gangs it was said why they wait."""

    _just_said: dict[GangKey, str] = field(default_factory=dict)
    """Since the last tick: the event's reason."""
    _said: dict[GangKey, tuple[float, str]] = field(default_factory=dict)
    """In earlier ticks, those said first are first: when, and the event's reason."""
    _again_at: float = -math.inf

    def __len__(self) -> int:
        return len(self._just_said.keys() | self._said.keys())

    def note(self, key: GangKey, reason: str) -> None:
        """Note that an event of this reason says why a gang waits."""
        self._just_said[key] = reason

    def forget(self, key: GangKey) -> None:
        """Forget a gang that is gone."""
        self._just_said.pop(key, None)
        self._said.pop(key, None)

    def due(self, gangs: Mapping[GangKey, Gang], now: float) -> tuple[GangKey, str] | None:
        """The gang of which it is to be said again, and the event's reason; None: of none now."""
        for key, reason in self._just_said.items():
            self._said.pop(key, None)
            self._said[key] = now, reason
        self._just_said.clear()
        for key, (said_at, reason) in list(islice(self._said.items(), MOST_LOOKED_AT)):
            if now < max(said_at + AGAIN_SECONDS, self._again_at + AGAIN_PAUSE_SECONDS):
                return None
            del self._said[key]
            if _still_waits(gangs[key], reason):
                self._said[key] = now, reason
                self._again_at = now
                return key, reason
        return None


def _still_waits(gang: Gang, reason: str) -> bool:
    """Whether a gang still does not start for what an event of this reason has said."""
    if reason == events.INCOMPLETE:
        return bool(sentences.incomplete(gang))
    said = gang.reporting
    is_unsolved = bool(said.problem) and said.problem_reason == reason
    return is_unsolved and (gang.phase in PLANNABLE or bool(gang.membership.problem))
