"""Takes our gate off planned pods and narrows them: one PATCH each, namespaces taking turns.

    Ungate ──queue──▶ workers ──PATCH──▶ 200 ──────────────────────▶ Ungated
                                 ├ 404, 409 (another uid) ─────────▶ UngateFailed, is_gone
                                 ├ 422, 403 of a policy, 400 ──────▶ UngateFailed, is_forbidden
                                 └ anything else, or no answer ────▶ UngateFailed

Nothing is tried again here, and nothing is paced: a gang's start waits for its last patch. Whether
an unanswered patch took effect is for the watch to say, and the patch itself does no harm when it
is sent again: a gate that is gone is not missed.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Protocol

import structlog

from app.errors import ApiError, Conflict, Forbidden, NotFound
from app.kube.client.deadline import answered_within
from app.kube.client.queue.problems import Problems
from app.kube.client.queue.work_queue import WorkQueue
from app.state.effects import Ungate, Ungated, UngateFailed, UngateOutcome

log = structlog.get_logger(__name__)

MOST_QUEUED = 65_536  # pods waiting for their turn; beyond it a pod fails and the engine asks again
PATCH_SECONDS = 5.0  # one patch; the engine sends another after 10
GONE = UngateFailed("the pod is gone", is_gone=True)
# The API server, or an admission policy, will say the same to the same patch.
_FINAL = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY)


class UngateClient(Protocol):
    """What this controller needs of `app.kube.client.writes.Client`."""

    async def ungate_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        gate: str,
        nodes: Sequence[str],
        selector: Mapping[str, str],
        annotations: Mapping[str, str],
    ) -> None: ...


class UngateController:
    """Patches up to `concurrency` pods side by side; `on_outcome(ungate, outcome)` once for each.

    A second Ungate of a pod that still waits takes the place of the first: its nodes are newer.
    """

    def __init__(
        self,
        client: UngateClient,
        on_outcome: Callable[[Ungate, UngateOutcome], None],
        *,
        concurrency: int,
        patch_seconds: float = PATCH_SECONDS,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._patch_seconds = patch_seconds
        self._is_stopping = False
        self._problems = Problems("ungate")
        self._queue = WorkQueue(
            "ungate",
            self._ungate,
            namespace=lambda ungate: ungate.namespace,
            key=lambda ungate: ungate.uid,
            workers=concurrency,
            most=most_queued,
        )

    def take(self, ungate: Ungate) -> None:
        """Queue one pod; its outcome always comes later, never from inside this call."""
        left_out = self._queue.put(ungate)
        if left_out is not None:
            self.refuse(left_out, "too many pods wait to be ungated")

    def refuse(self, ungate: Ungate, sentence: str) -> None:
        """Report a failure without having asked the API server, once the caller is done."""
        failed = UngateFailed(sentence)
        asyncio.get_running_loop().call_soon(self._on_outcome, ungate, failed)

    async def stop(self) -> None:
        """Refuse what waits and what comes; return once no patch is under way."""
        self._is_stopping = True
        await self._queue.wait_idle()

    async def run(self) -> None:
        """Serve the queue until cancelled."""
        await self._queue.run()

    async def _ungate(self, ungate: Ungate, _tries: int) -> None:
        self._on_outcome(ungate, await self._outcome(ungate))

    async def _outcome(self, ungate: Ungate) -> UngateOutcome:
        if self._is_stopping:
            return UngateFailed("Corral is stopping")
        try:
            async with answered_within(self._patch_seconds):
                await self._patch(ungate)
        except (NotFound, Conflict):
            return GONE  # deleted, or recreated under the same name
        except ApiError as error:
            self._problems.note(error, pod=f"{ungate.namespace}/{ungate.name}")
            return UngateFailed(error.in_words("patch"), is_forbidden=_is_final(error))
        except Exception as error:
            log.exception("ungate", pod=f"{ungate.namespace}/{ungate.name}")
            return UngateFailed(f"ungating failed: {type(error).__name__}")
        return Ungated()

    async def _patch(self, ungate: Ungate) -> None:
        await self._client.ungate_pod(
            ungate.namespace,
            ungate.name,
            ungate.uid,
            ungate.gate,
            ungate.nodes,
            dict(ungate.selector),
            dict(ungate.annotations),
        )


def _is_final(error: ApiError) -> bool:
    """Whether another patch may be taken, and this one will not."""
    return error.status in _FINAL and not (isinstance(error, Forbidden) and error.is_of_rights)


class GateTimes:
    """When pods were ungated, until they are bound: at most so many are remembered.

    Units: seconds, on whatever clock `now` is.
    """

    def __init__(self, most: int = MOST_QUEUED) -> None:
        self._most = most
        self._since: OrderedDict[str, float] = OrderedDict()

    def ungated(self, uid: str, now: float) -> None:
        """A pod is on its way; one that was already keeps its first time."""
        self._since.setdefault(uid, now)
        if len(self._since) > self._most:
            self._since.popitem(last=False)

    def bound(self, uid: str, now: float) -> float | None:
        """How long the pod took, None if it was not seen to be ungated; it is forgotten."""
        since = self._since.pop(uid, None)
        return None if since is None else now - since
