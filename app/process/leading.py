"""Which Corral acts, of several: by a Lease of our neighbour's, or by one of our own."""

from __future__ import annotations

from collections.abc import Callable

from app.errors import SettingsError
from app.kube.client.transport import Transport
from app.kube.client.writes import Client
from app.kube.decoding.decode import Keep
from app.kube.leading.endpoint import OnlyEndpoint
from app.kube.leading.lease import NeighbourLease
from app.kube.leading.own_lease import OwnLease
from app.settings import Settings


def lease_of(
    settings: Settings, transport: Transport, may_take: Callable[[], bool]
) -> NeighbourLease | None:
    """The Lease that our neighbour, or we, have to hold for us to act, if one is set."""
    if settings.own_lease:
        return _own_lease(settings, transport, may_take)
    if not settings.neighbour_lease:
        return None
    namespace, _, name = settings.neighbour_lease.partition("/")
    return NeighbourLease(transport, namespace=namespace, name=name, pod_name=settings.pod_name)


def _own_lease(settings: Settings, transport: Transport, may_take: Callable[[], bool]) -> OwnLease:
    """The Lease that we take, and what we write while we hold it. `may_take`: whether we may.

    Raises: SettingsError.
    """
    namespace, _, name = settings.own_lease.partition("/")

    async def on_held(is_new: bool) -> None:
        if endpoint is not None:
            await endpoint.show(is_new)

    endpoint = None
    if settings.leader_service:
        if not settings.pod_ip:
            raise SettingsError(
                f"leader_service: {settings.leader_service}: needs pod_ip beside it"
            )
        endpoint = OnlyEndpoint(
            transport,
            namespace=namespace,
            service=settings.leader_service,
            address=settings.pod_ip,
            port=settings.extender_listen.port,
        )
    return OwnLease(
        transport,
        namespace=namespace,
        name=name,
        pod_name=settings.pod_name,
        may_take=may_take,
        on_held=on_held,
    )


def client_of(
    transport: Transport, keep: Keep, keep_label: Keep, lease: NeighbourLease | None
) -> Client:
    """What writes to the API server, for as long as our neighbour, or we, surely lead."""
    if lease is None:
        return Client(transport, keep=keep, keep_label=keep_label)
    return Client(transport, keep=keep, keep_label=keep_label, may_write=lease.confirm)


def who_leads(lease: NeighbourLease | None) -> Callable[[], str]:
    """Who leads, in words; "" for ourselves."""
    return lambda: "" if lease is None or lease.names_us else lease.whose


def is_leading(lease: NeighbourLease | None) -> Callable[[], bool]:
    """Whether effects are taken: by what was read last, for each write looks again before it goes.

    Of what is not taken only the last reports are said again, so nothing may be dropped for a
    moment's doubt.
    """
    return lambda: lease is None or lease.names_us
