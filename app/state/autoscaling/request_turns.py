"""Which gangs make their ProvisioningRequest next, and which of those made wait for an answer.

cluster-autoscaler looks at one request after the other in no order of its own, so few of them wait
for their first answer at one time: those of the highest priority, and of equal ones each namespace
in its turn, its first gang in the queue first. So a tenant whose requests are not answered waits
behind himself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nsmallest

from app.dialects.spec import GangKey
from app.state.gang.gang import Gang
from app.state.turns.queue import rank_in_queue

MOST_REMEMBERED = 10_000  # namespaces that had a turn


@dataclass(slots=True)
class RequestTurns:
    """`most`: so many wait for an answer at one time."""

    most: int
    _waiting: dict[GangKey, None] = field(default_factory=dict)  # for their turn
    _unanswered: dict[GangKey, None] = field(default_factory=dict)
    _last: OrderedDict[str, int] = field(default_factory=OrderedDict)  # turn of a namespace
    _turn: int = 0

    def wait(self, key: GangKey) -> None:
        """Have a gang wait for its turn. A request of it that waited for an answer is gone."""
        self._unanswered.pop(key, None)
        self._waiting[key] = None

    def end_wait(self, key: GangKey) -> None:
        """Have it wait for its turn no more."""
        self._waiting.pop(key, None)

    def begin(self, key: GangKey) -> None:
        """Note that its request waits for an answer."""
        self._unanswered[key] = None

    def end(self, key: GangKey) -> None:
        """Note that it waits for none."""
        self._unanswered.pop(key, None)

    def taken(self, gangs: Mapping[GangKey, Gang]) -> list[Gang]:
        """The gangs whose turn it is, as far as those without an answer allow."""
        self._unanswered = {key: None for key in self._unanswered if key in gangs}
        free = self.most - len(self._unanswered)
        if not self._waiting or free <= 0:
            return []
        self._waiting = {key: None for key in self._waiting if key in gangs}
        lines = dict[str, list[Gang]]()
        for key in self._waiting:
            lines.setdefault(key.namespace, []).append(gangs[key])
        lines = {name: nsmallest(free, line, key=rank_in_queue) for name, line in lines.items()}
        found = list[Gang]()
        while lines and len(found) < free:
            namespace = min(lines, key=lambda name: self._rank(lines[name][0]))
            gang = lines[namespace].pop(0)
            if not lines[namespace]:
                del lines[namespace]
            self._note_turn(namespace)
            del self._waiting[gang.key]
            found.append(gang)
        return found

    def _rank(self, gang: Gang) -> tuple[object, ...]:
        """Where a namespace is whose first gang this is: among equal ones by its last turn."""
        has_started, priority, *later = rank_in_queue(gang)
        return has_started, priority, self._last.get(gang.key.namespace, 0), *later

    def _note_turn(self, namespace: str) -> None:
        self._turn += 1
        self._last[namespace] = self._turn
        self._last.move_to_end(namespace)
        if len(self._last) > MOST_REMEMBERED:
            self._last.popitem(last=False)
