"""GET /v1/topology: the tree of domains, with what is taken and what would still fit.

    GET /v1/topology?name=&level=&under=&free_for=cpu=4,nvidia.com/gpu=1&after=&limit=

It is about nodes, so who asks must be one who sees the whole cluster.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Response

from app.api.routes import Standing
from app.explain.usage import (
    MOST_SHAPES,
    Books,
    NoSuch,
    Part,
    Wanted,
    gang_named,
    usage,
    wanted_of,
    wanted_of_gang,
)
from app.explain.usage_view import TopologyPage
from app.state.engine import Engine

MOST_DOMAINS = 500  # of one page
MOST_WAITING = 8
LONGEST_SHAPE = 512  # characters
BUSY = f"{MOST_WAITING} questions about the topology wait already"
DEFAULT_NAMESPACE = "default"

Name = Annotated[str, Query(description="Of the topology; none: the first that is in use")]
Level = Annotated[str, Query(description="The narrowest level told; none: the one above nodes")]
Under = Annotated[str, Query(description="Only this domain and those inside", examples=["b1/r7"])]
FreeFor = Annotated[
    list[str],
    Query(
        description="A shape, or a gang as NAMESPACE/NAME: how many more pods of it fit",
        examples=["cpu=4,nvidia.com/gpu=1"],
        max_length=MOST_SHAPES,
    ),
]
After = Annotated[str, Query(description="`next` of the page before")]
Limit = Annotated[int, Query(ge=1, le=MOST_DOMAINS)]


def topology(engine: Engine, standing: Standing) -> APIRouter:
    """The route, for the router of all of /v1."""
    router = APIRouter()
    turn, waiting = asyncio.Semaphore(1), 0

    @router.get("/topology", response_model=None, responses={200: {"model": TopologyPage}})
    async def told(
        name: Name = "",
        level: Level = "",
        under: Under = "",
        free_for: FreeFor = [],  # noqa: B006 - FastAPI copies it
        after: After = "",
        limit: Limit = MOST_DOMAINS // 2,
    ) -> Response:
        """The domains of a topology: capacity, used, reserved, free, and places for a shape."""
        nonlocal waiting
        if why := standing.unready():
            raise HTTPException(503, f"Corral is not ready: {why}")
        if waiting >= MOST_WAITING:
            raise HTTPException(503, BUSY)
        waiting += 1
        try:
            async with turn:
                wanted = tuple(each for text in free_for for each in _wanted(engine, text))
                books = Books.of(engine, name, wanted)
                part = Part(level, under, after, limit)
                content = await asyncio.to_thread(_answered, books, part)
        except NoSuch as error:
            raise HTTPException(422, str(error)) from error
        finally:
            waiting -= 1
        return Response(content, media_type="application/json")

    return router


def _wanted(engine: Engine, text: str) -> list[Wanted]:
    """A shape, or the kinds of a gang's pods. Raises: NoSuch."""
    if len(text) > LONGEST_SHAPE:
        raise NoSuch(f"free_for: {len(text)} characters, of {LONGEST_SHAPE} at most")
    if "=" in text:
        return [wanted_of(text)]
    namespace, _, name = text.rpartition("/")
    return list(wanted_of_gang(gang_named(engine, namespace or DEFAULT_NAMESPACE, name)))


def _answered(books: Books, part: Part) -> bytes:
    return usage(books, part).model_dump_json().encode()
