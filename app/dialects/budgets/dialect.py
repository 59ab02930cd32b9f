"""PodDisruptionBudget objects: which pods they select, and how many of those may be evicted now.

Source: kubernetes v1.36 pkg/registry/core/pod/storage/eviction.go, `checkAndDecrement` and
`getPodDisruptionBudgets`: a selector that is not valid selects nothing, and no pod goes while the
status is older than the spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from app.dialects.declared import DisruptionBudget
from app.dialects.dialect import Dialect
from app.errors import DecodeError
from app.kube.core.objects import ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, Keep, decoded
from app.kube.watch.resource import Resource
from app.labels import LabelSelector, Requirement, requirement_of
from app.settings import EngineOptions

KIND = "PodDisruptionBudget"
PATH = "/apis/policy/v1/poddisruptionbudgets"
MOST_REQUIREMENTS = 64  # of one selector, which is compared with every pod of its namespace
MOST_BYTES = 32 * 1024  # of a selector's JSON
MOST_VALUES = 256  # of one requirement


class BudgetRecord(ObjectRecord, frozen=True, gc=False):
    """One PodDisruptionBudget.

    `requirements`: (key, operator, values) of its selector; None: it selects nothing. With
    `is_too_long` they are not read, and it counts as selecting all pods of its namespace.
    """

    requirements: tuple[tuple[str, str, tuple[str, ...]], ...] | None = None
    allowed: int = 0
    is_too_long: bool = False


class _Spec(wire.Wire):
    selector: msgspec.Raw = msgspec.Raw(b"null")  # a label selector, unless it is too long


class _Status(wire.Wire):
    disruptions_allowed: int | None = None
    observed_generation: int | None = None


class _Metadata(wire.Metadata):
    generation: int | None = None


class _Budget(wire.Wire):
    metadata: _Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


_BUDGET = msgspec.json.Decoder(_Budget)
_SELECTOR: msgspec.json.Decoder[wire.LabelSelector | None] = msgspec.json.Decoder(
    wire.LabelSelector | None
)


def decode_budget(raw: Json) -> BudgetRecord:
    """Return the record of a PodDisruptionBudget.

    Raises: DecodeError naming the budget and the field.
    """
    budget = decoded(_BUDGET, raw, KIND)
    metadata, status = budget.metadata or _Metadata(), budget.status or _Status()
    raw_selector = (budget.spec or _Spec()).selector
    is_too_long = len(bytes(raw_selector)) > MOST_BYTES
    selector = None if is_too_long else _selector(raw_selector, metadata)
    is_too_long = is_too_long or (selector is not None and _is_too_long(selector))
    is_stale = (status.observed_generation or 0) < (metadata.generation or 0)
    return BudgetRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        requirements=None if selector is None or is_too_long else _requirements(selector),
        allowed=0 if is_stale else max(status.disruptions_allowed or 0, 0),
        is_too_long=is_too_long,
    )


def _selector(raw: msgspec.Raw, metadata: wire.Metadata) -> wire.LabelSelector | None:
    try:
        return _SELECTOR.decode(raw)
    except (ValueError, RecursionError) as error:
        name = f"{metadata.namespace or ''}/{metadata.name or ''}"
        raise DecodeError(f"{KIND} {name}: spec.selector: {error}") from error


def _is_too_long(selector: wire.LabelSelector) -> bool:
    expressions = selector.match_expressions or ()
    return len(selector.match_labels or ()) + len(expressions) > MOST_REQUIREMENTS or any(
        len(each.values or ()) > MOST_VALUES for each in expressions if each is not None
    )


def _requirements(
    selector: wire.LabelSelector,
) -> tuple[tuple[str, str, tuple[str, ...]], ...] | None:
    """What the selector asks for; None if it is not valid."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for key, operator, values in _said(selector):
        read = requirement_of(key, operator, values)
        if read is None:
            return None
        found.append((read.key, read.operator, values))
    return tuple(found)


def _said(selector: wire.LabelSelector) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for key, value in sorted((selector.match_labels or {}).items()):
        yield key, "In", (value or "",)
    for each in selector.match_expressions or ():
        each = each or wire.SelectorRequirement()
        values = tuple(value or "" for value in each.values or ())
        yield each.key or "", each.operator or "", values


@dataclass(frozen=True, slots=True)
class BudgetDialect(Dialect):
    """How many pods may be evicted; read unless `preempt` is off."""

    is_read: bool = True

    def configured(self, options: EngineOptions) -> BudgetDialect:
        return BudgetDialect(is_read=options.preempt != "off")

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        if not self.is_read:
            return ()
        # A ClusterRole older than we are does not name them, and nothing is evicted by them.
        return (Resource(KIND, PATH, BudgetRecord, decode_budget, is_optional=True),)

    def keys_named(self, record: ObjectRecord) -> Iterable[str]:
        if isinstance(record, BudgetRecord):
            return tuple(key for key, _, _ in record.requirements or ())
        return ()

    def budget(self, record: ObjectRecord) -> DisruptionBudget | None:
        if not isinstance(record, BudgetRecord):
            return None
        if record.is_too_long:
            return DisruptionBudget.of_all(record.namespace, record.key)
        if record.requirements is None:
            return None
        selector = LabelSelector(tuple(_compared(record.requirements)))
        return DisruptionBudget(record.namespace, record.key, selector, record.allowed)


def _compared(requirements: Iterable[tuple[str, str, tuple[str, ...]]]) -> Iterator[Requirement]:
    for key, operator, values in requirements:
        requirement = requirement_of(key, operator, values)
        assert requirement is not None, "the record has valid ones only"
        yield requirement
