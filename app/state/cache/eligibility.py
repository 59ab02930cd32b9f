"""Which nodes a pod's shape allows and prefers: node selector, node affinity, taints.

kube-scheduler filters by these before it calls an extender, pod by pod; a plan for a whole gang
must know them beforehand. Free capacity, readiness and cordons are not here: `Capacity` has them.

Source: NodeAffinity and TaintToleration of kube-scheduler; NotIn and DoesNotExist hold for a node
without the key, Gt and Lt compare whole numbers.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy import typing as npt

from app.kube.core.objects import NodeRecord, Requirement, Shape, Taint, Term, Toleration
from topology.model.resources import Counts, Mask
from topology.model.tree import Tree

BARRING_EFFECTS = ("NoSchedule", "NoExecute")  # PreferNoSchedule only scores
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
MOST_SHAPES = 256  # masks kept; the least recently used one is dropped first


def may_host(node: NodeRecord, shape: Shape) -> bool:
    """Whether kube-scheduler's own filters would let a pod of this shape onto the node."""
    return (
        all(node.labels.get(key) == value for key, value in shape.selector)
        and (not shape.terms or any(_term_holds(term, node) for term in shape.terms))
        and all(_is_tolerated(taint, shape.tolerations) for taint in node.taints)
    )


def why_not(node: NodeRecord, shape: Shape) -> str:
    """The first reason why a pod of this shape is kept off the node, "" if none is.

    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16): the order of the reasons and
    their words.
    """
    for taint in node.taints:
        if not _is_tolerated(taint, shape.tolerations):
            value = f"={taint.value}" if taint.value else ""
            return f'taint "{taint.key}{value}:{taint.effect}"'
    if not all(node.labels.get(key) == value for key, value in shape.selector):
        return "nodeSelector"
    if shape.terms and not any(_term_holds(term, node) for term in shape.terms):
        return "affinity"
    return ""


def preference(node: NodeRecord, shape: Shape) -> int:
    """The sum of the weights of the preferred terms that hold for the node.

    An empty term weighs nothing.
    Source: kubernetes pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go (v1.36), Score.
    """
    return sum(weight for weight, term in shape.preferred if _term_holds(term, node))


def may_stay(node: NodeRecord, shape: Shape) -> bool:
    """Whether a pod of this shape may be on the node for good: no taint will evict it there."""
    lasting = [each for each in shape.tolerations if not each.is_for_a_while]
    return may_host(node, shape) and all(
        taint.effect != "NoExecute" or _is_tolerated(taint, lasting) for taint in node.taints
    )


def _term_holds(term: Term, node: NodeRecord) -> bool:
    """Whether one affinity term holds; an empty term matches no node."""
    if not term.expressions and not term.fields:
        return False
    fields = {"metadata.name": node.name}
    return all(_holds(wanted, node.labels) for wanted in term.expressions) and all(
        _holds(wanted, fields) for wanted in term.fields
    )


def _holds(wanted: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(wanted.key)
    match wanted.operator:
        case "In":
            return value is not None and value in wanted.values
        case "NotIn":
            return value is None or value not in wanted.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(wanted, value)
        case _:  # an operator of a later API: kube-scheduler decides, no plan uses the node
            return False


def _compares(wanted: Requirement, value: str | None) -> bool:
    have = _whole_number(value or "")
    bound = _whole_number(wanted.values[0]) if wanted.values else None
    if have is None or bound is None:
        return False
    return have > bound if wanted.operator == "Gt" else have < bound


def _whole_number(text: str) -> int | None:
    """The number as Go reads a decimal int64; None for anything else."""
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None


def _is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return taint.effect not in BARRING_EFFECTS or any(
        _tolerates(toleration, taint) for toleration in tolerations
    )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal":
            return toleration.value == taint.value
        case "Lt" | "Gt":  # the taint's value compared with the toleration's
            bound, value = _whole_number(toleration.value), _whole_number(taint.value)
            if bound is None or value is None:
                return False
            return value < bound if toleration.operator == "Lt" else value > bound
        case _:
            return False


_Judgement = TypeVar("_Judgement", bool, int)


@dataclass(slots=True)
class _PerNode(Generic[_Judgement]):
    """One judgement of every node per shape, kept right under node events."""

    judge: Callable[[NodeRecord, Shape], _Judgement]
    dtype: type[np.generic]
    _known: OrderedDict[Shape, dict[str, _Judgement]] = field(default_factory=OrderedDict)
    _rows: dict[tuple[Shape, tuple[str, ...]], tuple[int, npt.NDArray[Any]]] = field(
        default_factory=dict
    )

    def row(self, shape: Shape, tree: Tree, nodes: Mapping[str, NodeRecord]) -> npt.NDArray[Any]:
        """The judgements in the tree's slot order. Shapes: (N,)."""
        known = self._rows.get((shape, tree.levels))
        if known is not None and known[0] == tree.generation:
            return known[1]
        judged = self._of(shape, nodes)
        row = np.fromiter(map(judged.__getitem__, tree.nodes), self.dtype, len(tree.nodes))
        self._rows[shape, tree.levels] = (tree.generation, row)
        return row

    def put_node(self, node: NodeRecord) -> None:
        """Judge a node again."""
        self._rows.clear()
        for shape, judged in self._known.items():
            judged[node.name] = self.judge(node, shape)

    def drop_node(self, name: str) -> None:
        """Forget a node."""
        for judged in self._known.values():
            judged.pop(name, None)

    def _of(self, shape: Shape, nodes: Mapping[str, NodeRecord]) -> dict[str, _Judgement]:
        judged = self._known.get(shape)
        if judged is None:
            judged = {name: self.judge(node, shape) for name, node in nodes.items()}
            self._known[shape] = judged
            if len(self._known) > MOST_SHAPES:
                self._known.popitem(last=False)
                self._rows.clear()
        self._known.move_to_end(shape)
        return judged


@dataclass(slots=True)
class Eligibility:
    """Masks and scores by shape over every node.

    They depend on a node's labels and taints only, so heartbeats cost nothing.
    """

    _masks: _PerNode[bool] = field(default_factory=lambda: _PerNode(may_host, np.bool_))
    _lasting: _PerNode[bool] = field(default_factory=lambda: _PerNode(may_stay, np.bool_))
    _scores: _PerNode[int] = field(default_factory=lambda: _PerNode(preference, np.int64))

    def mask(self, shape: Shape, tree: Tree, nodes: Mapping[str, NodeRecord]) -> Mask:
        """Where the shape may go, in the tree's slot order; not to be written to. Shapes: (N,)."""
        return self._masks.row(shape, tree, nodes)

    def lasting(self, shape: Shape, tree: Tree, nodes: Mapping[str, NodeRecord]) -> Mask:
        """The same without nodes that would evict the pod after a while. Shapes: (N,)."""
        return self._lasting.row(shape, tree, nodes)

    def scores(self, shape: Shape, tree: Tree, nodes: Mapping[str, NodeRecord]) -> Counts:
        """The preference of the shape for each node, in the same order. Shapes: (N,)."""
        return self._scores.row(shape, tree, nodes)

    def put_node(self, before: NodeRecord | None, node: NodeRecord) -> None:
        """Judge a node again for every known shape if what they look at changed."""
        if before and before.labels == node.labels and before.taints == node.taints:
            return
        self._masks.put_node(node)
        self._lasting.put_node(node)
        self._scores.put_node(node)

    def drop_node(self, name: str) -> None:
        """Forget a node."""
        self._masks.drop_node(name)
        self._lasting.drop_node(name)
        self._scores.drop_node(name)
