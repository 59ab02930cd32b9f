"""Recomputes the books at intervals: a difference is a bug of ours; it is logged and healed.

The check is one step of the event loop, between two inputs of the engine. It reads everything, so
its own duration is measured: the verbs wait for it, once per interval.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

log = structlog.get_logger(__name__)

MOST_LOGGED = 20  # differences of one audit that are logged in full


class AuditController:
    """Audits every `seconds`.

    differences: the sentences of what does not hold, none if the books are right.
    heal: sets the books right; only called when there are differences.
    on_audit: called with the number of differences, and the seconds that the check took.
    """

    def __init__(
        self,
        differences: Callable[[], Sequence[str]],
        heal: Callable[[], None],
        on_audit: Callable[[int, float], None],
        *,
        seconds: float,
    ) -> None:
        self._differences = differences
        self._heal = heal
        self._on_audit = on_audit
        self._seconds = seconds

    async def run(self) -> None:
        """Audit until cancelled."""
        while True:
            await asyncio.sleep(self._seconds)
            try:
                self.audit()
            except Exception:
                log.exception("audit")

    def audit(self) -> None:
        """Look once; log, count and heal what differs."""
        began = time.monotonic()
        found = self._differences()
        self._on_audit(len(found), time.monotonic() - began)
        for sentence in found[:MOST_LOGGED]:
            log.error("books differ", problem=sentence)
        if len(found) > MOST_LOGGED:
            log.error("books differ", more=len(found) - MOST_LOGGED)
        if found:
            self._heal()
