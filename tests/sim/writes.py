"""What a Corral writes to the API server, as `app/controllers` does: calls, retries, outcomes.

Each is a generator for `calls.Network`, which may lose any call, or its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from random import Random
from typing import Any

from app.dialects import corral as own
from app.state.effects import (
    Annotate,
    Bind,
    BindFailed,
    BindOutcome,
    Bound,
    Delete,
    Evict,
    Requeue,
    Ungate,
    Ungated,
    UngateFailed,
    UngateOutcome,
)
from tests.sim.api import ApiServer, Refused
from tests.sim.calls import Call, Unanswered, Work
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits

GRACE_SECONDS = 2.0  # of a pod that is evicted or deleted


@dataclass(frozen=True, slots=True)
class Writes:
    """One process's hands. `posting` is told when a binding reaches the API server."""

    _clock: Clock
    _api: ApiServer
    _rng: Random
    _history: History
    _hits: Hits
    name: str
    _posting: Callable[[Bind], None]

    def wake(self, wake: Requeue) -> Work:
        def patch() -> None:
            self._api.annotate(wake.name, wake.uid, {own.WAKE: f"{self._clock.now}"})

        self._history.say(f"{self.name}: wakes {wake.name}")
        try:
            yield patch
        except (Refused, Unanswered):
            self._history.say(f"{self.name}: wake of {wake.name} failed")

    def annotate(self, effect: Annotate) -> Work:
        self._history.say(f"{self.name}: notes {dict(effect.annotations)} on {effect.name}")
        try:
            yield lambda: self._api.annotate(effect.name, effect.uid, dict(effect.annotations))
        except (Refused, Unanswered):
            self._history.say(f"{self.name}: note on {effect.name} failed")

    def bind(self, bind: Bind) -> Generator[Call | float, Any, BindOutcome]:
        """As `controllers/pods/bind.py`, which posts more often before its look at what became."""

        def post() -> None:
            self._posting(bind)
            self._api.bind(bind.name, bind.uid, bind.node, bind.annotations)

        failure: Exception | None = None
        outcome: BindOutcome | None = None
        for attempt in range(2):
            try:
                yield post
                outcome = Bound()
                break
            except (Refused, Unanswered) as error:
                failure = error
            if not _may_pass(failure):
                break
            if attempt == 0:
                yield 0.25 + self._rng.random() / 4
        if outcome is None:
            assert failure is not None
            status = failure.status if isinstance(failure, Refused) else 0
            if status == 404:
                outcome = BindFailed("the pod is gone", is_gone=True)
            elif status == 409 or (_may_pass(failure) and status != 429):
                outcome = yield from self._seen(bind, failure)
            else:
                outcome = BindFailed(f"the API server refused the binding: {failure}")
        return outcome

    def _seen(self, bind: Bind, failure: Exception) -> Generator[Call | float, Any, BindOutcome]:
        try:
            pod = yield lambda: self._api.get_pod(bind.name, bind.uid)
        except Refused as refused:
            if refused.status in (404, 409):
                return BindFailed("the pod is gone", is_gone=True)
            return BindFailed("the API server refused the binding")
        except Unanswered:
            return BindFailed("the API server did not answer the binding")
        if pod.node == bind.node:
            return Bound()
        if pod.node:
            return BindFailed(f"the pod is already bound to node {pod.node}")
        return BindFailed(f"the API server refused the binding: {failure}")

    def ungate(self, effect: Ungate) -> Generator[Call | float, Any, UngateOutcome]:
        self._history.say(f"{self.name}: ungates {effect.name} for {len(effect.nodes)} nodes")

        def patch() -> None:
            self._api.ungate(
                effect.name,
                effect.uid,
                effect.gate,
                effect.nodes,
                effect.selector,
                effect.annotations,
            )

        outcome: UngateOutcome
        try:
            yield patch
            outcome = Ungated()
        except Refused as refused:
            self._hits.hit("F7 ungate failed")
            outcome = UngateFailed(
                str(refused),
                is_gone=refused.status in (404, 409),
                is_forbidden=refused.status in (400, 403, 422),
            )
        except Unanswered:
            self._hits.hit("F7 ungate failed")
            outcome = UngateFailed("no answer")

        return outcome

    def remove(self, effect: Evict | Delete) -> Work:
        self._history.say(f"{self.name}: {type(effect).__name__} {effect.name}")
        try:
            yield lambda: self._api.delete_pod(effect.name, effect.uid, GRACE_SECONDS)
        except (Refused, Unanswered):
            return


def _may_pass(failure: Exception) -> bool:
    return not isinstance(failure, Refused) or failure.status == 429 or failure.status >= 500
