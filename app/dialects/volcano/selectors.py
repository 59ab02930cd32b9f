"""Label selectors in Volcano's objects.

Source: kubernetes staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go
(v1.36), ValidateLabelSelector.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from app.dialects.flaw import Flaw
from app.dialects.rules import forbidden, invalid, required, too_many, unsupported
from app.kube.decoding import wire
from app.labels import (
    LabelSelector,
    Operator,
    Requirement,
    is_label_key,
    is_label_value,
    requirement_of,
)

OPERATORS: tuple[str, ...] = get_args(Operator)
KEY = "must be the key of a label, such as topology.kubernetes.io/rack"
VALUE = "must be the value of a label: at most 63 letters, digits, '-', '_' and '.'"


def selector_of(labels: wire.LabelSelector | None) -> LabelSelector:
    """The selector, if none of its flaws is fatal; what is no requirement is left out."""
    return LabelSelector(tuple(_requirements(labels or wire.LabelSelector())))


def flaws_of(labels: wire.LabelSelector | None, where: str, most: int) -> Iterator[Flaw]:
    """Every rule that a selector breaks; keys and values that no label has are not fatal.

    `most`: the requirements that are read.
    """
    if labels is None:
        return
    requirements = len(labels.match_labels or ()) + len(labels.match_expressions or ())
    if requirements > most:
        yield too_many(where, requirements, most, "requirements")
        return
    for key, value in sorted((labels.match_labels or {}).items()):
        if not is_label_key(key):
            yield invalid(f"{where}.matchLabels", key, KEY, is_fatal=False)
        elif not is_label_value(value or ""):
            yield invalid(f"{where}.matchLabels[{key}]", value or "", VALUE, is_fatal=False)
    for at, each in enumerate(labels.match_expressions or ()):
        expression = each or wire.SelectorRequirement()
        yield from _expression_flaws(expression, f"{where}.matchExpressions[{at}]")


def _expression_flaws(expression: wire.SelectorRequirement, where: str) -> Iterator[Flaw]:
    key, operator = expression.key or "", expression.operator or ""
    values = expression.values or ()
    if not key:
        yield required(f"{where}.key", KEY)
    elif not is_label_key(key):
        yield invalid(f"{where}.key", key, KEY, is_fatal=False)
    if operator not in OPERATORS:
        yield unsupported(f"{where}.operator", operator, OPERATORS)
    elif not values and operator in ("In", "NotIn"):
        yield required(f"{where}.values", f"must be specified when operator is {operator}")
    elif values and operator not in ("In", "NotIn"):
        yield forbidden(f"{where}.values", f"may not be specified when operator is {operator}")
    for at, value in enumerate(values):
        if value and not is_label_value(value):
            yield invalid(f"{where}.values[{at}]", value, VALUE, is_fatal=False)


def _requirements(labels: wire.LabelSelector) -> Iterator[Requirement]:
    for key, value in sorted((labels.match_labels or {}).items()):
        yield Requirement(key, "In", frozenset((value or "",)))
    for each in labels.match_expressions or ():
        each = each or wire.SelectorRequirement()
        values = {value or "" for value in each.values or ()}
        requirement = requirement_of(each.key or "", each.operator or "", values)
        if requirement is not None:
            yield requirement
