"""What one Corral is made of, how its parts run, and in which order they stop.

`app.main` builds the parts. Each of them runs until it is cancelled; one that ends by itself has
failed, and ends the others with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import structlog

from app.api.following.stream import Stream
from app.controllers.audit import AuditController
from app.controllers.writers import Writers
from app.kube.client.transport import Transport
from app.kube.leading.lease import NeighbourLease
from app.kube.watch.reflector import Reflector
from app.metrics import Metrics
from app.process.driver import Driver
from app.process.serving.ports import CLOSE_SECONDS, Ports
from app.process.taking_over import TakingOver
from app.state.engine import Engine
from app.verbs.bind import BindDesk

log = structlog.get_logger(__name__)

SILENT_SECONDS = 150.0  # the API server sends a bookmark a minute; two missing is no accident
SHUTTING_DOWN = "Corral is shutting down"

Task = asyncio.Task[None]


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """One Corral. `closing` gives back what was taken for it: ports, files, connections."""

    metrics: Metrics
    engine: Engine
    driver: Driver
    desk: BindDesk
    writers: Writers
    audits: AuditController
    reflectors: Sequence[Reflector]
    lease: NeighbourLease | None
    taking_over: TakingOver | None
    transport: Transport
    ports: Ports
    stream: Stream
    closing: AsyncExitStack

    @property
    def extender_url(self) -> str:
        """Where kube-scheduler asks."""
        return self.ports.extender.url

    @property
    def api_url(self) -> str:
        """Where people ask; "": nowhere."""
        return self.ports.api.url if self.ports.api else ""

    @property
    def admission_url(self) -> str:
        """Where kube-apiserver asks; "": nowhere."""
        return self.ports.admission.url if self.ports.admission else ""

    def unready(self) -> str:
        """Why kube-scheduler should not rely on this Corral now; "" if it may."""
        return unready(self.engine, self.reflectors)


def unready(engine: Engine, reflectors: Sequence[Reflector]) -> str:
    """Why kube-scheduler should not rely on this engine now; "" if it may."""
    if engine.is_draining:
        return SHUTTING_DOWN
    if not engine.is_synced:
        return "the cluster has not been read yet"
    for watch in reflectors:
        if watch.seconds_since_last_byte > SILENT_SECONDS:
            return f"the watch of {watch.kind} objects is silent"
    return ""


async def run(parts: Parts, stop: asyncio.Event) -> None:
    """Run every part until `stop` is set or one of them ends, then stop them all.

    Raises: what ended a part.
    """
    ports = [_task(f"port {port.url}", port.serve()) for port in parts.ports.all()]
    others = [_task(name, work) for name, work in _works(parts)]
    stopping = asyncio.create_task(stop.wait())
    log.info(
        "listening", extender=parts.extender_url, api=parts.api_url, admission=parts.admission_url
    )
    try:
        await asyncio.wait((*ports, *others, stopping), return_when=asyncio.FIRST_COMPLETED)
        failures = [_failure(task) for task in (*ports, *others) if task.done()]
    finally:
        stopping.cancel()
        await _stop(parts, ports, others)
    if failures:
        raise failures[0]


def _works(parts: Parts) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    """Everything that runs beside the ports."""
    return [
        *parts.writers.works(),
        ("tick", parts.driver.tick()),
        ("stream", parts.stream.run()),
        ("audit", parts.audits.run()),
        *((f"watch {watch.kind}", watch.run()) for watch in parts.reflectors),
        *((("lease", parts.lease.run()),) if parts.lease else ()),
        *((("taking over", parts.taking_over.run()),) if parts.taking_over else ()),
    ]


def _task(name: str, work: Coroutine[Any, Any, None]) -> Task:
    return asyncio.create_task(work, name=name)


def _failure(task: Task) -> BaseException:
    error = None if task.cancelled() else task.exception()
    log.error("part ended", part=task.get_name(), problem=repr(error))
    return error or RuntimeError(f"{task.get_name()} ended by itself")


async def _stop(parts: Parts, ports: Sequence[Task], others: Sequence[Task]) -> None:
    """Stop accepting, let bindings under way finish, refuse the rest, close everything.

    Takes at most `bind_seconds` plus CLOSE_SECONDS, and RELEASE_SECONDS with a Lease of our own.
    """
    async with parts.closing:
        for port in parts.ports.all():
            port.close()
        parts.stream.close(SHUTTING_DOWN)
        parts.driver.drain()
        await parts.writers.finish()
        parts.desk.refuse_all(SHUTTING_DOWN)
        if parts.lease is not None:
            await parts.lease.release()  # the next one may act: what we write is written
        await asyncio.wait(ports, timeout=CLOSE_SECONDS)
        for task in (*ports, *others):
            task.cancel()
        await asyncio.gather(*ports, *others, return_exceptions=True)
