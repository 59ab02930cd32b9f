"""GET /v1/openapi.json: every route, parameter and answer, for people and their programs.

Made when it is first asked for, in a thread; who is answered at all gets it.
"""

from __future__ import annotations

import asyncio

import orjson
from fastapi import APIRouter, Response
from fastapi.openapi.utils import get_openapi

from app.version import this_build

TITLE = "Corral: gangs, and why they wait"


def description(of: APIRouter) -> APIRouter:
    """The route that describes a router as it is by then."""
    router = APIRouter()
    made: list[bytes] = []

    def make() -> bytes:
        found = get_openapi(title=TITLE, version=this_build().version, routes=of.routes)
        return orjson.dumps(found)

    @router.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        if not made:
            made.append(await asyncio.to_thread(make))
        return Response(made[0], media_type="application/json")

    return router
