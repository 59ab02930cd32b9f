"""GET /v1/events?namespace=: what changes about gangs, as server-sent events.

    event: gang      data: a gang as it is now; first every gang there is
    event: synced    data: {"gangs": N}; what follows are changes
    event: gone      data: {"namespace": …, "name": …, "source": …}; it is not there any more
    event: end       data: {"reason": …}; the stream ends, and may be asked for again

Every RECHECK_SECONDS the API server is asked again whether the client still may follow, and whether
the same Corral leads.
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.routing import APIRoute

from app.api.access.callers import RETRY_SECONDS, SeesNamespace, may_still_see, reader_of
from app.api.following.stream import EventStream, Stream, TooManyFollow
from app.api.http.refusals import not_ready

RECHECK_SECONDS = 30.0
EXAMPLE = """retry: 2000

event: gang
data: {"namespace":"team-a","name":"train","phase":"waiting","reason":"DoesNotFit","message":"…",…}

event: synced
data: {"gangs":1}

event: gone
data: {"namespace":"team-a","name":"train","source":"job"}
"""


def events(
    stream: Stream,
    unready: Callable[[], str],
    leader: Callable[[], str],
    route_class: type[APIRoute] = APIRoute,
) -> APIRouter:
    """The route. `unready`, `leader`: as of `app.api.standing.Standing`."""
    router = APIRouter(route_class=route_class)

    @router.get(
        "/events",
        dependencies=[SeesNamespace],
        response_class=Response,
        responses={200: {"content": {"text/event-stream": {"example": EXAMPLE}}}},
    )
    async def followed(request: Request, namespace: str = "") -> Response:
        """Each gang as it is, then each that changes: phase, reason, message, pods there or bound.

        No event has an id: who connects again gets every gang again. Who reads too slowly is
        dropped, and the last event says so.
        """
        if why := unready():
            raise not_ready(why)
        reader = reader_of(request)
        try:
            follower = stream.follow(namespace, reader.name)
        except TooManyFollow as error:
            raise HTTPException(503, str(error), {"Retry-After": RETRY_SECONDS}) from error

        led_by = leader()

        async def why_not() -> str:
            if leader() != led_by:
                return "another Corral leads now"
            return unready() or await may_still_see(reader, namespace)

        return EventStream(stream, follower, why_not, ask_seconds=RECHECK_SECONDS)

    return router
