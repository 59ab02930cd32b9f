"""GET /v1/dump: what this Corral knows, as a journal that `corral replay` plays.

    a journal is written, from the start      that journal, whole: every input and every answer
    none is, or it has reached its limit      the beginning of one: settings and records as they are

Made and compressed in a thread, piece by piece; one dump at a time.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from enum import StrEnum
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute

from app.api.access.callers import SeesEverything
from app.api.following.stream import ABORT
from app.api.http.refusals import not_ready
from app.state.engine import Engine
from app.state.journal.dump import Known, beginning, copied

FORM_HEADER = "x-corral-dump"
MOST_SECONDS = 600.0  # what is copied for a client that reads slowly is given back then
GZIP = 16 + zlib.MAX_WBITS
MEDIA_TYPE = "application/jsonl"


class Form(StrEnum):
    """What a dump is."""

    JOURNAL = "journal"
    RECORDS = "records"


class Written(Protocol):
    """A journal in a file."""

    @property
    def is_whole(self) -> bool:
        """Whether it has every input up to now."""

    def pieces(self) -> Iterator[bytes]:
        """All of it as it is now; made when called, read when asked for."""


def dumps(
    engine: Engine,
    journal: Written | None,
    unready: Callable[[], str],
    route_class: type[APIRoute] = APIRoute,
) -> APIRouter:
    """The route, for those who may read of every namespace.

    `journal`: where every input is written, if that is set.
    """
    router = APIRouter(route_class=route_class, dependencies=[SeesEverything])
    turn = asyncio.Semaphore(1)

    @router.get(
        "/dump",
        response_class=StreamingResponse,
        responses={
            200: {
                "content": {
                    MEDIA_TYPE: {"example": '{"journal":3,"settings":{"levels":["rack"]}}\n'}
                },
                "description": "A journal, a line each; the header x-corral-dump names its form.",
            },
            503: {"description": "Nothing to rely on is known yet, or another dump is being read."},
        },
    )
    async def dump(
        request: Request,
        form: Annotated[
            Form | None, Query(description="journal, or records; none: the journal if there is one")
        ] = None,
    ) -> StreamingResponse:
        """What this Corral knows."""
        if why := unready():
            raise not_ready(why)
        is_whole = journal is not None and journal.is_whole
        if form is Form.JOURNAL and not is_whole:
            reason = "has reached its limit" if journal else "is not set"
            raise HTTPException(409, f"form={form.value}: the setting journal {reason}")
        if turn.locked():
            raise HTTPException(503, "another dump is being read")
        await turn.acquire()  # at once: it is free
        try:
            if journal is not None and is_whole and form is not Form.RECORDS:
                chosen, pieces = Form.JOURNAL, journal.pieces()
            else:
                chosen, pieces = Form.RECORDS, beginning(await _copied(engine))
        except BaseException:
            turn.release()
            raise
        headers = {FORM_HEADER: chosen.value}
        if "gzip" in request.headers.get("accept-encoding", ""):
            pieces = compressed(pieces)
            headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
        return _Dump(pieces, turn.release, headers)

    return router


async def _copied(engine: Engine) -> Known:
    """What an engine knows; others have the loop between two steps."""
    steps = copied(engine, time.monotonic())
    while True:
        try:
            next(steps)
        except StopIteration as end:
            known: Known = end.value
            return known
        await asyncio.sleep(0)


def compressed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same as one gzip file."""
    packer = zlib.compressobj(level=1, wbits=GZIP)
    for piece in pieces:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


class _Dump(StreamingResponse):
    """The pieces, for as long as one may be read. `done`: called once, however it ends."""

    def __init__(
        self, pieces: Iterator[bytes], done: Callable[[], None], headers: dict[str, str]
    ) -> None:
        super().__init__(_made(pieces), media_type=MEDIA_TYPE, headers=headers)
        self._done = done

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Cut short where it takes too long: also one write may, to a client that does not read."""
        try:
            async with asyncio.timeout(MOST_SECONDS):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            abort = (scope.get("extensions") or {}).get(ABORT)
            if abort is None:
                raise
            abort()
        finally:
            self._done()


async def _made(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each piece, made in a thread."""
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece
