"""A watch: the changes of one kind behind a version, as the lines of a chunked answer.

    Store.changes_after ─┐
    Store subscription ──┴─▶ lines ─▶ client          end: timeout, cut, client gone, server stop

The end is always a bound: a watch without timeoutSeconds lasts `LONGEST` seconds at most.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import orjson

from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import Kind
from app.sandbox.apiserver.storage.selectors import Predicate
from app.sandbox.apiserver.storage.store import Change, Store, Stored

LONGEST = 3600.0  # seconds
BOOKMARK_SECONDS = 60.0  # how often an idle watch sends the current version
_BACKLOG = 200_000  # lines a slow client may lag behind before its watch is ended


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """The parameters of a watch. version: None starts with the present state ("" or "0")."""

    kind: Kind
    namespace: str
    matches: Predicate | None
    version: int | None
    wants_bookmarks: bool = False
    wants_initial_end: bool = False  # sendInitialEvents: a bookmark closes the present state
    seconds: float = LONGEST


class Watch:
    """One open watch; iterate `lines()` once."""

    def __init__(
        self, store: Store, request: WatchRequest, *, refusal: Refused | None = None
    ) -> None:
        self.request = request
        self._refusal = refusal  # a fault: the watch is refused whatever its version
        self.is_stalled = False  # a fault: the connection stays, bytes do not come
        self.is_torn = False  # a fault: the answer ends without its last chunk
        self._store = store
        self._lines: deque[bytes] = deque()
        self._woken = asyncio.Event()
        self._is_cut = False

    def cut(self, *, tears: bool = False) -> None:
        """End the watch now, as a restarting API server does."""
        self._is_cut = True
        self.is_torn = tears
        self._woken.set()

    def unstall(self) -> None:
        self.is_stalled = False
        self._woken.set()

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """The events, one JSON object per line, until the watch ends."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(self.request.seconds, LONGEST)
        try:
            self._begin()
        except Refused as refusal:
            yield error_line(refusal)
            return
        end = self._store.subscribe(self.request.kind, self._on_change)
        try:
            bookmark_at = loop.time() + BOOKMARK_SECONDS
            while not self._is_cut and len(self._lines) < _BACKLOG:
                self._woken.clear()
                if self._lines and not self.is_stalled:
                    yield self._take()
                    continue
                now = loop.time()
                if now >= deadline:
                    break
                if now >= bookmark_at:
                    self._bookmark()
                    bookmark_at = now + BOOKMARK_SECONDS
                    continue
                await self._wait(min(deadline, bookmark_at) - now)
            if not self._is_cut:
                self._bookmark()  # a client that reconnects resumes from here
            if self._lines and not self.is_stalled and not self.is_torn:
                yield self._take()
        finally:
            end()

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._woken.wait()
        except TimeoutError:
            pass

    def _take(self) -> bytes:
        """Everything there is, in one chunk: a busy cluster writes many lines per wake-up."""
        taken = b"".join(self._lines)
        self._lines.clear()
        return taken

    def _begin(self) -> None:
        request = self.request
        if self._refusal is not None:
            raise self._refusal
        if request.version is not None:
            for change in self._store.changes_after(request.kind, request.version):
                self._on_change(change)
            return
        for key, stored in self._store.state_at(request.kind, self._store.version):
            if self._is_mine(key[0], stored):
                self._lines.append(_line(b"ADDED", stored.raw_typed(request.kind)))
        if request.wants_initial_end:
            self._bookmark(ends_initial=True)

    def _on_change(self, change: Change) -> None:
        """An object that begins or stops matching the selector is ADDED or DELETED here."""
        is_now = change.type != "DELETED" and self._is_mine(change.key[0], change.now)
        was = change.before is not None and self._is_mine(change.key[0], change.before)
        if not is_now and not was:
            return
        type_ = b"MODIFIED" if is_now and was else b"ADDED" if is_now else b"DELETED"
        self._lines.append(_line(type_, change.now.raw_typed(self.request.kind)))
        self._woken.set()

    def _is_mine(self, namespace: str, stored: Stored) -> bool:
        if self.request.namespace and namespace != self.request.namespace:
            return False
        return self.request.matches is None or self.request.matches(stored.body)

    def _bookmark(self, *, ends_initial: bool = False) -> None:
        if not self.request.wants_bookmarks:
            return
        kind = self.request.kind
        metadata: dict[str, object] = {
            "resourceVersion": str(self._store.version),
            "creationTimestamp": None,
        }
        if ends_initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        body = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}
        self._lines.append(_line(b"BOOKMARK", orjson.dumps(body)))


def _line(type_: bytes, raw: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_, raw)


def error_line(refusal: Refused) -> bytes:
    """How a watch is refused once its answer has begun: HTTP 200 and an ERROR event."""
    return _line(b"ERROR", orjson.dumps(refusal.status()))
