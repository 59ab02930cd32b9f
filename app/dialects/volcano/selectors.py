"""Label selectors in Volcano's objects."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube.core import wire
from app.labels import Requirement, requirement_of


def requirements(labels: wire.LabelSelector) -> Iterator[Requirement]:
    """The parts of a selector.

    Raises: ValueError saying which part is none.
    """
    for key, value in sorted((labels.match_labels or {}).items()):
        yield Requirement(key, "In", frozenset((value or "",)))
    for each in labels.match_expressions or ():
        each = each or wire.SelectorRequirement()
        key, operator = each.key or "", each.operator or ""
        values = {value or "" for value in each.values or ()}
        requirement = requirement_of(key, operator, values)
        if requirement is None:
            shown = f"{key} {operator} {sorted(values)}"
            raise ValueError(f"matchExpressions: {shown[:100]} is no requirement")
        yield requirement
