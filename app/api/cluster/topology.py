"""GET /v1/topology: the tree of domains, with what is taken and what would still fit.

    GET /v1/topology?name=&level=&under=&free_for=cpu=4,nvidia.com/gpu=1&after=&limit=

It is about nodes: the client must see the whole cluster, and the namespace of a gang that it names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute

from app.api.access.callers import SeesCluster, sees_namespace
from app.api.http.examples import TOPOLOGY, shown
from app.api.http.refusals import not_ready
from app.api.http.turns import Turns, last_of
from app.explain.finding import named
from app.explain.topology.usage import (
    MOST_SHAPES,
    Books,
    NoSuch,
    Part,
    Wanted,
    usage,
    wanted_of,
    wanted_of_gang,
)
from app.kube.core import aside
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


def topology(
    engine: Engine, unready: Callable[[], str], route_class: type[APIRoute] = APIRoute
) -> APIRouter:
    """The route, for the router of all of /v1.

    `unready`: why what Corral knows is not to be relied on now, or "".
    """
    router = APIRouter(route_class=route_class)
    turns = Turns(MOST_WAITING, BUSY)

    @router.get(
        "/topology",
        response_model=None,
        responses=shown(TOPOLOGY),
        dependencies=[SeesCluster],
    )
    async def told(
        request: Request,
        name: Name = "",
        level: Level = "",
        under: Under = "",
        free_for: FreeFor = [],  # noqa: B006 - FastAPI copies it
        after: After = "",
        limit: Limit = MOST_DOMAINS // 2,
    ) -> Response:
        """The domains of a topology: capacity, used, reserved, free, and places for a shape."""
        if why := unready():
            raise not_ready(why)
        with turns.waiting():
            for text in free_for:
                if "=" not in text:
                    await sees_namespace(request, _gang_of(text)[0])
            async with turns.turn:
                try:
                    wanted = [each for text in free_for for each in await _wanted(engine, text)]
                    books = Books.of(engine, name, tuple(wanted))
                    part = Part(level, under, after, limit)
                    content = await aside.run(partial(_answered, books, part))
                except NoSuch as error:
                    raise HTTPException(422, str(error)) from error
        return Response(content, media_type="application/json")

    return router


async def _wanted(engine: Engine, text: str) -> list[Wanted]:
    """A shape, or the kinds of a gang's pods, or of one that has such a pod or owner.

    Raises: NoSuch.
    """
    if len(text) > LONGEST_SHAPE:
        raise NoSuch(f"free_for: {len(text)} characters, of {LONGEST_SHAPE} at most")
    if "=" in text:
        return [wanted_of(text)]
    namespace, name = _gang_of(text)
    gangs = await last_of(named(engine, namespace, name))
    if not gangs:
        raise NoSuch(f"free_for: no gang {namespace}/{name} is known")
    return list(wanted_of_gang(gangs[0]))


def _gang_of(text: str) -> tuple[str, str]:
    """Namespace and name of a gang."""
    namespace, _, name = text.rpartition("/")
    return namespace or DEFAULT_NAMESPACE, name


def _answered(books: Books, part: Part) -> bytes:
    return usage(books, part).model_dump_json().encode()
