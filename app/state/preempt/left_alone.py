"""Who goes for no gang for a while, whatever the priority.

evicted for gangs so often in an hour      a gang; or a controller, with its pods outside gangs
not evicted though that was asked for      a pod and its gang, for a minute
where others took what was freed           the nodes, after two such thefts, for ten minutes
ends, and has not in time                  what the pod takes does not count as getting free
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.state.preempt.standing import Spared
from app.state.settings import EngineSettings

EVICTED_SECONDS = 3600.0  # `preempted_at_most` counts for so long
REFUSED_SECONDS = 60.0  # a pod that was not evicted is not asked for again so soon
THEFT_SECONDS = 600.0  # so long a domain is left alone …
MOST_THEFTS = 2  # … in which others took so often what was freed
MOST_COUNTED = 4_096  # gangs, controllers, pods and domains that are remembered


@dataclass(slots=True)
class Recent:
    """When things happened, by what they happened to."""

    seconds: float  # for so long they count
    _at: dict[Hashable, deque[float]] = field(default_factory=dict)

    def note(self, what: Hashable, now: float) -> None:
        if what not in self._at and len(self._at) >= MOST_COUNTED:
            self._at = {each: at for each, at in self._at.items() if self._count(at, now)}
        if what in self._at or len(self._at) < MOST_COUNTED:
            self._at.setdefault(what, deque()).append(now)

    def often(self, most: int, now: float) -> Iterator[Hashable]:
        """What it happened to so often, or more."""
        return (what for what, at in self._at.items() if self._count(at, now) >= most)

    def count(self, what: Hashable, now: float) -> int:
        return self._count(self._at.get(what, deque()), now)

    def _count(self, at: deque[float], now: float) -> int:
        while at and at[0] <= now - self.seconds:
            at.popleft()
        return len(at)


@dataclass(slots=True)
class LeftAlone:
    """What has happened to victims lately."""

    settings: EngineSettings
    _evicted: Recent = field(default_factory=lambda: Recent(EVICTED_SECONDS))
    """By gang, and by the uid of a controller."""
    _refused: Recent = field(default_factory=lambda: Recent(REFUSED_SECONDS))  # by the pod's uid
    _thefts: dict[str, list[tuple[float, frozenset[str]]]] = field(default_factory=dict)
    """By domain: when others took what was freed, and on which nodes."""
    stuck: set[str] = field(default_factory=set)
    """Uids of pods that end, and have not in time."""

    def note_evicted(self, whose: GangKey | str, now: float) -> None:
        """A gang goes, or a pod outside gangs of the controller with this uid."""
        self._evicted.note(whose, now)

    def note_refused(self, uid: str, now: float) -> None:
        """A pod was not evicted."""
        self._refused.note(uid, now)

    def note_theft(self, domain: str, nodes: Collection[str], now: float) -> None:
        """Others took what was freed on these nodes of a domain."""
        if domain in self._thefts or len(self._thefts) < MOST_COUNTED:
            self._thefts.setdefault(domain, []).append((now, frozenset(nodes)))

    def note_stuck(self, uids: Iterable[str]) -> None:
        """These pods have not ended in time."""
        self.stuck.update(uids)

    def note_gone(self, uid: str) -> None:
        """A pod is gone."""
        self.stuck.discard(uid)

    def spared(self, now: float, newest: float) -> Spared:
        """Those that are left alone now, and all that were created after `newest`."""
        often = list(self._evicted.often(self.settings.preempted_at_most, now))
        return Spared(
            frozenset(each for each in often if isinstance(each, GangKey)),
            frozenset(each for each in often if isinstance(each, str)),
            frozenset(str(uid) for uid in self._refused.often(1, now)),
            frozenset(self.stuck),
            self.nodes(now),
            newest,
        )

    def nodes(self, now: float) -> frozenset[str]:
        """The nodes where others have taken too often what was freed."""
        found = set[str]()
        for domain, thefts in list(self._thefts.items()):
            thefts[:] = [each for each in thefts if now < each[0] + THEFT_SECONDS]
            if not thefts:
                del self._thefts[domain]
            elif len(thefts) >= MOST_THEFTS:
                found.update(*(nodes for _, nodes in thefts))
        return frozenset(found)
