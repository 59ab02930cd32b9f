"""Writes that are tried once each: who asked for them asks again for as long as they do not show.

A newer one of the same key takes the place of one that still waits. Where the API server forbids
one (a ClusterRole that is old, or not bound), none is sent in its namespace for a while: for ten
seconds at first, for some minutes where it stays so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from http import HTTPStatus
from typing import Generic, Literal, TypeVar

import structlog

from app.errors import ApiError, Conflict, NotFound
from app.kube.client.deadline import answered_within
from app.kube.client.queue.problems import Problems
from app.kube.client.queue.refusals import Refusals
from app.kube.client.queue.work_queue import WorkQueue

log = structlog.get_logger(__name__)

WORKERS = 4  # writes under way at once
WRITE_SECONDS = 5.0  # one write
REFUSED_SECONDS = 300.0  # at most without any in a namespace once one was forbidden there

Outcome = Literal["written", "gone", "conflict", "refused", "failed", "dropped"]

_Item = TypeVar("_Item")


class OneTry(Generic[_Item]):
    """A queue of writes, namespaces taking turns.

    `write(item)` sends one, and raises what `app.kube.client.writes.Client` does; `on_outcome` is
    called once for each; `about` names an item in the log.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[_Item], Awaitable[None]],
        on_outcome: Callable[[_Item, Outcome], None],
        *,
        namespace: Callable[[_Item], str],
        key: Callable[[_Item], Hashable],
        about: Callable[[_Item], str],
        most: int,
        write_seconds: float = WRITE_SECONDS,
        refused_seconds: float = REFUSED_SECONDS,
    ) -> None:
        self._name, self._write, self._about = name, write, about
        self._on_outcome, self._namespace = on_outcome, namespace
        self._write_seconds = write_seconds
        self._refusals = Refusals(refused_seconds)
        self._problems = Problems(name)
        self._queue = WorkQueue(
            name, self._serve, namespace=namespace, key=key, workers=WORKERS, most=most
        )

    def put(self, item: _Item) -> None:
        """Queue one."""
        left_out = self._queue.put(item)
        if left_out is not None:
            self._on_outcome(left_out, "dropped")

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _serve(self, item: _Item, _tries: int) -> None:
        is_refused = self._refusals.holds(self._namespace(item))
        self._on_outcome(item, "refused" if is_refused else await self._outcome(item))

    async def _outcome(self, item: _Item) -> Outcome:
        try:
            async with answered_within(self._write_seconds):
                await self._write(item)
        except NotFound:
            return "gone"
        except Conflict:
            return "conflict"  # it has changed: the watch shows that, and the engine looks again
        except ApiError as error:
            self._problems.note(error, about=self._about(item))
            if error.status != HTTPStatus.FORBIDDEN:
                return "failed"
            self._refusals.note(self._namespace(item))
            return "refused"
        except Exception:
            log.exception(self._name, about=self._about(item))
            return "failed"
        return "written"
