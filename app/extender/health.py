"""What probes and Prometheus ask, on every port."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Response

PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"


def health(unready: Callable[[], str], exposition: Callable[[], bytes]) -> APIRouter:
    """/healthz, /readyz, /metrics. `unready` says why not, or ""."""
    router = APIRouter()

    @router.get("/healthz")
    async def healthz() -> Response:
        return Response(b"ok", media_type="text/plain")

    @router.get("/readyz")
    async def readyz() -> Response:
        why = unready()
        return Response((why or "ok").encode(), 503 if why else 200, media_type="text/plain")

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(exposition(), media_type=PROMETHEUS_TEXT)

    return router
