"""Which Corral to ask: several run, and the one that leads knows what becomes of gangs.

Every answer of another one names its pod in a header; the command line then asks there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

LEADER = "Corral-Leader"
POD_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def leader_header(pod: str) -> dict[str, str]:
    """The header that names the pod; nothing for what is no pod's name."""
    return {LEADER: pod} if POD_NAME.fullmatch(pod) else {}


def led_by(leader: Callable[[], str]) -> type[APIRoute]:
    """The class of routes whose answers name the pod that leads, if it is known and another one.

    Refusals do, once it is known who asks: `request.state.reader` is there.
    """

    class Led(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()

            async def led(request: Request) -> Response:
                try:
                    response = await handler(request)
                except HTTPException as refusal:
                    if hasattr(request.state, "reader"):
                        refusal.headers = {**(refusal.headers or {}), **leader_header(leader())}
                    raise
                response.headers.update(leader_header(leader()))
                return response

            return led

    return Led
