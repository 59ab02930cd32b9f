"""The level of a whole workload: all that name one name the same.

Its annotations stand on some or all of the workload's pods, on its owner, or on both. Where one
names another level than the others do, none of them says what is meant: the workload is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from app.dialects.corral import WORKLOAD, WORKLOAD_PREFERRED, WORKLOAD_REQUIRED
from app.dialects.flaw import Flaw, shown
from app.dialects.rules import annotation, invalid
from topology.model.request import Constraint

Strings = Mapping[str, str]


class Named(NamedTuple):
    """Where levels of a whole workload are named, or might be."""

    levels: Strings
    """By annotation."""
    path: str = "metadata"
    """Of the metadata with these annotations, in its object."""
    whose: str = ""
    """The object, for messages; "": the one that is looked at."""


def levels_in(annotations: Strings) -> Strings:
    """The levels that annotations name, valid or not."""
    return {key: annotations[key] for key in WORKLOAD if key in annotations}


def contradictions(named: Iterable[Named]) -> Iterator[tuple[Named, Flaw]]:
    """Those that name other levels than the first that names any, and what is wrong with each."""
    first: Named | None = None
    for each in named:
        if not each.levels:
            continue
        first = first or each
        if each.levels != first.levels:
            yield each, _flaw(each.levels, first)


def contradiction(together: Iterable[tuple[str, Constraint]]) -> str:
    """The first of them as a sentence; "" if there is none.

    `together`: what pods and other objects, by name, validly request for all pods.
    """
    named = (Named(_levels_of(level), whose=whose) for whose, level in together)
    return next((f"{each.whose}: {flaw}" for each, flaw in contradictions(named)), "")


def _levels_of(together: Constraint) -> Strings:
    pairs = ((WORKLOAD_REQUIRED, together.required), (WORKLOAD_PREFERRED, together.preferred))
    return {key: value for key, value in pairs if value is not None}


def _flaw(levels: Strings, first: Named) -> Flaw:
    differing = [key for key in WORKLOAD if levels.get(key) != first.levels.get(key)]
    key, other = (
        next(key for key in (*differing, *WORKLOAD) if key in said)
        for said in (levels, first.levels)
    )
    of = f" of {first.whose}" if first.whose else ""
    text = f"must be consistent with '{first.path}.{annotation(other)}'{of}"
    return invalid(annotation(key), levels[key], f"{text}: {shown(first.levels[other])}")
