"""Whether a node's labels, name and taints match a pod; nothing else in the sandbox decides this.

    nodeSelector ─┐
    affinity ─────┼─▶ matches_node        tolerations ─▶ tolerates, tolerates_cordon
    matchFields ──┴─▶ pinned_names (the nodes PreFilter looks at)

Tolerations with Gt and Lt are compared as if the feature gate TaintTolerationComparisonOperators
was on: kube-apiserver refuses such pods where it is off.
Source: kubernetes 1.36 component-helpers scheduling/corev1/nodeaffinity, api core/v1 toleration.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from app.sandbox.apiserver.storage.kinds import Object
from app.sandbox.apiserver.storage.selectors import requirement_holds
from app.sandbox.scheduler.facts.pod_facts import PodFacts

_KEEPS_AWAY = ("NoSchedule", "NoExecute")  # PreferNoSchedule only scores
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)  # stricter than Go's own numbers


def matches_node(facts: PodFacts, node: Object) -> bool:
    """Node selector and required node affinity together."""
    labels: Mapping[str, str] = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in facts.selector.items()):
        return False
    if facts.terms is None:
        return True
    return any(_term_holds(term, labels, node["metadata"]["name"]) for term in facts.terms)


def pinned_names(facts: PodFacts) -> frozenset[str] | None:
    """The nodes PreFilter narrows to by matchFields metadata.name; None for all nodes.

    Terms are OR-ed, fields within a term AND-ed; one term without names opens all nodes.
    Source: nodeaffinity/node_affinity.go, PreFilter.
    """
    if not facts.terms:
        return None
    names: set[str] = set()
    for term in facts.terms:
        of_term: set[str] | None = None
        for wanted in term.get("matchFields") or []:
            if wanted.get("key") == "metadata.name" and wanted.get("operator") == "In":
                values = set(wanted.get("values") or [])
                of_term = values if of_term is None else of_term & values
        if of_term is None:
            return None
        names |= of_term
    return frozenset(names)


def tolerates(tolerations: Iterable[Object], taints: Iterable[Object]) -> bool:
    """Whether every taint that keeps pods from a node is tolerated."""
    return all(
        any(_covers(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.get("effect") in _KEEPS_AWAY
    )


def tolerates_cordon(tolerations: Iterable[Object]) -> bool:
    """Whether the pod may go to a node that is marked unschedulable."""
    return tolerates(tolerations, [_CORDON])


def _term_holds(term: Object, labels: Mapping[str, str], name: str) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False  # an empty term matches nothing
    if not all(requirement_holds(wanted, labels.get(wanted["key"])) for wanted in expressions):
        return False
    return all(
        wanted["key"] == "metadata.name" and requirement_holds(wanted, name) for wanted in fields
    )


def _covers(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    asked, given = toleration.get("value", ""), taint.get("value", "")
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(asked == given)
        case "Gt" | "Lt" as operator if _DECIMAL.fullmatch(asked) and _DECIMAL.fullmatch(given):
            return int(given) > int(asked) if operator == "Gt" else int(given) < int(asked)
    return False
