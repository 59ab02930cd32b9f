"""GET /v1/map and /v1/nodes/{name}: the topology as a picture shows it, and one node of it.

    GET /v1/map?name=&resource=&namespace=      every node: columns, with a tag
    GET /v1/nodes/{name}?namespace=             what runs there

It is about nodes, so who asks must be one who sees the whole cluster. Gangs and pods have names for
who may list the pods of every namespace; for others those of `namespace` alone.

One map is made at a time, at most one a second of each resource, however many clients look at it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute

from app.api.access.callers import SeesCluster, answered, reader_of, sees_namespace
from app.api.http.examples import MAP, NODE, shown
from app.api.http.refusals import not_ready
from app.api.http.tagged import Tagged, answer
from app.api.http.turns import Turns, last_of
from app.explain.topology.map import Known, May, copied, drawn
from app.explain.topology.map_view import NodeView
from app.explain.topology.node import node_view
from app.explain.topology.usage import NoSuch
from app.fresh import Fresh
from app.kube.core import aside
from app.state.engine import Engine

MOST_WAITING = 32
BUSY = f"{MOST_WAITING} questions about the map wait already"
MOST_KEPT = 8  # maps, some 0.7 MB each at 5,000 nodes

_Key = tuple[str, str, str | None]  # topology, resource, scope

Name = Annotated[str, Query(description="Of the topology; none: the first that is in use")]
Resource = Annotated[str, Query(description="None: accelerators, else cpu", max_length=317)]
Namespace = Annotated[str, Query(description="Whose gangs have names, for who sees some alone")]


def maps(
    engine: Engine, unready: Callable[[], str], route_class: type[APIRoute] = APIRoute
) -> APIRouter:
    """The routes, for the router of all of /v1.

    `unready`: why what Corral knows is not to be relied on now, or "".
    """
    router = APIRouter(route_class=route_class)
    turns = Turns(MOST_WAITING, BUSY)
    kept = Fresh[_Key, Tagged](MOST_KEPT)

    def ready() -> None:
        if why := unready():
            raise not_ready(why)

    @router.get("/map", response_model=None, responses=shown(MAP), dependencies=[SeesCluster])
    async def map_(
        request: Request, name: Name = "", resource: Resource = "", namespace: Namespace = ""
    ) -> Response:
        """What each node has of a resource, what is used and reserved, and by which gangs."""
        ready()
        scope = await _scope(request, namespace)
        key = name, resource, scope
        with turns.waiting():
            async with turns.turn:
                if (known := kept.get(key)) is None:
                    try:
                        copy = await last_of(copied(engine, name))
                        known = await _made(copy, resource, _may(scope))
                    except NoSuch as error:
                        raise HTTPException(422, str(error)) from error
                    kept.put(key, known)
        return answer(request, known)

    @router.get("/nodes/{name}", responses=shown(NODE), dependencies=[SeesCluster])
    async def node(request: Request, name: str, namespace: Namespace = "") -> NodeView:
        """What a node has, why it takes no pods, and the pods on it."""
        ready()
        may = _may(await _scope(request, namespace))
        try:
            return node_view(engine, name, may)
        except NoSuch as error:
            raise HTTPException(404, str(error)) from error

    return router


async def _scope(request: Request, namespace: str) -> str | None:
    """The namespace whose names the client sees; None: it sees all. Raises: HTTPException."""
    if await answered(reader_of(request).sees("")):
        return None
    if namespace:
        await sees_namespace(request, namespace)
    return namespace


def _may(scope: str | None) -> May:
    return lambda namespace: scope is None or (scope != "" and namespace == scope)


async def _made(known: Known, resource: str, may: May) -> Tagged:
    """A map, drawn beside the loop. Raises: NoSuch."""
    return await aside.run(partial(_drawn, known, resource, may))


def _drawn(known: Known, resource: str, may: May) -> Tagged:
    return Tagged.of(drawn(known, resource, may).model_dump_json().encode())
