"""The ports of one Corral: taken first, so that a wrong address ends the start; served last.

extender_listen    kube-scheduler's verbs, probes, metrics and /v1; beyond loopback over TLS, and
                   only for clients with a certificate of extender_client_ca
api_listen         the same but for the verbs, for people, kubelets and Prometheus: they have no
                   certificate; over TLS where api_cert and api_key name one
admission_listen   the webhook, over TLS; nothing else, since every pod may reach it
"""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass

from fastapi import APIRouter, FastAPI

from app.errors import SettingsError
from app.extender.guard import Bounds
from app.extender.server import Server, listen, server_of, url_of
from app.metrics import Metrics
from app.process.serving.tls import Certificate, Hooks, certificate_of
from app.setting_values import Address
from app.settings import Settings

CLOSE_SECONDS = 5.0  # for connections to close once every request is answered
EXTENDER_TLS = ("extender_cert", "extender_key", "extender_client_ca")


@dataclass(frozen=True, slots=True)
class Listeners:
    """Sockets that listen already; connections wait in the kernel until they are served."""

    extender: tuple[socket.socket, Certificate | None]
    api: tuple[socket.socket, Certificate | None] | None
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

    def taken(setting: str, address: Address, needed_beyond_loopback: str = "") -> socket.socket:
        listener = listen(setting, address, needed_beyond_loopback=needed_beyond_loopback)
        closing.callback(listener.close)
        return listener

    own = _extender_certificate(settings, metrics)
    needed = "" if own else ", ".join(EXTENDER_TLS)
    extender = taken("extender_listen", settings.extender_listen, needed), own
    api = admission = None
    people = _api_certificate(settings, metrics)
    if settings.api_listen is not None:
        api = taken("api_listen", settings.api_listen), people
    if settings.admission_listen is not None:
        # Without a pair pods are created without us: no reason to end. A Secret that is mounted
        # later is seen at the next handshake.
        certificate = certificate_of(
            "admission",
            settings.admission_cert,
            settings.admission_key,
            settings.admission_client_ca,
            hooks_of("admission", metrics),
        )
        admission = taken("admission_listen", settings.admission_listen), certificate
    return Listeners(extender, api, admission)


def hooks_of(port: str, metrics: Metrics) -> Hooks:
    """Has everything about the certificate of a port counted."""
    return Hooks(
        lambda outcome: metrics.certificates[port, outcome].inc(),
        metrics.broken_requests["handshake"].inc,
        lambda setting, at: metrics.certificate_ends.labels(setting).set(at),
    )


def _extender_certificate(settings: Settings, metrics: Metrics) -> Certificate | None:
    """What the extender's port is served with; None where the settings name nothing for it.

    Raises: SettingsError where only some of it is there, or cannot be read: kube-scheduler would
        get no answer, or, without an authority, everybody.
    """
    missing = [name for name in EXTENDER_TLS if getattr(settings, name) is None]
    if len(missing) == len(EXTENDER_TLS):
        return None
    if missing:
        given = next(name for name in EXTENDER_TLS if name not in missing)
        raise SettingsError(
            f"{given}: {getattr(settings, given)}: needs {', '.join(missing)} beside it"
        )
    certificate = certificate_of(
        "extender",
        settings.extender_cert,
        settings.extender_key,
        settings.extender_client_ca,
        hooks_of("extender", metrics),
    )
    if not certificate.is_loaded:
        raise SettingsError(certificate.problem)
    return certificate


def _api_certificate(settings: Settings, metrics: Metrics) -> Certificate | None:
    """What people's port is served with; None where the settings name nothing for it.

    One that cannot be read is no reason to end, as gangs start without that port; no handshake
    succeeds until it can.
    Raises: SettingsError where only some of it is named.
    """
    named = {name: getattr(settings, name) for name in ("api_cert", "api_key")}
    given = [name for name, file in named.items() if file is not None]
    if not given:
        return None
    missing = [name for name in named if name not in given]
    if settings.api_listen is None:
        missing.append("api_listen")
    if missing:
        first = given[0]
        raise SettingsError(f"{first}: {named[first]}: needs {', '.join(missing)} beside it")
    return certificate_of(
        "api", settings.api_cert, settings.api_key, None, hooks_of("api", metrics)
    )


@dataclass(frozen=True, slots=True)
class Routes:
    """What is answered: `verbs` to kube-scheduler, `webhook` alone, the others to all but it."""

    verbs: APIRouter
    health: APIRouter
    people: APIRouter
    webhook: APIRouter


def ports_of(settings: Settings, metrics: Metrics, listeners: Listeners, routes: Routes) -> Ports:
    """A server for each listener."""
    api = admission = None
    if listeners.api is not None:
        api = _open_port(
            settings,
            metrics,
            *listeners.api,
            _application("Corral", routes.health, routes.people),
            settings.api_connections,
        )
    if listeners.admission is not None:
        apiserver = _application("Corral for kube-apiserver", routes.webhook)
        admission = _admission_port(settings, metrics, *listeners.admission, apiserver)
    scheduler = _application(
        "Corral for kube-scheduler", routes.verbs, routes.health, routes.people
    )
    extender = _open_port(
        settings, metrics, *listeners.extender, scheduler, settings.max_connections
    )
    return Ports(extender, api, admission)


def _open_port(
    settings: Settings,
    metrics: Metrics,
    listener: socket.socket,
    certificate: Certificate | None,
    app: FastAPI,
    max_connections: int,
) -> OpenPort:
    most_body_bytes = max(settings.filter_body_bytes, settings.preempt_body_bytes)
    server = server_of(
        app,
        _bounds(
            settings,
            metrics,
            most_body_bytes,
            max_connections,
            settings.under_way_bytes,
        ),
        keep_alive_seconds=settings.keep_alive_seconds,
        finish_seconds=settings.bind_seconds + CLOSE_SECONDS,
        tls=certificate.context if certificate else None,
    )
    return OpenPort(url_of(listener, "https" if certificate else "http"), listener, server)


def _admission_port(
    settings: Settings,
    metrics: Metrics,
    listener: socket.socket,
    certificate: Certificate,
    app: FastAPI,
) -> OpenPort:
    server = server_of(
        app,
        _bounds(
            settings,
            metrics,
            settings.admission_body_bytes,
            settings.admission_connections,
            settings.admission_under_way_bytes,
        ),
        keep_alive_seconds=settings.keep_alive_seconds,
        finish_seconds=CLOSE_SECONDS,
        tls=certificate.context,
    )
    return OpenPort(url_of(listener, "https"), listener, server)


def _bounds(
    settings: Settings,
    metrics: Metrics,
    most_body_bytes: int,
    max_connections: int,
    most_bytes_under_way: int,
) -> Bounds:
    return Bounds(
        receive_seconds=settings.receive_seconds,
        most_body_bytes=most_body_bytes,
        max_connections=max_connections,
        # One connection alone may have half of it: what exceeds the body's own limit is told so.
        most_bytes_under_way=max(most_bytes_under_way, 4 * most_body_bytes),
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
