"""Levels one domain of which may be several now: plans that are older may be in two of them.

    rack                one r1 for the whole cluster
    block, rack         an r1 in each block: what was placed in r1 may be in two racks
    rack again          what was placed in one of them is in one still

A topology, or a level of it, that is gone is remembered as it was, as plans by it outlast it. It is
compared with what it is when it comes back; until then, for gangs that name no topology, with those
that have its level instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from topology.model.levels import NODE_LEVEL

MOST_REMEMBERED = 256  # topologies that are gone; beyond that none are

Levels = tuple[str, ...]
Above = Mapping[str, frozenset[str]]
"""By level: the levels above it. Without the node level: no node is split."""


@dataclass(slots=True)
class SplitLevels:
    """What the levels of each topology were when it last had them."""

    gone: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By topology, the levels that it has no more, with those above them: a node that changes one
    of these labels is in another domain once the level is back."""
    _last: dict[str, Above] = field(default_factory=dict)

    def follow(
        self, used: Mapping[str, Levels], shared: Iterable[str]
    ) -> dict[str, frozenset[str]]:
        """By topology, the levels that may have been split since plans were made by it.

        `used`: topologies that are made of labels now, their levels widest first; `shared`: those
        of them that also serve gangs which name none. Of one that is gone, the levels that only
        others have, where one of their domains may be a part of its own.
        """
        now = {name: _above(levels) for name, levels in used.items()}
        instead: dict[str, list[frozenset[str]]] = {}
        for name in shared:
            for level, above in now[name].items():
                instead.setdefault(level, []).append(above)
        found = {
            name: frozenset(
                level
                for level, above in before.items()
                if (others := _of(now[name], level) if name in now else instead.get(level))
                and not any(each <= above for each in others)
            )
            for name, before in self._last.items()
        }
        for name, levels in now.items():
            self._last[name] = {**self._last.get(name, {}), **levels}
        if len(self._last) > len(now) + MOST_REMEMBERED:
            self._last = dict(now)
        gone = ((name, _gone(last, now.get(name, {}))) for name, last in self._last.items())
        self.gone = {name: levels for name, levels in gone if levels}
        return {name: levels for name, levels in found.items() if levels}


def _above(levels: Levels) -> Above:
    return {level: frozenset(levels[:at]) for at, level in enumerate(levels) if level != NODE_LEVEL}


def _gone(last: Above, now: Above) -> frozenset[str]:
    """The levels that there are no more, and those that were above them."""
    return frozenset().union(*({level, *last[level]} for level in last.keys() - now.keys()))


def _of(topology: Above, level: str) -> list[frozenset[str]]:
    return [topology[level]] if level in topology else []
