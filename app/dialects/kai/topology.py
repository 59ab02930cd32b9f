"""KAI's Topologies: levels by the keys of node labels, which may have a second name.

Kueue has a kind of the same name: here a topology is called `kai.scheduler/NAME`, which no object
can be named.
Source: KAI-Scheduler pkg/apis/kai/v1alpha1/topology_types.go (v0.13); aliases as of v0.17.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from app.dialects.declared import TopologySpec
from app.dialects.dialect import CheckedObject, Known, ObjectRules, none_known
from app.dialects.flaw import Flaw
from app.dialects.rules import duplicate, invalid, of_spec, required, too_long, too_many
from app.kube.core.objects import ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded, part
from app.kube.watch.resource import Resource
from app.labels import is_label_key
from topology.model.levels import NODE_LEVEL

GROUP = "kai.scheduler"
KIND = f"Topology.{GROUP}"  # Kueue has a kind of that name
PATH = f"/apis/{GROUP}/v1alpha1/topologies"
MOST_LEVELS = 16
LONGEST_KEY = 316  # of a label: 253 before the slash, 62 after it
MOST_BYTES = 32 * 1024  # of all levels


class TopologyRecord(ObjectRecord, frozen=True, gc=False):
    """One Topology, as written (not validated)."""

    levels: tuple[str, ...] = ()
    """Keys of labels, widest first."""
    aliases: tuple[tuple[str, str], ...] = ()
    """(alias, level)."""


class _Level(wire.Wire):
    node_label: wire.Text = None
    alias: wire.Text = None


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
    """What the topology of a Topology of this name is called."""
    return f"{GROUP}/{name}"


def decode_topology(raw: Json) -> TopologyRecord:
    """Return the record of a kai.scheduler Topology; without levels, if they are too long.

    Raises: DecodeError naming the Topology and the field.
    """
    topology = decoded(_TOPOLOGY, raw, "Topology")
    metadata, levels = topology.metadata or wire.Metadata(), _levels(topology)
    keys = tuple(level.node_label or "" for level in levels)
    return TopologyRecord(
        kind=KIND,
        namespace="",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        levels=keys[: MOST_LEVELS + 1],  # one too many is as much a mistake as a thousand
        # The key of a label is never another level's alias.
        aliases=tuple(
            (level.alias, level.node_label or "")
            for level in levels[:MOST_LEVELS]
            if level.alias and level.alias not in keys and len(level.alias) <= LONGEST_KEY
        ),
    )


def specs_of(record: ObjectRecord) -> Iterator[TopologySpec]:
    """The topology that an object declares, if it is one."""
    if isinstance(record, TopologyRecord):
        yield TopologySpec(
            topology_name(record.name),
            record.levels,
            aliases=record.aliases,
            replaces_settings=False,
        )


def check_topology(
    raw: Json, before: Json | None = None, _known: Known = none_known
) -> CheckedObject:
    """What is wrong with a Topology; it belongs to no scheduler.

    Raises: DecodeError naming the Topology and the field.
    """
    topology = decoded(_TOPOLOGY, raw, "Topology")
    if _is_too_long(topology):
        return CheckedObject(of_spec([too_long("levels", MOST_BYTES)]))
    was = None if before is None else _levels(decoded(_TOPOLOGY, before, "Topology"))
    return CheckedObject(of_spec(_flaws(_levels(topology), was)))


def _is_too_long(topology: _Topology) -> bool:
    return topology.spec is not None and len(bytes(topology.spec.levels)) > MOST_BYTES


def _levels(topology: _Topology) -> list[_Level]:
    if topology.spec is None or _is_too_long(topology):
        return []
    levels = part(_LEVELS, topology.spec.levels, "spec.levels", "Topology", topology.metadata)
    return [level or _Level() for level in levels or ()]


def _flaws(levels: list[_Level], before: list[_Level] | None) -> Iterator[Flaw]:
    if not levels:
        yield required("levels", "must have at least one level")
    if len(levels) > MOST_LEVELS:
        yield too_many("levels", len(levels), MOST_LEVELS)
        return
    keys = [level.node_label or "" for level in levels]
    if before is not None and keys != [level.node_label or "" for level in before]:
        yield invalid("levels", ",".join(keys), "the node labels of levels are immutable")
    names: set[str] = set()
    for at, key in enumerate(keys):
        where = f"levels[{at}].nodeLabel"
        if not is_label_key(key):
            yield invalid(where, key, "must be the key of a label")
        elif key in names:
            yield duplicate(where, key)
        elif key == NODE_LEVEL and at < len(keys) - 1:
            yield invalid(where, key, "only the last level may be the node")
        names.add(key)
    for at, level in enumerate(levels):
        if level.alias is not None:
            yield from _alias_flaws(level.alias, f"levels[{at}].alias", names)
            names.add(level.alias)


def _alias_flaws(alias: str, where: str, names: set[str]) -> Iterator[Flaw]:
    """`names`: the node labels, and the aliases before this one."""
    if not alias:
        yield required(where, "an alias that is given must not be empty")
    elif len(alias) > LONGEST_KEY:
        yield too_long(where, LONGEST_KEY)
    elif alias in names:
        yield duplicate(where, alias)


RESOURCE = Resource(KIND, PATH, TopologyRecord, decode_topology, is_optional=True)
RULES = ObjectRules(GROUP, "Topology", check_topology)
