"""What probes and Prometheus ask, on every port; and, as of kube-apiserver, the version.

No caller has to authenticate here, so a scrape, which takes milliseconds of the loop, is made
once a second at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import orjson
from fastapi import APIRouter, Response

from app.fresh import Fresh
from app.version import this_build

PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"


def health(
    unready: Callable[[], str],
    exposition: Callable[[], bytes],
    clock: Callable[[], float] = time.monotonic,
) -> APIRouter:
    """/healthz, /readyz, /metrics, /version. `unready` says why not, or ""."""
    router = APIRouter()
    version = orjson.dumps(this_build())
    scraped = Fresh[str, bytes](1, clock)

    @router.get("/healthz")
    async def healthz() -> Response:
        return Response(b"ok", media_type="text/plain")

    @router.get("/readyz")
    async def readyz() -> Response:
        why = unready()
        return Response((why or "ok").encode(), 503 if why else 200, media_type="text/plain")

    @router.get("/metrics")
    async def metrics() -> Response:
        if (text := scraped.get("")) is None:
            text = exposition()
            scraped.put("", text)
        return Response(text, media_type=PROMETHEUS_TEXT)

    @router.get("/version")
    async def which() -> Response:
        return Response(version, media_type="application/json")

    return router
