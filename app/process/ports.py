"""The ports of one Corral: taken first, so that a wrong address ends the start; served last.

extender_listen    kube-scheduler's verbs, probes and metrics
api_listen         probes and metrics, for people
admission_listen   the webhook, over TLS; nothing else, since every pod may reach it
"""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass

from fastapi import APIRouter, FastAPI

from app.admission.tls import Certificate, certificate_of
from app.extender.guard import Bounds
from app.extender.server import Server, listen, server_of, url_of
from app.metrics import Metrics
from app.settings import Address, Settings

CLOSE_SECONDS = 5.0  # for connections to close once every request is answered


@dataclass(frozen=True, slots=True)
class Listeners:
    """Sockets that listen already; connections wait in the kernel until they are served."""

    extender: socket.socket
    api: socket.socket | None
    admission: tuple[socket.socket, Certificate] | None


@dataclass(frozen=True, slots=True, eq=False)
class OpenPort:
    """One socket and its server; `url` is where it can be reached from this machine."""

    url: str
    listener: socket.socket
    server: Server

    async def serve(self) -> None:
        """Answer until `close` is called and every request has its answer."""
        await self.server.serve(sockets=[self.listener])

    def close(self) -> None:
        """Accept no more connections; requests under way are finished."""
        self.server.should_exit = True


@dataclass(frozen=True, slots=True)
class Ports:
    """What is served; None: the settings do not name it."""

    extender: OpenPort
    api: OpenPort | None
    admission: OpenPort | None

    def all(self) -> tuple[OpenPort, ...]:
        """Those there are."""
        return tuple(each for each in (self.extender, self.api, self.admission) if each)


def listen_all(settings: Settings, metrics: Metrics, closing: AsyncExitStack) -> Listeners:
    """Take every port the settings name; `closing` gives them back.

    Raises: SettingsError.
    """

    def taken(setting: str, address: Address) -> socket.socket:
        listener = listen(setting, address)
        closing.callback(listener.close)
        return listener

    extender = taken("extender_listen", settings.extender_listen)
    api = admission = None
    if settings.api_listen is not None:
        api = taken("api_listen", settings.api_listen)
    if settings.admission_listen is not None:
        certificate = certificate_of(
            settings.admission_cert,
            settings.admission_key,
            lambda outcome: metrics.certificates[outcome].inc(),
        )
        admission = taken("admission_listen", settings.admission_listen), certificate
    return Listeners(extender, api, admission)


@dataclass(frozen=True, slots=True)
class Routes:
    """What is answered: `verbs` to kube-scheduler, `health` to it and people, `webhook` alone."""

    verbs: APIRouter
    health: APIRouter
    webhook: APIRouter


def ports_of(settings: Settings, metrics: Metrics, listeners: Listeners, routes: Routes) -> Ports:
    """A server for each listener."""
    api = admission = None
    if listeners.api is not None:
        people = _application("Corral", routes.health)
        api = _open_port(settings, metrics, listeners.api, people)
    if listeners.admission is not None:
        apiserver = _application("Corral for kube-apiserver", routes.webhook)
        admission = _admission_port(settings, metrics, *listeners.admission, apiserver)
    scheduler = _application("Corral for kube-scheduler", routes.verbs, routes.health)
    extender = _open_port(settings, metrics, listeners.extender, scheduler)
    return Ports(extender, api, admission)


def _open_port(
    settings: Settings, metrics: Metrics, listener: socket.socket, app: FastAPI
) -> OpenPort:
    most_body_bytes = max(settings.filter_body_bytes, settings.preempt_body_bytes)
    server = server_of(
        app,
        _bounds(settings, metrics, most_body_bytes),
        keep_alive_seconds=settings.keep_alive_seconds,
        finish_seconds=settings.bind_seconds + CLOSE_SECONDS,
    )
    return OpenPort(url_of(listener), listener, server)


def _admission_port(
    settings: Settings,
    metrics: Metrics,
    listener: socket.socket,
    certificate: Certificate,
    app: FastAPI,
) -> OpenPort:
    server = server_of(
        app,
        _bounds(settings, metrics, settings.admission_body_bytes),
        keep_alive_seconds=settings.keep_alive_seconds,
        finish_seconds=CLOSE_SECONDS,
        tls=certificate.context,
    )
    return OpenPort(url_of(listener, "https"), listener, server)


def _bounds(settings: Settings, metrics: Metrics, most_body_bytes: int) -> Bounds:
    return Bounds(
        receive_seconds=settings.receive_seconds,
        most_body_bytes=most_body_bytes,
        max_connections=settings.max_connections,
        on_breach=lambda reason: metrics.broken_requests[reason].inc(),
    )


def _application(title: str, *routers: APIRouter) -> FastAPI:
    # A redirect to another slash would turn Go's POST into a GET.
    app = FastAPI(
        title=title, redirect_slashes=False, openapi_url=None, docs_url=None, redoc_url=None
    )
    for router in routers:
        app.include_router(router)
    return app
