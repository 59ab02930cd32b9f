"""GET /v1/gangs, one gang, and why it waits.

    GET /v1/gangs?namespace=&phase=&reason=&after=&limit=
    GET /v1/gangs/{namespace}/{name}
    GET /v1/gangs/{namespace}/{name}/explanation
    GET /v1/events?namespace=                        (following)
    GET /v1/topology, /v1/map, /v1/nodes/{name}      (topology, map)
    GET /v1/decisions?namespace=                     (decisions)
    POST /v1/simulate                                (simulating)

The event loop that answers kube-scheduler answers these too: a page of gangs is short, and what
takes searches is answered from a copy in a thread, a few at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from app.api.access.callers import Callers, SeesNamespace, answered, reader_of
from app.api.decisions import decisions
from app.api.dump import Written, dumps
from app.api.following.events import events
from app.api.following.stream import Stream
from app.api.http.description import description
from app.api.http.examples import EXPLANATION, GANG, GANGS, shown
from app.api.http.leader import leader_header
from app.api.http.refusals import not_ready
from app.api.http.turns import Turns, last_of
from app.api.map import maps
from app.api.others import Others
from app.api.simulating import simulating
from app.api.topology import topology
from app.explain.answering import answer
from app.explain.asking import asking
from app.explain.elsewhere import of_follower, of_other_scheduler, unsearched
from app.explain.finding import listed, named
from app.explain.gangs import view
from app.explain.view import Explanation, GangView
from app.kube.core import aside
from app.simulate.simulating import Rules
from app.state.engine import Engine
from app.state.gang.gang import Gang, Phase
from app.state.gang.reasons import Reason

MOST_GANGS = 250  # of one page: some milliseconds
MOST_WAITING = 16  # explanations that wait for their turn
BUSY = f"{MOST_WAITING} explanations wait already"
MOST_LISTED = 64  # lists, or gangs by name
BUSY_LISTS = f"{MOST_LISTED} questions about gangs wait already"

Source = Annotated[str, Query(description="What declares it, such as `job`; none: anything")]


@dataclass(frozen=True, slots=True)
class Standing:
    """What this Corral is to those who ask it."""

    unready: Callable[[], str]
    """Why what it knows is not to be relied on now, or ""."""
    whose: Callable[[], str] = lambda: ""
    """Who leads, in words, if another pod does; "": this one."""
    others: Others | None = None
    """Where pods are that no gang here has; none: nowhere."""
    callers: Callers = field(default_factory=Callers)
    """Who is answered; clients on loopback are, if nothing else is said."""
    stream: Stream | None = None
    """What they may follow; none: nothing."""
    leader: Callable[[], str] = lambda: ""
    """The pod of the Corral that leads, if it is known and another one."""
    rules: Rules | None = None
    """By which what they have simulated is admitted; none: nothing is."""
    journal: Written | None = None
    """What they may read of every input; none: none is written."""


def people(engine: Engine, standing: Standing) -> APIRouter:
    """The routes."""

    async def name_leader(response: Response) -> None:
        response.headers.update(leader_header(standing.leader()))

    common = [Depends(standing.callers), Depends(name_leader)]
    router = APIRouter(prefix="/v1", dependencies=common)
    turns, lists = Turns(MOST_WAITING, BUSY), Turns(MOST_LISTED, BUSY_LISTS)

    def ready() -> None:
        if why := standing.unready():
            raise not_ready(why)

    async def found(namespace: str, name: str, source: str) -> Gang | None:
        ready()
        gangs = await last_of(named(engine, namespace, name, source))
        if len(gangs) > 1:
            sources = ", ".join(dict.fromkeys(gang.key.source for gang in gangs))
            names = ", ".join(sorted({gang.key.name for gang in gangs}))
            raise HTTPException(
                409, f"{namespace}/{name} is in several gangs: {names}; source= one of {sources}"
            )
        return gangs[0] if gangs else None

    async def elsewhere(namespace: str, name: str) -> Explanation:
        """What is said of a name that no gang here has."""
        if standing.others is not None:
            pods = await standing.others.pods(namespace, name)
            if (said := of_other_scheduler(engine, pods, name)) is not None:
                return said
        raise HTTPException(404, f"no gang, pod of a gang or owner {namespace}/{name} is known")

    @router.get("/gangs", response_model=None, dependencies=[SeesNamespace], responses=shown(GANGS))
    async def gangs(
        namespace: str = "",
        phase: Phase | None = None,
        reason: Reason | None = None,
        after: Annotated[str, Query(description="`next` of the page before")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST_GANGS)] = MOST_GANGS,
    ) -> Response:
        """The gangs, in the order of namespaces and names."""
        with lists.waiting():
            async with lists.turn:
                ready()
                page = await last_of(
                    listed(
                        engine, time.monotonic(), namespace=namespace, phase=phase, reason=reason,
                        after=after, limit=limit, whose=standing.whose(),
                    )
                )  # fmt: skip
        # Through FastAPI's own validation and encoding it would take eight times as long.
        headers = leader_header(standing.leader())
        return Response(page.model_dump_json(), headers=headers, media_type="application/json")

    @router.get("/gangs/{namespace}/{name}", dependencies=[SeesNamespace], responses=shown(GANG))
    async def gang(namespace: str, name: str, source: Source = "") -> GangView:
        """The gang of this name, or of a pod or an owner of this name."""
        with lists.waiting():
            async with lists.turn:
                here = await found(namespace, name, source)
        if here is None:
            return (await elsewhere(namespace, name)).gang
        return of_follower(view(here, time.monotonic()), standing.whose())

    @router.get(
        "/gangs/{namespace}/{name}/explanation",
        dependencies=[SeesNamespace],
        responses=shown(EXPLANATION),
    )
    async def explanation(
        request: Request, namespace: str, name: str, source: Source = ""
    ) -> Explanation:
        """Why it waits, and what would change that.

        Who may not list the pods of every namespace gets no names of those of others.
        """
        names_in = "" if await answered(reader_of(request).sees("")) else namespace
        with turns.waiting():
            async with turns.turn:
                here, crowd, whose = await found(namespace, name, source), None, standing.whose()
                if here is not None and here.is_plannable and not whose:
                    crowd = await last_of(engine.making_room.crowd())
                    here = await found(namespace, name, source)  # it may have gone meanwhile
                if here is None:
                    return await elsewhere(namespace, name)
                if whose:
                    return unsearched(of_follower(view(here, time.monotonic()), whose))
                asked = asking(engine, here, time.monotonic(), names_in, crowd)
                return await aside.run(partial(answer, asked))

    router.include_router(description(router))
    router.include_router(topology(engine, standing.unready))
    router.include_router(maps(engine, standing.unready))
    router.include_router(decisions(engine, standing.unready))
    router.include_router(dumps(engine, standing.journal, standing.unready))
    if standing.rules is not None:
        router.include_router(simulating(engine, standing.unready, standing.whose, standing.rules))
    if standing.stream is not None:
        router.include_router(events(standing.stream, standing.unready, standing.leader))
    return router
