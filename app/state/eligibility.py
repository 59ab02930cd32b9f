"""Which nodes a pod's shape allows: node selector, required node affinity, taints.

kube-scheduler filters by these before it asks us, pod by pod; a plan for a whole gang must know
them beforehand. Free capacity, readiness and cordons are not here: they are the Capacity's.

Source: NodeAffinity and TaintToleration of kube-scheduler; NotIn and DoesNotExist hold for a node
without the key, Gt and Lt compare whole numbers.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from app.kube.objects import NodeRecord, Requirement, Shape, Taint, Term, Toleration
from topology.resources import Mask
from topology.tree import Tree

BARRING_EFFECTS = ("NoSchedule", "NoExecute")  # PreferNoSchedule only scores
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
MOST_SHAPES = 256  # masks kept; the least recently asked one is dropped first


def may_host(node: NodeRecord, shape: Shape) -> bool:
    """Whether kube-scheduler's own filters would let a pod of this shape onto the node."""
    return (
        all(node.labels.get(key) == value for key, value in shape.selector)
        and (not shape.terms or any(_term_holds(term, node) for term in shape.terms))
        and all(_is_tolerated(taint, shape.tolerations) for taint in node.taints)
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
        case _:  # an operator of a later API: the scheduler decides, we plan without
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


@dataclass(slots=True)
class Eligibility:
    """Masks by shape over every node, kept right under node events.

    A verdict depends on the node's labels and taints only, so heartbeats cost nothing.
    """

    _verdicts: OrderedDict[Shape, dict[str, bool]] = field(default_factory=OrderedDict)
    _masks: dict[tuple[Shape, tuple[str, ...]], tuple[int, Mask]] = field(default_factory=dict)

    def mask(self, shape: Shape, tree: Tree, nodes: Mapping[str, NodeRecord]) -> Mask:
        """Where the shape may go, in the tree's slot order; not to be written to. Shapes: (N,)."""
        generation, mask = self._masks.get((shape, tree.levels), (-1, _NOWHERE))
        if generation != tree.generation:
            verdicts = self._verdicts_of(shape, nodes)
            mask = np.fromiter(map(verdicts.__getitem__, tree.nodes), np.bool_, len(tree.nodes))
            self._masks[shape, tree.levels] = (tree.generation, mask)
        return mask

    def put_node(self, before: NodeRecord | None, node: NodeRecord) -> None:
        """Judge a node again for every known shape if what they look at changed."""
        if before and before.labels == node.labels and before.taints == node.taints:
            return
        self._masks.clear()
        for shape, verdicts in self._verdicts.items():
            verdicts[node.name] = may_host(node, shape)

    def drop_node(self, name: str) -> None:
        """Forget a node."""
        for verdicts in self._verdicts.values():
            verdicts.pop(name, None)

    def _verdicts_of(self, shape: Shape, nodes: Mapping[str, NodeRecord]) -> dict[str, bool]:
        verdicts = self._verdicts.get(shape)
        if verdicts is None:
            verdicts = {name: may_host(node, shape) for name, node in nodes.items()}
            self._verdicts[shape] = verdicts
            if len(self._verdicts) > MOST_SHAPES:
                self._verdicts.popitem(last=False)
                self._masks.clear()
        self._verdicts.move_to_end(shape)
        return verdicts


_NOWHERE = np.zeros(0, np.bool_)
