"""Builds the object graph and runs it: the only place that wires.

    Reflectors ──Event──▶ Engine ──Effects──▶ Dispatcher ──▶ ungate, bind, wake … ──▶ API server
                            ▲  ▲                   └─RejectBind─▶ BindDesk
        extender port ──────┘  └── ticks                             ▲
             └──────────────────── /bind ────────────────────────────┘

    build(settings) ─▶ Parts    ports are taken, credentials read, objects made; nothing runs yet
    run(parts, stop)            everything runs, until `stop` is set or a part fails

`serve` does both until SIGTERM, `started` for as long as a block lasts. Everything runs in one
event loop; between two awaits nothing else happens, so there are no locks.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

from fastapi import APIRouter

from app.admission.namespaces import Namespaces
from app.admission.routes import Desk, webhook
from app.admission.scope import scope_of
from app.api.access.callers import Callers
from app.api.access.permissions import Permissions
from app.api.following.stream import Stream
from app.api.others import Others
from app.api.page import page
from app.api.routes import people
from app.api.standing import Standing
from app.controllers.audit import AuditController
from app.controllers.writers import Receivers, Writers
from app.dialects.registry import DIALECTS, Dialects
from app.explain.changes import Changes
from app.extender.health import health
from app.extender.routes import Limits, Port, verbs
from app.kube.client.reviews import Reviews
from app.kube.client.transport import Transport
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import with_kept
from app.kube.leading.lease import NeighbourLease
from app.kube.watch.events import Event
from app.kube.watch.reflector import Pace, Reflector
from app.kube.watch.resource import Resource
from app.metrics import Metrics
from app.process.driver import Driver, fault_counter
from app.process.engine_settings import engine_settings
from app.process.leading import client_of, is_leading, lease_of, who_leads
from app.process.outside import Outside, taken
from app.process.parts import Parts, run, unready
from app.process.records.journal_file import JournalFile
from app.process.serving.exposition import Exposition, shapes_of
from app.process.serving.ports import Routes, ports_of
from app.process.taking_over import TakingOver
from app.process.watches.problems import WatchProblems
from app.settings import Settings
from app.simulate.simulating import Rules
from app.state.effects import Bind, BindOutcome, Effect, ReadAgain
from app.state.engine import Engine
from app.state.inputs import Inputs
from app.state.journal.record import Recorder
from app.state.objects.kept_objects import KeptObjects
from app.verbs.bind import BindDesk

ANSWER_MARGIN_SECONDS = 0.5  # a held /bind outlives the engine's own deadline by this
HELD_SHARE = 7 / 8  # of all connections, for requests at /bind that wait
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

Feed = Callable[[Iterable[Effect]], None]
Sink = Callable[[Event], None]


async def serve(settings: Settings) -> None:
    """Run one Corral until SIGTERM or SIGINT, then stop it cleanly; a second signal ends at once.

    Raises: SettingsError; what ended a part.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def stop_once() -> None:
        stop.set()
        for signum in STOP_SIGNALS:
            loop.remove_signal_handler(signum)

    for signum in STOP_SIGNALS:
        loop.add_signal_handler(signum, stop_once)
    await run(await build(settings), stop)


@asynccontextmanager
async def started(settings: Settings, dialects: Dialects = DIALECTS) -> AsyncIterator[Parts]:
    """One Corral that runs beside the block, in the same event loop.

    Raises: SettingsError; when the block is left, what ended a part.
    """
    parts = await build(settings, dialects)
    stop = asyncio.Event()
    running = asyncio.create_task(run(parts, stop))
    try:
        yield parts
    finally:
        stop.set()
        await running


async def build(settings: Settings, dialects: Dialects = DIALECTS) -> Parts:
    """One Corral, ready to `run`: its ports taken, its credentials read, its objects wired.

    Raises: SettingsError, and nothing stays open.
    """
    chosen = engine_settings(settings, dialects)
    kinds = dialects.configured(chosen).kinds
    metrics = Metrics(kinds)
    chosen = chosen.model_copy(update={"kinds": kinds})
    engine = Engine(chosen, fault_counter(metrics), dialects)
    async with AsyncExitStack() as closing:
        outside = await taken(settings, metrics, closing)
        parts = _wired(settings, metrics, engine, outside)
        return replace(parts, closing=closing.pop_all())


# -- what is made of it ----------------------------------------------------------------------------


