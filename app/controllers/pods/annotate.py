"""Writes annotations of ours on pods: what a gang notes on its members.

A newer note of the same annotations takes the place of one that still waits. One that fails is not
tried again here: the engine sends it again for as long as the watch does not show it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from app.errors import ApiError, Conflict, NotFound
from app.kube.client.deadline import answered_within
from app.kube.client.queue.problems import Problems
from app.kube.client.queue.work_queue import WorkQueue
from app.state.effects import Annotate

log = structlog.get_logger(__name__)

MOST_QUEUED = 16_384  # notes; the engine asks again for those that are left out
WORKERS = 4  # patches under way at once
PATCH_SECONDS = 5.0  # one patch


class AnnotateClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def annotate_pod(
        self, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]
    ) -> None: ...


class AnnotateController:
    """Patches pods, namespaces taking turns.

    `on_outcome` gets "written", "gone", "failed" or "dropped", once per note.
    """

    def __init__(
        self,
        client: AnnotateClient,
        on_outcome: Callable[[str], None],
        *,
        patch_seconds: float = PATCH_SECONDS,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._patch_seconds = patch_seconds
        self._problems = Problems("annotate")
        self._queue = WorkQueue(
            "annotate",
            self._annotate,
            namespace=lambda annotate: annotate.namespace,
            key=_what,
            workers=WORKERS,
            most=MOST_QUEUED,
        )

    def take(self, annotate: Annotate) -> None:
        """Queue the annotations of one pod."""
        left_out = self._queue.put(annotate)
        if left_out is not None:
            self._on_outcome("dropped")

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _annotate(self, annotate: Annotate, _tries: int) -> None:
        self._on_outcome(await self._patch(annotate))

    async def _patch(self, annotate: Annotate) -> str:
        pod = f"{annotate.namespace}/{annotate.name}"
        try:
            async with answered_within(self._patch_seconds):
                await self._client.annotate_pod(
                    annotate.namespace, annotate.name, annotate.uid, dict(annotate.annotations)
                )
        except (NotFound, Conflict):
            return "gone"  # deleted, or recreated under the same name
        except ApiError as error:
            self._problems.note(error, pod=pod)
            return "failed"
        except Exception:
            log.exception("annotate", pod=pod)
            return "failed"
        return "written"


def _what(annotate: Annotate) -> tuple[str, ...]:
    """The pod, and which of its annotations."""
    return annotate.uid, *(key for key, _ in annotate.annotations)
