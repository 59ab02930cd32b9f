"""Builds the object graph and runs it: the only place that wires.

    Reflectors ──Event──▶ Engine ──Effects──▶ Dispatcher ──▶ ungate, bind, wake … ──▶ API server
                            ▲  ▲                   └──Refuse──▶ BindDesk
        extender port ──────┘  └── ticks                           ▲
             └──────────────────── /bind ──────────────────────────┘

Everything runs in one event loop; between two awaits nothing else happens, so there are no locks.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import fields
from types import TracebackType
from typing import Any

import structlog
from fastapi import FastAPI

from app.admission.routes import Desk, webhook
from app.admission.scope import scope_of
from app.admission.tls import Certificate, certificate_of
from app.collector import Collector
from app.controllers.audit import AuditController
from app.controllers.writers import Receivers, Writers
from app.dialects.presets import level_keys
from app.dialects.registry import DIALECTS
from app.errors import CorralError, SettingsError
from app.extender.guard import Bounds
from app.extender.health import health
from app.extender.routes import Limits, Port, verbs
from app.extender.server import Server, listen, server_of, url_of
from app.journal_file import JournalFile
from app.kube.client.lease import NeighbourLease
from app.kube.client.transport import Transport
from app.kube.client.writes import Client
from app.kube.watch.events import Event, Kind
from app.kube.watch.reflector import Reflector
from app.metrics import Metrics
from app.settings import Settings
from app.state.effects import Bind, BindOutcome, Effect, Ungate, UngateOutcome
from app.state.engine import Engine
from app.state.journal.record import Recorder
from app.state.settings import EngineSettings
from app.verbs.bind import BindDesk
from topology.errors import InvalidTopology
from topology.model.levels import levels_of

log = structlog.get_logger(__name__)

ANSWER_MARGIN_SECONDS = 0.5  # a held /bind outlives the engine's own deadline by this
SILENT_SECONDS = 150.0  # the API server sends a bookmark a minute; two missing is no accident
OTHER_CONNECTIONS = 64  # to the API server, beside bindings and patches: watches, wakes, events
CLOSE_SECONDS = 5.0  # for connections to close once every request is answered
SHUTTING_DOWN = "Corral is shutting down"


class Corral:
    """One running Corral: `async with Corral(settings) as corral`, or `await corral.run()`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics(DIALECTS.kinds)
        self.engine = Engine(engine_settings(settings), self._fault)
        self._journal: JournalFile | None = None
        self.extender_url = ""
        self.api_url = ""
        self.admission_url = ""
        self._certificate: Certificate | None = None
        self._is_draining = False
        self._ended = asyncio.Event()
        self._failure: BaseException | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._collector = Collector()
        self._warnings: tuple[str, ...] = ()

    async def __aenter__(self) -> Corral:
        self._listen()
        try:
            self._keep_journal()
            self._transport = await self._connected()
        except BaseException:
            for listener in self._listeners:
                listener.close()
            if self._journal is not None:
                self._journal.close()
            raise
        self._wire()
        for name, work in self._works():
            task = asyncio.create_task(work, name=name)
            task.add_done_callback(self._task_ended)
            self._tasks.append(task)
        log.info(
            "listening",
            extender=self.extender_url,
            api=self.api_url,
            admission=self.admission_url,
        )
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
        await self._writers.finish_binds()
        self._desk.refuse_all(SHUTTING_DOWN)
        await asyncio.wait(self._tasks[: len(self._servers)], timeout=CLOSE_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._transport.close()
        if self._journal is not None:
            self._journal.close()
        self._collector.restore()

    def feed(self, effects: Iterable[Effect]) -> None:
        """Have effects carried out."""
        self._writers.feed(effects)

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
        self._desk = BindDesk(
            self.engine,
            self.feed,
            answer_seconds=settings.gang_bind_seconds
            + settings.bind_seconds
            + ANSWER_MARGIN_SECONDS,
        )
        metrics.held_binds.set_function(lambda: len(self._desk))
        self.lease = _lease(settings, self._transport)
        self._writers = Writers(
            Client(self._transport, keep=self.engine.dialects.keeps),
            settings,
            metrics,
            Receivers(self._bind_finished, self._ungate_finished, self._desk.refuse),
            is_leading=self._is_leading,
        )
        self._audits = AuditController(
            self.engine.differences,
            lambda: self._step("heal", self.engine.heal),
            self._audited,
            seconds=settings.audit_seconds,
        )
        self._reflectors = [
            Reflector(self._transport, resource, self._apply, on_problem=self._watch_problem)
            for resource in self.engine.dialects.resources()
        ]
        self._servers = [self._server(app) for app in self._applications()]
        if self._certificate is not None:
            self._servers.append(self._admission_server(self._certificate))

    def _is_leading(self) -> bool:
        return self.lease is None or self.lease.is_ours

    def _listen(self) -> None:
        """Take the ports; raises SettingsError before anything else has begun."""
        settings = self.settings
        self._listeners = [listen("extender_listen", settings.extender_listen)]
        self.extender_url = url_of(self._listeners[0])
        try:
            if settings.api_listen is not None:
                self._listeners.append(listen("api_listen", settings.api_listen))
                self.api_url = url_of(self._listeners[-1])
            if settings.admission_listen is not None:
                certificates = self.metrics.certificates
                self._certificate = certificate_of(
                    settings.admission_cert,
                    settings.admission_key,
                    lambda outcome: certificates[outcome].inc(),
                )
                self._listeners.append(listen("admission_listen", settings.admission_listen))
                self.admission_url = url_of(self._listeners[-1], "https")
        except SettingsError:
            for listener in self._listeners:
                listener.close()
            raise

    def _keep_journal(self) -> None:
        """Have every input of the engine written down, if that is asked for."""
        settings = self.settings
        if settings.journal is not None:
            journal = self._journal = JournalFile(settings.journal, settings.journal_bytes)
            self.engine = Recorder(self.engine, journal.write)
            self.metrics.journal_bytes.set_function(lambda: journal.size)

    def _applications(self) -> list[FastAPI]:
        """What is served to kube-scheduler and to people, in the order of their listeners."""
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
        return applications[: 1 + bool(self.api_url)]

    def _server(self, app: FastAPI) -> Server:
        settings = self.settings
        return server_of(
            app,
            self._bounds(max(settings.filter_body_bytes, settings.preempt_body_bytes)),
            keep_alive_seconds=settings.keep_alive_seconds,
            finish_seconds=settings.bind_seconds + CLOSE_SECONDS,
        )

    def _admission_server(self, certificate: Certificate) -> Server:
        """The webhook's port: nothing but its two routes, since all pods may reach it."""
        settings = self.settings
        desk = Desk(
            scope_of(settings), self.engine.dialects, self.metrics, settings.admission_body_bytes
        )
        app = _application("Corral for kube-apiserver")
        app.include_router(webhook(desk))
        return server_of(
            app,
            self._bounds(settings.admission_body_bytes),
            keep_alive_seconds=settings.keep_alive_seconds,
            finish_seconds=CLOSE_SECONDS,
            tls=certificate.context,
        )

    def _bounds(self, most_body_bytes: int) -> Bounds:
        broken = self.metrics.broken_requests
        return Bounds(
            receive_seconds=self.settings.receive_seconds,
            most_body_bytes=most_body_bytes,
            max_connections=self.settings.max_connections,
            on_breach=lambda reason: broken[reason].inc(),
        )

    def _works(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """Everything that runs until we stop; the servers come first."""
        return [
            *(
                (f"port {url_of(listener)}", server.serve(sockets=[listener]))
                for server, listener in zip(self._servers, self._listeners, strict=True)
            ),
            *self._writers.works(),
            ("tick", self._tick()),
            ("audit", self._audits.run()),
            *((f"watch {watch.kind}", watch.run()) for watch in self._reflectors),
            *((("lease", self.lease.run()),) if self.lease else ()),
        ]

    def _exposition(self) -> bytes:
        self.metrics.show_gangs(self.engine.gangs_by_phase())
        return self.metrics.exposition()

    async def _connected(self) -> Transport:
        settings = self.settings
        connections = settings.bind_concurrency + settings.ungate_concurrency + OTHER_CONNECTIONS
        if settings.kubeconfig is None:
            return await Transport.in_cluster(connections=connections)
        return await Transport.from_kubeconfig(settings.kubeconfig, connections=connections)

    def _apply(self, event: Event) -> None:
        self._step("apply", lambda now: self.engine.apply(event, now))

    def _step(self, name: str, step: Callable[[float], list[Effect]]) -> None:
        """One input of the engine and what follows from it."""
        # One object that trips over a bug of ours must not stop everybody's scheduling.
        try:
            self.feed(step(time.monotonic()))
        except Exception:
            self.metrics.engine_errors[name].inc()
            log.exception("engine", step=name)

    def _fault(self, what: str, error: Exception) -> None:
        self.metrics.engine_errors["part"].inc()
        log.error("engine", part=what, exc_info=error)

    def _watch_problem(self, kind: Kind, problem: CorralError) -> None:
        self.metrics.watch_problems[kind].inc()
        log.warning("watch", kind=kind, problem=str(problem))

    def _bind_finished(self, bind: Bind, outcome: BindOutcome) -> None:
        self._desk.finished(bind, outcome)
        self._step("outcome", lambda now: self.engine.bind_finished(bind.uid, outcome, now))

    def _ungate_finished(self, ungate: Ungate, outcome: UngateOutcome) -> None:
        self._step("outcome", lambda now: self.engine.ungate_finished(ungate.uid, outcome, now))

    def _audited(self, found: int, seconds: float) -> None:
        self.metrics.audit_differences.inc(found)
        self.metrics.audit_seconds.set(seconds)

    async def _tick(self) -> None:
        pause = self.settings.tick_seconds
        while True:
            due = time.monotonic() + pause
            await asyncio.sleep(pause)
            self.metrics.loop_lag_seconds.set(max(0.0, time.monotonic() - due))
            self._step("tick", self.engine.tick)
            if self.engine.is_synced and self._collector.settle():
                log.info("synced")
            self._tell_warnings()

    def _tell_warnings(self) -> None:
        """Log what is wrong with the topologies whenever that changes."""
        warnings = self.engine.warnings()
        if warnings != self._warnings:
            self._warnings = warnings
            for warning in warnings:
                log.warning("topology", problem=warning)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if self._is_draining:
            return
        error = None if task.cancelled() else task.exception()
        self._failure = error or RuntimeError(f"{task.get_name()} ended by itself")
        log.error("part ended", part=task.get_name(), problem=repr(error))
        self._ended.set()


def engine_settings(settings: Settings) -> EngineSettings:
    """The engine's share of the settings, under the same names, presets resolved.

    Raises: SettingsError.
    """
    try:
        levels = level_keys(settings.levels)
        if levels:
            levels_of(levels)
    except (ValueError, InvalidTopology) as error:
        raise SettingsError(f"levels: {error}") from error
    shared = Settings.model_fields.keys() & {field.name for field in fields(EngineSettings)}
    return EngineSettings(**{name: getattr(settings, name) for name in shared} | {"levels": levels})


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
