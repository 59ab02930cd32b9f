"""A cluster as its API server lists it, page by page; Corral need not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from app.cli.common.api_server import is_served, listed
from app.cli.record.driver_sets import thinned
from app.cli.record.fields import kept_node, kept_pod
from app.cli.record.objects import kept_object
from app.cli.record.recording import EVERYTHING, Recording
from app.dialects.registry import DIALECTS, Dialects
from app.errors import ApiError, DecodeError, Forbidden, NotFound
from app.kube.client.transport import Transport
from app.kube.core.objects import ObjectRecord
from app.kube.decoding.label_keys import LabelKeys
from app.kube.watch.resource import Resource

OBJECTS_PER_NOTE = 5_000
Say = Callable[[str], None]


async def record(transport: Transport, name: str, say: Say) -> Recording:
    """Record a cluster. Nodes and pods have to be readable; other kinds are left out if not.

    `say` gets a sentence for each thousands of objects. Raises: ApiError, DecodeError.
    """
    dialects = DIALECTS.configured(EVERYTHING)
    nodes, pods, *others = dialects.resources()
    recording = Recording(name)
    labels = LabelKeys(dialects.keeps)
    async for node in _objects(transport, nodes, say):
        recording.add_node(kept_node(_json(node, "Node")))
    for resource in others:
        await _record_kind(transport, resource, recording, labels, dialects, say)
    async for raw in _objects(transport, pods, say):
        pod = kept_pod(_json(raw, "Pod"), dialects.keeps, lambda key: _keeps(key, dialects, labels))
        if pod is not None:
            recording.add_pod(thinned(pod))
    return recording


def _keeps(key: str, dialects: Dialects, labels: LabelKeys) -> bool:
    return dialects.keeps(key) or labels.keeps(key)


async def _record_kind(
    transport: Transport,
    resource: Resource,
    recording: Recording,
    labels: LabelKeys,
    dialects: Dialects,
    say: Say,
) -> None:
    """The objects of one kind, in the newest version that the API server has."""
    for served in (resource, *resource.older):
        try:
            async for raw in _objects(transport, served, say):
                _add(served, raw, recording, labels, dialects, say)
        except NotFound:
            continue  # the cluster has no such kind, or serves it in another version
        except ApiError as wrong:
            if isinstance(wrong, Forbidden) and not await is_served(transport, served.path):
                continue  # who may not list a kind is refused also where there is none
            # What the API server says of it names who asked.
            code = f"{wrong.status} " if wrong.status else ""
            recording.notes.append(f"{resource.kind}: {code}{wrong.reason}")
            say(f"{resource.kind} objects are left out: {wrong}")
        return


def _add(
    resource: Resource,
    raw: msgspec.Raw,
    recording: Recording,
    labels: LabelKeys,
    dialects: Dialects,
    say: Say,
) -> None:
    try:
        made = kept_object(resource, raw)
        read = resource.decode(msgspec.json.encode(made))
    except DecodeError as wrong:
        say(f"left out: {wrong}")
        return
    recording.add_object(made)
    if isinstance(read, ObjectRecord):
        for key in dialects.keys_named(read):
            if labels.edition_of(key) is None:
                labels.add(key)


async def _objects(transport: Transport, resource: Resource, say: Say) -> Any:
    """The objects of a list, with a sentence now and then."""
    found = 0
    async for raw in listed(transport, resource.path):
        found += 1
        if found % OBJECTS_PER_NOTE == 0:
            say(f"{found} {resource.kind} objects are read")
        yield raw
    if found:
        say(f"{found} {resource.kind} objects in all")


def _json(raw: msgspec.Raw, kind: str) -> dict[str, Any]:
    try:
        made = msgspec.json.decode(raw)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{kind}: {error}") from error
    if not isinstance(made, dict):
        raise DecodeError(f"{kind}: an object is required")
    return made
