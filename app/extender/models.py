"""Reads kube-scheduler's requests: partial structs, so that a pod or a node list is never decoded
further than an answer needs.

    {"Pod":{…},"Nodes":null,"NodeNames":[…]}
        │         │             └─ NodeNames: searched as bytes, decoded only when all are needed
        │         └─ FullNodes: names and marks read, items kept as bytes to be echoed
        └─ app.kube.decode

The syntax of the whole body is checked once (40 us for 5,000 names); what is left as bytes is
well-formed JSON from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

import msgspec

from app.dialects import autoscalers
from app.kube.core import aside
from app.kube.core.objects import NodeRecord, PodRecord
from app.kube.core.turns import turn
from app.kube.decoding.decode import Keep, decode_node, decode_pod
from app.state.filter_result import Victims

API_VERSION = "extender/v1"  # k8s.io/kube-scheduler/extender/v1, the types on the wire
MOST_NAMES = 100_000  # candidates: twenty times what Kubernetes supports; scored in 40 ms
MOST_FULL_NODES = 20_000  # of Nodes: each is read on its own, in 1.5 us
_FEW_BYTES = 8 * MOST_NAMES  # of NodeNames: they are read within 10 ms, however many these are

_NULL = msgspec.Raw(b"null")
_ABSENT = msgspec.Raw(b"")
_T = TypeVar("_T")


class BadRequest(Exception):
    """The body is invalid; the message says why."""


class ExtenderArgs(msgspec.Struct, frozen=True, gc=False):
    """What /filter and /prioritize are sent; one of Nodes and NodeNames is null."""

    Pod: msgspec.Raw = _NULL
    Nodes: msgspec.Raw = _NULL
    NodeNames: msgspec.Raw = _NULL


class ExtenderBindingArgs(msgspec.Struct, frozen=True, gc=False):
    """What /bind is sent."""

    PodName: str = ""
    PodNamespace: str = ""
    PodUID: str = ""
    Node: str = ""


class _Metadata(msgspec.Struct, gc=False):
    name: str = ""
    uid: str = ""


class _Named(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _TemplateMark(msgspec.Struct, gc=False):
    value: msgspec.Raw = msgspec.field(name=autoscalers.TEMPLATE_NODE, default=_ABSENT)


class _UpcomingMark(msgspec.Struct, gc=False):
    value: msgspec.Raw = msgspec.field(name=autoscalers.UPCOMING_NODE, default=_ABSENT)


class _MarkedMetadata(msgspec.Struct, gc=False):
    name: str = ""
    labels: _TemplateMark | None = None
    annotations: _UpcomingMark | None = None

    @property
    def is_marked(self) -> bool:
        """Whether one of the marks is there, whatever its value."""
        return any(
            each is not None and bytes(each.value) for each in (self.labels, self.annotations)
        )


class _MarkedNode(msgspec.Struct, gc=False):
    metadata: _MarkedMetadata = msgspec.field(default_factory=_MarkedMetadata)


class _NodeList(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | None = None


class _MetaPod(msgspec.Struct, gc=False):
    UID: str = ""


class _MetaVictims(msgspec.Struct, gc=False):
    Pods: list[_MetaPod] | None = None
    NumPDBViolations: int = 0


class _FullVictims(msgspec.Struct, gc=False):
    Pods: list[_Named] | None = None
    NumPDBViolations: int = 0


class _PreemptionArgs(msgspec.Struct, gc=False):
    Pod: msgspec.Raw = _NULL
    NodeNameToVictims: dict[str, _FullVictims | None] | None = None
    NodeNameToMetaVictims: dict[str, _MetaVictims | None] | None = None


_POD_ENDS = b'"NodeNames":['  # inside of a text its quotes would be escaped
MOST_NAMES_BYTES = 2**18  # of node names that are read on the event loop
_ARGS = msgspec.json.Decoder(ExtenderArgs)
_BINDING = msgspec.json.Decoder(ExtenderBindingArgs)
_PREEMPTION = msgspec.json.Decoder(_PreemptionArgs)
_NAMES = msgspec.json.Decoder(list[str])
_NODE_LIST = msgspec.json.Decoder(_NodeList)
_NODE = msgspec.json.Decoder(_MarkedNode)


class NodeNames:
    """The candidates as the bytes of a JSON array: `SentNodes` of `app.state.filter_result`.

    `in` and `len` read the bytes: 26 and 43 us for 5,000 names against 90 for decoding them, and
    `in` is all that a planned member needs: of one name, so that its last answer is kept. Bytes
    that cannot be searched so (escapes, characters beyond ASCII, an array that does not begin with
    a string) are decoded at once.

    Raises: BadRequest where the array holds something else than strings, or more of them than
        MOST_NAMES, at the latest by `names()`.
    """

    marked: Collection[str] = ()

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._names: list[str] | None = None
        self._found: tuple[str, bool] = "", False  # what was looked for last
        self._is_searched = raw.startswith(b'["') and b"\\" not in raw and raw.isascii()
        if not self._is_searched:
            self.names()

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if self._names is None and _is_plain(name):
            if name != self._found[0]:
                self._found = name, b'"%b"' % name.encode("ascii") in self.raw
            return self._found[1]
        return name in self.names()

    def __len__(self) -> int:
        # Two quotes for each name: none is escaped in bytes that are searched.
        return self.raw.count(b'"') // 2 if self._names is None else len(self._names)

    def names(self) -> Sequence[str]:
        """All names, in kube-scheduler's order."""
        if self._names is None:
            is_too_long = len(self.raw) > _FEW_BYTES and self.raw.count(b",") >= MOST_NAMES
            names = [] if is_too_long else _decoded(_NAMES, self.raw, "NodeNames")
            if is_too_long or len(names) > MOST_NAMES:
                raise BadRequest(f"NodeNames: more than {MOST_NAMES} names")
            self._names = names
        return self._names

    def joined(self, between: bytes) -> bytes | None:
        """All names with these bytes from the end of one to the beginning of the next.

        None where the bytes are not as Go writes them: then `names()` has to be read.
        """
        commas = self.raw.count(b",")
        is_plain = self._is_searched and self.raw.endswith(b'"]') and commas < MOST_NAMES
        if not is_plain or self.raw.count(b'"') != 2 * (commas + 1):
            return None
        found = self.raw[2:-2].replace(b'","', between)
        # As many as there are commas: no name has one, and nothing else is between two names.
        replaced, left = divmod(len(found) - len(self.raw) + 4, len(between) - 3)
        return found if replaced == commas and not left else None

    def sent(self, name: str) -> NodeRecord | None:
        """None: a name says nothing else."""
        return None