def _wired(settings: Settings, metrics: Metrics, engine: Engine, outside: Outside) -> Parts:
    """Every object with the others that it needs."""

    def feed(effects: Iterable[Effect]) -> None:
        writers.feed(effects)  # made last: it tells the driver and the desk of outcomes

    def read_again(effect: ReadAgain) -> None:
        for each in reflectors:
            if each.kind == effect.kind:
                each.relist()

    inputs = _recorded(engine, outside.journal, metrics)
    driver = _driver(settings, metrics, engine, inputs, feed, outside)
    desk = _desk(settings, metrics, inputs, feed)
    lease = lease_of(settings, outside.transport, lambda: not unready(engine, reflectors))
    # One set of label keys for all pods that are read, however they reach us.
    keep, labels = engine.dialects.keeps, engine.kept_keys.labels
    client = client_of(outside.transport, keep, labels.keeps, lease)
    receivers = _receivers(driver, desk, engine, read_again)
    kept = [KeptObjects(each) for each in engine.dialects.kept_kinds]
    writers = Writers(
        client,
        settings,
        metrics,
        receivers,
        is_leading=is_leading(lease),
        prerequisites=engine.dialects.prerequisites,
        kept=kept,
    )
    namespaces = Namespaces(settings.admission_namespace_selector)
    resources = engine.dialects.resources(keep, labels, engine.books.axis)
    sinks = _sinks(settings, resources, driver, namespaces, kept)
    reflectors = _reflectors(settings, outside.transport, sinks, metrics)
    limits, simulators = _limits(settings), engine.hypothetical
    # A neighbour asks only while it leads; from elsewhere a Corral may be asked that does not.
    whose = who_leads(lease) if settings.own_lease else None
    pods = next(each for each in reflectors if each.kind == "Pod")
    taking_over = _taking_over(outside.transport, engine, driver, writers, lease, pods)
    asked = (lambda: None) if taking_over is None else taking_over.asked
    port = Port(inputs, keep, feed, desk, metrics, limits, labels.keeps, simulators, whose, asked)
    stream = _stream(settings, metrics, engine, lease)
    standing = Standing(
        lambda: unready(engine, reflectors),
        who_leads(lease),
        Others(outside.transport, keep),
        _callers(outside.transport, metrics),
        stream,
        lambda: "" if lease is None else lease.leader,
        Rules(scope_of(settings, namespaces), settings.pod_group_roles),
        outside.journal,
    )
    routes = _routes(settings, engine, standing, port, namespaces)
    return Parts(
        metrics,
        engine,
        driver,
        desk,
        writers,
        _audits(settings, metrics, engine, driver),
        reflectors,
        lease,
        taking_over,
        outside.transport,
        ports_of(settings, metrics, outside.listeners, routes),
        stream,
        outside.closing,
    )


def _recorded(engine: Engine, journal: JournalFile | None, metrics: Metrics) -> Inputs:
    """What takes the engine's inputs: a recorder if there is a journal, else the engine itself."""
    if journal is None:
        return engine
    metrics.journal_bytes.set_function(lambda: journal.size)
    return Recorder(engine, engine.settings, journal.write)


def _driver(
    settings: Settings,
    metrics: Metrics,
    engine: Engine,
    inputs: Inputs,
    feed: Feed,
    outside: Outside,
) -> Driver:
    metrics.lost_writes.set_function(lambda: engine.lost_writes)
    driver = Driver(
        inputs, engine, feed, metrics, tick_seconds=settings.tick_seconds, trace=outside.trace
    )
    outside.closing.callback(driver.close)
    return driver


def _taking_over(
    transport: Transport,
    engine: Engine,
    driver: Driver,
    writers: Writers,
    lease: NeighbourLease | None,
    pods: Reflector,
) -> TakingOver | None:
    """What has the engine lead, or follow, as the Lease says; without one it leads always."""
    if lease is None:
        return None

    def lead(is_leading: bool) -> None:
        driver.lead(is_leading=is_leading)
        if is_leading:
            writers.lead()

    return TakingOver(lease, transport, engine, lead, lambda: pods.version)


def _desk(settings: Settings, metrics: Metrics, inputs: Inputs, feed: Feed) -> BindDesk:
    seconds = settings.gang_bind_seconds + settings.bind_seconds + ANSWER_MARGIN_SECONDS
    most = int(settings.max_connections * HELD_SHARE)
    desk = BindDesk(inputs, feed, answer_seconds=seconds, most_held=most)
    metrics.held_binds.set_function(lambda: len(desk))
    return desk


