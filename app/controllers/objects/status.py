"""Writes back what a vocabulary says of its gangs: one merge patch on the status of an object.

A newer status of the same object takes the place of one that still waits. A conflict, or an API
server that is away, is tried again; what the API server refuses is not. The engine repeats what may
succeed later. The engine knows no time of day, so the times in a status are set here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from app.dialects.written import AT_WRITE
from app.errors import ApiError, Conflict, NotFound
from app.kube.client.backoff import asked_pause
from app.kube.client.deadline import answered_within
from app.kube.client.queue.work_queue import WorkQueue
from app.state.effects import WriteStatus

log = structlog.get_logger(__name__)

MOST_QUEUED = 16_384  # objects; the engine repeats what is left out
WRITE_SECONDS = 10.0  # one write
MOST_TRIES = 8  # of one status: by then the gang has moved on, or the engine repeats it


class StatusClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def patch_status(
        self, path: str, uid: str, status: dict[str, object], version: str = ""
    ) -> None: ...


class StatusController:
    """Writes statuses one after the other.

    `on_outcome` gets "written", "gone", "failed" or "dropped", once per status; `on_lost(status)`
    is called for those that may succeed later, never from inside `take`.
    """

    def __init__(
        self,
        client: StatusClient,
        on_outcome: Callable[[str], None],
        on_lost: Callable[[WriteStatus], None],
        *,
        write_seconds: float = WRITE_SECONDS,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._on_lost = on_lost
        self._write_seconds = write_seconds
        self._queue = WorkQueue(
            "status",
            self._write,
            namespace=lambda status: status.gang.namespace,
            key=lambda status: status.uid,
            workers=1,
            most=most_queued,
        )

    def take(self, status: WriteStatus) -> None:
        """Queue one status."""
        left_out = self._queue.put(status)
        if left_out is not None:
            self._on_outcome("dropped")
            asyncio.get_running_loop().call_soon(self._on_lost, left_out)

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _write(self, status: WriteStatus, tries: int) -> float | None:
        try:
            async with answered_within(self._write_seconds):
                said = _timed(dict(status.status), datetime.now(UTC))
                await self._client.patch_status(status.path, status.uid, said, status.version)
        except NotFound:
            self._on_outcome("gone")
            return None
        except ApiError as error:
            is_outdated = isinstance(error, Conflict) and bool(status.version)
            may_pass = isinstance(error, Conflict) or error.may_pass
            if may_pass and not is_outdated and tries < MOST_TRIES:
                return asked_pause(error)
            log.warning("status", path=status.path, problem=repr(error))
            self._on_outcome("failed")
            if may_pass:
                self._on_lost(status)
            return None
        except Exception:
            log.exception("status", path=status.path)
            self._on_outcome("failed")
            return None
        self._on_outcome("written")
        return None


def _timed(said: Any, now: datetime) -> Any:
    """The same, with the time where `AT_WRITE` stands for it."""
    if said == AT_WRITE:
        return now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(said, Mapping):
        return {key: _timed(value, now) for key, value in said.items()}
    if isinstance(said, list | tuple):
        return [_timed(each, now) for each in said]
    return said
