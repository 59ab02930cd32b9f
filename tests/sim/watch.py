"""One kind of object as one client hears of it: late, cut, twice, relisted; never out of order.

    changes of the API server ──lag──▶ Applied, Deleted ──▶ sink
            410 ──▶ what was not heard is lost; one Listed says what is there now

Kinds lag independently of each other, so a client may see a pod before the Job it belongs to.
`mirror` is what the client has been told so far: everything it can know.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from app.kube.core.objects import Record
from app.kube.watch.events import Applied, Deleted, Event, Kind, Listed
from tests.sim.api import ApiServer
from tests.sim.clock import Clock

QUICK = (0.002, 0.03)  # seconds from a write to its event, when nothing is wrong


class Stream:
    """Delivers one kind to `sink`; `resume_at` says until when the receiver is paused."""

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        rng: Random,
        kind: Kind,
        sink: Callable[[Event], None],
        resume_at: Callable[[], float],
    ) -> None:
        self.kind = kind
        self.mirror: dict[str, Record] = {}
        self.changed = 0  # so often was the mirror
        self.lag = QUICK
        self.edition = 0  # of what its lists keep
        self.is_synced = False
        self._clock, self._api, self._rng = clock, api, rng
        self._sink, self._resume_at = sink, resume_at
        self._position = 0  # of the next change to be heard
        self._due: list[float] = []  # when each change not yet heard is
        self._silent_until = 0.0
        self._is_planned = False
        self._is_closed = False
        self._lists = 0  # asked for; only the last one counts
        self._last: Event | None = None
        api.subscribe(kind, self._changed)

    # -- what may happen to it -----------------------------------------------------------------

    def start(self, seconds: float) -> None:
        """List, and have it arrive after so long; then follow."""
        self._position, self._due = len(self._api.changes[self.kind]), []
        listed = Listed(self.kind, self._api.list(self.kind), self.edition)
        self.is_synced = False
        self._lists += 1
        number = self._lists
        self._silent_until = self._clock.now + seconds
        self._clock.at(self._silent_until, lambda: self._hear_list(listed, number))

    def close(self) -> None:
        """Hear nothing more."""
        self._is_closed = True

    def cut(self, seconds: float, *, repeats: bool) -> None:
        """Break the connection for a while; on return the last event may be heard again."""
        self._silent_until = max(self._silent_until, self._clock.now + seconds)
        last = self._last
        if repeats and last is not None and self.is_synced:
            self._clock.at(self._silent_until, lambda: self._repeat(last))

    def expire(self, seconds: float) -> bool:
        """Forget the version (410), so that only a new list helps; True if events were lost."""
        has_lost = bool(self._due)
        self.start(seconds)
        return has_lost

    @property
    def pending(self) -> int:
        """How many changes have not been heard."""
        return len(self._due)

    def has_heard(self, changes: int) -> bool:
        """Whether it shows what so many changes had come to."""
        return self.is_synced and self._position >= changes

    # -- delivery ------------------------------------------------------------------------------

    def _changed(self) -> None:
        if self._is_closed:
            return
        due = self._clock.now + self._rng.uniform(*self.lag)
        self._due.append(max(due, self._due[-1]) if self._due else due)
        self._plan()

    def _plan(self) -> None:
        if not self._is_planned and self._due and self.is_synced:
            self._is_planned = True
            self._clock.at(self._earliest(self._due[0]), self._hear_next)

    def _earliest(self, due: float) -> float:
        return max(due, self._silent_until, self._resume_at())

    def _hear_next(self) -> None:
        self._is_planned = False
        if self._is_closed or not self._due or not self.is_synced:
            return
        if self._earliest(self._due[0]) > self._clock.now:
            self._plan()
            return
        change = self._api.changes[self.kind][self._position]
        self._position += 1
        self.changed += 1
        del self._due[0]
        if change.is_deleted:
            self.mirror.pop(change.record.name, None)
            self._hear(Deleted(change.record))
        else:
            self.mirror[change.record.name] = change.record
            self._hear(Applied(change.record))
        self._plan()

    def _hear_list(self, listed: Listed, number: int) -> None:
        if self._is_closed or number != self._lists:
            return
        if (resume_at := self._resume_at()) > self._clock.now:
            self._clock.at(resume_at, lambda: self._hear_list(listed, number))
            return
        self.is_synced = True
        self.mirror = {record.name: record for record in listed.records}
        self.changed += 1
        self._hear(listed)
        self._plan()

    def _repeat(self, event: Event) -> None:
        # Only if nothing was heard since: a watch repeats what it said last, and never goes back.
        if not self._is_closed and self.is_synced and event is self._last:
            self._hear(event)

    def _hear(self, event: Event) -> None:
        self._last = event
        self._sink(event)
