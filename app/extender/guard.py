"""What one connection may cost: uvicorn's HTTP protocol with the bounds it lacks.

    first byte ──receive_seconds──▶ last byte        else the connection is closed (slow loris)
    request line and headers ≤ HEADER_BYTES          else 431 and closed
    body ≤ `most_body_bytes`, read or not            else closed; the verbs answer well before
    bodies under way ≤ `most_bytes_under_way`        else 503 and closed
    no more than `max_connections` connections       else the one is closed that has waited longest
                                                     for its client, in the midst of a request or
                                                     between two; the newest, if all are answered
    silence, and answers that are not read: uvicorn's keep-alive, made to abort instead of wait

A connection that has sent nothing is idle, not slow: Go's client opens spare ones, and closing
those early would fail a later POST. Held /bind requests have sent everything and are not bounded
here but by `verbs.bind`.

A body is under way from its first byte to its answer. All of a port share one budget, and a
connection may have as much of it as is still free: one alone has half, two have a third each, and
a newcomer always finds room for a small body. No connection is looked at but the one that sends.
Source: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
IEEE/ACM Transactions on Networking 6(2), 1998, with alpha = 1.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

HEADER_BYTES = 64 * 1024  # kube-scheduler sends 200 bytes
PIPELINED = 16  # requests ahead of their answers; Go's client never has one

# An extension of ASGI: ends a connection whose client does not read the answer that it is sent.
ABORT = "corral.abort"

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one port.

    `on_breach` gets "late", "header", "body", "busy", "idle" or "connections".
    """

    receive_seconds: float
    most_body_bytes: int
    max_connections: int
    most_bytes_under_way: int
    on_breach: Callable[[str], None]


@dataclass(slots=True)
class Taken:
    """What all connections of one port have of it; only `GuardedProtocol` writes it."""

    body_bytes: int = 0
    """Of bodies under way."""
    awaited: dict[GuardedProtocol, None] = field(default_factory=dict)
    """Connections whose client is to send something, the one that is so longest first: since its
    last answer or, from the first byte of a request on, since that."""


class Joined:
    """A transport whose writes of one turn of the loop leave as one, as an answer's head and body.

    uvicorn writes them apart: two system calls, and behind TLS two records. What is not said here
    is the transport's own.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Write it with what else is written before the loop turns."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def close(self) -> None:
        """Close when everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._transport.is_closing():
            self._transport.write(b"".join(waiting))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class TooMuch(Exception):
    """Raised inside the parser: uvicorn answers 400 and closes."""


class GuardedProtocol(HttpToolsProtocol):
    """One connection. Use `guarded` to bind it to its bounds."""

    bounds: Bounds
    taken: Taken

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._is_receiving = False  # between the first and the last byte of a request
        self._has_headers = False
        self._bytes_since_part = 0  # a header or body; checked while a header is incomplete
        self._named_bytes = 0  # of complete header lines
        self._body_bytes = 0
        self._under_way: deque[int] = deque()  # bytes of each body, in order of the answers
        self._unanswered: deque[RequestResponseCycle] = deque()  # with headers; the first one runs
        self._is_over_budget = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]
        if len(self.connections) > self.bounds.max_connections:
            longest = next(iter(self.taken.awaited), None)
            if longest is None:
                self._breach("connections")
                return
            del self.taken.awaited[longest]
            longest._breach("connections" if longest._is_receiving else "idle")
        self.taken.awaited[self] = None
        self._await_next_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        self.taken.awaited.pop(self, None)
        self.taken.body_bytes -= sum(self._under_way)
        self._under_way.clear()
        for each in self._unanswered:  # uvicorn tells the last one only, and that waits its turn
            each.disconnected = True
            each.message_event.set()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._bytes_since_part += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._is_over_budget:
            self._breach("busy")
        elif self._is_receiving:
            if not self._has_headers and self._bytes_since_part > HEADER_BYTES:
                self.transport.write(_TOO_LARGE)
                self._breach("header")
            elif self._body_bytes > self.bounds.most_body_bytes:
                self._breach("body")
            elif self._deadline is None:
                self._deadline = self.loop.call_later(
                    self.bounds.receive_seconds, self._breach, "late"
                )
        elif self.cycle is None or self.cycle.response_complete:
            self._await_next_request()  # blank lines between requests must not keep it open

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED:
            raise TooMuch("pipelined requests")
        self._is_receiving = True
        self._has_headers = False
        self._named_bytes = 0
        self._body_bytes = 0
        self._under_way.append(0)
        self.taken.awaited.pop(self, None)
        if len(self._under_way) == 1:  # else an answer before it is awaited, of us
            self.taken.awaited[self] = None
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self.transport.abort}  # type: ignore[dict-item]

    def on_headers_complete(self) -> None:
        self._has_headers = True
        self._bytes_since_part = 0
        super().on_headers_complete()
        self._unanswered.append(self.cycle)

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if not self._under_way:  # answered already: what else comes is thrown away
            return
        self._under_way[-1] += len(body)
        self.taken.body_bytes += len(body)
        free = self.bounds.most_bytes_under_way - self.taken.body_bytes
        self._is_over_budget = self._is_over_budget or sum(self._under_way) > free
        if not self._is_over_budget:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_receiving = False
        self._has_headers = False
        self._bytes_since_part = 0
        self._end_deadline()
        if self._under_way:  # else it was answered before its end
            self.taken.awaited.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._unanswered.popleft()
        if self._under_way:  # else the connection is lost, and they were given back then
            self.taken.body_bytes -= self._under_way.popleft()
        if not self._under_way and not self.transport.is_closing():
            self.taken.awaited[self] = None
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Abort, not close: closing would wait for a reader who has gone."""
        self.transport.abort()

    def _count(self, more: int) -> None:
        self._named_bytes += more
        if self._named_bytes > HEADER_BYTES:
            raise TooMuch("header")

    def _await_next_request(self) -> None:
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _breach(self, reason: str) -> None:
        self._end_deadline()
        self.bounds.on_breach(reason)
        if reason == "busy" and len(self._under_way) == 1 and not self.cycle.response_started:
            self.transport.write(_BUSY)
            self.transport.close()
        elif reason == "header":
            self.transport.close()  # lets the 431 out
        else:
            self.transport.abort()


def guarded(bounds: Bounds) -> type[GuardedProtocol]:
    """The protocol class for one port, as `uvicorn.Config(http=…)` takes it."""
    return type("BoundProtocol", (GuardedProtocol,), {"bounds": bounds, "taken": Taken()})
