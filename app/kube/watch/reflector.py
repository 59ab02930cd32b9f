"""One kind of object, mirrored: list, then watch, for ever.

    ┌──────▶ list all pages ──Listed──▶ watch from that version ──Applied, Deleted──▶ sink
    │             │                        │        ▲
    │          failed                      │        └─ ended, cut or silent: go on from the
    │             ▼                        │           last version seen, nothing is lost
    └── pause ◀───┴── version forgotten, ◀─┘
                      line unreadable,
                      not a word for long,
                      relist() called

Between two objects the loop is left to others as often as the bytes read require.

Events reach the sink in the order of the API server, at least once each. A relist is one Listed
event: the receiver compares, so it never sees a half-empty cluster.
Nothing here runs hot: a watch that ends early is followed by a pause that grows (`backoff.py`), and
so is a list without one, however long it took.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Protocol

import msgspec
import structlog

from app.errors import (
    ApiError,
    CorralError,
    DecodeError,
    Forbidden,
    Gone,
    NotFound,
    NotListening,
    TooManyRequests,
    Unreachable,
    api_error,
)
from app.kube.client.backoff import FIRST_SECONDS, LONGEST_SECONDS, Backoff
from app.kube.core import aside
from app.kube.core.objects import Record
from app.kube.decoding import wire
from app.kube.decoding.decode import decode_named, decode_version
from app.kube.watch.events import Applied, Deleted, Event, Kind, Listed
from app.kube.watch.pages import PAGE_OBJECTS, PAGE_SECONDS, Pages, Reads
from app.kube.watch.resource import Resource
from app.kube.watch.versions import is_before

EVENTS_PER_TURN = 32  # buffered lines never suspend; others need the loop within 1 ms
BYTES_PER_TURN = 2**17  # about 32 pods; a larger object is a turn of its own
# The longest pause while nothing listens: an attempt costs no API server anything then, and gangs
# behind the gate go on when the watches do.
NOT_LISTENING_SECONDS = 2.0
_EVENTS: Mapping[str, type[Applied] | type[Deleted]] = {
    "ADDED": Applied,
    "MODIFIED": Applied,
    "DELETED": Deleted,
}
# How the API server writes a line, by event type: what is between is the object.
_AROUND = {b'{"type":"%b","object":' % name.encode(): name for name in _EVENTS}
STAY: tuple[Kind, ...] = ("Pod", "Node")  # known as they were, when they cannot be read any more
_LONGEST_START = max(map(len, _AROUND))

_LINE = msgspec.json.Decoder(wire.WatchLine)
_STATUS = msgspec.json.Decoder(wire.Status)
_log = structlog.get_logger()


class Source(Reads, Protocol):
    """The two ways of reading that `transport.Transport` offers."""

    def stream(
        self, path: str, params: Mapping[str, str], read_timeout: float
    ) -> AsyncGenerator[bytes, None]: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How much and how long, in seconds, and by which clock and dice."""

    page_objects: int = PAGE_OBJECTS
    page_seconds: float = PAGE_SECONDS
    watch_seconds: tuple[int, int] = (240, 300)  # drawn anew, so that watches do not end together
    silence_seconds: float = 75.0  # on a watch: then the connection is dead
    steady_seconds: float = 10.0  # a watch that lasted this long may begin again at once
    progress_seconds: float = 2.0  # one that lasted this long is followed by the shortest pause
    absent_seconds: float = 30.0  # between two looks for an absent CRD
    # Without a word, though there were watches for longer than it takes to connect: then it is
    # listed. A proxy that cuts silent connections within a minute lets no bookmark through.
    unheard_seconds: float = 100.0
    cut_seconds: float = 15.0
    first_seconds: float = FIRST_SECONDS
    longest_seconds: float = LONGEST_SECONDS
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    rng: Random = field(default_factory=Random)


def _log_problem(kind: Kind, problem: CorralError) -> None:
    _log.warning("watch_problem", kind=kind, problem=str(problem))


