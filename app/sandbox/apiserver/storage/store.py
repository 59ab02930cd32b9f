"""Objects, resource versions and the log of changes: what etcd and the watch cache are together.

    put / remove ──▶ objects (now) + log (how it came to be) ──▶ subscribers, in order, at once

One counter numbers every write of every kind. A stored body is never changed in place: a write
replaces it. So a list at an older version is the present state with the later changes undone,
and no snapshot has to be kept for a paged list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import orjson

from app.sandbox.apiserver.storage.failures import expired
from app.sandbox.apiserver.storage.kinds import Home, Key, Kind, Object

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
LOG_LENGTH = 50_000  # changes per kind before the oldest half is compacted


class Stored:
    """One version of one object. `raw` is its JSON, made once and shared by all who send it."""

    __slots__ = ("_raw", "body", "version")

    def __init__(self, body: Object, version: int) -> None:
        self.body = body
        self.version = version
        self._raw: bytes | None = None

    @property
    def raw(self) -> bytes:
        if self._raw is None:
            self._raw = orjson.dumps(self.body)
        return self._raw

    def raw_typed(self, kind: Kind) -> bytes:
        """The JSON with kind and apiVersion in front: single objects and watch events carry them,
        items of a built-in list do not."""
        return b'{"kind":"%b","apiVersion":"%b",%b' % (
            kind.name.encode(),
            kind.api_version.encode(),
            self.raw[1:],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One write. `before` is None for ADDED; for DELETED `now` is the last state."""

    type: ChangeType
    kind: Kind
    key: Key
    now: Stored
    before: Stored | None

    @property
    def version(self) -> int:
        return self.now.version


Subscriber = Callable[[Change], None]


@dataclass(slots=True)
class _Shelf:
    """Everything of one resource, whatever its versions.

    Invariant: log versions ascend and are all > floor.
    """

    objects: dict[Key, Stored] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    floor: int = 0  # changes up to this version are forgotten
    subscribers: list[Subscriber] = field(default_factory=list)
    untold: deque[Change] = field(
        default_factory=deque
    )  # changes that subscribers were not called with yet
    is_telling: bool = False


class Store:
    """All objects of the cluster; plain calls, no awaiting, one event loop."""

    def __init__(self, *, log_length: int = LOG_LENGTH) -> None:
        self.version = 1
        self._log_length = log_length
        self._shelves: dict[Home, _Shelf] = {}
        # The state of the last list: a list of 150,000 pods has 300 pages of one state.
        self._sorted: tuple[Home, int, list[tuple[Key, Stored]]] | None = None

    def get(self, kind: Kind, key: Key) -> Stored | None:
        return self._shelf(kind).objects.get(key)

    def values(self, kind: Kind) -> list[Stored]:
        """All objects of a kind, in the order of their first write."""
        return list(self._shelf(kind).objects.values())

    def put(self, kind: Kind, key: Key, body: Object) -> Stored:
        """Store the body, never to be changed, at the next version and call the subscribers."""
        shelf = self._shelf(kind)
        before = shelf.objects.get(key)
        stored = self._stamped(body)
        shelf.objects[key] = stored
        self._record(shelf, Change("MODIFIED" if before else "ADDED", kind, key, stored, before))
        return stored

    def remove(self, kind: Kind, key: Key) -> Stored:
        """Take the object away; the DELETED event carries its last state at the new version."""
        shelf = self._shelf(kind)
        before = shelf.objects.pop(key)
        last = self._stamped(before.body)
        self._record(shelf, Change("DELETED", kind, key, last, before))
        return last

    def state_at(self, kind: Kind, version: int) -> list[tuple[Key, Stored]]:
        """Every object of a kind as of a version, sorted by namespace and name.

        The answer is shared between the pages of a list: do not change it.
        Raises: Refused (410 Expired) if the log no longer reaches back that far.
        """
        changes = self.changes_after(kind, version)
        if self._sorted is not None and self._sorted[:2] == (kind.home, version):
            return self._sorted[2]
        objects = dict(self._shelf(kind).objects)
        for change in reversed(changes):
            if change.before is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.before
        state = sorted(objects.items(), key=lambda item: item[0])
        self._sorted = (kind.home, version, state)
        return state

    def changes_after(self, kind: Kind, version: int) -> list[Change]:
        """The log of a kind behind a version.

        Raises: Refused (410 Expired) if some of it was compacted.
        """
        shelf = self._shelf(kind)
        if version < shelf.floor:
            raise expired(f"too old resource version: {version} ({shelf.floor})")
        start = bisect_right(shelf.log, version, key=lambda change: change.version)
        return shelf.log[start:]

    def compact(self, kind: Kind | None = None) -> None:
        """Forget the log: a watch or list that resumes from an older version gets 410."""
        for shelf in [self._shelf(kind)] if kind else list(self._shelves.values()):
            shelf.log.clear()
            shelf.floor = self.version

    def subscribe(self, kind: Kind, subscriber: Subscriber) -> Callable[[], None]:
        """Call the subscriber on every further change; returns the call that ends it."""
        subscribers = self._shelf(kind).subscribers
        subscribers.append(subscriber)

        def end() -> None:
            if subscriber in subscribers:
                subscribers.remove(subscriber)

        return end

    def _shelf(self, kind: Kind) -> _Shelf:
        shelf = self._shelves.get(kind.home)
        if shelf is None:
            shelf = self._shelves[kind.home] = _Shelf()
        return shelf

    def _stamped(self, body: Object) -> Stored:
        self.version += 1
        metadata = body["metadata"] | {"resourceVersion": str(self.version)}
        return Stored(body | {"metadata": metadata}, self.version)

    def _record(self, shelf: _Shelf, change: Change) -> None:
        shelf.log.append(change)
        if len(shelf.log) > self._log_length:
            cut = len(shelf.log) // 2
            shelf.floor = shelf.log[cut - 1].version
            del shelf.log[:cut]
        shelf.untold.append(change)
        if not shelf.is_telling:
            _tell(shelf)


def _tell(shelf: _Shelf) -> None:
    """Call every subscriber with every change in order, also where one of them makes changes."""
    shelf.is_telling = True
    try:
        while shelf.untold:
            change = shelf.untold.popleft()
            for subscriber in tuple(shelf.subscribers):
                subscriber(change)
    finally:
        shelf.is_telling = False
