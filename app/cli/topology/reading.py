"""Nodes and HyperNodes, from the API server or from what kubectl has written.

    kubectl get nodes,hypernodes -o json ──▶ file or stdin ─┐
                                API server ──▶ pages ───────┴──▶ Cluster: labels, objects

Of each object only its kind and metadata are read here, so 6,000 nodes take half a second.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from app.cli.common.api_server import connected, listed
from app.dialects.volcano import hyper_nodes
from app.errors import DecodeError, NotFound
from app.kube.client.transport import Transport
from app.kube.decoding import wire
from app.labels import is_subdomain

STDIN = "-"
LONGEST_NAME = 253

# The status of each item as kubectl writes a list: nine tenths of it, and never looked at.
_STATUS = re.compile(rb"^  status:[ \t]*\n(?:(?:   .*|[ \t]*)\n)+", re.MULTILINE)


class _Object(wire.Wire):
    kind: wire.Text = None
    metadata: wire.Metadata | None = None
    items: list[msgspec.Raw] | None = None


_OBJECT = msgspec.json.Decoder(_Object)


@dataclass(slots=True)
class Cluster:
    """What was read. Written by `add` alone."""

    nodes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Name -> labels."""
    hyper_nodes: dict[str, bytes] = field(default_factory=dict)
    """Name -> the object, as JSON."""
    hyper_node_labels: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def add(self, raw: bytes | msgspec.Raw, where: str, kind: str = "") -> None:
        """Add an object, or all of a list; those of other kinds are left out.

        `kind`: what it is if it does not say so, as in an answer of the API server.
        Raises: DecodeError naming the object and the field.
        """
        try:
            found = _OBJECT.decode(raw)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"{where}: {error}") from error
        kind = found.kind or kind
        if found.items is not None:
            for at, each in enumerate(found.items):
                self.add(each, f"{where}: items[{at}]", kind.removesuffix("List"))
        elif kind in ("Node", hyper_nodes.KIND):
            self._add(kind, found.metadata or wire.Metadata(), bytes(raw), where)

    def _add(self, kind: str, metadata: wire.Metadata, raw: bytes, where: str) -> None:
        name = metadata.name or ""
        if not (is_subdomain(name) and len(name) <= LONGEST_NAME):
            raise DecodeError(f"{where}: {kind}: metadata.name: {name[:300]!r} is no name")
        if name in (self.nodes if kind == "Node" else self.hyper_nodes):
            raise DecodeError(f"{where}: {kind} {name} is there twice")
        labels = {key: value or "" for key, value in (metadata.labels or {}).items()}
        if kind == "Node":
            self.nodes[name] = labels
        else:
            self.hyper_nodes[name] = raw
            self.hyper_node_labels[name] = labels


def read_cluster(
    nodes: str | None,
    kubeconfig: str | None,
    context: str | None = None,
    *,
    asks_hyper_nodes: bool = False,
) -> Cluster:
    """Read nodes from a file, `-` for stdin, with what else is in it; or from the API server.

    `asks_hyper_nodes`: the API server is asked for HyperNodes too, which takes a right of its own.
    Raises: DecodeError, ApiError, SettingsError; OSError for a file.
    """
    cluster = Cluster()
    if nodes is None:
        asyncio.run(_ask(cluster, kubeconfig, context, asks_hyper_nodes))
    else:
        read_objects(cluster, nodes)
        if not cluster.nodes:
            raise DecodeError(f"{shown(nodes)}: there is no Node in it")
    return cluster


def read_with_hyper_nodes(
    nodes: str | None,
    hyper_nodes_file: str | None,
    kubeconfig: str | None,
    context: str | None = None,
) -> Cluster:
    """Read nodes, and HyperNodes from a file of their own, or from where the nodes are.

    Raises: as `read_cluster`.
    """
    if hyper_nodes_file is None:
        return read_cluster(nodes, kubeconfig, context, asks_hyper_nodes=True)
    cluster, own = read_cluster(nodes, kubeconfig, context), Cluster()
    read_objects(own, hyper_nodes_file)
    return Cluster(cluster.nodes, own.hyper_nodes, own.hyper_node_labels)


def shown(file: str) -> str:
    """A file as messages name it."""
    return "stdin" if file == STDIN else file


def read_bytes(file: str) -> bytes:
    """All of a file, or of stdin. Raises: OSError."""
    return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()


def read_objects(cluster: Cluster, file: str) -> None:
    """Add the objects of a file of JSON or YAML.

    Raises: DecodeError naming the file; OSError.
    """
    content = read_bytes(file)
    if content.lstrip()[:1] == b"{":
        cluster.add(content, shown(file))
        return
    if b"\nitems:\n- " in b"\n" + content:
        content = _STATUS.sub(b"", content)
    for document in documents(content, shown(file)):
        if document is not None and not isinstance(document, dict):
            raise DecodeError(f"{shown(file)}: {str(document)[:100]!r} is no object")
        for raw in _as_json(document or {}, shown(file)):
            cluster.add(raw, shown(file))


def documents(content: bytes, where: str) -> Iterator[Any]:
    """The documents of YAML. Raises: DecodeError."""
    try:
        yield from yaml.load_all(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DecodeError(f"{where}: {' '.join(str(error).split())}") from error


def _as_json(document: dict[str, Any], where: str) -> Iterator[bytes]:
    try:
        yield msgspec.json.encode(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise DecodeError(f"{where}: {error}") from error


async def _ask(
    cluster: Cluster, kubeconfig: str | None, context: str | None, asks_hyper_nodes: bool
) -> None:
    transport = await connected(kubeconfig, context, or_else=", --nodes a file")
    try:
        await _list(cluster, transport, "/api/v1/nodes", "Node")
        if asks_hyper_nodes:
            with suppress(NotFound):  # the cluster has no such kind
                await _list(cluster, transport, hyper_nodes.PATH, hyper_nodes.KIND)
    finally:
        await transport.close()


async def _list(cluster: Cluster, transport: Transport, path: str, kind: str) -> None:
    async for each in listed(transport, path):
        cluster.add(each, f"GET {path}", kind)
