"""Writes our answers as kube-scheduler reads them: bytes, exact capitalised keys, integer scores.

One node for a planned member; for a rejection the same short sentence at every candidate, and
only where the whole answer is empty, for only then is it shown; a simulator is told of every
node that it cannot have why. Never `FailedNodes`: it would start a preemption dry run that knows
nothing of us.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from app.extender.models import FullNodes, NodeNames, Nodes
from app.state.filter_result import (
    Failed,
    FilterAnswer,
    Passed,
    Pinned,
    Possible,
    Rejected,
    Victims,
)

SENTENCE_BYTES = 512  # an event's note is cut at 1,024; the pod's condition is never cut
FEW_SCORES = 100  # a person reads them all, and kube-scheduler samples no fewer nodes
HELD_FOR_GANGS = "all fitting capacity is held for gangs that are about to start"

_EMPTY = (
    b'{"Nodes":null,"NodeNames":[],"FailedNodes":{},"FailedAndUnresolvableNodes":%b,"Error":""}'
)
_NAMES = (
    b'{"Nodes":null,"NodeNames":%b,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'
)
_NODES = (
    b'{"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null,'
    b'"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'
)
_POSSIBLE_NAMES = (
    b'{"Nodes":null,"NodeNames":%b,"FailedNodes":{},"FailedAndUnresolvableNodes":%b,"Error":""}'
)
_POSSIBLE_NODES = (
    b'{"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null,'
    b'"FailedNodes":{},"FailedAndUnresolvableNodes":%b,"Error":""}'
)
_ERROR = (
    b'{"Nodes":null,"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":%b}'
)
_json = msgspec.json.Encoder().encode


class _HostPriority(msgspec.Struct, gc=False):
    Host: str
    Score: int


class _MetaPod(msgspec.Struct, gc=False):
    UID: str


class _MetaVictims(msgspec.Struct, gc=False):
    Pods: list[_MetaPod]
    NumPDBViolations: int


def filter_result(answer: FilterAnswer, nodes: Nodes) -> bytes:
    """An ExtenderFilterResult.

    Raises: models.BadRequest if the candidates turn out unreadable on the way.
    """
    match answer:
        case Passed(without):
            return _passed(nodes, without)
        case Pinned(node):
            return _chosen(nodes, (node,))
        case Rejected(sentence):
            return _rejected(nodes, sentence)
        case Failed(sentence):
            return filter_error(sentence)
        case Possible(names, why_not):
            return _possible(nodes, names, why_not)


def filter_error(sentence: str) -> bytes:
    """An ExtenderFilterResult that fails the scheduling attempt with this text."""
    return _ERROR % _json(_cut(sentence))


def priorities(nodes: Nodes, scores: Sequence[int]) -> bytes:
    """A HostPriorityList. A score must be an integer: `5.0` would fail the whole list.

    Of many nodes those with 0 are left out, since kube-scheduler adds 0 for a node that is not
    there: reading 5,000 scores takes it as long as placing the pod.
    Source: kubernetes v1.36 pkg/scheduler/schedule_one.go, prioritizeNodes.
    """
    is_long = len(scores) > FEW_SCORES
    if is_long and not any(scores):
        return b"[]"
    scored = zip(nodes.names(), scores, strict=True)
    return _json([_HostPriority(*each) for each in scored if each[1] or not is_long])


def priorities_error(sentence: str) -> bytes:
    """Not a list, so that kube-scheduler drops it (no node is scored) and a person can read it."""
    return _json({"Error": _cut(sentence)})


def binding_result(sentence: str) -> bytes:
    """An ExtenderBindingResult; "" is success."""
    return _json({"Error": _cut(sentence)})


def preemption_result(victims_by_node: Mapping[str, Victims]) -> bytes:
    """An ExtenderPreemptionResult: always the meta form, whatever form was asked."""
    return _json({"NodeNameToMetaVictims": _meta_victims(victims_by_node)})


def preemption_error(sentence: str) -> bytes:
    """No node to preempt on. The type has no Error field; the extra key is for people."""
    return _json({"NodeNameToMetaVictims": {}, "Error": _cut(sentence)})


def _passed(nodes: Nodes, without: frozenset[str]) -> bytes:
    if not without:
        return _NAMES % nodes.raw if isinstance(nodes, NodeNames) else _all_items(nodes)
    names = nodes.names()
    left = [name for name in names if name not in without]
    if names and not left:
        return _rejected(nodes, HELD_FOR_GANGS)
    return _chosen(nodes, left)


def _chosen(nodes: Nodes, names: Sequence[str]) -> bytes:
    if isinstance(nodes, FullNodes):
        return _NODES % b",".join(nodes.item_by_name[name] for name in names)
    return _NAMES % _json(names)


def _all_items(nodes: FullNodes) -> bytes:
    return _NODES % b",".join(nodes.item_by_name.values())


def _rejected(nodes: Nodes, sentence: str) -> bytes:
    said = _json(_cut(sentence))
    listed = nodes.joined(b'":%b,"' % said) if isinstance(nodes, NodeNames) else None
    if listed is not None:
        return _EMPTY % (b'{"%b":%b}' % (listed, said))
    return _EMPTY % _json(dict.fromkeys(nodes.names(), _cut(sentence)))


def _possible(nodes: Nodes, names: Sequence[str], why_not: Mapping[str, str]) -> bytes:
    cut = {sentence: _cut(sentence) for sentence in dict.fromkeys(why_not.values())}
    failed = _json({name: cut[sentence] for name, sentence in why_not.items()})
    if isinstance(nodes, FullNodes):
        return _POSSIBLE_NODES % (b",".join(nodes.item_by_name[name] for name in names), failed)
    return _POSSIBLE_NAMES % (_json(names), failed)


def _meta_victims(victims_by_node: Mapping[str, Victims]) -> dict[str, _MetaVictims]:
    return {
        node: _MetaVictims([_MetaPod(uid) for uid in victims.uids], victims.pdb_violations)
        for node, victims in victims_by_node.items()
    }


def _cut(sentence: str) -> str:
    """At most SENTENCE_BYTES of it, never half a character."""
    encoded = sentence.encode("utf-8", "replace")
    return encoded[:SENTENCE_BYTES].decode("utf-8", "ignore")
