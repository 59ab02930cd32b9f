"""Gives the engine its inputs, each with the time, and has carried out what follows from it.

    watches ──Event──▶ ┐                              ┌──▶ writers
    writers ─outcome─▶ ├─ Driver ──(input, now)──▶ Engine
    the clock ──tick─▶ ┘

A bug of ours that one input trips over is counted and logged, and the next input goes on: it must
not stop everybody's scheduling.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

import structlog

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Applied, Deleted, Event, Listed
from app.metrics import Metrics
from app.process.collector import Collector
from app.process.records.tracing import Trace, untraced
from app.process.watches.lag import WatchLag
from app.state.effects import (
    Bind,
    BindOutcome,
    Bound,
    Delete,
    Effect,
    Evict,
    EvictOutcome,
    PlaceAnswer,
    RoomAnswer,
    Suspend,
    TryEviction,
    Ungate,
    UngateOutcome,
)
from app.state.engine import Engine
from app.state.inputs import Inputs
from app.state.isolation import OnFault

log = structlog.get_logger(__name__)


class Driver:
    """Drives one engine; only the verbs ask it without the driver, since they owe an answer.

    inputs: the engine, or the recorder before it.
    engine: read only, for what the operator should know, and what is still to be done.
    """

    def __init__(
        self,
        inputs: Inputs,
        engine: Engine,
        feed: Callable[[Iterable[Effect]], None],
        metrics: Metrics,
        *,
        tick_seconds: float,
        trace: Trace = untraced,
    ) -> None:
        self._inputs = inputs
        self._engine = engine
        self._feed = feed
        self._metrics = metrics
        self._tick_seconds = tick_seconds
        self._trace = trace
        self._lag = WatchLag(metrics.watch_lag_seconds.observe)
        self._collector = Collector()
        self._warnings: tuple[str, ...] = ()

    def apply(self, event: Event) -> None:
        """The API server says something."""
        self._watch_lag(event, time.monotonic())
        self._step("apply", lambda now: self._inputs.apply(event, now))

    def bind_finished(self, bind: Bind, outcome: BindOutcome) -> None:
        """A Bind has been carried out, or not."""
        if isinstance(outcome, Bound):
            is_shown = bind.uid in self._engine.books.bound
            self._lag.bound(bind.uid, time.monotonic(), is_shown=is_shown)
        self._step("outcome", lambda now: self._inputs.bind_finished(bind.uid, outcome, now))

    def ungate_finished(self, ungate: Ungate, outcome: UngateOutcome) -> None:
        """An Ungate has been carried out, or not."""
        self._step("outcome", lambda now: self._inputs.ungate_finished(ungate.uid, outcome, now))

    def write_lost(self, gang: GangKey, what: str, uid: str) -> None:
        """An event, status or deletion was not written."""
        self._step("outcome", lambda now: self._inputs.write_lost(gang, what, uid, now))

    def nominating_forbidden(self, namespace: str, seconds: float) -> None:
        """The API server lets us nominate no pods of a namespace."""
        take = self._inputs.nominating_forbidden
        self._step("outcome", lambda now: take(namespace, seconds, now))

    def room_found(self, gang: GangKey, answer: RoomAnswer | None, seconds: float) -> None:
        """A SeekRoom has been answered after so long; None: it has not."""
        self._step("outcome", lambda now: self._inputs.room_found(gang, answer, seconds, now))

    def place_found(self, gang: GangKey, answer: PlaceAnswer | None, seconds: float) -> None:
        """A SeekPlace has been answered after so long; None: it has not."""
        self._step("outcome", lambda now: self._inputs.place_found(gang, answer, seconds, now))

    def eviction_finished(
        self, effect: Evict | TryEviction | Suspend, outcome: EvictOutcome
    ) -> None:
        """An Evict, a TryEviction or a Suspend has been carried out, or not."""
        is_trial, inputs = isinstance(effect, TryEviction), self._inputs
        take = inputs.eviction_tried if is_trial else inputs.eviction_finished
        self._step("outcome", lambda now: take(effect.uid, outcome, now))

    def is_deletion_wanted(self, delete: Delete) -> bool:
        """Whether a Delete that has not been sent is still to be: the pod is one too many."""
        gang = self._engine.gangs.by_key.get(delete.gang)
        said = None if gang is None else gang.reporting.outside.get(delete.uid)
        return said is not None and said[1]

    def lead(self, *, is_leading: bool) -> None:
        """This Corral decides from now on, or follows another one."""
        self._step("lead", lambda now: self._inputs.lead(is_leading, now))

    def heal(self) -> None:
        """The books differ from the records."""
        self._step("heal", self._inputs.heal)

    def drain(self) -> None:
        """Corral stops: what is held is refused, and nothing new begins."""
        self._step("drain", self._inputs.drain)

    def close(self) -> None:
        """Leave this process as it was found."""
        self._collector.restore()

    async def tick(self) -> None:
        """Tell the engine the time, every `tick_seconds`, until cancelled."""
        while True:
            due = time.monotonic() + self._tick_seconds
            await asyncio.sleep(self._tick_seconds)
            self._metrics.loop_lag_seconds.set(max(0.0, time.monotonic() - due))
            self._step("tick", self._inputs.tick)
            self._count()
            if self._engine.is_synced and self._collector.settle():
                log.info("synced")
            self._log_warnings()

    def _watch_lag(self, event: Event, now: float) -> None:
        """End the wait for bindings that the watch shows by now, or whose pods are gone."""
        match event:
            case Applied(PodRecord() as pod) if pod.node:
                self._lag.shown(pod.uid, now)
            case Deleted(PodRecord() as pod):
                self._lag.gone(pod.uid)
            case Listed("Pod", pods) if self._lag.is_waiting:
                nodes = {pod.uid: pod.node for pod in pods if isinstance(pod, PodRecord)}
                self._lag.listed(nodes, now)

    def _step(self, name: str, step: Callable[[float], list[Effect]]) -> None:
        try:
            self._feed(step(time.monotonic()))
        except Exception:
            self._metrics.engine_errors[name].inc()
            log.exception("engine", step=name)

    def _count(self) -> None:
        """Publish what this tick was, and the starts since the last one."""
        engine, metrics, now = self._engine, self._metrics, time.monotonic()
        metrics.watch_awaited_seconds.set(self._lag.longest(now))
        if engine.budget.is_spent:
            metrics.ticks_over_budget["searches"].inc()
        if engine.roll_calls.budget.is_spent:
            metrics.ticks_over_budget["roll_calls"].inc()
        for decision in engine.starts.decisions():
            metrics.gang_decision_seconds.observe(decision.seconds)
        for seconds in engine.room_plans.drained():
            metrics.room_drain_seconds.observe(seconds)
        for start in engine.starts.taken():
            metrics.gang_start_seconds.observe(start.started_at - start.complete_at)
            metrics.gang_plans.inc(start.plans)
            self._trace(start, time.time() - now)

    def _log_warnings(self) -> None:
        """Log what is wrong with topologies and objects of the cluster, each thing once."""
        warnings = self._engine.warnings()
        if warnings != self._warnings:
            for warning in (each for each in warnings if each not in self._warnings):
                log.warning("cluster", problem=warning)
            self._warnings = warnings


def fault_counter(metrics: Metrics) -> OnFault:
    """Counts and logs what the engine itself has kept from spreading."""

    def count(part: str, error: Exception) -> None:
        metrics.engine_errors["part"].inc()
        log.error("engine", part=part, exc_info=error)

    return count
