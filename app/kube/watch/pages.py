"""A list, page by page, each of as many objects as are few bytes.

    500 objects ── too many bytes ──▶ a quarter of them … down to one
         ▲                                     │
         └── few bytes: twice as many next ◀───┘

A tenant may have objects of 1.5 MiB, and ten as JSON: no list fails for that. Nor does it begin
again where one of its pages is refused for now: of 300 pages one often is while the API server has
too much to do, and to ask it for all of them again would give it more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from random import Random
from typing import Protocol

import msgspec

from app.errors import ApiError, DecodeError, TooLong, Unreachable
from app.kube.client.backoff import Backoff
from app.kube.client.transport import LONGEST_OBJECT
from app.kube.decoding import wire

PAGE_OBJECTS = 500  # at most: 3.5 MB of ordinary pods
PAGE_SECONDS = 60.0  # Kubernetes' own objective for a whole list is 30
PAGE_BYTES = 2**22  # to aim at: a page is taken apart in one step of 4 ms
MOST_PAGE_BYTES = 2 * PAGE_BYTES  # beyond that fewer objects are asked for, down to a single one
MOST_PAGES = 10_000  # a server that never ends its list is broken
MOST_TRIES = 5  # of one page; then it is for the caller to begin again
LONGEST_PAUSE = 30.0  # seconds between two: what a page is asked for by lasts five minutes

_PAGE = msgspec.json.Decoder(wire.Page)


class Reads(Protocol):
    """The part of `transport.Transport` used here."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        timeout: float,
        most_bytes: int,
    ) -> bytes: ...


def _nothing(_problem: ApiError) -> None:
    pass


class Pages:
    """Reads lists from one API server, and remembers how many objects are few bytes.

    `on_problem`: told why a page is asked for again. Units: `seconds` for one page.
    """

    def __init__(
        self,
        server: Reads,
        *,
        most_objects: int = PAGE_OBJECTS,
        seconds: float = PAGE_SECONDS,
        on_problem: Callable[[ApiError], None] = _nothing,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: Random | None = None,
    ) -> None:
        self._server, self._most_objects, self._seconds = server, most_objects, seconds
        self._on_problem, self._sleep, self._rng = on_problem, sleep, rng or Random()
        self._objects = most_objects

    async def of(
        self, path: str, params: Mapping[str, str] | None = None
    ) -> AsyncIterator[wire.Page]:
        """The pages of a list, one at least.

        Raises: ApiError or the member of its tree; TooLong for a single object beyond what is
            possible; DecodeError for what is no page, and for a list that does not end.
        """
        token = ""
        for _ in range(MOST_PAGES):
            # Of one that has not begun nothing would be lost: its caller knows when to ask again.
            tries = MOST_TRIES if token else 1
            body = await self._read(path, {**(params or {}), **_at(token)}, tries)
            fitting = self._objects * PAGE_BYTES // max(len(body), 1)
            self._objects = max(1, min(fitting, 2 * self._objects, self._most_objects))
            try:
                page = _PAGE.decode(body)
            except (ValueError, RecursionError) as error:
                raise DecodeError(f"list of {path}: {error}") from error
            yield page
            token = (page.metadata and page.metadata.continue_token) or ""
            if not token:
                return
        raise DecodeError(f"list of {path}: over {MOST_PAGES} pages")

    async def _read(self, path: str, params: Mapping[str, str], tries: int) -> bytes:
        """The bytes of a page, with as many objects as are not too many bytes."""
        backoff = Backoff(self._rng)
        while True:
            objects = self._objects
            try:
                return await self._server.request(
                    "GET",
                    path,
                    params={"limit": str(objects), **params},
                    timeout=self._seconds,
                    most_bytes=MOST_PAGE_BYTES if objects > 1 else LONGEST_OBJECT,
                )
            except TooLong:
                if objects == 1:
                    raise
                self._objects = max(1, objects // 4)
            except ApiError as error:
                tries -= 1
                asked = error.retry_after or 0.0
                # Without an answer it is not known that there is a server that knows the token.
                is_refused = error.may_pass and not isinstance(error, Unreachable)
                if not (is_refused and tries) or asked > LONGEST_PAUSE:
                    raise
                self._on_problem(error)
                await self._sleep(max(asked, backoff.pause()))


def _at(token: str) -> dict[str, str]:
    return {"continue": token} if token else {}
