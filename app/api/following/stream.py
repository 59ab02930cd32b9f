"""What changes about gangs, sent to those who follow it as server-sent events.

    Changes ──a look a tick──▶ an event each, written once ──▶ a queue per follower ──▶ EventStream

A client that comes gets every gang as it is, then `synced`, then each change; so does one that
comes again, and an event has no id. One that reads too slowly for its queue is told so and dropped,
since what it would get then is old. One that does not read at all is dropped by a time limit.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec
from fastapi import Response

from app.explain.changes import Changes, Shown
from app.explain.view import GangView

MOST_FOLLOWERS = 64
MOST_OF_USER = 8  # of one user; clients on loopback have no name, and share all of them
MOST_QUEUED = 1_024  # events of one follower that wait to be sent; followers share their bytes
AT_ONCE = 100  # gangs that are written in a thread, and sent together, of the first ones
KEEP_ALIVE_SECONDS = 15.0  # proxies end connections that are silent for 30 to 60
RETRY_MILLISECONDS = 2_000  # what a browser waits before it comes again
WRITE_SECONDS = 20.0  # for one write to a client that does not read
END_SECONDS = 1.0  # for the last one
TOO_SLOW = f"over {MOST_QUEUED} events wait to be read: connect again for all gangs as they are"
KEEP_ALIVE = b": nothing new\n\n"
ABORT = "corral.abort"  # an ASGI extension of `app.extender.guard`: ends the connection now


OnFault = Callable[[str, Exception], None]


class TooManyFollow(Exception):
    """There is no room for one more; the message says of what."""


def _nothing(_part: str, _error: Exception) -> None:
    pass


def event(kind: str, data: str) -> bytes:
    """One event as it is sent. `data`: JSON, which has no line breaks of its own."""
    return f"event: {kind}\ndata: {data}\n\n".encode()


def of_gang(gang: GangView) -> bytes:
    """A gang as it is now."""
    return event("gang", gang.model_dump_json())


class Follower:
    """One who follows; `namespace` "": the gangs of all."""

    def __init__(self, namespace: str, user: str) -> None:
        self.namespace, self.user = namespace, user
        self.why_ended = ""
        """No event follows but one that says this; "": it goes on."""
        self.writing: asyncio.Timeout | None = None
        """The time limit of the write under way."""
        self.has_begun = False
        """The client has what came first; no change is sent to it before that."""
        self._queue = deque[bytes]()
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, lines: Iterable[bytes]) -> None:
        """Have them sent, or end where too much waits."""
        if self.why_ended or not self.has_begun:
            return
        self._queue.extend(lines)
        if len(self._queue) > MOST_QUEUED:
            self.end(TOO_SLOW)
        self._news.set()

    def wake(self) -> None:
        """There is news that is not in the queue."""
        self._news.set()

    def end(self, why: str) -> None:
        """Send nothing more, but why."""
        self.why_ended = self.why_ended or why
        self._queue.clear()
        self._news.set()
        if self.writing is not None:
            self.writing.reschedule(asyncio.get_running_loop().time() + END_SECONDS)

    def taken(self) -> list[bytes]:
        """What waits to be sent, which then does not wait any more."""
        found = list(self._queue)
        self._queue.clear()
        return found

    async def has_news(self, seconds: float) -> bool:
        """Wait for some, for so long at most."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


