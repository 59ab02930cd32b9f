"""Who may go, what is lost with them, and the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from topology.model.answer import NoFit, Placement
from topology.model.changed.capacity import Occupant


@dataclass(frozen=True, slots=True)
class Victim(Occupant):
    """What goes as one: a pod, or all bound pods of a gang. `rank` is its priority."""

    is_gang: bool = False
    ends_for_good: bool = False
    """Its owner makes no other pods in place of these, such as a Job past its backoffLimit."""
    lost_work: int = 0
    """What is lost with it, in any unit: pods times the time since they started, say."""
    elsewhere: int = 0
    """Pods that go with it and are on no node of the tree."""
    held: int = 0
    """How many of `pods` do not exist, or do not run yet: places that are held for it."""
    protected: tuple[tuple[str, int], ...] = ()
    """(budget, pods of this victim that count against it)."""
    counted: tuple[tuple[str, int], ...] = ()
    """(owner, pods of this victim that it counts as failed): after too many it gives up."""

    @property
    def pods_lost(self) -> int:
        """How many pods end with it, on whichever nodes."""
        return len(self.pods) - self.held + self.elsewhere


class Loss(NamedTuple):
    """What goes with some victims; the first number that differs decides which set is the least."""

    ended_for_good: int
    gangs: int
    pods: int
    lost_work: int

    def plus(self, other: Loss) -> Loss:
        """What goes with both."""
        return Loss(self[0] + other[0], self[1] + other[1], self[2] + other[2], self[3] + other[3])


NOTHING = Loss(0, 0, 0, 0)


_NO_OWNERS: Mapping[str, int] = {}


def loss_of(victims: Iterable[Victim], lasts: Mapping[str, int] = _NO_OWNERS) -> Loss:
    """What goes with all of these.

    `lasts`: how many pods an owner may lose before it gives up; one that is not named any number.
    """
    chosen = list(victims)
    return Loss(
        sum(victim.ends_for_good for victim in chosen) + len(given_up(chosen, lasts)),
        sum(victim.is_gang for victim in chosen),
        sum(victim.pods_lost for victim in chosen),
        sum(victim.lost_work for victim in chosen),
    )


def given_up(victims: Iterable[Victim], lasts: Mapping[str, int]) -> list[str]:
    """The owners that lose too many pods with these."""
    failed = Counter[str]()
    for victim in victims:
        for owner, pods in victim.counted:
            failed[owner] += pods
    return [owner for owner, pods in failed.items() if pods > lasts.get(owner, pods)]


@dataclass(frozen=True, slots=True)
class Victims:
    """The gang has this place once they are gone, and not if one of them stays."""

    keys: tuple[str, ...]
    """In the order they were named in."""
    priority: int
    """The highest among them; no set does in which all are of a lower one."""
    loss: Loss
    """Of all sets with that priority the least; of those that only differ in work, a small one."""
    placement: Placement
    visits: int = 0
    """What it took: nodes whose books were changed, and searches."""
    is_proven: bool = True
    """No set ends fewer for good, or breaks fewer gangs, or as many with fewer pods. False: not
    everything was tried; each is needed all the same, but in a set so large that `thin` ended."""


@dataclass(frozen=True, slots=True)
class NoVictims:
    """None of those that may go make room."""

    why: NoFit
    """With all of them gone; where budgets are in the way, as it is now or beside those kept."""
    budgets: tuple[str, ...] = ()
    """Budgets without which it would have room, alphabetical."""
    visits: int = 0
    is_cut_short: bool = False
    """Not everything was tried."""