class FullNodes:
    """The candidates as whole Node objects (`nodeCacheCapable: false`); items stay bytes.

    Raises: BadRequest where an item has no readable metadata.name or is no text, or there are more
        items than MOST_FULL_NODES.
    """

    def __init__(self, raw: bytes) -> None:
        items = _decoded(_NODE_LIST, raw, "Nodes").items or []
        if len(items) > MOST_FULL_NODES:
            raise BadRequest(f"Nodes.items: {len(items)} nodes, more than {MOST_FULL_NODES}")
        self.item_by_name: dict[str, bytes] = {}
        self.marked: dict[str, None] = {}
        """Those that an autoscaler has marked as nodes that do not exist."""
        for item in map(bytes, items):
            turn()
            _check_text(item, "Nodes.items")
            metadata = _decoded(_NODE, item, "Nodes.items").metadata
            self.item_by_name[metadata.name] = item
            if metadata.is_marked:
                self.marked[metadata.name] = None
        if "" in self.item_by_name:
            raise BadRequest("Nodes.items: a node without metadata.name")

    def __contains__(self, name: object) -> bool:
        return name in self.item_by_name

    def __len__(self) -> int:
        return len(self.item_by_name)

    def names(self) -> Sequence[str]:
        """All names, in kube-scheduler's order."""
        return tuple(self.item_by_name)

    def sent(self, name: str) -> NodeRecord | None:
        """A node as the request describes it. Raises: app.errors.DecodeError."""
        return decode_node(self.item_by_name[name])


