"""kube-scheduler's own filters: may this pod be on this node? All of the simulator asks here.

Written apart from `app.state.cache.eligibility`: a bug there is seen here. Only what the world's
pods use: readiness, cordons, selectors, In terms over names and labels, hard taints, resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.kube.core.objects import Amounts, NodeRecord, PodRecord, Shape, Term

Totals = dict[str, int]


def is_open(node: NodeRecord) -> bool:
    """Whether new pods may come to the node at all."""
    return node.is_ready and not node.is_unschedulable


def may_be_on(node: NodeRecord, shape: Shape) -> bool:
    """Whether everything but resources allows it."""
    if not is_open(node):
        return False
    if any(node.labels.get(key) != value for key, value in shape.selector):
        return False
    if shape.terms and not any(_holds(term, node) for term in shape.terms):
        return False
    tolerated = {toleration.key for toleration in shape.tolerations}
    return all(
        taint.effect == "PreferNoSchedule" or taint.key in tolerated for taint in node.taints
    )


def _holds(term: Term, node: NodeRecord) -> bool:
    if not term.expressions and not term.fields:
        return False
    return all(
        wanted.operator == "In" and node.labels.get(wanted.key) in wanted.values
        for wanted in term.expressions
    ) and all(
        wanted.key == "metadata.name" and wanted.operator == "In" and node.name in wanted.values
        for wanted in term.fields
    )


def totals_by_node(pods: Iterable[tuple[str, Amounts]]) -> dict[str, Totals]:
    """What is asked on each node, given (node, request) of every pod that counts."""
    found: dict[str, Totals] = {}
    for node, request in pods:
        totals = found.setdefault(node, {})
        for resource, amount in request:
            totals[resource] = totals.get(resource, 0) + amount
    return found


def lacks(node: NodeRecord, taken: Mapping[str, int], request: Amounts) -> str:
    """The first resource of which the node has too little left, or ""."""
    has = dict(node.allocatable)
    for resource, amount in request:
        if taken.get(resource, 0) + amount > has.get(resource, 0):
            return resource
    return ""


def counts(pod: PodRecord) -> bool:
    """Whether a pod takes room on its node."""
    return bool(pod.node) and not pod.is_finished
