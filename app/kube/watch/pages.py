"""A list, page by page, each of as many objects as are few bytes.

    500 objects ── too many bytes ──▶ a quarter of them … down to one
         ▲                                     │
         └── few bytes: twice as many next ◀───┘

A tenant may have objects of 1.5 MiB, and ten as JSON: no list fails for that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import msgspec

from app.errors import DecodeError, TooLong
from app.kube.client.transport import LONGEST_OBJECT
from app.kube.decoding import wire

PAGE_OBJECTS = 500  # at most: 3.5 MB of ordinary pods
PAGE_SECONDS = 60.0  # Kubernetes' own objective for a whole list is 30
PAGE_BYTES = 2**22  # to aim at: a page is taken apart in one step of 4 ms
MOST_PAGE_BYTES = 2 * PAGE_BYTES  # beyond that fewer objects are asked for, down to a single one
MOST_PAGES = 10_000  # a server that never ends its list is broken

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


class Pages:
    """Reads lists from one API server, and remembers how many objects are few bytes.

    Units: `seconds` for one page.
    """

    def __init__(
        self, server: Reads, *, most_objects: int = PAGE_OBJECTS, seconds: float = PAGE_SECONDS
    ) -> None:
        self._server, self._most_objects, self._seconds = server, most_objects, seconds
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
            body = await self._read(path, {**(params or {}), **_at(token)})
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

    async def _read(self, path: str, params: Mapping[str, str]) -> bytes:
        """The bytes of a page, with as many objects as are not too many bytes."""
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


def _at(token: str) -> dict[str, str]:
    return {"continue": token} if token else {}