Nodes = NodeNames | FullNodes


def pod_and_nodes(
    body: bytes, keep: Keep, keep_label: Keep | None = None, *, full_nodes: bool
) -> tuple[PodRecord, Nodes]:
    """The pod and the candidates of a /filter or /prioritize request.

    `keep` and `keep_label`: as of `decode_pod`.
    Raises: BadRequest or app.errors.DecodeError (the pod), saying what is wrong.
    """
    args = _decoded(_ARGS, body, "the body")
    turn()
    nodes, names = bytes(args.Nodes), bytes(args.NodeNames)
    record = _pod(bytes(args.Pod), keep, keep_label)
    if names != b"null":
        return record, NodeNames(names)
    if nodes == b"null":
        raise BadRequest('the body has neither "NodeNames" nor "Nodes"; set nodeCacheCapable: true')
    if not full_nodes:
        raise BadRequest('"Nodes" is not accepted here; set nodeCacheCapable: true')
    return record, FullNodes(nodes)


def bytes_at_once(body: bytes) -> int:
    """How long such a body may be to be read on the event loop.

    A pod may be dear to read; the names of 5,000 nodes, which follow it, are not.
    """
    names = body.find(_POD_ENDS)
    return aside.LARGE_BYTES + (0 if names < 0 else min(len(body) - names, MOST_NAMES_BYTES))


def binding(body: bytes) -> ExtenderBindingArgs:
    """A /bind request with all four fields present.

    Raises: BadRequest naming the field that is missing.
    """
    args = _decoded(_BINDING, body, "the body")
    for field in ExtenderBindingArgs.__struct_fields__:
        if not getattr(args, field):
            raise BadRequest(f'the body has no "{field}"')
    return args


def preemption(
    body: bytes, keep: Keep, keep_label: Keep | None = None
) -> tuple[PodRecord, Mapping[str, Victims]]:
    """The pod of a /preempt request, and the victims by node from either of its two forms.

    A null or absent list of pods is an empty one.
    Raises: BadRequest or app.errors.DecodeError (the pod), saying what is wrong.
    """
    args = _decoded(_PREEMPTION, body, "the body")
    turn()
    return _pod(bytes(args.Pod), keep, keep_label), _offered(args)


def _pod(raw: bytes, keep: Keep, keep_label: Keep | None) -> PodRecord:
    if raw == b"null":
        raise BadRequest('the body has no "Pod" (keys are capitalised: Pod, NodeNames, Nodes)')
    return decode_pod(raw, keep, keep_label)


def _offered(args: _PreemptionArgs) -> Mapping[str, Victims]:
    if args.NodeNameToMetaVictims is not None:
        return {
            node: Victims(tuple(pod.UID for pod in victims.Pods or ()), victims.NumPDBViolations)
            for node, victims in args.NodeNameToMetaVictims.items()
            if victims is not None
        }
    return {
        node: Victims(
            tuple(pod.metadata.uid for pod in victims.Pods or ()), victims.NumPDBViolations
        )
        for node, victims in (args.NodeNameToVictims or {}).items()
        if victims is not None
    }


def _is_plain(name: str) -> bool:
    """Whether a quoted search cannot match across the borders of two names."""
    return name.isascii() and not any(mark in name for mark in '",\\ ') and name != ""


def _check_text(raw: bytes, what: str) -> None:
    """Raises: BadRequest unless it is UTF-8: msgspec skips over keys without a look at them."""
    try:
        if not raw.isascii():
            raw.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"{what}: {error}") from error


def _decoded(decoder: msgspec.json.Decoder[_T], raw: bytes, what: str) -> _T:
    decode: Callable[[bytes], _T] = decoder.decode
    try:
        return decode(raw)
    except (ValueError, RecursionError) as error:  # RecursionError: 100,000 opening brackets
        raise BadRequest(f"{what}: {error}") from error
