"""GET /v1/gangs/{namespace}/{name}/explanation: why it waits, and what would change that."""

from __future__ import annotations

import time
from functools import partial

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute

from app.api.access.callers import SeesNamespace, answered, reader_of
from app.api.http.examples import EXPLANATION, shown
from app.api.http.turns import Turns, last_of
from app.api.named import Names, Source
from app.api.standing import Standing
from app.explain.answering import answer
from app.explain.asking import asking
from app.explain.elsewhere import of_follower, unsearched
from app.explain.gangs import view
from app.explain.view import Explanation
from app.kube.core import aside
from app.state.engine import Engine

MOST_WAITING = 16  # explanations that wait for their turn
BUSY = f"{MOST_WAITING} explanations wait already"


def explanations(
    engine: Engine, standing: Standing, route_class: type[APIRoute] = APIRoute
) -> APIRouter:
    """The route, for the router of all of /v1."""
    router = APIRouter(route_class=route_class)
    turns, names = Turns(MOST_WAITING, BUSY), Names(engine, standing)

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
                here, crowd = await names.found(namespace, name, source), None
                whose = standing.whose()
                if here is not None and here.is_plannable and not whose:
                    crowd = await last_of(engine.making_room.crowd())
                    here = await names.found(namespace, name, source)  # may have gone meanwhile
                if here is not None and whose:
                    return unsearched(
                        of_follower(view(here, time.monotonic(), engine.books), whose)
                    )
                if here is not None:
                    asked = asking(engine, here, time.monotonic(), names_in, crowd)
                    return await aside.run(partial(answer, asked))
        return await names.elsewhere(namespace, name)  # which may take long: no turn is held for it

    return router
