"""What kube-scheduler itself says of nodes: which it offers to a planned pod, which it does not.

Its filters know more than ours. A node we planned for that it leaves out is not planned for the
same request and shape again, until some time has passed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from app.kube.core.objects import Amounts, Shape

Shaped = tuple[Amounts, Shape]  # what a node may refuse: request and shape

FIRST_SECONDS = 1.0  # of a first refusal; kube-scheduler's cache is rarely later than that
MOST_REMEMBERED = 20_000  # refusals whose length is kept to double it


@dataclass(frozen=True, slots=True)
class Offer:
    """The nodes kube-scheduler offers to pods of one request and shape, as it says itself."""

    shaped: Shaped
    nodes: frozenset[str]
    asked: frozenset[str] | None = None
    """Nodes the pod was narrowed to: nothing is said of others. None: it was not."""

    def leaves_out(self, node: str) -> bool:
        """Whether it says no to a node."""
        return node not in self.nodes and (self.asked is None or node in self.asked)


@dataclass(slots=True)
class Refusals:
    """Nodes that kube-scheduler did not offer to a planned shape, remembered for a while.

    For a moment at first, since its cache may only have lagged behind ours; for longer each time
    it refuses again.
    """

    _until: dict[Shaped, dict[str, float]] = field(default_factory=dict)
    _last: OrderedDict[tuple[Shaped, str], tuple[float, float]] = field(default_factory=OrderedDict)
    # ^ (seconds of the last refusal, when it is too old to be counted on)

    def add(self, shaped: Shaped, node: str, now: float, longest: float) -> None:
        """Leave this node out of plans for this shape: the first time for FIRST_SECONDS."""
        if node in self._until.get(shaped, ()):
            return
        before, forgotten_at = self._last.pop((shaped, node), (0.0, 0.0))
        seconds = min(2 * before if now < forgotten_at else FIRST_SECONDS, longest)
        self._until.setdefault(shaped, {})[node] = now + seconds
        self._last[shaped, node] = (seconds, now + seconds + longest)
        if len(self._last) > MOST_REMEMBERED:
            self._last.popitem(last=False)

    def of(self, shaped: Shaped) -> Collection[str]:
        """The nodes that refuse this shape now."""
        return self._until.get(shaped, {})

    def expire(self, now: float) -> bool:
        """End refusals that are over; True if there were any."""
        over = [
            (shaped, node)
            for shaped, nodes in self._until.items()
            for node, until in nodes.items()
            if until <= now
        ]
        for shaped, node in over:
            del self._until[shaped][node]
            if not self._until[shaped]:
                del self._until[shaped]
        return bool(over)
