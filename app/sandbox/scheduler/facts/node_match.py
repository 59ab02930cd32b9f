"""Whether a pod's labels-and-taints rules accept a node: selector, required affinity, tolerations.

Source: component-helpers scheduling/corev1 (nodeaffinity, ToleratesTaint).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.sandbox.apiserver.storage.kinds import Object
from app.sandbox.scheduler.facts.pod_facts import PodFacts


def matches_node(facts: PodFacts, node: Object) -> bool:
    """Node selector and required node affinity together."""
    labels: Mapping[str, str] = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in facts.selector.items()):
        return False
    if facts.terms is None:
        return True
    return any(_term_holds(term, labels, node["metadata"]["name"]) for term in facts.terms)


def _term_holds(term: Object, labels: Mapping[str, str], name: str) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False  # an empty term matches nothing
    return all(_holds(wanted, labels.get(wanted["key"])) for wanted in expressions) and all(
        wanted["key"] == "metadata.name" and _holds(wanted, name) for wanted in fields
    )


def _holds(wanted: Object, value: str | None) -> bool:
    operator, values = wanted["operator"], wanted.get("values") or []
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            try:
                own, bound = int(value or ""), int(values[0])
            except (ValueError, IndexError):
                return False
            return own > bound if operator == "Gt" else own < bound
    return False


def tolerates(tolerations: Iterable[Object], taints: Iterable[Object]) -> bool:
    """Whether every taint that keeps pods from a node (not PreferNoSchedule) is tolerated."""
    return all(
        any(_covers(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.get("effect") in ("NoSchedule", "NoExecute")
    )


def _covers(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
