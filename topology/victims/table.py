"""Those who may go, as arrays: built once for one state of the books, and used by many searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from topology.model.capacity import Capacity
from topology.model.changed.capacity import leaving
from topology.model.resources import Counts, Mask, Rows
from topology.victims.victim import Loss, Victim, given_up, loss_of


class Table:
    """Candidates by their number; shapes (V,) where they are counted, (E,) for what each frees."""

    def __init__(
        self,
        capacity: Capacity,
        candidates: Sequence[Victim],
        lasts: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`lasts`: how many pods each owner may lose before it gives up.

        Raises: ValueError for candidates that take more of a node than is taken there.
        """
        self.candidates, self.lasts = candidates, lasts
        self.changes = leaving(capacity, candidates)
        self.ranks: Counts = np.array([each.rank for each in candidates], dtype=np.int64)
        self.is_gang: Mask = np.array([each.is_gang for each in candidates], dtype=np.bool_)
        self.ends: Mask = np.array([each.ends_for_good for each in candidates], dtype=np.bool_)
        """Whose owner gives up."""
        self.is_counted: Mask = np.zeros(len(candidates), dtype=np.bool_)
        """Whose owner may give up if others go as well."""
        for one, each in enumerate(candidates):
            if each.counted:
                self.is_counted[one] = True
                self.ends[one] |= bool(given_up((each,), lasts))
        self.pods: Counts = np.array([each.pods_lost for each in candidates], dtype=np.int64)
        self.work: Counts = np.array([each.lost_work for each in candidates], dtype=np.int64)
        self._losses: dict[int, Loss] = {}
        self._protected = [one for one, each in enumerate(candidates) if each.protected]
        owners = self.changes.owners
        self.first: Rows = owners.searchsorted(np.arange(len(candidates)))
        self.end: Rows = owners.searchsorted(np.arange(len(candidates)), "right")

    def loss(self, one: int) -> Loss:
        """What goes with one of them, but for owners that count its pods."""
        known = self._losses.get(one)
        if known is None:
            known = self._losses[one] = loss_of((self.candidates[one],))
        return known

    def entries(self, ones: Rows) -> Rows:
        """What these free. Shapes: (n,) -> (E',)."""
        is_one = np.zeros(len(self.candidates), dtype=np.bool_)
        is_one[ones] = True
        return np.flatnonzero(is_one[self.changes.owners])

    def walled(self, allowed: Mapping[str, int]) -> tuple[Mask, tuple[str, ...]]:
        """Whom some budget does not let go even alone, and all budgets that not all may leave."""
        is_walled = np.zeros(len(self.candidates), dtype=np.bool_)
        for one in self._protected:
            is_walled[one] = bool(walls((self.candidates[one],), allowed))
        return is_walled, walls((self.candidates[one] for one in self._protected), allowed)


def walls(victims: Iterable[Victim], allowed: Mapping[str, int]) -> tuple[str, ...]:
    """The budgets that do not let all of these go, alphabetical."""
    spent = Counter[str]()
    for victim in victims:
        for budget, pods in victim.protected:
            spent[budget] += pods
    return tuple(sorted(one for one in spent if spent[one] > allowed.get(one, 0)))
