"""What kube-scheduler itself says of nodes: which it offers to a planned pod, which it does not.

Its filters know more than ours. A node we planned for that it leaves out is not planned for the
same request and shape again, until some time has passed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from app.state.roles import Shaped


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
    """Nodes that kube-scheduler did not offer to a planned shape, remembered for a while."""

    _until: dict[Shaped, dict[str, float]] = field(default_factory=dict)

    def add(self, shaped: Shaped, node: str, until: float) -> None:
        """Leave this node out of plans for this shape until then."""
        self._until.setdefault(shaped, {})[node] = until

    def of(self, shaped: Shaped) -> Collection[str]:
        """The nodes that refuse this shape now."""
        return self._until.get(shaped, {})

    def expire(self, now: float) -> bool:
        """Forget refusals that are over; True if there were any."""
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
