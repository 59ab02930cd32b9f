"""What changes about gangs, found by looking at a few of them at a time.

    look ──▶ the next gangs in line ──what was shown of each──▶ those that differ, and those gone

A look costs the same however many gangs there are and however many of them change: what is left
over comes with the next one. So what follows each other quickly is one change. Of gangs of one name
and source, such as those of an owner that was made anew, the newest counts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from app.dialects.spec import GangKey
from app.explain.elsewhere import LED, of_follower
from app.explain.gangs import message_of, reason_of, view
from app.explain.view import GangView
from app.state.engine import Engine
from app.state.gang.gang import Gang, Phase
from app.state.gang.reasons import Reason

MOST_LOOKED_AT = 512  # gangs of one look: a millisecond
MOST_COST = 100  # of those of them that have changed, one each: two milliseconds more
PODS_AS_ONE = 500  # a gang costs one more for each so many pods: its view counts them

Name = tuple[str, str, str]  # namespace, name, source
Mark = tuple[Phase, Reason, str, int, int, str]


@dataclass(frozen=True, slots=True)
class Shown:
    """A gang as it was shown last."""

    key: GangKey
    number: int
    mark: Mark
    gang: GangView
    at: float

    def as_of(self, now: float) -> GangView:
        """The same, with the time that has gone by since."""
        waiting, needs, later = self.gang.waiting_seconds, self.gang.needs_nodes, now - self.at
        if waiting is None:
            return self.gang
        update: dict[str, object] = {"waiting_seconds": waiting + later}
        if needs is not None:
            since = {"since_seconds": needs.since_seconds + later}
            update["needs_nodes"] = needs.model_copy(update=since)
        return self.gang.model_copy(update=update)


@dataclass(frozen=True, slots=True)
class Change:
    """`gang` as it is now; `is_gone`: as it was last, and it is not there any more."""

    gang: GangView
    is_gone: bool = False


class Changes:
    """Compares gangs with what was shown of them. Only `look` and `forget` write it.

    `whose`: who leads, in words, if another pod does; "": this one.
    """

    def __init__(self, engine: Engine, whose: Callable[[], str] = lambda: "") -> None:
        self._engine, self._whose = engine, whose
        self._line: Iterator[GangKey | Name] | None = None
        self.shown: dict[Name, Shown] = {}
        self.is_whole = False
        """Every gang has been looked at since it began."""
        self.looked_at = 0
        """By all looks together; so is the next."""
        self.cost = 0

    def forget(self) -> None:
        """Begin anew."""
        self._line, self.is_whole = None, False
        self.shown.clear()

    def look(self, now: float) -> list[Change]:
        """The changes among the next in line."""
        found: list[Change] = []
        looked_at = cost = 0
        if self._line is None:
            self._line = chain(list(self._engine.gangs.by_key), list(self.shown))
        while looked_at < MOST_LOOKED_AT and cost < MOST_COST:
            each = next(self._line, None)
            if each is None:
                self._line, self.is_whole = None, True
                break
            looked_at += 1
            change = self._of_gang(each, now) if isinstance(each, GangKey) else self._end_of(each)
            if change is not None:
                cost += 1 + change.gang.pods.there // PODS_AS_ONE
                found.append(change)
        self.looked_at += looked_at
        self.cost += cost
        return found

    def _of_gang(self, key: GangKey, now: float) -> Change | None:
        gang = self._engine.gangs.by_key.get(key)
        if gang is None:
            return None
        name = key.namespace, key.name, key.source
        known = self.shown.get(name)
        if known is not None and known.number > gang.number:
            return None
        whose = self._whose()
        mark = _mark(gang, now, whose)
        if known is not None and (known.number, known.mark) == (gang.number, mark):
            return None
        shown = of_follower(view(gang, now, self._engine.books), whose)
        self.shown[name] = Shown(key, gang.number, mark, shown, now)
        return Change(shown)

    def _end_of(self, name: Name) -> Change | None:
        known = self.shown[name]
        gang = self._engine.gangs.by_key.get(known.key)
        if gang is not None and gang.number == known.number:
            return None
        del self.shown[name]
        return Change(known.gang, is_gone=True)


def _mark(gang: Gang, now: float, whose: str) -> Mark:
    """What is compared: the state, the sentence, how many pods are there and bound, and whether it
    asks for nodes."""
    membership = gang.membership
    there, bound = gang.pods_there, len(membership.bound)
    if whose and gang.phase in LED:
        return gang.phase, Reason.NOT_LEADING, whose, there, bound, ""
    asked = f"{gang.need.why} {gang.ask.shown}" if gang.need.is_open else ""
    return gang.phase, reason_of(gang, now), message_of(gang), there, bound, asked
