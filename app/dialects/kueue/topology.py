"""Kueue's Topology objects: the levels of a cluster as its administrator names them.

Kueue has served them in v1beta2 since 0.15, in 0.14 in v1beta1, before that in v1alpha1, all alike.
Source: kueue apis/kueue/{v1beta2,v1beta1}/topology_types.go (v0.16), v1alpha1/tas_types.go (v0.9).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from app.dialects.declared import TopologySpec
from app.kube.core.objects import ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded, part
from app.kube.watch.resource import Resource

KIND = "Topology"
VERSIONS = ("v1beta2", "v1beta1", "v1alpha1")


class TopologyRecord(ObjectRecord, frozen=True, gc=False):
    """One Topology: level keys, widest first, as written (not validated)."""

    levels: tuple[str, ...] = ()


class _Level(wire.Wire):
    node_label: wire.Text = None


class _Spec(wire.Wire):
    levels: msgspec.Raw = msgspec.Raw(b"null")


class _Topology(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None


_TOPOLOGY = msgspec.json.Decoder(_Topology)
_LEVELS: msgspec.json.Decoder[list[_Level | None] | None] = msgspec.json.Decoder(
    list[_Level | None] | None
)


def decode_topology(raw: Json) -> TopologyRecord:
    """Return the record of a kueue.x-k8s.io Topology.

    Raises: DecodeError naming the topology and the field.
    """
    topology = decoded(_TOPOLOGY, raw, KIND)
    metadata = topology.metadata or wire.Metadata()
    spec = topology.spec or _Spec()
    levels = part(_LEVELS, spec.levels, "spec.levels", KIND, topology.metadata)
    return TopologyRecord(
        kind=KIND,
        namespace="",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        levels=tuple((level and level.node_label) or "" for level in levels or ()),
    )


def specs_of(record: ObjectRecord) -> Iterator[TopologySpec]:
    """The topology that an object declares, if it is one and has a name."""
    if isinstance(record, TopologyRecord) and record.name:
        yield TopologySpec(record.name, record.levels)


def _resource() -> Resource:
    newest, *older = (
        Resource(
            KIND,
            f"/apis/kueue.x-k8s.io/{version}/topologies",
            TopologyRecord,
            decode_topology,
            is_optional=True,
        )
        for version in VERSIONS
    )
    return replace(newest, older=tuple(older))


RESOURCE = _resource()
"""All Topologies, in the newest version that is served."""
