"""Whether a pod's shape allows one node: node selector, node affinity, taints.

kube-scheduler filters by these before it calls an extender, pod by pod; a plan for a whole gang
must know them beforehand, of all nodes at once: `node_table.py`. Free capacity, readiness and
cordons are not here: `Capacity` has them.

Source: NodeAffinity and TaintToleration of kube-scheduler; NotIn and DoesNotExist hold for a node
without the key, Gt and Lt compare whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from app.kube.core.objects import NodeRecord, Requirement, Shape, Taint, Term, Toleration

BARRING_EFFECTS = ("NoSchedule", "NoExecute")  # PreferNoSchedule only scores
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
NODE_NAME = "metadata.name"  # the only field of a node that affinity may ask for
SELECTOR, AFFINITY = "nodeSelector", "affinity"  # reasons, in Kueue's words


def may_host(node: NodeRecord, shape: Shape) -> bool:
    """Whether kube-scheduler's own filters would let a pod of this shape onto the node."""
    return (
        all(node.labels.get(key) == value for key, value in shape.selector)
        and (not shape.terms or any(_term_holds(term, node) for term in shape.terms))
        and all(is_tolerated(taint, shape.tolerations) for taint in node.taints)
    )


def why_not(node: NodeRecord, shape: Shape) -> str:
    """The first reason why a pod of this shape is kept off the node, "" if none is.

    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16): the order of the reasons and
    their words.
    """
    for taint in node.taints:
        if not is_tolerated(taint, shape.tolerations):
            return taint_in_words(taint)
    if not all(node.labels.get(key) == value for key, value in shape.selector):
        return SELECTOR
    if shape.terms and not any(_term_holds(term, node) for term in shape.terms):
        return AFFINITY
    return ""


def preference(node: NodeRecord, shape: Shape) -> int:
    """The sum of the weights of the preferred terms that hold for the node.

    An empty term weighs nothing.
    Source: kubernetes pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go (v1.36), Score.
    """
    return sum(weight for weight, term in shape.preferred if _term_holds(term, node))


def may_stay(node: NodeRecord, shape: Shape) -> bool:
    """Whether a pod of this shape may be on the node for good: no taint will evict it there."""
    lasting = for_good(shape.tolerations)
    return may_host(node, shape) and all(
        taint.effect != "NoExecute" or is_tolerated(taint, lasting) for taint in node.taints
    )


def for_good(tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """The tolerations that hold for as long as the pod runs."""
    return tuple(each for each in tolerations if not each.is_for_a_while)


def taint_in_words(taint: Taint) -> str:
    """A taint that keeps a pod off a node, as a reason."""
    value = f"={taint.value}" if taint.value else ""
    return f'taint "{taint.key}{value}:{taint.effect}"'


def _term_holds(term: Term, node: NodeRecord) -> bool:
    """Whether one affinity term holds; an empty term matches no node."""
    if not term.expressions and not term.fields:
        return False
    fields = {NODE_NAME: node.name}
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
    have = whole_number(value or "")
    bound = whole_number(wanted.values[0]) if wanted.values else None
    if have is None or bound is None:
        return False
    return have > bound if wanted.operator == "Gt" else have < bound


def whole_number(text: str) -> int | None:
    """The number as Go reads a decimal int64; None for anything else."""
    number = int(text) if _WHOLE_NUMBER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def is_tolerated(taint: Taint, tolerations: Collection[Toleration]) -> bool:
    """Whether a taint keeps no pod with these tolerations off its node."""
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
            bound, value = whole_number(toleration.value), whole_number(taint.value)
            if bound is None or value is None:
                return False
            return value < bound if toleration.operator == "Lt" else value > bound
        case _:
            return False
