"""Nodes that kube-scheduler's own filters exclude for planned pods, as its candidates show.

Its filters know more than Corral. A planned node that is not among the candidates is not planned
for the same request and shape again until some time has passed, in the pod's own namespace: what
Corral does not know may be that pod's alone, and a tenant could keep others off nodes with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from app.kube.core.objects import Amounts, Shape

Shaped = tuple[Amounts, Shape]  # what a node may refuse: request and shape
_Whose = tuple[str, Shaped]  # namespace, and what of it

FIRST_SECONDS = 1.0  # of a first refusal; kube-scheduler's cache is rarely later than that
MOST_REMEMBERED = 20_000  # refusals whose length is kept, to double the next one


@dataclass(frozen=True, slots=True)
class Offer:
    """The candidates that kube-scheduler sent for a pod of one request and shape."""

    shaped: Shaped
    nodes: frozenset[str]
    narrowed_to: frozenset[str] | None = None
    """The candidates say nothing of other nodes; None: the pod was not narrowed."""

    def leaves_out(self, node: str) -> bool:
        """Whether kube-scheduler excludes a node."""
        return node not in self.nodes and (self.narrowed_to is None or node in self.narrowed_to)


@dataclass(slots=True)
class Refusals:
    """Nodes that kube-scheduler did not offer to a planned shape, remembered for a while.

    For a moment at first, since its cache may only lag behind the watch; for twice as long each
    time it refuses again.
    """

    _until: dict[_Whose, dict[str, float]] = field(default_factory=dict)
    _last: OrderedDict[tuple[_Whose, str], tuple[float, float]] = field(default_factory=OrderedDict)
    # ^ (seconds of the last refusal, when the next one counts as the first again)

    def add(self, namespace: str, shaped: Shaped, node: str, now: float, longest: float) -> None:
        """Leave this node out of plans for this shape: the first time for FIRST_SECONDS."""
        whose = (namespace, shaped)
        if node in self._until.get(whose, ()):
            return
        before, forgotten_at = self._last.pop((whose, node), (0.0, 0.0))
        seconds = min(2 * before if now < forgotten_at else FIRST_SECONDS, longest)
        self._until.setdefault(whose, {})[node] = now + seconds
        self._last[whose, node] = (seconds, now + seconds + longest)
        if len(self._last) > MOST_REMEMBERED:
            self._last.popitem(last=False)

    def of(self, namespace: str, shaped: Shaped) -> Collection[str]:
        """The nodes that refuse this shape of a namespace now."""
        return self._until.get((namespace, shaped), {}) if self._until else {}

    def remembered(self) -> Mapping[_Whose, Mapping[str, float]]:
        """A copy of what refuses what, and until when."""
        return {whose: dict(nodes) for whose, nodes in self._until.items()}

    def recall(self, remembered: Mapping[_Whose, Mapping[str, float]]) -> None:
        """Remember what others have; how long the next refusal lasts is not known here."""
        self._until.update({whose: dict(nodes) for whose, nodes in remembered.items()})

    def expire(self, now: float) -> bool:
        """End refusals that are over; True if there were any."""
        over = [
            (whose, node)
            for whose, nodes in self._until.items()
            for node, until in nodes.items()
            if until <= now
        ]
        for whose, node in over:
            del self._until[whose][node]
            if not self._until[whose]:
                del self._until[whose]
        return bool(over)