class Stream:
    """Who follows, and what there is to tell them. One of a Corral; `run` it beside the others.

    `seconds`: between two looks. `on_fault`: told of an error of our own.
    """

    def __init__(
        self,
        changes: Changes,
        *,
        seconds: float,
        on_fault: OnFault = _nothing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.changes, self._seconds, self.clock = changes, seconds, clock
        self._on_fault = on_fault
        self._followers: dict[Follower, None] = {}
        self._of_user = Counter[str]()
        self._is_followed = asyncio.Event()
        self._why_closed = ""

    def __len__(self) -> int:
        return len(self._followers)

    async def run(self) -> None:
        """Look for changes once a tick while a client follows, until cancelled."""
        while True:
            await self._is_followed.wait()
            try:
                self.step()
            except Exception as error:  # a bug of ours must not stop scheduling
                self._on_fault("stream", error)
                self.changes.forget()
                self._end_all("an error of Corral's own: its log has it")
            await asyncio.sleep(self._seconds)

    def step(self) -> None:
        """One look, and its changes put into the queues of those that they are for."""
        was_whole = self.changes.is_whole
        lines = defaultdict[str, list[bytes]](list)
        for change in self.changes.look(self.clock()):
            gang = change.gang
            line = _gone(gang) if change.is_gone else of_gang(gang)
            lines[gang.namespace].append(line)
            lines[""].append(line)
        for each in self._followers:
            if its := lines.get(each.namespace):
                each.put(its)
            if self.changes.is_whole and not was_whole:
                each.wake()

    def follow(self, namespace: str, user: str) -> Follower:
        """One more who follows, until `leave`. Raises: TooManyFollow."""
        if self._why_closed:
            raise TooManyFollow(self._why_closed)
        if len(self._followers) >= MOST_FOLLOWERS:
            raise TooManyFollow(f"{MOST_FOLLOWERS} follow already, of {MOST_FOLLOWERS} at most")
        if user and self._of_user[user] >= MOST_OF_USER:
            raise TooManyFollow(
                f"user {user} follows {MOST_OF_USER} times already, of {MOST_OF_USER} at most"
            )
        follower = Follower(namespace, user)
        self._followers[follower] = None
        self._of_user[user] += 1
        self._is_followed.set()
        return follower

    def leave(self, follower: Follower) -> None:
        """He does not follow any more; after the last one nothing is looked at."""
        if follower not in self._followers:
            return
        del self._followers[follower]
        self._of_user[follower.user] -= 1
        if not self._of_user[follower.user]:
            del self._of_user[follower.user]
        if not self._followers:
            self._is_followed.clear()
            self.changes.forget()

    def close(self, why: str) -> None:
        """Tell all clients that follow why it ends; no other may follow."""
        self._why_closed = why
        self._end_all(why)

    def _end_all(self, why: str) -> None:
        for each in self._followers:
            each.end(why)

    def first(self, follower: Follower) -> Sequence[Shown]:
        """Every gang that the client sees, as it was shown last; from here on it gets changes."""
        follower.has_begun = True
        within = follower.namespace
        return [each for each in self.changes.shown.values() if within in ("", each.key.namespace)]


class EventStream(Response):
    """The answer to one who follows. `may_go_on`: asked now and then; why not, or ""."""

    media_type = "text/event-stream"

    def __init__(
        self,
        stream: Stream,
        follower: Follower,
        may_go_on: Callable[[], Awaitable[str]],
        *,
        ask_seconds: float,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._stream, self._follower = stream, follower
        self._may_go_on, self._ask_seconds = may_go_on, ask_seconds

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send until the client goes, the stream is closed, or the client may not read any more."""
        gone = asyncio.create_task(_left(receive))
        sending = asyncio.create_task(self._send_all(send))
        try:
            await asyncio.wait((gone, sending), return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and isinstance(sending.exception(), TimeoutError):
                abort = (scope.get("extensions") or {}).get(ABORT)
                if abort is not None:
                    abort()
                    await asyncio.wait((gone,), timeout=END_SECONDS)
            elif sending.done():
                sending.result()
        finally:
            self._stream.leave(self._follower)
            for task in (gone, sending):
                task.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)

    async def _send_all(self, send: Any) -> None:
        """Raises: TimeoutError where a client does not read."""
        follower, stream = self._follower, self._stream
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await self._sent(send, f"retry: {RETRY_MILLISECONDS}\n\n".encode())
        while not (stream.changes.is_whole or follower.why_ended):
            await self._waited(send)
        first, gangs = iter(stream.first(follower)), 0
        while (some := list(islice(first, AT_ONCE))) and not follower.why_ended:
            gangs += len(some)
            await self._sent(send, await asyncio.to_thread(_written, some, stream.clock()))
        if not follower.why_ended:
            await self._sent(send, event("synced", f'{{"gangs":{gangs}}}'))
        asked_at = stream.clock()
        while not follower.why_ended:
            if stream.clock() - asked_at >= self._ask_seconds:
                asked_at = stream.clock()
                if why := await self._may_go_on():
                    follower.end(why)
            elif lines := follower.taken():
                await self._sent(send, b"".join(lines))
            else:
                await self._waited(send)
        why = msgspec.json.encode({"reason": follower.why_ended}).decode()
        await self._sent(send, event("end", why), more=False)

    async def _waited(self, send: Any) -> None:
        """Wait for news, and where there is none keep the connection."""
        seconds = min(KEEP_ALIVE_SECONDS, self._ask_seconds)
        if not await self._follower.has_news(seconds):
            await self._sent(send, KEEP_ALIVE)

    async def _sent(self, send: Any, body: bytes, *, more: bool = True) -> None:
        follower = self._follower
        limit = END_SECONDS if follower.why_ended else WRITE_SECONDS
        try:
            async with asyncio.timeout(limit) as follower.writing:
                await send({"type": "http.response.body", "body": body, "more_body": more})
        finally:
            follower.writing = None


def _written(gangs: Iterable[Shown], now: float) -> bytes:
    return b"".join(of_gang(each.as_of(now)) for each in gangs)


def _gone(gang: GangView) -> bytes:
    """A gang that is not there any more."""
    its = {"namespace": gang.namespace, "name": gang.name, "source": gang.source}
    return event("gone", msgspec.json.encode(its).decode())


async def _left(receive: Any) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
