"""Removes pods where a policy says so: evictions, which budgets may refuse, and plain deletions.

    Evict, Delete, TryEviction ──queue──▶ token ──▶ POST eviction, DELETE ──▶ done
    Suspend               ▲               ├ 404, 409 (another uid) ──▶ gone
                          └pause ◀── 429, ┤ 400, 403 … ──────────────▶ refused
                          5xx, no answer  └ 429 … for too long ──────▶ failed

A Suspend has the workload's own controller remove its pods, or make them again.

429 means that a disruption budget forbids the eviction for now, or that the API server is busy. It
is tried again a few times, later each time; then the engine, which still sees the pod, decides.
What is only tried, is tried once, and has a queue of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Protocol

import structlog

from app.dialects.workloads.record import patch_of_suspension
from app.errors import ApiError, Conflict, NotFound
from app.kube.client.backoff import Backoff, asked_pause
from app.kube.client.deadline import answered_within
from app.kube.client.queue.work_queue import TokenBucket, WorkQueue
from app.state.effects import Delete, Evict, EvictOutcome, Suspend, TryEviction

log = structlog.get_logger(__name__)

MOST_QUEUED = 16_384  # pods waiting for their turn
WRITE_SECONDS = 10.0  # one eviction; the API server retries conflicts for that long itself
RETRY_SECONDS = 5.0  # pause after the first 429 that names none, doubled each time …
LONGEST_PAUSE = 60.0  # … up to this
MOST_TRIES = 5

Removal = Evict | Delete | TryEviction | Suspend


class EvictClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def evict_pod(
        self, namespace: str, name: str, uid: str, *, is_dry_run: bool = False
    ) -> None: ...

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None: ...

    async def change(
        self, path: str, name: str, uid: str, version: str, patch: Mapping[str, Any]
    ) -> None: ...


class EvictController:
    """Removes one pod after the other, namespaces taking turns, at most `per_second` of them.

    `on_outcome(removal, outcome)` gets "done", "gone", "refused", "failed" or "dropped", once per
    removal taken; the last two may be asked for again. A pod that waits for its turn or for its
    next try is not taken again. `is_wanted` is asked before each try of all but a TryEviction; what
    is not wanted any more is "dropped".
    """

    def __init__(
        self,
        client: EvictClient,
        on_outcome: Callable[[Removal, EvictOutcome], None],
        *,
        is_wanted: Callable[[Evict | Delete | Suspend], bool] = lambda removal: True,
        per_second: float,
        write_seconds: float = WRITE_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        most_tries: int = MOST_TRIES,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._is_wanted = is_wanted
        self._write_seconds = write_seconds
        self._most_tries = most_tries
        self._taken: set[str] = set()  # uids without an outcome yet
        rng = Random()
        self._queue = WorkQueue(
            "evict",
            self._remove,
            namespace=lambda removal: removal.namespace,
            key=lambda removal: removal.uid,
            workers=1,
            most=most_queued,
            bucket=TokenBucket(per_second, max(1.0, per_second), time.monotonic()),
            backoff=lambda: Backoff(rng, retry_seconds, LONGEST_PAUSE),
        )

    def take(self, removal: Removal) -> None:
        """Queue one removal; a pod that is here already is not queued again."""
        if removal.uid in self._taken:
            return
        self._taken.add(removal.uid)
        left_out = self._queue.put(removal)
        if left_out is not None:
            self._taken.discard(left_out.uid)
            self._on_outcome(left_out, "dropped")

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _remove(self, removal: Removal, tries: int) -> float | None:
        outcome = await self._outcome(removal, tries)
        if not isinstance(outcome, str):
            return outcome
        self._taken.discard(removal.uid)
        self._on_outcome(removal, outcome)
        return None

    async def _outcome(self, removal: Removal, tries: int) -> EvictOutcome | float:
        """What became of the pod, or how many seconds to wait at least before the next try."""
        where = f"{removal.namespace}/{removal.name}"
        if not isinstance(removal, TryEviction) and not self._is_wanted(removal):
            return "dropped"
        try:
            async with answered_within(self._write_seconds):
                await self._ask(removal)
        except (NotFound, Conflict):
            return "gone"  # deleted, or recreated under the same name
        except ApiError as error:
            if error.may_pass and tries < self._most_tries:
                return asked_pause(error)
            log.warning("remove", pod=where, tries=tries, problem=repr(error))
            return "failed" if error.may_pass else "refused"
        except Exception:
            log.exception("remove", pod=where)
            return "refused"
        if not isinstance(removal, TryEviction):
            how = how_removed(removal)
            log.info("removed", what=where, by=how, why=removal.sentence)
        return "done"

    async def _ask(self, removal: Removal) -> None:
        pod = removal.namespace, removal.name, removal.uid
        if isinstance(removal, Suspend):
            patch = patch_of_suspension(ends=removal.ends)
            await self._client.change(
                removal.path, removal.name, removal.uid, removal.version, patch
            )
        elif isinstance(removal, Delete):
            await self._client.delete_pod(*pod)
        else:
            await self._client.evict_pod(*pod, is_dry_run=isinstance(removal, TryEviction))


def how_removed(removal: Removal) -> str:
    """As metrics and logs call it."""
    if isinstance(removal, Suspend):
        return "resume" if removal.ends else "suspend"
    return "delete" if isinstance(removal, Delete) else "evict"
