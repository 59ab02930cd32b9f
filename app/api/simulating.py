"""POST /v1/simulate: what would become of objects if they were created now.

    body ──bounded──▶ objects, in a thread ──▶ a copy of the books, on the loop ──▶ simulated, in a
    thread ──▶ JSON, made there as well

Nothing is written, neither in the cluster nor in Corral. One simulation is under way at a time.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response

from app.api.routes import Standing
from app.kube.core import aside
from app.simulate.body import MOST_BYTES, Unreadable, objects_in
from app.simulate.copying import Copy
from app.simulate.given import Given, all_given
from app.simulate.simulating import Rules, TooLarge, simulate
from app.simulate.view import Simulation
from app.state.engine import Engine

MOST_WAITING = 8  # simulations that wait for their turn, each with its body
BUSY = f"{MOST_WAITING} simulations wait already"
JSON, YAML = "application/json", "application/yaml"

_EXAMPLE = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "trainer", "namespace": "team-a"},
    "spec": {
        "parallelism": 4,
        "completions": 4,
        "template": {
            "metadata": {
                "annotations": {
                    "kueue.x-k8s.io/podset-required-topology": "cloud.provider.com/topology-rack"
                }
            },
            "spec": {
                "schedulerName": "corral",
                "containers": [
                    {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 8}}}
                ],
            },
        },
    },
}  # fmt: skip
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "One object, a list of some, or several YAML documents; 1 MiB at most",
        "content": {
            JSON: {"schema": {"type": "object"}, "example": _EXAMPLE},
            YAML: {"schema": {"type": "string"}},
        },
    }
}
Namespace = Annotated[str, Query(description="Of objects that name none", max_length=63)]


def simulating(engine: Engine, standing: Standing, rules: Rules) -> APIRouter:
    """The route, for the router of all of /v1."""
    router = APIRouter()
    turn, waiting = asyncio.Semaphore(1), 0

    @router.post(
        "/simulate",
        response_model=None,
        responses={200: {"model": Simulation}, 413: {}, 422: {}, 503: {}},
        openapi_extra=_BODY,
    )
    async def simulated(request: Request, namespace: Namespace = "default") -> Response:
        """Where the gangs of these objects would run, or why they would not."""
        nonlocal waiting
        if waiting >= MOST_WAITING:
            raise HTTPException(503, BUSY)
        waiting += 1
        try:
            body = await _body(request)
            async with turn:
                try:
                    given = await aside.read(partial(_read, namespace=namespace), body, 0)
                    if why := standing.unready():
                        raise HTTPException(503, f"Corral is not ready: {why}")
                    if whose := standing.whose():  # what that one has reserved is not known here
                        raise HTTPException(503, f"this Corral plans nothing: {whose}")
                    copy = Copy.of(engine, time.monotonic())
                    answered = partial(_answered, copy=copy, rules=rules)
                    content = await aside.read(answered, given, 0)
                except (Unreadable, TooLarge) as error:
                    raise HTTPException(422, str(error)) from error
            return Response(content, media_type=JSON)
        finally:
            waiting -= 1

    return router


async def _body(request: Request) -> bytes:
    """The whole body. Raises: HTTPException for one that is compressed or too large."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HTTPException(415, "a body with Content-Encoding is not read")
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > MOST_BYTES:
            raise HTTPException(413, f"the body has more than {MOST_BYTES} bytes")
    return bytes(received)


def _read(body: bytes, namespace: str) -> tuple[Given, ...]:
    return all_given(objects_in(body), namespace)


def _answered(given: tuple[Given, ...], copy: Copy, rules: Rules) -> bytes:
    return simulate(given, copy, rules).model_dump_json().encode()
