"""Grove's topologies: levels by the keys of node labels, each with the name of its domains.

    ClusterTopology           until v0.1.0-alpha.8
    ClusterTopologyBinding    the same since then

Kueue and KAI have topologies of their own: here one is called `grove.io/NAME`, which no object can
be named.
Source: grove operator/api/core/v1alpha1/clustertopology.go (v0.1.0-alpha.8) and
clustertopologybinding.go; GREP-244 "Cluster Admin API".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

import msgspec

from app.dialects.declared import TopologySpec
from app.kube.core.objects import ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded, part
from app.kube.watch.resource import Resource
from topology.model.levels import NODE_LEVEL

GROUP = "grove.io"
PLURALS = {
    "ClusterTopology": "clustertopologies",
    "ClusterTopologyBinding": "clustertopologybindings",
}
MOST_LEVELS = 16
MOST_BYTES = 32 * 1024  # of all levels


class ClusterTopologyRecord(ObjectRecord, frozen=True, gc=False):
    """One topology, as written (not validated)."""

    levels: tuple[str, ...] = ()
    """Keys of labels, widest first; none of what is inside a node."""
    domains: tuple[tuple[str, str], ...] = ()
    """(name of its domains, key) of each level, also of those inside a node."""


class _Level(wire.Wire):
    domain: wire.Text = None
    key: wire.Text = None


class _Spec(wire.Wire):
    levels: msgspec.Raw = msgspec.Raw(b"null")


class _Topology(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None


_TOPOLOGY = msgspec.json.Decoder(_Topology)
_LEVELS: msgspec.json.Decoder[list[_Level | None] | None] = msgspec.json.Decoder(
    list[_Level | None] | None
)


def topology_name(name: str) -> str:
    """What the topology of an object of this name is called."""
    return f"{GROUP}/{name}"


def decode_topology(raw: Json, *, kind: str) -> ClusterTopologyRecord:
    """Return the record of a topology; without levels, if they are too long.

    Raises: DecodeError naming the object and the field.
    """
    topology = decoded(_TOPOLOGY, raw, kind)
    metadata = topology.metadata or wire.Metadata()
    domains = _domains(topology, kind)
    keys = tuple(key for _, key in domains)
    if NODE_LEVEL in keys:  # a level like numa is of no use in choosing a node
        keys = keys[: keys.index(NODE_LEVEL) + 1]
    return ClusterTopologyRecord(
        kind=kind,
        namespace="",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        levels=keys[: MOST_LEVELS + 1],  # one too many is as much a mistake as a thousand
        domains=domains[: MOST_LEVELS + 1],
    )


def specs_of(record: ObjectRecord) -> Iterator[TopologySpec]:
    """The topology that an object declares, if it is one."""
    if isinstance(record, ClusterTopologyRecord):
        names = Counter(name for name, _ in record.domains)
        keys = Counter(key for _, key in record.domains)
        yield TopologySpec(
            topology_name(record.name),
            record.levels,
            # A name that is the key of a level means that level. One that is there twice means
            # none, nor does any of a key that is.
            aliases=tuple(
                (name, key)
                for name, key in record.domains
                if name and key and name not in record.levels
                if names[name] == keys[key] == 1
            ),
            replaces_settings=False,
        )


def _domains(topology: _Topology, kind: str) -> tuple[tuple[str, str], ...]:
    if topology.spec is None or len(bytes(topology.spec.levels)) > MOST_BYTES:
        return ()
    levels = part(_LEVELS, topology.spec.levels, "spec.levels", kind, topology.metadata)
    each = (level or _Level() for level in levels or ())
    return tuple((level.domain or "", level.key or "") for level in each)


RESOURCES = tuple(
    Resource(
        kind,
        f"/apis/{GROUP}/v1alpha1/{plural}",
        ClusterTopologyRecord,
        partial(decode_topology, kind=kind),
        is_optional=True,
    )
    for kind, plural in PLURALS.items()
)