def _receivers(
    driver: Driver, desk: BindDesk, engine: Engine, read_again: Callable[[ReadAgain], None]
) -> Receivers:
    """What receives the outcomes of effects, and the effects that are not writes."""

    def bind_finished(bind: Bind, outcome: BindOutcome) -> None:
        desk.finished(bind, outcome)
        driver.bind_finished(bind, outcome)

    return Receivers(
        bind_finished,
        driver.ungate_finished,
        driver.write_lost,
        driver.nominating_forbidden,
        desk.refuse,
        read_again,
        engine.making_room.request,
        driver.room_found,
        engine.searches_on.request,
        driver.place_found,
        driver.eviction_finished,
        engine.is_eviction_wanted,
        driver.is_deletion_wanted,
    )


def _sinks(
    settings: Settings,
    resources: Iterable[Resource],
    driver: Driver,
    namespaces: Namespaces,
    kept: Sequence[KeptObjects],
) -> list[tuple[Resource, Sink]]:
    """What is watched, each with its receiver: the engine, or the webhook where there is one.

    Objects that are kept receive nodes, and their own kind, as well.
    """
    sinks: list[tuple[Resource, Sink]] = []
    for each in resources:
        others = [its.apply for its in kept if each.kind in its.kinds]
        sinks.append((each, _all_of((driver.apply, *others)) if others else driver.apply))
    if settings.admission_listen is not None:
        sinks += [(each, namespaces.apply) for each in namespaces.resources()]
    return sinks


def _all_of(sinks: Sequence[Sink]) -> Sink:
    def receive(event: Event) -> None:
        for each in sinks:
            each(event)

    return receive


def _reflectors(
    settings: Settings,
    transport: Transport,
    sinks: Iterable[tuple[Resource, Sink]],
    metrics: Metrics,
) -> tuple[Reflector, ...]:
    """One watch per kind of object."""
    pace = Pace(silence_seconds=settings.watch_silence_seconds)

    problems = WatchProblems(metrics.watch_problems)
    reflectors = tuple(
        Reflector(transport, resource, sink, pace=pace, on_problem=problems.note)
        for resource, sink in sinks
    )
    for each in reflectors:
        silence = metrics.watch_silent_seconds.labels(each.kind)
        silence.set_function(partial(getattr, each, "seconds_since_last_byte"))
    return reflectors


def _audits(
    settings: Settings, metrics: Metrics, engine: Engine, driver: Driver
) -> AuditController:
    def audited(found: int, seconds: float) -> None:
        metrics.audit_differences.inc(found)
        metrics.audit_seconds.set(seconds)

    return AuditController(engine.checks, driver.heal, audited, seconds=settings.audit_seconds)


def _limits(settings: Settings) -> Limits:
    return Limits(
        filter_body_bytes=settings.filter_body_bytes,
        preempt_body_bytes=settings.preempt_body_bytes,
        bind_body_bytes=settings.bind_body_bytes,
        full_nodes=settings.full_nodes,
    )


def _routes(
    settings: Settings,
    engine: Engine,
    standing: Standing,
    port: Port,
    namespaces: Namespaces,
) -> Routes:
    metrics = port.metrics
    exposition = Exposition(engine, metrics, shapes_of(settings))
    scope = scope_of(settings, namespaces)
    most_body_bytes, roles = settings.admission_body_bytes, settings.pod_group_roles
    declared = engine.topologies.declared

    def place(pod: PodRecord, namespace: str) -> tuple[str, ...] | None:
        if not settings.born_seconds or standing.whose():
            return None  # off, or another Corral's to plan
        short = with_kept(pod, port.keep)
        nodes, effects = port.inputs.admit(short, namespace, time.monotonic())
        port.feed(effects)
        return nodes

    marks = settings.marker_resource
    desk = Desk(scope, engine.dialects, metrics, most_body_bytes, roles, declared, place, marks)

    for_people = APIRouter()
    for_people.include_router(page())
    for_people.include_router(people(engine, standing))
    return Routes(verbs(port), health(standing.unready, exposition), for_people, webhook(desk))


def _stream(
    settings: Settings, metrics: Metrics, engine: Engine, lease: NeighbourLease | None
) -> Stream:
    """What people follow."""
    stream = Stream(
        Changes(engine, who_leads(lease)),
        seconds=settings.tick_seconds,
        on_fault=fault_counter(metrics),
    )
    metrics.followers.set_function(lambda: len(stream))
    return stream


def _callers(transport: Transport, metrics: Metrics) -> Callers:
    """Who may read /v1: beyond loopback whom the API server knows."""
    counted = metrics.access_reviews
    return Callers(
        Permissions(Reviews(transport), on_review=lambda outcome: counted[outcome].inc())
    )
