"""Makes the objects that a vocabulary cannot do without, where there are none of their names.

Each is looked for at intervals, as it may be deleted. What exists is never changed, whatever it
says. While its kind is not served there is nothing to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import structlog

from app.dialects.written import Prerequisite
from app.errors import ApiError, Conflict, NotFound
from app.kube.client.deadline import answered_within

log = structlog.get_logger(__name__)

LOOK_SECONDS = 30.0
WRITE_SECONDS = 10.0  # one look, and what is made after it


class PrerequisiteClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def exists(self, path: str, name: str) -> bool: ...

    async def create(self, path: str, body: Mapping[str, object]) -> None: ...


class PrerequisiteController:
    """Looks for each object every `seconds`, while this Corral leads."""

    def __init__(
        self,
        client: PrerequisiteClient,
        wanted: Sequence[Prerequisite],
        *,
        is_leading: Callable[[], bool],
        seconds: float = LOOK_SECONDS,
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._is_leading = is_leading
        self._seconds = seconds

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            if self._is_leading():
                for each in self._wanted:
                    await self._ensure(each)
            await asyncio.sleep(self._seconds)

    async def _ensure(self, wanted: Prerequisite) -> None:
        try:
            async with answered_within(WRITE_SECONDS):
                if await self._client.exists(wanted.path, wanted.name):
                    return
                await self._client.create(wanted.path, wanted.body)
        except (Conflict, NotFound):
            return  # another has made it; or its kind is not served
        except ApiError as error:
            log.warning("object not made", path=wanted.path, name=wanted.name, problem=repr(error))
        except Exception:
            log.exception("object not made", path=wanted.path, name=wanted.name)
        else:
            log.info("object made", path=wanted.path, name=wanted.name)
