"""When the pods are listed once more: what was read of them is not enough.

    a key that was not kept             (`kept_keys.py`)      ┐
    a resource that was not counted     (`part_counted.py`)   ┴─gathered for a second─▶ ReadAgain

Each of them wants a bounded number of lists, and there is a while between any two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.state.cache.part_counted import PartCounted
from app.state.objects.kept_keys import KeptKeys

GATHER_SECONDS = 1.0  # what is wanted within them is one list
RELIST_SECONDS = 30.0  # between two lists: one of 150,000 pods takes eight


@dataclass(slots=True)
class PodLists:
    """Paces the lists that are asked for."""

    kept_keys: KeptKeys
    part_counted: PartCounted
    _since: float = math.inf  # when the list was first wanted
    _not_before: float = -math.inf  # the next list

    def is_due(self, now: float) -> bool:
        """Whether the pods are to be read again now; True once."""
        if not (self.kept_keys.wants_list or self.part_counted.wants_list):
            self._since = math.inf
            return False
        self._since = min(self._since, now)
        if now < max(self._since + GATHER_SECONDS, self._not_before):
            return False
        self._since, self._not_before = math.inf, now + RELIST_SECONDS
        self.kept_keys.note_asked()
        self.part_counted.note_asked()
        return True