class Reflector:
    """Mirrors one resource into a sink until `run` is cancelled.

    `on_problem` gets every failed round and every object that could not be decoded (which is
    left out: one broken object must not hide the others).
    """

    def __init__(
        self,
        source: Source,
        resource: Resource,
        sink: Callable[[Event], None],
        *,
        pace: Pace | None = None,
        on_problem: Callable[[Kind, CorralError], None] = _log_problem,
    ) -> None:
        self._source = source
        self._resource = resource
        self._served = resource  # the version of the kind that was listed last
        self._sink = sink
        self._pace = pace or Pace()
        self._on_problem = on_problem
        self._backoff = Backoff(
            self._pace.rng, self._pace.first_seconds, self._pace.longest_seconds
        )
        self._outage = Backoff(self._pace.rng, self._pace.first_seconds, NOT_LISTENING_SECONDS)
        self._version = ""  # of the last event seen; "" = everything has to be listed
        self._is_relist_due = False
        self._watching: asyncio.Timeout | None = None  # ends the watch that is under way
        self._watch_began: float | None = None  # that of this round; None: there is none yet
        self._is_absent = False
        self._is_listening_awaited = False  # by the round that comes next
        self._heard_at = self._pace.clock()
        self._turn = _Turn()
        self._pages = Pages(
            source,
            most_objects=self._pace.page_objects,
            seconds=self._pace.page_seconds,
            on_problem=partial(on_problem, resource.kind),
            sleep=self._pace.sleep,
            rng=self._pace.rng,
        )
        self.is_synced = False  # one Listed has been delivered; stays true through later trouble

    @property
    def kind(self) -> Kind:
        """The kind it mirrors."""
        return self._resource.kind

    @property
    def version(self) -> str:
        """Of the newest object that has been delivered or left out; "" while it has to list."""
        return self._version

    @property
    def seconds_since_last_byte(self) -> float:
        """Seconds since the API server last said anything about this resource."""
        return self._pace.clock() - self._heard_at

    async def run(self) -> None:
        """Mirror until cancelled. Only an exception of the sink, a bug, ends it otherwise."""
        while True:
            self._watch_began = None
            self._is_listening_awaited = False
            asked = await self._round()
            lasted = self._watch_lasted()
            if lasted >= self._pace.progress_seconds:
                self._backoff.reset()
                self._outage.reset()
            is_unheard = self.seconds_since_last_byte >= self._pace.unheard_seconds
            if is_unheard and lasted >= self._pace.cut_seconds:
                self._version = ""
            if lasted >= self._pace.steady_seconds:
                await self._pace.sleep(asked)
            else:
                pauses = self._outage if self._is_listening_awaited else self._backoff
                await self._pace.sleep(max(asked, pauses.pause()))

    def _watch_lasted(self) -> float:
        """For how long there was a watch: a list that takes long is trouble, and no progress."""
        return 0.0 if self._watch_began is None else self._pace.clock() - self._watch_began

    def relist(self) -> None:
        """End the watch that is under way, and list once more.

        A list that is under way is delivered, and another one follows it. Several calls before
        that one begins lead to one list.
        """
        if not self._is_relist_due:
            self._is_relist_due = True
            if self._watching is not None:
                self._watching.reschedule(asyncio.get_running_loop().time())

    async def _round(self) -> float:
        """List if needed, watch until the watch ends; return the pause the server asks for."""
        try:
            if self._is_relist_due:
                self._version, self._is_relist_due = "", False
            if not self._version:
                await self._list()
            if not self._is_relist_due:
                await self._watch_until_relist()
        except NotFound as error:
            was_listed, self._version = bool(self._version), ""
            if was_listed and self._resource.older:
                return 0.0  # the list says whether another version is served
            if self._resource.is_optional:
                if self.is_synced and not self._is_absent:
                    self._on_problem(self.kind, error)  # its objects go with it
                self._note_absence()
                return self._pace.absent_seconds
            self._on_problem(self.kind, error)
        except DecodeError as error:
            self._version = ""
            self._on_problem(self.kind, error)
        except Forbidden as error:
            self._version = ""
            self._on_problem(self.kind, error)
            if self._resource.is_optional:
                # A ClusterRole older than we are: the kinds it knows are enough to begin with, and
                # to go on with what was read of the others. After a restart we would, too.
                self._heard_at = self._pace.clock()
                if self._is_absent or not self.is_synced:
                    self._note_absence()
                    return self._pace.absent_seconds
        except ApiError as error:
            if not _may_resume(error):
                self._version = ""
            self._is_listening_awaited = isinstance(error, NotListening)
            self._on_problem(self.kind, error)
            return error.retry_after or 0.0
        return 0.0

    async def _list(self) -> None:
        """List the kind in the newest version that is served. Raises: NotFound if none is."""
        *newer, oldest = self._resource, *self._resource.older
        for version in newer:
            with suppress(NotFound):
                return await self._list_as(version)
        return await self._list_as(oldest)

    async def _list_as(self, version: Resource) -> None:
        self._served = version
        records: list[Record] = []
        edition = self._resource.edition()  # the first pages may lack what comes later
        resource_version = ""
        async for page in self._pages.of(version.path):
            self._heard_at = self._pace.clock()
            await self._decode_all(page.items or [], records)
            resource_version = (page.metadata and page.metadata.resource_version) or ""
        if not resource_version:
            raise DecodeError(f"list of {version.path}: no metadata.resourceVersion")
        self._version = resource_version
        self._is_absent = False
        self._sink(Listed(self.kind, tuple(records), edition))
        self.is_synced = True

    async def _decode_all(self, items: list[msgspec.Raw], records: list[Record]) -> None:
        for raw in items:
            try:
                records.append(await aside.read(self._served.decode, raw))
            except DecodeError as error:
                self._on_problem(self.kind, error)
            if self._turn.is_over(len(raw)):
                await asyncio.sleep(0)

    async def _watch_until_relist(self) -> None:
        self._watch_began = self._pace.clock()
        watching = self._watching = asyncio.timeout(None)
        try:
            async with watching:
                await self._watch()
        except TimeoutError:
            if not watching.expired():
                raise
        finally:
            self._watching = None

    async def _watch(self) -> None:
        seconds = self._pace.rng.randint(*self._pace.watch_seconds)
        params = {
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        stream = self._source.stream(self._served.path, params, self._pace.silence_seconds)
        async with aclosing(stream) as lines:
            async for line in lines:
                self._heard_at = self._pace.clock()
                self._take(await aside.read(self._read, line))
                if self._turn.is_over(len(line)):
                    await asyncio.sleep(0)

    def _take(self, told: Applied | Deleted | _LeftOut | wire.WatchLine) -> None:
        """Follow one line that was read, or raise what makes us list again."""
        if isinstance(told, Applied | Deleted):
            self._version = told.record.version or self._version
            self._sink(told)
        elif isinstance(told, _LeftOut):
            self._version = told.version or self._version
            self._on_problem(self.kind, told.problem)
            if told.gone is not None:
                self._sink(Deleted(told.gone))
        elif told.type == "BOOKMARK":
            self._move_to(decode_version(told.object))
        elif told.type == "ERROR":
            self._version = ""  # whatever the code: this watch cannot be trusted to go on
            raise _error_in(told.object)
        else:
            raise DecodeError(f"watch of {self._served.path}: event type {told.type[:64]!r}")

    def _read(self, line: bytes) -> Applied | Deleted | _LeftOut | wire.WatchLine:
        """One line as an event; what is left out for an object that cannot be read; else the line.

        Raises: DecodeError for what is no line of a watch, or does not say which object is gone.
        """
        event = self._read_at_once(line)
        if event is not None:
            return event
        try:
            told = _LINE.decode(line)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"watch of {self._served.path}: {error}") from error
        if told.type not in _EVENTS:
            return told
        try:
            return _EVENTS[told.type](self._served.decode(told.object))
        except DecodeError as error:
            return _LeftOut(error, _version_of(told.object), self._gone(told))

    def _gone(self, told: wire.WatchLine) -> Record | None:
        """Which object is to be forgotten, of one that cannot be read; None: none.

        One that is deleted, else it would stay for ever; and one that is there, as after the next
        list, but for pods and nodes: what has been planned goes by these.
        Raises: DecodeError if it is not known which one has been deleted.
        """
        name = partial(decode_named, told.object, self.kind, self._resource.record)
        if told.type == "DELETED":
            return name()
        with suppress(DecodeError):
            return None if self.kind in STAY else name()
        return None

    def _read_at_once(self, line: bytes) -> Applied | Deleted | None:
        """A line that is written as the API server does, without reading it twice."""
        start = line.find(b"{", 1, _LONGEST_START + 1)
        kind = _AROUND.get(line[:start])
        if kind is None or not line.endswith(b"}"):
            return None
        try:
            return _EVENTS[kind](self._served.decode(memoryview(line)[start:-1]))
        except DecodeError:
            return None

    def _move_to(self, version: str) -> None:
        seen = self._version
        if is_before(version, seen):
            # Its store was restored from a backup: it would stay silent until it caught up.
            raise Gone(410, "Expired", f"bookmark {version} is behind {seen}, already seen")
        self._version = version or seen

    def _note_absence(self) -> None:
        self._heard_at = self._pace.clock()
        if not self._is_absent:
            self._is_absent = True
            self._sink(Listed(self.kind, ()))
            self.is_synced = True


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """An object that could not be read; `version`: "" if that could not be read either."""

    problem: DecodeError
    version: str
    gone: Record | None = None  # which one it was, if it is to be forgotten


@dataclass(slots=True)
class _Turn:
    """When to leave the loop to others: after so many objects, or so many bytes of them."""

    objects: int = 0
    bytes_read: int = 0

    def is_over(self, size: int) -> bool:
        """Note that an object of this size has been dealt with; True if it was the last one."""
        self.objects += 1
        self.bytes_read += size
        if self.objects < EVENTS_PER_TURN and self.bytes_read < BYTES_PER_TURN:
            return False
        self.objects = self.bytes_read = 0
        return True


def _may_resume(error: ApiError) -> bool:
    """Tell whether the version we have is still good: the server was busy or not there at all."""
    return isinstance(error, Unreachable | TooManyRequests) or error.status == 503


def _version_of(raw: msgspec.Raw) -> str:
    with suppress(DecodeError):
        return decode_version(raw)
    return ""


def _error_in(raw: msgspec.Raw) -> ApiError:
    try:
        status = _STATUS.decode(raw)
    except (ValueError, RecursionError):
        status = wire.Status(message="unreadable ERROR event")
    return api_error(status.code or 410, status.reason or "", status.message or "")
