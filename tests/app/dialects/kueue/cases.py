"""Pods that break a rule each, and what is told of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.dialects.flaw import Flaw, FlawKind
from app.dialects.kueue.claims import all_flaws
from tests.records import pod

Strings = Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """What a pod says, and the one flaw it has by that."""

    annotations: Strings
    field: str
    kind: FlawKind
    text: str
    labels: Strings = field(default_factory=dict)


def flaws(labels: Strings, annotations: Strings, pods: int | None = None) -> list[Flaw]:
    """Every rule that a pod breaks which says this."""
    return list(all_flaws(pod("p", labels=labels, annotations=annotations), pods))


def one(found: list[Flaw], where: str, kind: FlawKind, text: str) -> None:
    """There is exactly one flaw, and it is this one."""
    (flaw,) = found
    assert (flaw.field, flaw.kind) == (where, kind)
    assert text in flaw.text
