"""What a Corral writes to the API server, as `app/controllers` does: calls, retries, outcomes.

Each is a generator for `calls.Network`, which may lose any call, or its answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from app.dialects import corral as own
from app.state.effects import (
    Annotate,
    Bind,
    BindFailed,
    BindOutcome,
    Bound,
    Delete,
    Evict,
    EvictOutcome,
    Mark,
    Requeue,
    Suspend,
    TryEviction,
    Ungate,
    Ungated,
    UngateFailed,
    UngateOutcome,
    WriteStatus,
)
from tests.sim.api import ApiServer, Refused
from tests.sim.calls import Call, Unanswered, Work
from tests.sim.clock import Clock, History
from tests.sim.evictions import Evictions
from tests.sim.faults import Hits

MOST_TRIES = 3  # of an eviction
RETRY_SECONDS = (0.5, 3.0)
MOST_STATUS_TRIES = 8
STATUS_RETRY_SECONDS = (0.05, 1.0)
GRACE_SECONDS = 2.0  # of a pod that is evicted or deleted

PatchStatus = Callable[[str, str, Mapping[str, object], str], None]
StatusOutcome = Literal["written", "gone", "failed", "lost"]
"""What is lost the engine repeats."""


@dataclass(frozen=True, slots=True)
class Writes:
    """One process's hands.

    `posting` is told when a binding reaches the API server. `sending` is asked before an eviction
    is sent whether it is still wanted.
    """

    _clock: Clock
    _api: ApiServer
    _rng: Random
    _history: History
    _hits: Hits
    name: str
    _posting: Callable[[Bind], None]
    _sending: Callable[[Evict], bool]

    def wake(self, wake: Requeue) -> Work:
        def patch() -> None:
            if wake.nominated is None:
                self._api.annotate(wake.name, wake.uid, {own.WAKE: f"{self._clock.now}"})
            else:
                self._api.nominate(wake.name, wake.uid, wake.nominated)

        to = "" if wake.nominated is None else f" for {wake.nominated or 'no node'}"
        self._history.say(f"{self.name}: wakes {wake.name}{to}")
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

    def mark(self, effect: Mark) -> Work:
        """As `controllers/pods/mark.py`."""
        self._history.say(f"{self.name}: marks {effect.name}: {effect.sentence or 'no more'}")
        is_marked = bool(effect.sentence)
        try:
            yield lambda: self._api.mark(effect.name, effect.uid, effect.version, is_marked)
            self._hits.hit("W marked" if is_marked else "W unmarked")
        except (Refused, Unanswered):
            self._hits.hit("F7 mark failed")

    def evict(
        self, effect: Evict | TryEviction, evictions: Evictions, pause: Callable[[], float]
    ) -> Generator[Call | float, Any, EvictOutcome]:
        """As `controllers/pods/evict.py`. `pause`: for how long the process still sleeps."""
        is_trial = isinstance(effect, TryEviction)
        if evictions.is_dropped():
            self._hits.hit("F21 dropped")
            yield 0.001
            return "dropped"
        yield evictions.turn_seconds()
        for _ in range(1 if is_trial else MOST_TRIES):
            while seconds := pause():
                yield seconds
            if isinstance(effect, Evict) and not self._sending(effect):
                return "dropped"
            outcome = yield from self._removed(lambda: self._call_eviction(effect, evictions))
            if outcome is not None:
                return outcome
        return "failed"

    def give_back(self, effect: Evict) -> Generator[Call | float, Any, EvictOutcome]:
        """The same of a pod that does not run: no budget counts it."""
        self._history.say(f"{self.name}: gives {effect.name} back")
        for _ in range(MOST_TRIES):
            outcome = yield from self._removed(
                lambda: self._api.delete_pod(effect.name, effect.uid, GRACE_SECONDS)
            )
            if outcome is not None:
                return outcome
        return "failed"

    def suspend(self, effect: Suspend) -> Generator[Call | float, Any, EvictOutcome]:
        """As `controllers/pods/evict.py`."""
        name, uid, version, ends = effect.name, effect.uid, effect.version, effect.ends
        self._history.say(f"{self.name}: {'resumes' if ends else 'suspends'} {name}")
        for _ in range(MOST_TRIES):
            outcome = yield from self._removed(
                lambda: self._api.suspend(name, uid, version, ends=ends)
            )
            if outcome is not None:
                return outcome
        return "failed"

    def _removed(self, call: Call) -> Generator[Call | float, Any, EvictOutcome | None]:
        """What became of a pod by one call; None: it may be tried again, after a pause."""
        try:
            yield call
            return "done"
        except Refused as refused:
            if refused.status in (404, 409):
                return "gone"
            if refused.status == 403:
                return "refused"
        except Unanswered:
            pass
        yield self._rng.uniform(*RETRY_SECONDS)
        return None

    def _call_eviction(self, effect: Evict | TryEviction, evictions: Evictions) -> None:
        try:
            if isinstance(effect, TryEviction):
                self._hits.hit("F21 asked")
                self._api.check_eviction(effect.name, effect.uid, counts=False)
                return
            grace = evictions.grace_seconds()
            seconds = evictions.ends_after(grace)
            self._api.evict(effect.name, effect.uid, grace, seconds)
        except Refused as refused:
            if refused.status in (429, 500):
                self._hits.hit("F21 budget")
            raise
        self._hits.hit("F21 evicted")
        if seconds == math.inf:
            self._hits.hit("F21 stuck")
            evictions.held_back[effect.uid] = effect.name
        elif seconds > grace:
            self._hits.hit("F21 late")

    def status(
        self, effect: WriteStatus, patch: PatchStatus
    ) -> Generator[Call | float, Any, StatusOutcome]:
        """See `controllers/objects/status.py`: what may pass is tried again, but no old version."""
        for _ in range(MOST_STATUS_TRIES):
            try:
                yield lambda: patch(effect.path, effect.uid, effect.status, effect.version)
                return "written"
            except Refused as refused:
                if refused.status == 404:
                    return "gone"
                if refused.status == 409 and effect.version:
                    return "lost"
                if refused.status != 409 and not _may_pass(refused):
                    return "failed"
            except Unanswered:
                pass
            yield self._rng.uniform(*STATUS_RETRY_SECONDS)
        return "lost"

    def remove(self, effect: Evict | Delete) -> Work:
        self._history.say(f"{self.name}: {type(effect).__name__} {effect.name}")
        try:
            yield lambda: self._api.delete_pod(effect.name, effect.uid, GRACE_SECONDS)
        except (Refused, Unanswered):
            return


def _may_pass(failure: Exception) -> bool:
    return not isinstance(failure, Refused) or failure.status == 429 or failure.status >= 500
