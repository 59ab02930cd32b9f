"""To which nodes a pod may go by what it says itself: selector, affinity and tolerations.

Equal shapes are one object, and so are their parts: gangs have thousands of equal pods. Long ones
are kept in few, so that a tenant who makes many of these takes no room from the others.
"""

from __future__ import annotations

import msgspec

from app.kube.core.cached import KIB, cached
from app.kube.core.objects import Requirement, Shape, Term, Toleration
from app.kube.decoding import wire
from app.kube.decoding.texts import shared

MOST_WEIGHT = 100  # of one preferred term
FEW_TERMS = 32  # as many as a pod is narrowed to by default; kept apart from what is longer
FEW_TOLERATIONS = 16  # lines that are worth sharing; pods have two to five
SHORT_AFFINITY = 8 * KIB  # bytes of JSON; such a pod's has 3,000

_AFFINITY = msgspec.json.Decoder(wire.Affinity | None)
_Selector = tuple[tuple[str, str], ...]
_Terms = tuple[Term, ...]
_Tolerations = tuple[Toleration, ...]
_Preferred = tuple[tuple[int, Term], ...]


def shape_of(spec: wire.PodSpec) -> Shape:
    """Return the shape of a pod.

    Raises: ValueError or RecursionError for affinity that is not readable; `$` is its path there.
    """
    selector = spec.node_selector
    tolerations = spec.tolerations
    terms, preferred = _affinity(bytes(spec.affinity))
    return _interned_shape(
        tuple(sorted((key, value or "") for key, value in selector.items())) if selector else (),
        terms,
        _tolerations(tolerations) if tolerations else (),
        preferred,
    )


def _interned_shape(
    selector: _Selector, terms: _Terms, tolerations: _Tolerations, preferred: _Preferred
) -> Shape:
    lines = len(terms) + len(preferred)
    shape = _plain_shape if not lines else _shape_with_terms if lines <= FEW_TERMS else _long_shape
    return shape(selector, terms, tolerations, preferred)


@cached(1_024, 4 * KIB)
def _plain_shape(
    selector: _Selector, terms: _Terms, tolerations: _Tolerations, preferred: _Preferred
) -> Shape:
    return Shape(selector, terms, tolerations, preferred)


@cached(256, 24 * KIB)
def _shape_with_terms(
    selector: _Selector, terms: _Terms, tolerations: _Tolerations, preferred: _Preferred
) -> Shape:
    return Shape(selector, terms, tolerations, preferred)


@cached(4, 512 * KIB)
def _long_shape(
    selector: _Selector, terms: _Terms, tolerations: _Tolerations, preferred: _Preferred
) -> Shape:
    return Shape(selector, terms, tolerations, preferred)


def _tolerations(lines: list[wire.PodToleration | None]) -> _Tolerations:
    toleration = _toleration if len(lines) <= FEW_TOLERATIONS else Toleration
    return tuple(
        toleration(
            line.key or "",
            line.operator or "Equal",
            line.value or "",
            line.effect or "",
            line.toleration_seconds is not None,
        )
        for line in lines
        if line is not None
    )


@cached(1_024, KIB)
def _toleration(
    key: str, operator: str, value: str, effect: str, is_for_a_while: bool
) -> Toleration:
    return Toleration(key, operator, value, effect, is_for_a_while)


def _affinity(raw: bytes) -> tuple[_Terms, _Preferred]:
    return _short_affinity(raw) if len(raw) <= SHORT_AFFINITY else _long_affinity(raw)


@cached(128, 24 * KIB)  # narrowed pods carry dozens of terms, and a gang's pods the same ones
def _short_affinity(raw: bytes) -> tuple[_Terms, _Preferred]:
    return _read_affinity(raw)


@cached(4, 512 * KIB)
def _long_affinity(raw: bytes) -> tuple[_Terms, _Preferred]:
    return _read_affinity(raw)


def _read_affinity(raw: bytes) -> tuple[_Terms, _Preferred]:
    affinity = _AFFINITY.decode(raw)
    return ((), ()) if affinity is None else (_terms(affinity), _preferred(affinity))


def _terms(affinity: wire.Affinity) -> tuple[Term, ...]:
    if affinity.node_affinity is None or affinity.node_affinity.required is None:
        return ()
    terms = tuple(
        _term(term)
        for term in affinity.node_affinity.required.node_selector_terms or ()
        if term is not None
    )
    # Required affinity without terms matches no node; one empty term says the same.
    return terms or (Term(),)


def _preferred(affinity: wire.Affinity) -> tuple[tuple[int, Term], ...]:
    if affinity.node_affinity is None or not affinity.node_affinity.preferred:
        return ()
    return tuple(
        # The API server takes 1 to 100; who else sends us pods may not be so careful.
        (min(max(line.weight or 0, 0), MOST_WEIGHT), _term(line.preference))
        for line in affinity.node_affinity.preferred
        if line is not None and line.preference is not None
    )


def _term(term: wire.SelectorTerm) -> Term:
    return Term(_requirements(term.match_expressions), _requirements(term.match_fields))


def _requirements(lines: list[wire.SelectorRequirement | None] | None) -> tuple[Requirement, ...]:
    return tuple(
        # A null line is one that never holds, as in Go; dropping it would widen the term.
        Requirement("", "", ())
        if line is None
        else Requirement(
            shared(line.key or ""),
            shared(line.operator or ""),
            tuple(shared(value or "") for value in line.values or ()),
        )
        for line in lines or ()
    )
