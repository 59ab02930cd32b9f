"""Builds the object graph and runs it: the only place that wires.

    Reflectors ──Event──▶ Engine ──Effects──▶ Dispatcher ──▶ bind, wake, report ──▶ API server
                            ▲  ▲                   └──Refuse──▶ BindDesk
        extender port ──────┘  └── ticks                           ▲
             └──────────────────── /bind ──────────────────────────┘

Everything runs in one event loop; between two awaits nothing else happens, so there are no locks.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import time
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, TypeVar

import structlog
from fastapi import FastAPI

from app import dialects
from app.controllers.bind import BindController
from app.controllers.dispatch import Dispatcher
from app.controllers.report import ReportController
from app.controllers.wake import WakeController
from app.dialects.presets import level_keys
from app.errors import CorralError, SettingsError
from app.extender.guard import Bounds
from app.extender.health import health
from app.extender.routes import Limits, Port, verbs
from app.extender.server import Server, listen, server_of, url_of
from app.kube import reflector
from app.kube.client import Client
from app.kube.events import Event, Kind
from app.kube.lease import NeighbourLease
from app.kube.reflector import Reflector, Resource
from app.kube.transport import Transport
from app.metrics import Metrics
from app.settings import Settings
from app.state.effects import Bind, BindOutcome, Bound, Effect
from app.state.engine import Engine
from app.state.settings import EngineSettings
from app.verbs.bind import BindDesk
from topology.errors import InvalidTopology
from topology.levels import levels_of

log = structlog.get_logger(__name__)

ANSWER_MARGIN_SECONDS = 0.5  # a held /bind outlives the engine's own deadline by this
SILENT_SECONDS = 150.0  # the API server sends a bookmark a minute; two missing is no accident
OTHER_CONNECTIONS = 64  # to the API server, beside bindings: watches, wakes, events
CLOSE_SECONDS = 5.0  # for connections to close once every request is answered
SHUTTING_DOWN = "Corral is shutting down"

_Effect = TypeVar("_Effect", bound=Effect)


class Corral:
    """One running Corral: `async with Corral(settings) as corral`, or `await corral.run()`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.engine = Engine(engine_settings(settings))
        self.extender_url = ""
        self.api_url = ""
        self._is_draining = False
        self._ended = asyncio.Event()
        self._failure: BaseException | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._is_frozen = False
        self._warnings: tuple[str, ...] = ()

    async def __aenter__(self) -> Corral:
        self._listen()
        try:
            self._transport = await self._connected()
        except BaseException:
            for listener in self._listeners:
                listener.close()
            raise
        self._wire()
        for name, work in self._works():
            task = asyncio.create_task(work, name=name)
            task.add_done_callback(self._task_ended)
            self._tasks.append(task)
        log.info("listening", extender=self.extender_url, api=self.api_url)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, then stop cleanly; a second signal ends us at once.

        Raises: SettingsError; whatever ended a part of us that never ends by itself.
        """
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for signum in signals:
            loop.add_signal_handler(signum, self._ended.set)
        async with self:
            await self._ended.wait()
            for signum in signals:
                loop.remove_signal_handler(signum)
        if self._failure is not None:
            raise self._failure

    async def stop(self) -> None:
        """Stop accepting, let bindings under way finish, refuse the rest, close everything.

        Takes at most `bind_seconds` plus CLOSE_SECONDS.
        """
        self._is_draining = True
        for server in self._servers:
            server.should_exit = True
        self.feed(self.engine.drain(time.monotonic()))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._binds.wait_idle(), self.settings.bind_seconds)
        self._desk.refuse_all(SHUTTING_DOWN)
        await asyncio.wait(self._tasks[: len(self._servers)], timeout=CLOSE_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._transport.close()
        if self._is_frozen:
            gc.unfreeze()

    def feed(self, effects: Iterable[Effect]) -> None:
        """Have effects carried out."""
        self._dispatcher.feed(effects)

    def unready(self) -> str:
        """Why kube-scheduler should not rely on us now; "" if it may."""
        if self._is_draining:
            return SHUTTING_DOWN
        if not self.engine.is_synced:
            return "the cluster has not been read yet"
        for watch in self._reflectors:
            if watch.seconds_since_last_byte > SILENT_SECONDS:
                return f"the watch of {watch.kind} objects is silent"
        return ""

    def _wire(self) -> None:
        settings, metrics = self.settings, self.metrics
        client = Client(self._transport, keep=dialects.is_kept)
        self._binds = BindController(
            client,
            self._bind_finished,
            concurrency=settings.bind_concurrency,
            bind_seconds=settings.bind_seconds,
        )
        self._wakes = WakeController(
            client,
            lambda outcome: metrics.wakes[outcome].inc(),
            per_second=settings.wake_per_second,
            burst=settings.wake_burst,
        )
        self._reports = ReportController(
            client,
            lambda outcome: metrics.reports[outcome].inc(),
            per_minute=settings.report_per_minute,
        )
        self._desk = BindDesk(
            self.engine,
            self.feed,
            answer_seconds=settings.gang_bind_seconds
            + settings.bind_seconds
            + ANSWER_MARGIN_SECONDS,
        )
        metrics.held_binds.set_function(lambda: len(self._desk))
        self.lease = _lease(settings, self._transport)
        self._dispatcher = Dispatcher(
            wake=self._if_leading(self._wakes.take),
            bind=self._binds.take,
            refuse=self._desk.refuse,
            report=self._if_leading(self._reports.take),
        )
        self._reflectors = [
            Reflector(self._transport, resource, self._apply, on_problem=self._watch_problem)
            for resource in _resources()
        ]
        self._servers = [self._server(app) for app in self._applications()]

    def _if_leading(self, take: Callable[[_Effect], None]) -> Callable[[_Effect], None]:
        """Drop what the leader's own Corral says already; bindings only ever come from our own."""

        def taken(effect: _Effect) -> None:
            if self.lease is None or self.lease.is_ours:
                take(effect)

        return taken

    def _listen(self) -> None:
        """Take the ports; raises SettingsError before anything else has begun."""
        self._listeners = [listen("extender_listen", self.settings.extender_listen)]
        self.extender_url = url_of(self._listeners[0])
        if self.settings.api_listen is not None:
            try:
                self._listeners.append(listen("api_listen", self.settings.api_listen))
            except SettingsError:
                self._listeners[0].close()
                raise
            self.api_url = url_of(self._listeners[1])

    def _applications(self) -> list[FastAPI]:
        """What is served on each listener, in their order."""
        settings = self.settings
        limits = Limits(
            filter_body_bytes=settings.filter_body_bytes,
            preempt_body_bytes=settings.preempt_body_bytes,
            bind_body_bytes=settings.bind_body_bytes,
            full_nodes=settings.full_nodes,
        )
        port = Port(self.engine, self.feed, self._desk, self.metrics, limits)
        applications = [_application("Corral for kube-scheduler"), _application("Corral")]
        applications[0].include_router(verbs(port))
        for app in applications:
            app.include_router(health(self.unready, self._exposition))
        return applications[: len(self._listeners)]

    def _server(self, app: FastAPI) -> Server:
        settings, broken = self.settings, self.metrics.broken_requests
        bounds = Bounds(
            receive_seconds=settings.receive_seconds,
            most_body_bytes=max(settings.filter_body_bytes, settings.preempt_body_bytes),
            max_connections=settings.max_connections,
            on_breach=lambda reason: broken[reason].inc(),
        )
        return server_of(
            app,
            bounds,
            keep_alive_seconds=settings.keep_alive_seconds,
            finish_seconds=settings.bind_seconds + CLOSE_SECONDS,
        )

    def _works(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """Everything that runs until we stop; the servers come first."""
        return [
            *(
                (f"port {url_of(listener)}", server.serve(sockets=[listener]))
                for server, listener in zip(self._servers, self._listeners, strict=True)
            ),
            ("bind", self._binds.run()),
            ("wake", self._wakes.run()),
            ("report", self._reports.run()),
            ("tick", self._tick()),
            *((f"watch {watch.kind}", watch.run()) for watch in self._reflectors),
            *((("lease", self.lease.run()),) if self.lease else ()),
        ]

    def _exposition(self) -> bytes:
        self.metrics.show_gangs(self.engine.gangs_by_phase())
        return self.metrics.exposition()

    async def _connected(self) -> Transport:
        connections = self.settings.bind_concurrency + OTHER_CONNECTIONS
        if self.settings.kubeconfig is None:
            return await Transport.in_cluster(connections=connections)
        return await Transport.from_kubeconfig(self.settings.kubeconfig, connections=connections)

    def _apply(self, event: Event) -> None:
        # One object that trips over a bug of ours must not stop everybody's scheduling.
        try:
            self.feed(self.engine.apply(event, time.monotonic()))
        except Exception:
            self.metrics.engine_errors["apply"].inc()
            log.exception("apply", kind=type(event).__name__)

    def _watch_problem(self, kind: Kind, problem: CorralError) -> None:
        self.metrics.watch_problems[kind].inc()
        log.warning("watch", kind=kind, problem=str(problem))

    def _bind_finished(self, bind: Bind, outcome: BindOutcome, seconds: float) -> None:
        self.metrics.binds[_outcome(outcome)].inc()
        self.metrics.bind_seconds.observe(seconds)
        self._desk.finished(bind, outcome)
        self.feed(self.engine.bind_finished(bind.uid, outcome, time.monotonic()))

    async def _tick(self) -> None:
        pause = self.settings.tick_seconds
        while True:
            due = time.monotonic() + pause
            await asyncio.sleep(pause)
            now = time.monotonic()
            self.metrics.loop_lag_seconds.set(max(0.0, now - due))
            try:
                self.feed(self.engine.tick(now))
            except Exception:
                self.metrics.engine_errors["tick"].inc()
                log.exception("tick")
            self._freeze_once()
            self._tell_warnings()

    def _tell_warnings(self) -> None:
        """Log what is wrong with the topologies whenever that changes."""
        warnings = self.engine.warnings()
        if warnings != self._warnings:
            self._warnings = warnings
            for warning in warnings:
                log.warning("topology", problem=warning)

    def _freeze_once(self) -> None:
        """Take what the first lists brought out of the collector's sight: it is there to stay."""
        if not self._is_frozen and self.engine.is_synced:
            gc.collect()
            gc.freeze()
            self._is_frozen = True
            log.info("synced")

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if self._is_draining:
            return
        error = None if task.cancelled() else task.exception()
        self._failure = error or RuntimeError(f"{task.get_name()} ended by itself")
        log.error("part ended", part=task.get_name(), problem=repr(error))
        self._ended.set()


def engine_settings(settings: Settings) -> EngineSettings:
    """The engine's share of the settings, presets resolved.

    Raises: SettingsError.
    """
    try:
        levels = level_keys(settings.levels)
        if levels:
            levels_of(levels)
    except (ValueError, InvalidTopology) as error:
        raise SettingsError(f"levels: {error}") from error
    return EngineSettings(
        levels=levels,
        scheduler_name=settings.scheduler_name,
        hold_seconds=settings.hold_seconds,
        gang_bind_seconds=settings.gang_bind_seconds,
        refusal_seconds=settings.refusal_seconds,
        rewake_seconds=settings.rewake_seconds,
        retry_seconds=settings.retry_seconds,
        retry_seconds_most=settings.retry_seconds_most,
        percentage_of_nodes_to_score=settings.percentage_of_nodes_to_score,
    )


def _lease(settings: Settings, transport: Transport) -> NeighbourLease | None:
    """The Lease our neighbour has to hold for us to act, if one is set."""
    if not settings.neighbour_lease:
        return None
    namespace, _, name = settings.neighbour_lease.partition("/")
    return NeighbourLease(transport, namespace=namespace, name=name, pod_name=settings.pod_name)


def _application(title: str) -> FastAPI:
    # A redirect to another slash would turn Go's POST into a GET.
    return FastAPI(
        title=title, redirect_slashes=False, openapi_url=None, docs_url=None, redoc_url=None
    )


def _resources() -> tuple[Resource, ...]:
    keep: Callable[[str], bool] = dialects.is_kept
    return (
        reflector.nodes(),
        reflector.pods(keep),
        reflector.jobs(keep),
        reflector.topologies(),
    )


def _outcome(outcome: BindOutcome) -> str:
    if isinstance(outcome, Bound):
        return "bound"
    return "gone" if outcome.is_gone else "failed"
