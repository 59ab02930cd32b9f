"""Whose question is next: namespaces take turns, in each the most important gang comes first."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.fair_queue import FairQueue

Rank = tuple[bool, int]  # whether its question is new, and its priority: the greater comes first
_Line = dict[Rank, dict[GangKey, None]]  # gangs in the order they came


@dataclass(slots=True)
class AskingInTurns:
    """Gangs that wait to ask.

    A namespace with many of them keeps no other one waiting, whatever priorities it may use. Of one
    namespace the gang of the highest priority asks next, the oldest of those that are equal; those
    that have asked before come after all others. A step costs as many looks as a namespace has
    priorities: these are made by who runs the cluster.
    """

    _lines: FairQueue[None, _Line] = field(default_factory=FairQueue)

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __contains__(self, key: GangKey) -> bool:
        line = self._lines.get(key.namespace, None) or {}
        return any(key in gangs for gangs in line.values())

    def put(self, key: GangKey, rank: Rank) -> None:
        """Add a gang that does not wait yet."""
        line = self._lines.get(key.namespace, None) or {}
        line.setdefault(rank, {})[key] = None
        self._lines.put(key.namespace, None, line)

    def take(self) -> GangKey:
        """Remove the gang whose turn it is.

        Raises: KeyError if there is none.
        """
        namespace, _, line = self._lines.take()
        gangs = line[highest := max(line)]
        key = next(iter(gangs))
        del gangs[key]
        if not gangs:
            del line[highest]
        if line:
            self._lines.put(namespace, None, line)
        return key
