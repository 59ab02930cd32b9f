"""How much a tick may do, counted and not timed, and whose turn it is where that is too little.

    work ──spend(namespace, visits)──▶ spent ──is it more than the tick may? ──▶ the rest waits
                                         │     └──▶ what is beyond is owed by who has spent it
                                         └──▶ by namespace, halved each tick ──▶ who is next

A piece of work is not cut, so a tick may do more than it may. The namespace that it was for pays:
each tick what a tick may do is taken off its debt, and until none is left it has no turn. Others
do not wait for that.

The unit is a node that a search looks at (`topology.fit.view.Visits`): some 30 ns. The same inputs
cost the same on every machine, so a journal replays them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.dialects.spec import GangKey

POD = 200  # visits that a pod of a gang costs where it is sorted out or placed
GANG = 2_000  # visits that a gang costs which has its turn, whether or not it is searched
MOST_OWED = 10  # ticks that a namespace has no turn at most: one second


@dataclass(slots=True)
class Budget:
    """The work of one kind in this tick, and lately by namespace."""

    most: int
    """Visits per tick. A piece of work is not cut: the last one may go beyond."""
    spent: int = 0
    _of: dict[str, int] = field(default_factory=dict)
    _owed: dict[str, int] = field(default_factory=dict)
    """By namespace the visits beyond what ticks may do; at most MOST_OWED times that."""

    def begin(self) -> None:
        """A tick begins. What a namespace has spent is forgotten by halves."""
        self.spent = 0
        self._of = {namespace: visits // 2 for namespace, visits in self._of.items() if visits > 1}
        self._owed = {
            namespace: owed - self.most
            for namespace, owed in self._owed.items()
            if owed > self.most
        }

    def spend(self, namespace: str, visits: int) -> None:
        """Count some work for a namespace."""
        self.spent += visits
        self._of[namespace] = self._of.get(namespace, 0) + visits
        beyond = min(visits, self.spent - self.most)
        if beyond > 0:
            owed = self._owed.get(namespace, 0) + beyond
            self._owed[namespace] = min(owed, (MOST_OWED + 1) * self.most)

    def owes(self, namespace: str) -> bool:
        """Whether earlier ticks did so much for a namespace that it has no turn in this one."""
        return namespace in self._owed

    @property
    def is_spent(self) -> bool:
        """Whether the rest waits for the next tick."""
        return self.spent >= self.most

    @property
    def is_half_spent(self) -> bool:
        """Whether what is left of this tick is for finding places."""
        return 2 * self.spent >= self.most

    def spent_by(self, namespace: str) -> int:
        """What a namespace has spent lately."""
        return self._of.get(namespace, 0)

    def in_turns(self, keys: Iterable[GangKey]) -> Iterator[GangKey]:
        """The gangs with one of each namespace after the other, those that spent least first.

        They are put into lines at once, and taken one by one.
        """
        lines: dict[str, list[GangKey]] = {}
        for key in keys:
            lines.setdefault(key.namespace, []).append(key)
        turns = deque(iter(lines[namespace]) for namespace in sorted(lines, key=self.spent_by))
        while turns:
            line = turns.popleft()
            for key in line:
                yield key
                turns.append(line)
                break
