"""GET /v1/gangs, and one gang.

GET /v1/gangs?namespace=&phase=&reason=&after=&limit=
GET /v1/gangs/{namespace}/{name}
"""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.routing import APIRoute

from app.api.access.callers import SeesNamespace
from app.api.http.examples import GANG, GANGS, shown
from app.api.http.refusals import not_ready
from app.api.http.turns import Turns, last_of
from app.api.named import Names, Source
from app.api.standing import Standing
from app.explain.elsewhere import of_follower
from app.explain.finding import listed
from app.explain.gangs import view
from app.explain.view import GangView
from app.state.engine import Engine
from app.state.gang.gang import Phase
from app.state.gang.reasons import Reason

MOST_GANGS = 250  # of one page: some milliseconds
MOST_LISTED = 64  # lists, or gangs by name
BUSY = f"{MOST_LISTED} questions about gangs wait already"


def gangs(engine: Engine, standing: Standing, route_class: type[APIRoute] = APIRoute) -> APIRouter:
    """The routes, for the router of all of /v1."""
    router = APIRouter(route_class=route_class)
    turns, names = Turns(MOST_LISTED, BUSY), Names(engine, standing)

    @router.get("/gangs", response_model=None, dependencies=[SeesNamespace], responses=shown(GANGS))
    async def several(
        namespace: str = "",
        phase: Phase | None = None,
        reason: Reason | None = None,
        after: Annotated[str, Query(description="`next` of the page before")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST_GANGS)] = MOST_GANGS,
    ) -> Response:
        """The gangs, in the order of namespaces and names."""
        with turns.waiting():
            async with turns.turn:
                if why := standing.unready():
                    raise not_ready(why)
                page = await last_of(
                    listed(
                        engine, time.monotonic(), namespace=namespace, phase=phase, reason=reason,
                        after=after, limit=limit, whose=standing.whose(),
                    )
                )  # fmt: skip
        # Through FastAPI's own validation and encoding it would take eight times as long.
        return Response(page.model_dump_json(), media_type="application/json")

    @router.get("/gangs/{namespace}/{name}", dependencies=[SeesNamespace], responses=shown(GANG))
    async def one(namespace: str, name: str, source: Source = "") -> GangView:
        """The gang of this name, or of a pod or an owner of this name."""
        with turns.waiting():
            async with turns.turn:
                here = await names.found(namespace, name, source)
        if here is None:
            return (await names.elsewhere(namespace, name)).gang
        return of_follower(view(here, time.monotonic(), engine.books), standing.whose())

    return router
