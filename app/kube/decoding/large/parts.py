"""What is read of a large object: every part of it but those that hold more than any real one.

    bytes ──one scan──▶ parts as bytes ──counted──▶ within its bound: decoded as ever
                                               └──▶ beyond it: left out, and a problem says so

An object may have 1.5 MiB. Skipping that takes a millisecond or two, building 100,000 labels or
750,000 empty terms takes up to half a second. So a part is counted before it is built: an opening
quote is never preceded by a backslash, hence the quotes that aren't are at least as many as the
strings, and at most twice as many. Objects are counted by their braces.

Containers are not bounded here: what they request has to be exact (`requests.py`). kube-scheduler
counts it, and a gang that is narrowed to nodes with less room than the books say would wait there.
They are read in slices (`containers.py`), and others have a turn between any two steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from app.kube.core.turns import turn
from app.kube.decoding import wire
from app.kube.decoding.large.containers import Containers, decoded

LARGE = 16_384  # bytes; below that even the worst object takes less than 5 ms
MOST_TEXTS = 4_096  # keys and values together, of labels, annotations or a node selector
MOST_VALUES = 4_096  # objects and strings together, of tolerations, gates or owner references
MOST_AFFINITY = 2_048  # the same, beside terms that name a node: a list of 2,000 hosts …
MOST_NAMED = 1_024  # … and of those; we narrow a pod to so many nodes at most
# Required affinity that is not read matches no node.
NO_NODE = msgspec.Raw(b'{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}}')

_FIELDS, _NAMED_VALUES = b'"matchFields"', 9  # of a term that names one node, as we write it
COUNTED_BYTES = 2**20  # in one step, of one to two milliseconds

_T = TypeVar("_T")
_NULL = msgspec.Raw(b"null")


class _Metadata(wire.Wire):
    name: wire.Text = None
    namespace: wire.Text = None
    uid: wire.Text = None
    resource_version: wire.Text = None
    creation_timestamp: wire.Text = None
    deletion_timestamp: wire.Text = None
    deletion_grace_period_seconds: int | None = None
    labels: msgspec.Raw = _NULL
    annotations: msgspec.Raw = _NULL
    owner_references: msgspec.Raw = _NULL


class _Affinity(wire.Wire):
    node_affinity: msgspec.Raw = _NULL


class _PodSpec(wire.Wire):
    node_name: wire.Text = None
    scheduler_name: wire.Text = None
    priority: wire.Int32 | None = None
    node_selector: msgspec.Raw = _NULL
    affinity: _Affinity | None = None
    tolerations: msgspec.Raw = _NULL
    scheduling_gates: msgspec.Raw = _NULL
    containers: list[msgspec.Raw] | None = None
    init_containers: list[msgspec.Raw] | None = None
    overhead: msgspec.Raw = _NULL
    resources: msgspec.Raw = _NULL
    resource_claims: msgspec.Raw = _NULL
    preemption_policy: wire.Text = None
    scheduling_group: wire.SchedulingGroup | None = None
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None


class _Pod(wire.Wire):
    metadata: _Metadata | None = None
    spec: _PodSpec | None = None
    status: wire.PodStatus | None = None


class _NodeSpec(wire.Wire):
    unschedulable: bool | None = None
    taints: msgspec.Raw = _NULL


class _NodeStatus(wire.Wire):
    capacity: msgspec.Raw = _NULL
    allocatable: msgspec.Raw = _NULL
    conditions: msgspec.Raw = _NULL


class _Node(wire.Wire):
    metadata: _Metadata | None = None
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


_POD = msgspec.json.Decoder(_Pod)
_NODE = msgspec.json.Decoder(_Node)
_LONG_METADATA = ("labels", "annotations", "owner_references")
_STRINGS: msgspec.json.Decoder[wire.Strings] = msgspec.json.Decoder(wire.Strings)
_OWNERS = msgspec.json.Decoder(list[wire.OwnerReference | None] | None)
_TOLERATIONS = msgspec.json.Decoder(list[wire.PodToleration | None] | None)
_GATES = msgspec.json.Decoder(list[wire.SchedulingGate | None] | None)
_TAINTS = msgspec.json.Decoder(list[wire.NodeTaint | None] | None)
_CONDITIONS = msgspec.json.Decoder(list[wire.Condition | None] | None)
_RESOURCES = msgspec.json.Decoder(wire.Resources | None)
_QUANTITIES: msgspec.json.Decoder[wire.Quantities] = msgspec.json.Decoder(wire.Quantities)


def values_in(part: bytes | msgspec.Raw, *, has_objects: bool = True) -> int:
    """Return how many strings a part has, and objects if those count.

    It may say half as many strings, where each ends in a backslash.
    """
    view, quotes, braces = memoryview(part), 0, 0
    for begin in range(0, len(view), COUNTED_BYTES):
        if begin:
            turn()
        # One byte more, for an escape that begins with the last one.
        text = bytes(view[begin : begin + COUNTED_BYTES + 1])
        quotes += text.count(b'"', 0, COUNTED_BYTES) - text.count(b'\\"')
        braces += text.count(b"{", 0, COUNTED_BYTES) if has_objects else 0
    return quotes // 2 + braces


def part(
    decoder: msgspec.json.Decoder[_T], raw: msgspec.Raw, path: str, most: int = MOST_VALUES
) -> _T:
    """Return a part of an object that has no more values than are read.

    Raises: ValueError, RecursionError.
    """
    parts = _Parts()
    if not parts.fits(raw, path, most):
        raise ValueError(parts.unread[0])
    turn()
    return decoded(decoder, raw, path)


@dataclass(slots=True)
class _Parts:
    """Reads the parts of one object; `unread` has a sentence for each that is left out."""

    unread: list[str] = field(default_factory=list)

    def fits(self, part: msgspec.Raw, path: str, most: int, *, has_objects: bool = True) -> bool:
        """Whether a part is within its bound."""
        if len(part) <= most:
            return True
        found = values_in(part, has_objects=has_objects)
        if found > most:
            self.unread.append(f"{path} is not read: it has {found} values, more than {most}")
        return found <= most

    def strings(self, part: msgspec.Raw, path: str) -> wire.Strings:
        """The keys and texts of a part; braces in a text are no objects."""
        is_read = self.fits(part, path, MOST_TEXTS, has_objects=False)
        return decoded(_STRINGS, part, path) if is_read else None

    def values(self, part: msgspec.Raw, path: str, decoder: msgspec.json.Decoder[_T]) -> _T | None:
        """The objects of a part."""
        return decoded(decoder, part, path) if self.fits(part, path, MOST_VALUES) else None

    def metadata(self, found: _Metadata) -> wire.Metadata:
        """The metadata of any object."""
        return wire.Metadata(
            found.name,
            found.namespace,
            found.uid,
            found.resource_version,
            found.creation_timestamp,
            found.deletion_timestamp,
            found.deletion_grace_period_seconds,
            self.strings(found.labels, "metadata.labels"),
            self.strings(found.annotations, "metadata.annotations"),
            self.values(found.owner_references, "metadata.ownerReferences", _OWNERS),
        )

    def affinity(self, found: _Affinity | None) -> msgspec.Raw:
        """The node affinity alone: pods are not what we place pods by."""
        if found is None:
            return _NULL
        part = found.node_affinity
        named = min(bytes(part).count(_FIELDS), MOST_NAMED)
        most = MOST_AFFINITY + named * _NAMED_VALUES
        if not self.fits(part, "spec.affinity.nodeAffinity", most):
            return NO_NODE
        return msgspec.Raw(b'{"nodeAffinity":%b}' % bytes(part))


def pod(raw: bytes | memoryview | msgspec.Raw) -> tuple[wire.Pod, str]:
    """Return a pod, and a sentence if some of it is not read.

    Raises: ValueError, RecursionError.
    """
    found, parts = _POD.decode(raw), _Parts()
    turn()
    spec = found.spec or _PodSpec()
    claims = bytes(memoryview(spec.resource_claims)[:64]).translate(None, b" \t\r\n")
    read = wire.PodSpec(
        spec.node_name,
        spec.scheduler_name,
        spec.priority,
        parts.strings(spec.node_selector, "spec.nodeSelector"),
        parts.affinity(spec.affinity),
        parts.values(spec.tolerations, "spec.tolerations", _TOLERATIONS),
        parts.values(spec.scheduling_gates, "spec.schedulingGates", _GATES),
        Containers(spec.containers or [], "spec.containers"),
        Containers(spec.init_containers or [], "spec.initContainers"),
        parts.values(spec.overhead, "spec.overhead", _QUANTITIES),
        parts.values(spec.resources, "spec.resources", _RESOURCES),
        None if claims in (b"null", b"[]") else [spec.resource_claims],  # only whether there is one
        spec.preemption_policy,
        spec.scheduling_group,
        spec.active_deadline_seconds,
        spec.termination_grace_period_seconds,
    )
    metadata = parts.metadata(found.metadata or _Metadata())
    return wire.Pod(metadata, read, found.status), "; ".join(parts.unread)


def node(raw: bytes | memoryview | msgspec.Raw) -> tuple[wire.Node, str]:
    """Return a node, and a sentence if some of it is not read.

    Raises: ValueError, RecursionError.
    """
    found, parts = _NODE.decode(raw), _Parts()
    turn()
    spec, status = found.spec or _NodeSpec(), found.status or _NodeStatus()
    read = wire.Node(
        parts.metadata(found.metadata or _Metadata()),
        wire.NodeSpec(spec.unschedulable, parts.values(spec.taints, "spec.taints", _TAINTS)),
        wire.NodeStatus(
            parts.values(status.capacity, "status.capacity", _QUANTITIES),
            parts.values(status.allocatable, "status.allocatable", _QUANTITIES),
            parts.values(status.conditions, "status.conditions", _CONDITIONS),
        ),
    )
    return read, "; ".join(parts.unread)


def any_object(
    decoder: msgspec.json.Decoder[_T], raw: bytes | memoryview | msgspec.Raw
) -> tuple[_T, wire.Metadata, str]:
    """Return an object, its metadata, and a sentence on what of that is not read, "" if all is.

    Raises: ValueError, RecursionError.
    """
    kind: Any = decoder.type
    found: Any = _with_raw_metadata(kind).decode(raw)
    turn()
    written, parts = found.metadata, _Parts()
    if written is None:
        return found, wire.Metadata(), ""
    written.labels = parts.strings(written.labels, "metadata.labels")
    written.annotations = parts.strings(written.annotations, "metadata.annotations")
    owners = parts.values(written.owner_references, "metadata.ownerReferences", _OWNERS)
    written.owner_references = owners
    return found, written, "; ".join(parts.unread)


@cache  # there are two dozen kinds
def _with_raw_metadata(kind: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    """Reads a kind of objects in one scan; what may be long of their metadata stays bytes."""
    metadata, _ = get_args(get_type_hints(kind)["metadata"])
    raw = [(name, msgspec.Raw, _NULL) for name in _LONG_METADATA]
    held = msgspec.defstruct(metadata.__name__, raw, bases=(metadata,))
    whole = [("metadata", held | None, None)]
    return msgspec.json.Decoder(msgspec.defstruct(kind.__name__, whole, bases=(kind,)))
