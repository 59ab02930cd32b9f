"""By how much fragments grow on every node, for requests like the last few.

free of the nodes, their devices ──▶ nodes that have changed since ─┐
what is known for such a request ───────────── of these anew ───────┴─▶ growth[N]
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from topology.fit.seen import NEVER, Seen
from topology.fragments.devices import Devices
from topology.fragments.growth import Amounts, Usual, growth, unusable
from topology.model.resources import Counts, Rows

_Found = TypeVar("_Found", bound=np.typing.NDArray[Any])


@dataclass(slots=True)
class _Kept(Generic[_Found]):
    """`found` is of the nodes as they were `at` that time."""

    of: Usual
    found: _Found
    at: int


@dataclass(slots=True)
class KnownFragments:
    """Keeps what it would find again; a function of its arguments."""

    most_amounts: int = 1_000_000  # that are kept: 8 MiB
    most_requests: int = 64
    _seen: Seen = field(default_factory=Seen)
    _before: _Kept[Amounts] | None = None
    _grown: OrderedDict[tuple[int, ...], _Kept[Counts]] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._grown)

    def growth(
        self, request: tuple[int, ...], free: Counts, devices: Sequence[Devices], of: Usual
    ) -> Counts:
        """As `fragments.growth` where such a pod is on each node; only to be read.

        Of nodes without room for the pod it means nothing.
        Shapes: free (R, N) -> (N,).
        """
        self._seen.look([free, *(each.left for each in devices)])
        known = self._grown.pop(request, None)
        if known is None or known.of is not of or known.found.size != free.shape[1]:
            known = _Kept(of, np.zeros(free.shape[1], dtype=np.int64), NEVER)
        columns = self._seen.since(known.at)
        if isinstance(columns, slice) or columns.size:
            before = self._unusable_before(free, devices, of)[columns]
            after = unusable(_beside(request, free, devices, columns), of)
            known.found[columns] = growth(before, after)
        known.at = self._seen.now
        self._grown[request] = known
        most = max(1, min(self.most_requests, self.most_amounts // max(1, free.shape[1])))
        while len(self._grown) > most:
            self._grown.popitem(last=False)
        return known.found

    def _unusable_before(self, free: Counts, devices: Sequence[Devices], of: Usual) -> Amounts:
        """As `unusable` of the nodes as they are. Shapes: (N,)."""
        known = self._before
        if known is None or known.of is not of or known.found.size != free.shape[1]:
            known = self._before = _Kept(of, np.zeros(free.shape[1]), NEVER)
        columns = self._seen.since(known.at)
        if isinstance(columns, slice) or columns.size:
            known.found[columns] = unusable(_beside((), free, devices, columns), of)
        known.at = self._seen.now
        return known.found


def _beside(
    request: Sequence[int], free: Counts, devices: Sequence[Devices], columns: Rows | slice
) -> Counts:
    """What is free of some nodes with such a pod on each: resources, then of their devices."""
    here = [replace(each, left=each.left[:, columns]) for each in devices]
    found = np.vstack([free[:, columns], *(each.beside(request) for each in here)])
    for row, amount in enumerate(request):
        if amount:
            found[row] -= amount
    return found
