"""All of /v1, for people.

    GET /v1/gangs, one gang, its explanation         (gangs, explanation)
    GET /v1/events?namespace=                        (following)
    GET /v1/topology, /v1/map, /v1/nodes/{name}      (topology, map)
    GET /v1/decisions?namespace=                     (decisions)
    POST /v1/simulate                                (simulating)

The event loop that answers kube-scheduler answers these too: a page of gangs is short, and what
takes searches is answered from a copy in a thread, a few at a time.
"""

from __future__ import annotations

from fastapi import APIRouter, Depends

from app.api.cluster.map import maps
from app.api.cluster.topology import topology
from app.api.decisions import decisions
from app.api.dump import dumps
from app.api.explanation import explanations
from app.api.following.events import events
from app.api.gangs import gangs
from app.api.http.description import description
from app.api.http.leader import led_by
from app.api.simulating import simulating
from app.api.standing import Standing
from app.state.engine import Engine


def people(engine: Engine, standing: Standing) -> APIRouter:
    """The routes."""

    led = led_by(standing.leader)
    common = [Depends(standing.callers)]
    router = APIRouter(prefix="/v1", route_class=led, dependencies=common)
    router.include_router(gangs(engine, standing, led))
    router.include_router(explanations(engine, standing, led))
    router.include_router(description(router))
    router.include_router(topology(engine, standing.unready, led))
    router.include_router(maps(engine, standing.unready, led))
    router.include_router(decisions(engine, standing.unready, led))
    router.include_router(dumps(engine, standing.journal, standing.unready, led))
    if standing.rules is not None:
        simulate = simulating(engine, standing.unready, standing.whose, standing.rules, led)
        router.include_router(simulate)
    if standing.stream is not None:
        router.include_router(events(standing.stream, standing.unready, standing.leader, led))
    return router
