"""GET /v1/decisions?namespace=&limit=: what Corral has decided last."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response

from app.api.access.callers import SeesNamespace
from app.api.examples import DECISIONS, shown
from app.api.tagged import Tagged, answer
from app.explain.decisions import last
from app.state.engine import Engine

MOST_DECISIONS = 250  # of one answer: a millisecond


def decisions(engine: Engine, unready: Callable[[], str]) -> APIRouter:
    """The route. `unready`: why what Corral knows is not to be relied on now, or ""."""
    router = APIRouter()
    # Once: a clock that is set must not make every decision another one.
    wall_offset = time.time() - time.monotonic()

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
            raise HTTPException(503, f"Corral is not ready: {why}")
        content = last(engine, namespace, limit, wall_offset).model_dump_json().encode()
        return answer(request, Tagged.of(content))

    return router
