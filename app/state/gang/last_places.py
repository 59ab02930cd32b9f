"""Where gangs were when they last had all that they take, for the gangs that come in their place.

A gang's pods go one by one, and its successor may come before, meanwhile or after: so a place is
remembered from each time that the gang was whole, and stays when the gang is gone. Nothing is held
for the successor. After a restart only gangs that run are known.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.state.gang.gang import Gang
from app.state.gang.members import minimum

MOST_GANGS = 4_096  # remembered, those that changed last …
MOST_NODES = 262_144  # … with so many nodes in all


@dataclass(slots=True)
class LastPlaces:
    """The nodes of each gang, sorted; the gang that changed last is the last one."""

    most_gangs: int = MOST_GANGS
    most_nodes: int = MOST_NODES
    _of: dict[GangKey, tuple[str, ...]] = field(default_factory=dict)
    _nodes: int = 0  # of all of them

    def of(self, key: GangKey | None) -> tuple[str, ...]:
        """Where a gang was; (): that is not known, or there is no gang."""
        return () if key is None else self._of.get(key, ())

    def note(self, gang: Gang) -> None:
        """Remember where a gang is, if it is whole; else where it was."""
        spec = gang.membership.spec
        if spec is None or not spec.has_successors:
            return
        nodes = self._of.pop(gang.key, ())
        self._nodes -= len(nodes)
        if _is_whole(gang):
            nodes = tuple(sorted({each.pod.node for each in gang.membership.bound}))
        if nodes:
            self._of[gang.key] = nodes
            self._nodes += len(nodes)
        while len(self._of) > self.most_gangs or self._nodes > self.most_nodes:
            self._nodes -= len(self._of.pop(next(iter(self._of))))


def _is_whole(gang: Gang) -> bool:
    spec, bound = gang.membership.spec, gang.membership.bound
    if spec is None or not bound:
        return False
    if spec.counts_by_leaf:
        return minimum.has_enough(spec, gang.membership.settled)
    return len(bound) >= spec.pods
