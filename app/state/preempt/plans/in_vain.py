"""Gangs that others have gone for in vain, and for which none go for now.

    pods do not end in time     once more, around them; after two such places none go before one of
                                these has ended, however long that takes, or the gang has a place
    three places in an hour     none go before the first of them is an hour ago

A place is in vain until the gang has started; so is one that it had, and that kube-scheduler did
not bring its pods to. All counts for what the gang needs: one that needs another place, or has
another priority, has had none in vain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from app.dialects.spec import GangKey

MOST_STUCK = 2  # places with pods that do not end
MOST_IN_VAIN = 3  # places in …
IN_VAIN_SECONDS = 3600.0
MOST_COUNTED = 1_024  # gangs

Needed = tuple[int, tuple[object, ...]]  # lowest priority, and what has to be served


@dataclass(slots=True)
class _Places:
    """Those that were made for one gang."""

    needed: Needed
    at: list[float] = field(default_factory=list)
    """When each came to its end, in the last hour."""
    stuck: list[set[str]] = field(default_factory=list)
    """Uids of the pods that do not end; a place without any more is not in it."""


@dataclass(slots=True)
class InVain:
    """What has become of the places that were made for gangs that have not started since."""

    _of: dict[GangKey, _Places] = field(default_factory=dict)

    def __iter__(self) -> Iterator[GangKey]:
        return iter(tuple(self._of))

    def note(self, key: GangKey, needed: Needed, now: float) -> None:
        """Others have gone for a gang, which has not started."""
        places = self._places(key, needed, now)
        if places is not None:
            places.at = [*_lately(places, now), now][-MOST_IN_VAIN:]

    def note_stuck(self, key: GangKey, needed: Needed, uids: Collection[str], now: float) -> None:
        """These pods of a gang's place do not end."""
        places = self._places(key, needed, now)
        if places is not None and all(place.isdisjoint(uids) for place in places.stuck):
            places.stuck = [*places.stuck, set(uids)][:MOST_STUCK]

    def note_gone(self, uid: str) -> list[GangKey]:
        """A pod is gone; the gangs for which others may go again."""
        again = []
        for key, places in self._of.items():
            was_stopped = len(places.stuck) >= MOST_STUCK
            for uids in places.stuck:
                uids.discard(uid)
            places.stuck = [uids for uids in places.stuck if uids]
            if was_stopped and len(places.stuck) < MOST_STUCK:
                again.append(key)
        return again

    def note_placed(self, key: GangKey) -> bool:
        """The gang has a place; whether there was any with pods that do not end."""
        places = self._of.get(key)
        if places is None or not places.stuck:
            return False
        places.stuck = []
        return True

    def forget(self, key: GangKey) -> None:
        """The gang has started."""
        self._of.pop(key, None)

    def stuck(self, key: GangKey, needed: Needed) -> list[Sequence[str]]:
        """By place: the pods that do not end, in order."""
        places = self._known(key, needed)
        return [] if places is None else [sorted(uids) for uids in places.stuck]

    def is_stuck(self, key: GangKey, needed: Needed) -> bool:
        """Whether no others go before some pod has ended."""
        places = self._known(key, needed)
        return places is not None and len(places.stuck) >= MOST_STUCK

    def is_often(self, key: GangKey, needed: Needed, now: float) -> bool:
        """Whether others have gone so often that no more do for now."""
        places = self._known(key, needed)
        return places is not None and len(_lately(places, now)) >= MOST_IN_VAIN

    def _known(self, key: GangKey, needed: Needed) -> _Places | None:
        places = self._of.get(key)
        return places if places is not None and places.needed == needed else None

    def _places(self, key: GangKey, needed: Needed, now: float) -> _Places | None:
        """Those of this gang, as long as it needs the same; None: too many gangs have some."""
        if (places := self._known(key, needed)) is not None:
            return places
        if len(self._of) >= MOST_COUNTED:
            self._of = {
                each: its for each, its in self._of.items() if its.stuck or _lately(its, now)
            }
        if key not in self._of and len(self._of) >= MOST_COUNTED:
            return None
        self._of[key] = _Places(needed)
        return self._of[key]


def _lately(places: _Places, now: float) -> list[float]:
    return [at for at in places.at if now < at + IN_VAIN_SECONDS]
