"""A pod set group is one leader and its workers, which request the same topology.

Of the templates of an object the webhook says so, of the pods of a gang the planner.
Source: kueue pkg/controller/jobframework/tas_validation.go (v0.16).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.dialects.flaw import Flaw
from app.dialects.kueue.annotations import POD_SET_GROUP, PREFERRED, REQUIRED
from app.dialects.rules import annotation, invalid


class Part(NamedTuple):
    """A pod set of a group."""

    pods: int | None
    """None: not known."""
    required: str | None
    preferred: str | None
    where: str
    """Its annotations, for messages about the other one: "'spec.template.metadata.annotations'"."""


def flaws(name: str, parts: Sequence[Part]) -> Iterator[tuple[int, Flaw]]:
    """What is wrong with the pod sets of this name, and with which of them."""
    field = annotation(POD_SET_GROUP)
    if len(parts) != 2:
        text = f"can only define groups of exactly 2 pod sets, got: {len(parts)} pod set(s)"
        yield from ((at, invalid(field, name, text)) for at in range(len(parts)))
        return
    one, other = parts
    if None not in (one.pods, other.pods) and 1 not in (one.pods, other.pods):
        text = (
            "can only define groups where at least one pod set has only 1 replica, "
            f"got: {one.pods} replica(s) and {other.pods} replica(s) in the group"
        )
        yield from ((at, invalid(field, name, text)) for at in range(2))
    if (one.required, one.preferred) != (other.required, other.preferred):
        for at, beside in enumerate((other, one)):
            text = (
                f"must specify '{REQUIRED}' or '{PREFERRED}' topology "
                f"consistent with {beside.where} in group '{name}'"
            )
            yield at, Flaw("annotations", "Invalid value", text)
