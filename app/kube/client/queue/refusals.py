"""Namespaces in which the API server forbids one kind of write: none is tried there for a while.

By namespace: a quota, an admission policy or the end of one namespace changes nothing for the
others, and where a ClusterRole is missing each namespace costs one refused write.
"""

from __future__ import annotations

import time
from collections import OrderedDict

MOST_REMEMBERED = 10_000  # namespaces


class Refusals:
    """Until when no write is tried in which namespace."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: OrderedDict[str, float] = OrderedDict()

    def holds(self, namespace: str) -> bool:
        """Whether none is to be tried there now."""
        return time.monotonic() < self._until.get(namespace, 0.0)

    def note(self, namespace: str) -> None:
        """Take that one was forbidden there."""
        self._until[namespace] = time.monotonic() + self._seconds
        self._until.move_to_end(namespace)
        if len(self._until) > MOST_REMEMBERED:
            self._until.popitem(last=False)
