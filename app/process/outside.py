"""What one Corral takes of the world outside before anything is made of it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from app.errors import SettingsError
from app.kube.client.transport import Transport
from app.metrics import Metrics
from app.process.records.journal_file import JournalFile
from app.process.records.tracing import Trace, tracing_to, untraced
from app.process.serving.ports import Listeners, listen_all
from app.settings import Settings
from app.version import this_build

OTHER_CONNECTIONS = 64  # to the API server, beside bindings and patches: watches, wakes, events


@dataclass(frozen=True, slots=True)
class Outside:
    """Ports, a file and a way to the API server; `closing` gives them back."""

    listeners: Listeners
    journal: JournalFile | None
    transport: Transport
    closing: AsyncExitStack
    trace: Trace


async def taken(settings: Settings, metrics: Metrics, closing: AsyncExitStack) -> Outside:
    """Take all of it. Raises: SettingsError; `closing` gives back what was taken until then."""
    return Outside(
        listen_all(settings, metrics, closing),
        _journal(settings, closing),
        await _connected(settings, closing),
        closing,
        _tracing(settings, closing),
    )


def _journal(settings: Settings, closing: AsyncExitStack) -> JournalFile | None:
    """The file for every input of the engine, if the settings name one."""
    if settings.journal is None:
        return None
    journal = JournalFile(settings.journal, settings.journal_bytes)
    closing.callback(journal.close)
    return journal


def _tracing(settings: Settings, closing: AsyncExitStack) -> Trace:
    """What takes each start of a gang, if the settings name a collector."""
    if not settings.otlp_endpoint:
        return untraced
    tracing = tracing_to(
        settings.otlp_endpoint, version=this_build().version, pod=settings.pod_name
    )
    closing.push_async_callback(asyncio.to_thread, tracing.close)
    return tracing.trace


async def _connected(settings: Settings, closing: AsyncExitStack) -> Transport:
    """A way to the API server. Nothing is sent yet: the watches find out whether it answers."""
    connections = settings.bind_concurrency + settings.ungate_concurrency + OTHER_CONNECTIONS
    if settings.kubeconfig is None:
        try:
            transport = await Transport.in_cluster(
                settings.service_account, connections=connections
            )
        except SettingsError as error:
            raise SettingsError(f"{error}; --kubeconfig names a cluster") from error
    else:
        transport = await Transport.from_kubeconfig(settings.kubeconfig, connections=connections)
    closing.push_async_callback(transport.close)
    return transport
