"""GET /v1/decisions?namespace=&limit=: what Corral has decided last.

Each page asks once a second. The tag of an answer is made of the number of its newest decision: no
decision is read for a client that has the answer, and for others it is made once a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.routing import APIRoute

from app.api.access.callers import SeesNamespace
from app.api.http.examples import DECISIONS, shown
from app.api.http.refusals import not_ready
from app.api.http.tagged import Tagged, answer, has, unchanged
from app.explain.decisions import last
from app.fresh import Fresh
from app.state.engine import Engine

MOST_DECISIONS = 250  # of one answer: two milliseconds, more than half of it to compress it
MOST_KEPT = 8  # answers, some 0.2 MB each at most


def decisions(
    engine: Engine, unready: Callable[[], str], route_class: type[APIRoute] = APIRoute
) -> APIRouter:
    """The route. `unready`: why what Corral knows is not to be relied on now, or ""."""
    router = APIRouter(route_class=route_class)
    # Once: a clock that is set must not make every decision another one.
    wall_offset = time.time() - time.monotonic()
    began = f"{time.time_ns():x}"  # a Corral that is started again counts its decisions anew
    kept = Fresh[str, Tagged](MOST_KEPT)

    @router.get(
        "/decisions",
        response_model=None,
        responses=shown(DECISIONS),
        dependencies=[SeesNamespace],
    )
    async def told(
        request: Request,
        namespace: str = "",
        limit: Annotated[int, Query(ge=1, le=MOST_DECISIONS)] = 100,
    ) -> Response:
        """The last decisions about gangs, newest first: 100 of a namespace are remembered."""
        if why := unready():
            raise not_ready(why)
        edition = engine.reports.decisions.edition(namespace)
        # No two namespaces have one newest decision, unless it is none.
        tag = f'"{began}-{edition}-{"of" if namespace else "all"}-{limit}"'
        if has(request, tag):
            return unchanged(tag)
        if (made := kept.get(tag)) is None:
            content = last(engine, namespace, limit, wall_offset).model_dump_json().encode()
            made = Tagged.of(content, tag=tag)
            kept.put(tag, made)
        return answer(request, made)

    return router
