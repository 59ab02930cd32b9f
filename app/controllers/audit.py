"""Recomputes the books at intervals: a difference is a bug of ours; it is logged and healed.

The check reads everything, a piece at a time, between two inputs of the engine: others have the
loop after each of them. Its own duration without them is measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

import structlog

log = structlog.get_logger(__name__)

MOST_LOGGED = 20  # differences of one audit that are logged in full


class AuditController:
    """Audits every `seconds`.

    checks: the sentences of what does not hold, in pieces; none if the books are right.
    heal: sets the books right; only called when there are differences.
    on_audit: called with the number of differences, and the seconds that the check took.
    """

    def __init__(
        self,
        checks: Callable[[], Iterable[Sequence[str]]],
        heal: Callable[[], None],
        on_audit: Callable[[int, float], None],
        *,
        seconds: float,
    ) -> None:
        self._checks = checks
        self._heal = heal
        self._on_audit = on_audit
        self._seconds = seconds

    async def run(self) -> None:
        """Audit until cancelled."""
        while True:
            await asyncio.sleep(self._seconds)
            try:
                await self.audit()
            except Exception:
                log.exception("audit")

    async def audit(self) -> None:
        """Look once; log, count and heal what differs."""
        found, seconds = list[str](), 0.0
        pieces = iter(self._checks())
        while True:
            began = time.monotonic()
            piece = next(pieces, None)
            seconds += time.monotonic() - began
            if piece is None:
                break
            found.extend(piece)
            await asyncio.sleep(0)
        self._on_audit(len(found), seconds)
        for sentence in found[:MOST_LOGGED]:
            log.error("books differ", problem=sentence)
        if len(found) > MOST_LOGGED:
            log.error("books differ", more=len(found) - MOST_LOGGED)
        if found:
            self._heal()
