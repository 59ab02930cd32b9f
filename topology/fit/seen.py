"""Which columns of some arrays have changed, found by comparing them with what they were.

    arrays ──look──▶ copies, and when each column has changed last ──since──▶ columns

One pod changes one node, and what was computed of the others stands. Callers need not say what
has changed: to compare costs a fraction of what is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from topology.model.resources import Counts, Mask, Rows

NEVER = -1  # before everything that was seen


@dataclass(slots=True)
class Seen:
    """What some arrays with a column for each node were, when they were looked at last."""

    now: int = 0
    """How often something had changed."""
    _was: list[Counts] = field(default_factory=list)
    _changed_at: Counts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def look(self, arrays: Sequence[Counts]) -> None:
        """Compare them with what they were; where their shapes are others, all has changed."""
        if [each.shape for each in arrays] != [each.shape for each in self._was]:
            self.now += 1
            self._was = [each.copy() for each in arrays]
            self._changed_at = np.full(arrays[0].shape[1], self.now, dtype=np.int64)
            return
        differs: Mask = np.zeros(self._changed_at.size, dtype=np.bool_)
        for was, each in zip(self._was, arrays, strict=True):
            differs |= (was != each).any(axis=0)
        columns = differs.nonzero()[0]
        if columns.size:
            self.now += 1
            self._changed_at[columns] = self.now
            for was, each in zip(self._was, arrays, strict=True):
                was[:, columns] = each[:, columns]

    def since(self, then: int) -> Rows | slice:
        """The columns that have changed since `now` was that."""
        if then == NEVER:
            return slice(None)
        columns: Rows = (self._changed_at > then).nonzero()[0]
        return columns
