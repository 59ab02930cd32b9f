"""The gang that a name stands for: its own, a pod's or an owner's."""

from __future__ import annotations

from typing import Annotated

from fastapi import HTTPException, Query

from app.api.http.refusals import not_ready
from app.api.http.turns import last_of
from app.api.standing import Standing
from app.explain.elsewhere import of_other_scheduler
from app.explain.finding import named
from app.explain.view import Explanation
from app.state.engine import Engine
from app.state.gang.gang import Gang

Source = Annotated[str, Query(description="What declares it, such as `job`; none: anything")]


class Names:
    """Finds gangs by names."""

    def __init__(self, engine: Engine, standing: Standing) -> None:
        self._engine = engine
        self._standing = standing

    async def found(self, namespace: str, name: str, source: str) -> Gang | None:
        """The gang, if one is here. Raises: HTTPException, 503 or 409."""
        if why := self._standing.unready():
            raise not_ready(why)
        gangs = await last_of(named(self._engine, namespace, name, source))
        if len(gangs) > 1:
            sources = ", ".join(dict.fromkeys(gang.key.source for gang in gangs))
            names = ", ".join(sorted({gang.key.name for gang in gangs}))
            raise HTTPException(
                409, f"{namespace}/{name} is in several gangs: {names}; source= one of {sources}"
            )
        return gangs[0] if gangs else None

    async def elsewhere(self, namespace: str, name: str) -> Explanation:
        """What is said of a name that no gang here has. Raises: HTTPException, 404."""
        if self._standing.others is not None:
            pods = await self._standing.others.pods(namespace, name)
            if (said := of_other_scheduler(self._engine, pods, name)) is not None:
                return said
        raise HTTPException(404, f"no gang, pod of a gang or owner {namespace}/{name} is known")
