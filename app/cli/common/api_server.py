"""How a command reaches the API server by itself, and reads lists from it: page by page.

kubeconfig | service account ──connected──▶ Transport ──listed──▶ JSON of each object
                                                      ──records─▶ the record of each object
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec

from app.cli.common.options import HOME_KUBECONFIG
from app.errors import DecodeError, Forbidden, NotFound, SettingsError
from app.kube.client.transport import Transport
from app.kube.core.objects import Record
from app.kube.decoding import wire
from app.kube.watch.pages import Pages
from app.kube.watch.resource import Resource
from app.settings import Settings

PAGE_OBJECTS = 250  # a node has 10 to 30 KB, most of it images


class _Discovered(wire.Wire):
    name: wire.Text = None


class _Discovery(wire.Wire):
    resources: list[_Discovered | None] | None = None


_DISCOVERED = msgspec.json.Decoder(_Discovery)


def _kubeconfig_at_home() -> str | None:
    path = Path(HOME_KUBECONFIG).expanduser()
    return str(path) if path.is_file() else None


async def connected(
    kubeconfig: str | None, context: str | None = None, *, or_else: str = ""
) -> Transport:
    """By a kubeconfig, that of the user, or with this pod's service account.

    Raises: SettingsError; `or_else` ends it where there is none of these.
    """
    kubeconfig = kubeconfig or _kubeconfig_at_home()
    if kubeconfig is not None:
        return await Transport.from_kubeconfig(kubeconfig, context=context)
    try:
        return await Transport.in_cluster(Settings.model_fields["service_account"].default)
    except SettingsError as error:
        why = f"no {HOME_KUBECONFIG}, and {error}"
        raise SettingsError(f"{why}; --kubeconfig names a cluster{or_else}") from error


async def listed(
    transport: Transport, path: str, params: Mapping[str, str] | None = None
) -> AsyncIterator[msgspec.Raw]:
    """The objects of a list, asked for page by page. Raises: as `Pages.of`."""
    async for page in Pages(transport, most_objects=PAGE_OBJECTS).of(path, params):
        for each in page.items or ():
            yield each


async def records(
    transport: Transport, resource: Resource, namespace: str = ""
) -> AsyncIterator[Record | DecodeError]:
    """The objects of a kind as what is kept of them, or why one cannot be read.

    A kind that the API server does not serve has none, in whichever version. `namespace`: only
    those in it, and all of a kind that has no namespaces.
    Raises: ApiError, DecodeError for a list as a whole.
    """
    for served in (resource, *resource.older):
        for path in _paths(served.path, namespace):
            try:
                async for raw in listed(transport, path):
                    try:
                        yield served.decode(bytes(raw))
                    except DecodeError as wrong:
                        yield wrong
                return
            except NotFound:
                continue
            except Forbidden:
                # A user who may not list a kind is refused also where there is no such kind.
                if await is_served(transport, served.path):
                    raise


async def is_served(transport: Transport, path: str) -> bool:
    """Whether the API server has the kind of a list; that may be asked by anyone.

    Raises: ApiError.
    """
    home, _, plural = path.rpartition("/")
    try:
        found = _DISCOVERED.decode(await transport.request("GET", home))
    except NotFound:
        return False
    except (Forbidden, ValueError):
        return True  # as far as can be told
    return any(each is not None and each.name == plural for each in found.resources or ())


def _paths(path: str, namespace: str) -> tuple[str, ...]:
    """Where the objects are that concern a namespace; a kind without namespaces is not there."""
    if not namespace:
        return (path,)
    home, _, plural = path.rpartition("/")
    return f"{home}/namespaces/{namespace}/{plural}", path
