"""The resources that are counted, a row each, and what pods request as vectors of them.

A resource has a row from when a node first offers it. Until then pods that request it fit nowhere;
a row stays when the last node ceases to. Only nodes add rows, and there are only so many.

What kube-scheduler takes from drivers, by claims, is no part of what a node must have for a pod: no
node counts it. Of a pod that is booked it counts like the rest, for nodes may count it later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from app.kube.core.cached import weight
from app.kube.core.objects import Amounts
from app.state.cache.counting import Vector
from topology.model.resources import ResourceAxis

MOST_BOOKED = 2**48  # of one resource for one bound pod; more than any node has, and 24,000 of them
# still add up within an int64. Every user may create a pod that requests 2 EiB on a named node.

MOST_RESOURCES = 256  # rows: 10 KiB each and topology per 1,000 nodes; clusters have some dozens
MOST_UNCOUNTED = 8  # resources beyond those that are reported by name
MOST_VECTORS = 1_024  # kept; beyond that all are computed anew
MOST_VECTOR_BYTES = 2_048  # of a request whose vector is kept; pods have four or five amounts


@dataclass(slots=True)
class ResourceRows:
    """The rows, and the vectors of requests that come again."""

    axis: ResourceAxis = field(default_factory=ResourceAxis)
    _vectors: dict[Amounts, Vector] = field(default_factory=dict)  # of the axis as it is
    _taken: dict[Amounts, Vector] = field(default_factory=dict)  # the same, with what is claimed
    _uncounted: dict[str, None] = field(default_factory=dict)  # resources there was no row left for

    def add(self, allocatable: Amounts) -> bool:
        """Make rows for what a node is the first to offer; False if it is the first for nothing."""
        names = [name for name, _ in allocatable if name not in self.axis]
        rows = len(self.axis)
        for name in names:
            if len(self.axis) < MOST_RESOURCES:
                self.axis.row(name)
            elif len(self._uncounted) < MOST_UNCOUNTED:
                self._uncounted[name] = None
        if len(self.axis) == rows:
            return False
        self._forget()
        return True

    def claim(self, names: frozenset[str]) -> bool:
        """Learn which resources are taken by claims; False if they are the same as before."""
        if names == self.axis.claimed:
            return False
        self.axis.claimed = names
        self._forget()
        return True

    def _forget(self) -> None:
        self._vectors.clear()
        self._taken.clear()

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The resources that there is no row for, in a sentence for the operator, or nothing."""
        if not self._uncounted:
            return ()
        names = ", ".join(self._uncounted)
        return (
            f"nodes offer more than {MOST_RESOURCES} resources: pods that request one of the others"
            f" fit nowhere: {names}{', …' if len(self._uncounted) == MOST_UNCOUNTED else ''}",
        )

    def vector(self, amounts: Amounts) -> Vector:
        """A request as `ResourceAxis.request` has it; equal ones share one object."""
        return _kept(self._vectors, amounts, self.axis.request)

    def counted(self, amounts: Amounts) -> Vector:
        """What a booked pod is counted with: what nodes offer, at most MOST_BOOKED of each."""
        return bounded(self._of_rows(amounts))

    def offered(self, allocatable: Amounts) -> Vector:
        """What a node offers, of what there is a row for."""
        return self.axis.offer(self._of_rows(allocatable))

    def _of_rows(self, amounts: Amounts) -> Vector:
        """All of it that there is a row for."""
        if self.axis.claimed:
            return _kept(self._taken, amounts, self.axis.taken)
        return self.vector(amounts)[: len(self.axis)]


def _kept(
    known: dict[Amounts, Vector], amounts: Amounts, made: Callable[[Amounts], Vector]
) -> Vector:
    """The vector that is known of these amounts, or one that is made of them."""
    found = known.get(amounts)
    if found is None:
        found = made(amounts)
        if weight(amounts, MOST_VECTOR_BYTES) <= MOST_VECTOR_BYTES:
            if len(known) >= MOST_VECTORS:
                known.clear()
            known[amounts] = found
    return found


def bounded(amounts: Vector) -> Vector:
    """What a bound pod is counted with: at most MOST_BOOKED of each resource."""
    if max(amounts) > MOST_BOOKED:
        return tuple(min(amount, MOST_BOOKED) for amount in amounts)
    return amounts
