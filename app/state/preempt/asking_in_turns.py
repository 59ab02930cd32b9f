"""Whose question is next: namespaces take turns, in each the most important gang comes first."""

from __future__ import annotations

from collections.abc import Container
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

    Invariant: each gang of `_rank_of` is in its namespace's line, at this rank.
    """

    _lines: FairQueue[None, _Line] = field(default_factory=FairQueue)
    _rank_of: dict[GangKey, Rank] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._rank_of)

    def __contains__(self, key: GangKey) -> bool:
        return key in self._rank_of

    def put(self, key: GangKey, rank: Rank) -> None:
        """Add a gang that does not wait yet."""
        line = self._lines.get(key.namespace, None) or {}
        line.setdefault(rank, {})[key] = None
        self._rank_of[key] = rank
        self._lines.put(key.namespace, None, line)

    def keep(self, known: Container[GangKey]) -> None:
        """Have all others wait no more; the turns of namespaces stay."""
        for key in [key for key in self._rank_of if key not in known]:
            line = self._lines.get(key.namespace, None)
            assert line is not None
            _leave(line, key, self._rank_of.pop(key))
            if not line:
                self._lines.remove(key.namespace, None)

    def take(self) -> GangKey:
        """Remove the gang whose turn it is.

        Raises: KeyError if there is none.
        """
        namespace, _, line = self._lines.take()
        key = next(iter(line[highest := max(line)]))
        del self._rank_of[key]
        _leave(line, key, highest)
        if line:
            self._lines.put(namespace, None, line)
        return key


def _leave(line: _Line, key: GangKey, rank: Rank) -> None:
    del line[rank][key]
    if not line[rank]:
        del line[rank]
