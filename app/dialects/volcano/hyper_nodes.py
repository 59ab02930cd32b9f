"""HyperNodes: domains that name their members, nodes or other HyperNodes, and have a tier.

    HyperNode s0, tier 1: members Node n0, n1     ─▶ a domain of level topology.volcano.sh/tier-1
    HyperNode s4, tier 2: members HyperNode s0 …  ─▶ a domain of level topology.volcano.sh/tier-2

`status.nodeCount` is how many nodes are in it at any depth. Volcano counts direct members there,
and only when the object changes. One condition, MembersResolved, says which members do not count.
Source: volcano staging/src/volcano.sh/apis/pkg/apis/topology/v1alpha1/hypernode_types.go and
pkg/util/hypernode/member_selector.go (v1.15).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from app.dialects.declared import DomainSpec, DomainView, NodesNamed, TopologySpec
from app.dialects.dialect import CheckedObject, Known, ObjectRules, none_known
from app.dialects.flaw import Flaw
from app.dialects.rules import invalid, of_spec, required, too_small
from app.dialects.volcano import members
from app.dialects.volcano.members import HYPER_NODE, Few, Member
from app.dialects.written import AT_WRITE, StatusPatch
from app.kube.core.objects import ObjectRecord
from app.kube.core.turns import turn
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded, part
from app.kube.watch.resource import Resource
from topology.model.explicit_tree import DomainFlaw

KIND = HYPER_NODE
GROUP = "topology.volcano.sh"
API_VERSION = f"{GROUP}/v1alpha1"
PATH = f"/apis/{API_VERSION}/hypernodes"
TOPOLOGY = "HyperNodes"  # no object can have this name
LEVEL = "topology.volcano.sh/tier-{}"
CONDITION = "MembersResolved"
MOST_SHOWN = 8  # flaws in the message of the condition
MOST_MEMBERS = 10_000  # a node each, in a cluster without narrower HyperNodes
MEMBERS_AT_ONCE = 256  # read between two turns
MOST_VALUES = 9 * MOST_MEMBERS  # objects and strings: an exactMatch has 9
SOURCE = "volcano.sh/network-topology-source"
"""The label that says what made a HyperNode. A discoverer of Volcano deletes those of its own."""
OURS = "corral"  # as its value: no discoverer of Volcano has this name


class HyperNodeRecord(ObjectRecord, frozen=True, gc=False):
    """One HyperNode, with what its status says already."""

    domain: DomainSpec
    node_count: int = 0
    condition: tuple[str, str, str] = ("", "", "")
    """Status, reason and message of ours."""
    turned_at: str = ""
    """Its lastTransitionTime."""
    other_conditions: tuple[dict[str, Any], ...] = ()
    """As they are."""
    labels: Mapping[str, str] = {}
    """Of one that Corral has made; others have none here."""


class _Spec(wire.Wire):
    tier: int | None = None
    tier_name: wire.Text = None
    members: msgspec.Raw = msgspec.Raw(b"null")


class _Status(wire.Wire):
    node_count: int | None = None
    conditions: list[dict[str, Any] | None] | None = None


class _HyperNode(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None
    status: msgspec.Raw = msgspec.Raw(b"null")  # if it cannot be read, the spec still is


_HYPER_NODE = msgspec.json.Decoder(_HyperNode)
_MEMBERS: msgspec.json.Decoder[list[Member | None] | None] = msgspec.json.Decoder(
    list[Member | None] | None
)
_STATUS: msgspec.json.Decoder[_Status | None] = msgspec.json.Decoder(_Status | None)


def decode_hyper_node(raw: Json) -> HyperNodeRecord:
    """Return the record of a HyperNode.

    Raises: DecodeError naming the HyperNode and the field.
    """
    found = decoded(_HYPER_NODE, raw, KIND)
    metadata, status = found.metadata or wire.Metadata(), _status(found.status)
    conditions = [each for each in status.conditions or () if each]
    own = next((each for each in conditions if each.get("type") == CONDITION), {})
    return HyperNodeRecord(
        kind=KIND,
        namespace="",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        domain=_domain(metadata.name or "", found.spec or _Spec(), _members(found)),
        node_count=status.node_count or 0,
        condition=(str(own.get("status")), str(own.get("reason")), str(own.get("message"))),
        turned_at=str(own.get("lastTransitionTime", "")),
        other_conditions=tuple(each for each in conditions if each.get("type") != CONDITION),
        labels=_labels(metadata),
    )


def _labels(metadata: wire.Metadata) -> dict[str, str]:
    labels = metadata.labels or {}
    if labels.get(SOURCE) != OURS:
        return {}
    return {key: value or "" for key, value in labels.items()}


def _status(raw: msgspec.Raw) -> _Status:
    """What the status says; nothing if it is none."""
    try:
        return _STATUS.decode(raw) or _Status()
    except (ValueError, RecursionError):
        return _Status()


def check_hyper_node(
    raw: Json, before: Json | None = None, _known: Known = none_known
) -> CheckedObject:
    """What is wrong with a HyperNode; it belongs to no scheduler.

    Raises: DecodeError naming the HyperNode and the field.
    """
    found = decoded(_HYPER_NODE, raw, KIND)
    name = (found.metadata or wire.Metadata()).name or ""
    known: frozenset[str] = frozenset()
    if before is not None:
        known = members.patterns(_members(decoded(_HYPER_NODE, before, KIND)))
    return CheckedObject(of_spec(_flaws(name, found.spec or _Spec(), _members(found), known)))


def _members(found: _HyperNode) -> Sequence[Member | None]:
    """The members of a HyperNode. Raises: DecodeError, also if there are too many."""
    raw = (found.spec or _Spec()).members
    return part(_MEMBERS, raw, "spec.members", KIND, found.metadata, MOST_VALUES) or ()


def _flaws(
    name: str, spec: _Spec, written: Sequence[Member | None], known: Collection[str]
) -> Iterator[Flaw]:
    """`written`: its members. `known`: the patterns that are not looked at."""
    if spec.tier is None:
        yield required("tier", "how close together the members are")
    elif spec.tier < 0:
        yield too_small("tier", spec.tier, 0)
    if not written:
        yield required("members", "must have at least one member")
    for at, member in enumerate(members.read(written, Few(known).take)):
        yield from member.flaws
        if name and member.named == name:
            where = f"members[{at}].selector.exactMatch.name"
            yield invalid(where, name, "must not be the HyperNode itself")


def _domain(name: str, spec: _Spec, written: Sequence[Member | None]) -> DomainSpec:
    inner, nodes = list[str](), dict[NodesNamed, None]()
    wrong: list[DomainFlaw] = []
    for at, member in enumerate(members.read(written, members.every)):
        if at % MEMBERS_AT_ONCE == 0:
            turn()
        if member.named is None:
            reason = "UnsupportedSelector" if member.is_hyper_node else "InvalidSelector"
            fatal = next(flaw for flaw in member.flaws if flaw.is_fatal)
            wrong.append(_domain_flaw(reason, fatal))
        elif isinstance(member.named, str):
            inner.append(member.named)  # twice, too: the tree of all HyperNodes says so
        else:
            twice = (flaw for flaw in member.flaws if flaw.kind == "Duplicate value")
            wrong += (_domain_flaw("DuplicateMember", flaw) for flaw in twice)
            nodes[member.named] = None
    tier = spec.tier or 0
    return DomainSpec(
        name,
        tier,
        LEVEL.format(tier),
        spec.tier_name or "",
        tuple(inner),
        tuple(nodes),
        tuple(wrong),
    )


def _domain_flaw(reason: str, flaw: Flaw) -> DomainFlaw:
    (of_the_spec,) = of_spec([flaw])
    return DomainFlaw(reason, str(of_the_spec))


def specs_of(record: ObjectRecord) -> Iterable[TopologySpec]:
    """The domain that an object declares, if it is a HyperNode."""
    if isinstance(record, HyperNodeRecord):
        yield TopologySpec(TOPOLOGY, domain=record.domain)


def status_of(record: ObjectRecord, view: DomainView) -> StatusPatch | None:
    """The status that a HyperNode should have, if it is one and has another."""
    if not isinstance(record, HyperNodeRecord):
        return None
    is_fine = not view.flaws
    said = (
        "True" if is_fine else "False",
        "AllMembersResolved" if is_fine else view.flaws[0].reason,
        _message(view),
    )
    if (record.node_count, record.condition) == (view.nodes, said):
        return None
    is_turned = record.condition[0] != said[0] or not record.turned_at
    condition: dict[str, object] = dict(
        zip(("type", "status", "reason", "message"), (CONDITION, *said), strict=True),
        lastTransitionTime=AT_WRITE if is_turned else record.turned_at,
    )
    status: dict[str, object] = {
        "nodeCount": view.nodes,
        "conditions": [*record.other_conditions, condition],
    }
    # Without conditions of others nothing is lost, and a write need not be the newest.
    version = record.version if record.other_conditions else ""
    return StatusPatch(f"{PATH}/{record.name}/status", record.uid, status, version)


def _message(view: DomainView) -> str:
    if not view.flaws:
        return "every member counts"
    texts = [flaw.text for flaw in view.flaws[:MOST_SHOWN]]
    more = len(view.flaws) - len(texts)
    return "; ".join((*texts, f"and {more} more") if more else texts)


RESOURCE = Resource(KIND, PATH, HyperNodeRecord, decode_hyper_node, is_optional=True)
RULES = ObjectRules(GROUP, KIND, check_hyper_node)
