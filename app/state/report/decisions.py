"""The last decisions about gangs, for people: what a gang became, and verdicts on those that wait.

Only read by people; nothing that Corral does depends on it. A namespace has a bounded number, and
so has the cluster: one that decides nothing any more is forgotten first.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from app.dialects.spec import GangKey

MOST_OF_NAMESPACE = 100
MOST_NAMESPACES = 100
MOST_DOMAINS = 4  # told of a plan

What = Literal[
    "gathering", "complete", "placed", "binding", "running", "repairing", "done",
    "no-place", "plan-lost", "evicted",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. `number` grows with each."""

    number: int
    at: float
    gang: GangKey
    what: What
    sentence: str = ""
    domains: tuple[str, ...] = ()
    nodes: int = 0


@dataclass(slots=True)
class Decisions:
    """The last ones, by namespace. Written by `reports.py`."""

    made: int = 0
    _of: OrderedDict[str, deque[Decision]] = field(default_factory=OrderedDict)

    def note(
        self,
        gang: GangKey,
        what: What,
        now: float,
        sentence: str = "",
        places: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Remember one. `places`: (node, domain) of each pod that got a place."""
        self.made += 1
        by_node = dict(places)
        domains = tuple(sorted(set(by_node.values()) - {""})[:MOST_DOMAINS])
        its = self._of.setdefault(gang.namespace, deque(maxlen=MOST_OF_NAMESPACE))
        its.append(Decision(self.made, now, gang, what, sentence, domains, len(by_node)))
        self._of.move_to_end(gang.namespace)
        if len(self._of) > MOST_NAMESPACES:
            self._of.popitem(last=False)

    def last(self, namespace: str, most: int) -> Iterator[Decision]:
        """The newest, newest first; namespace "": of all."""
        chosen = self._of.values() if not namespace else (self._of.get(namespace, deque()),)
        merged = heapq.merge(
            *(reversed(each) for each in chosen), key=lambda each: each.number, reverse=True
        )
        return islice(merged, most)

    def edition(self, namespace: str) -> int:
        """The number of the newest, which changes whenever `last` does; namespace "": of all."""
        if not namespace:
            return self.made
        return self._of[namespace][-1].number if namespace in self._of else 0
