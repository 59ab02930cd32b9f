"""POST /v1/simulate: what would become of objects if they were created now.

    body ──bounded──▶ objects, in a thread ──▶ a copy of the books, on the loop ──▶ simulated, in a
    thread ──▶ JSON, made there as well

Nothing is written, neither in the cluster nor in Corral. One simulation is under way at a time. Who
asks must see the namespace of each object; the answer has no names of others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute

from app.api.access.callers import answered, reader_of, sees_namespace
from app.api.http.examples import SIMULATION, shown
from app.api.http.refusals import not_leading, not_ready
from app.api.http.turns import Turns, last_of
from app.kube.core import aside
from app.simulate.body import MOST_BYTES, Unreadable, objects_in
from app.simulate.copying import Copy
from app.simulate.given import Given, all_given, namespaces_of
from app.simulate.made import TooLarge
from app.simulate.simulating import Rules, simulate
from app.state.engine import Engine

MOST_WAITING = 8  # simulations that wait for their turn, each with its body
BUSY = f"{MOST_WAITING} simulations wait already"
CLIENT_GONE = 499  # no one reads it; the number is nginx's
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


def simulating(
    engine: Engine,
    unready: Callable[[], str],
    whose: Callable[[], str],
    rules: Rules,
    route_class: type[APIRoute] = APIRoute,
) -> APIRouter:
    """The route, for the router of all of /v1.

    `unready`: why what Corral knows is not to be relied on now, or ""; `whose`: who leads, if it is
    another one.
    """
    router = APIRouter(route_class=route_class)
    turns = Turns(MOST_WAITING, BUSY)

    @router.post(
        "/simulate",
        response_model=None,
        responses={**shown(SIMULATION), 413: {}, 422: {}, 503: {}},
        openapi_extra=_BODY,
        dependencies=[Depends(_sees_own)],
    )
    async def simulate_(request: Request, namespace: Namespace = "default") -> Response:
        """Where the gangs of these objects would run, or why they would not."""
        body = await _body(request)  # before it waits: who sends it slowly takes no one's place
        with turns.waiting():
            async with turns.turn:
                if await request.is_disconnected():  # no one waits for it any more
                    return Response(status_code=CLIENT_GONE)
                try:
                    given = await aside.read(partial(_read, namespace=namespace), body, 0)
                    if why := unready():
                        raise not_ready(why)
                    if leads := whose():  # what that one has reserved is not known here
                        raise not_leading(leads)
                    for each in namespaces_of(given):
                        await sees_namespace(request, each)
                    sees_all = await answered(reader_of(request).sees(""))
                    copy = await last_of(Copy.in_steps(engine, time.monotonic(), time.time()))
                    simulated = partial(_answered, copy=copy, rules=rules, sees_all=sees_all)
                    content = await aside.read(simulated, given, 0)
                except (Unreadable, TooLarge) as error:
                    raise HTTPException(422, str(error)) from error
        return Response(content, media_type=JSON)

    return router


async def _sees_own(request: Request, namespace: Namespace = "default") -> None:
    """Who may not see the namespace is refused before objects are read. Raises: as that."""
    await sees_namespace(request, namespace)


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


def _answered(given: tuple[Given, ...], copy: Copy, rules: Rules, *, sees_all: bool) -> bytes:
    return simulate(given, copy, rules, sees_all=sees_all).model_dump_json().encode()
