"""What a reflector tells its sink. Per kind, in the order the API server wrote them.

An event may arrive twice (after a cut) and an object may change many times between two events,
so a receiver keeps the last record and compares; nothing can be learnt from counting events.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.kube.core.objects import Record

Kind = str
"""Of Kubernetes objects: "Node", "Pod", or one that a vocabulary watches."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The object exists and looks like this now: created, changed, or listed again."""

    record: Record


@dataclass(frozen=True, slots=True)
class Deleted:
    """The object is gone; `record` is its last state."""

    record: Record


@dataclass(frozen=True, slots=True)
class Listed:
    """All objects of one kind at one moment: what is not in here does not exist any more.

    `edition`: of what their records keep, as the list began (`resource.py`).
    """

    kind: Kind
    records: tuple[Record, ...]
    edition: int = 0


Event = Applied | Deleted | Listed
