"""What a gang has noted on its own pods, so that it is known after a restart.

    a pod succeeds              noted after a while: most gangs end as a whole, and need no note
    a succeeded pod is deleted  noted at once: nothing else says any more that it succeeded
    a pod with a note goes      another member gets it
    others are evicted          where the gang is to be is noted at once, until it is there or not

Two live members carry each note, so that one of them may go while Corral does not run. Where only
pods in excess are left, they carry it: without it they would be members after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.dialects import corral
from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.effects import Annotate
from app.state.gang.gang import Gang

CARRIERS = 2  # members with the note
PRESENT_SECONDS = 10.0  # until succeeded pods are noted that still exist
GONE_SECONDS = 1.0  # the same for deleted ones: those deleted together cost one write
SEEN_SECONDS = 10.0  # until it is looked at again whether the watch shows a note


@dataclass(slots=True)
class Notes:
    """The gangs whose notes have to be looked at, and when."""

    found: dict[GangKey, str] = field(default_factory=dict)
    """Places that the Corral before this one has noted on pods that wait."""
    _due: dict[GangKey, float] = field(default_factory=dict)
    _rooms: dict[GangKey, str] = field(default_factory=dict)
    """The places to be noted; "": none any more, and some pod may still say so."""

    def look(self, gang: Gang, now: float) -> None:
        """The members have changed: look soon at what is noted on them."""
        if gang.succeeded.present or gang.succeeded.gone:
            self._due.setdefault(gang.key, now + PRESENT_SECONDS)

    def hurry(self, gang: Gang, now: float) -> None:
        """A pod is gone of which only a note can say that it succeeded."""
        at = now + GONE_SECONDS
        self._due[gang.key] = min(self._due.get(gang.key, at), at)

    def find_room(self, key: GangKey, pod: PodRecord) -> None:
        """Read what a pod says at the start of the place that is kept for its gang."""
        text = pod.annotations.get(corral.ROOM, "")
        if text and not pod.node:
            self.found[key] = text

    def note_room(self, key: GangKey, text: str, now: float) -> None:
        """Have the place noted that is kept for a gang; "": none is any more."""
        if text or key in self._rooms:
            self._rooms[key] = text
            self._due[key] = now

    def written(self, gangs: Mapping[GangKey, Gang], now: float) -> Iterator[Annotate]:
        """The notes that are missing by now."""
        for key in [key for key, at in self._due.items() if at <= now]:
            del self._due[key]
            room = self._rooms.get(key)
            missing = list(_missing(gangs[key], room)) if key in gangs else []
            if missing:
                self._due[key] = now + SEEN_SECONDS
            elif not room or key not in gangs:
                self._rooms.pop(key, None)
            yield from missing


def carriers(gang: Gang) -> tuple[PodRecord, ...]:
    """The pods that are to have the gang's note, as the watch shows them."""
    membership = gang.membership
    if membership.spec is None or not membership.spec.lifecycle.remembers_succeeded:
        return ()
    live = (*membership.bound, *membership.joining, *membership.excess)
    # The note may have come since the last roll call.
    return tuple(gang.members[member.pod.uid].pod for member in live[:CARRIERS])


def _missing(gang: Gang, room: str | None) -> Iterator[Annotate]:
    """`room`: the place that is to be noted; None: that is not looked at."""
    text, its = gang.succeeded.text, carriers(gang)
    if gang.succeeded.is_unsettled:
        its = ()  # what they say has not been taken in yet
    elif not text:
        its = tuple(each.pod for each in gang.members.values())  # none may say otherwise
    for pod in its:
        if pod.annotations.get(corral.SUCCEEDED, "") != text:
            yield Annotate(pod.namespace, pod.name, pod.uid, ((corral.SUCCEEDED, text),))
    if room is not None:
        waiting = [each.pod for each in gang.members.values() if each.is_live and not each.pod.node]
        waiting.sort(key=lambda pod: pod.annotations.get(corral.ROOM, "") != room)
        for number, pod in enumerate(waiting):
            wanted = room if number < CARRIERS else ""
            if pod.annotations.get(corral.ROOM, "") != wanted:
                yield Annotate(pod.namespace, pod.name, pod.uid, ((corral.ROOM, wanted),))
