"""What is written back for a vocabulary: statuses of its objects, and objects that are to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GangView:
    """What a gang's vocabulary may say of it in a status."""

    phase: str
    """gathering, waiting, placed, binding, running, repairing or done; "": no pod has come yet."""
    pods: int  # members that live
    bound: int
    message: str  # why it waits; "" if it does not
    succeeded: int = 0
    failed: int = 0
    no_room: str = ""  # why it gets no pods yet: its pool has no room for them
    is_binding: bool = False  # some of them are being bound
    is_scheduled: bool = False  # all pods that it takes to start have nodes, or have succeeded
    is_ready: bool = False  # as many pods of each leaf are ready
    is_unhealthy: bool = False  # fewer than that have a node and do not fail
    nearness: float | None = None
    """How near the pods with nodes are to what the gang prefers, 0 to 1; None: it says nothing."""
    settled: Mapping[str, int] | None = None
    """Pods that have nodes, or have succeeded, by leaf; None: `is_scheduled` says all of them."""


AT_WRITE = "<when it is written>"
"""Stands in a status for the time at which it is written, as the API server writes times."""


@dataclass(frozen=True, slots=True)
class StatusPatch:
    """A merge patch for the status of one object; `AT_WRITE` may be among the values."""

    path: str  # in the API: of the object's status, or of the object if it has no such part
    uid: str
    status: dict[str, object]
    version: str = ""  # that the object has to have; "": any


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """An object without which others do nothing; it is made where there is none of its name."""

    path: str  # in the API: of all objects of its kind
    name: str
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ObjectWrite:
    """An object that is to be made, changed or deleted."""

    name: str
    body: Mapping[str, object] | None
    """The whole object, or a merge patch of the one that is there; None: it is deleted."""
    uid: str = ""  # of the one that is there; "": there is none, and it is made
    version: str = ""  # that it has


@dataclass(frozen=True, slots=True)
class Difference:
    """What makes the objects of a kind those that they are to be, in the order of writing."""

    writes: tuple[ObjectWrite, ...] = ()
    notes: tuple[str, ...] = ()
    """What is left as it is, and why, as sentences for the operator."""
