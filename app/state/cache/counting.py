"""Sums of what many pods request, all at once: one addition of arrays for each kind of request.

Pod by pod an addition to `Capacity` takes some ten microseconds, which is right for one event. A
first list of a million pods, and a check of the books, are added up here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from app.kube.core.objects import Amounts
from topology.model.capacity import TAKEN_MAX
from topology.model.resources import Counts

Vector = tuple[int, ...]
SlotsOf = dict[Amounts, list[int]]
"""Where the pods of each request are, a slot for each pod."""


def slots_by_request(places: Iterable[tuple[int, Amounts]]) -> SlotsOf:
    """The slots of equal requests together."""
    found: SlotsOf = {}
    for slot, request in places:
        found.setdefault(request, []).append(slot)
    return found


def is_countable(slots_of: SlotsOf, counted: Callable[[Amounts], Vector]) -> bool:
    """Whether no sum can pass what one node's books may have, were all pods on the same node."""
    most = (max(counted(request), default=0) * len(slots) for request, slots in slots_of.items())
    return sum(most) <= TAKEN_MAX


def summed(
    slots_of: SlotsOf, counted: Callable[[Amounts], Vector], shape: tuple[int, int]
) -> Counts:
    """The sums by resource row and slot.

    Shapes: (R, N), which is `shape`.
    """
    sums = np.zeros(shape, dtype=np.int64)
    for request, slots in slots_of.items():
        where = np.array(slots, dtype=np.intp)
        for row, amount in enumerate(counted(request)):
            if amount:
                np.add.at(sums[row], where, amount)
    return sums
