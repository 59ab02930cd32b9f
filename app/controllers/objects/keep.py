"""Keeps objects as the labels of nodes are: makes, changes and deletes those of one kind.

    watch ─▶ KeptObjects ─comparison─▶ thread ─difference─▶ what is due ─▶ make, change, delete

A look has all events since the last one, so it costs the same for one or a thousand: for 5,000
nodes in 300 racks 40 ms in a thread, which has a tenth of the time at most. Its writes are sent one
after the other. What fails differs at a later look, too: `app/state/objects/kept_objects.py` says
when.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import structlog

from app.dialects.written import ObjectWrite
from app.errors import ApiError, Conflict, NotFound
from app.kube.client.deadline import answered_within
from app.state.objects.kept_objects import KeptObjects

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0  # between two looks
SHARE = 0.1  # of the time that comparisons may take
WRITE_SECONDS = 10.0  # one write
MOST_REFUSED = 5  # writes of one look; then the others wait for the next one


class KeepClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def create(self, path: str, body: Mapping[str, object]) -> None: ...

    async def change(
        self, path: str, name: str, uid: str, version: str, patch: Mapping[str, Any]
    ) -> None: ...

    async def delete(self, path: str, name: str, uid: str, version: str) -> None: ...


class KeepController:
    """Looks every `seconds`, while this Corral leads.

    `on_outcome` gets "made", "changed", "deleted", "gone", "conflict" or "failed", once per write.
    `on_notes` gets how many reasons there are to leave objects as they are.
    """

    def __init__(
        self,
        client: KeepClient,
        kept: KeptObjects,
        on_outcome: Callable[[str], None],
        on_notes: Callable[[int], None],
        *,
        is_leading: Callable[[], bool],
        seconds: float = LOOK_SECONDS,
    ) -> None:
        self._client = client
        self._kept = kept
        self._path = kept.kept.path
        self._on_outcome = on_outcome
        self._on_notes = on_notes
        self._is_leading = is_leading
        self._seconds = seconds
        self._notes: tuple[str, ...] = ()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            compared = 0.0
            try:
                if self._is_leading():
                    compared = await self.look()
                else:
                    self._kept.rest()
                    self._log_notes(())
            except Exception:
                self._kept.pause(time.monotonic())
                log.exception("objects not kept", path=self._path)
            await asyncio.sleep(max(self._seconds, compared / SHARE))

    async def look(self) -> float:
        """Write what is due; returns the seconds that the comparison took."""
        began = time.monotonic()
        comparison = self._kept.comparison(began)
        if comparison is None:
            return 0.0
        difference = await asyncio.to_thread(comparison.difference)
        now = time.monotonic()
        self._log_notes(difference.notes)
        refused = 0
        for write in self._kept.due(difference, now):
            if self._kept.is_paused(time.monotonic()) or refused == MOST_REFUSED:
                break
            refused += await self._sent(write) in ("conflict", "failed")
        return now - began

    async def _sent(self, write: ObjectWrite) -> str:
        """Send one write; returns its outcome."""
        self._kept.sent(write, time.monotonic())
        try:
            async with answered_within(WRITE_SECONDS):
                outcome = await self._write(write)
        except ApiError as error:
            outcome = _outcome(error)
            self._kept.refused(write)
            if error.may_pass or _is_unserved(error, write):
                self._kept.pause(time.monotonic())
            if outcome == "failed":
                log.warning(
                    "object not kept", path=self._path, name=write.name, problem=repr(error)
                )
        else:
            self._kept.written()
            log.info("object kept", path=self._path, name=write.name, outcome=outcome)
        self._on_outcome(outcome)
        return outcome

    async def _write(self, write: ObjectWrite) -> str:
        """Raises: ApiError."""
        if write.body is None:
            await self._client.delete(self._path, write.name, write.uid, write.version)
            return "deleted"
        if write.uid:
            await self._client.change(self._path, write.name, write.uid, write.version, write.body)
            return "changed"
        await self._client.create(self._path, write.body)
        return "made"

    def _log_notes(self, notes: tuple[str, ...]) -> None:
        """Log what is left as it is, each thing once."""
        self._on_notes(len(notes))
        for note in notes:
            if note not in self._notes:
                log.warning("objects not kept", path=self._path, problem=note)
        self._notes = notes


def _outcome(error: ApiError) -> str:
    if isinstance(error, NotFound):
        return "gone"
    return "conflict" if isinstance(error, Conflict) else "failed"


def _is_unserved(error: ApiError, write: ObjectWrite) -> bool:
    """Whether there is no such kind, and so nothing to do."""
    return isinstance(error, NotFound) and not write.uid
