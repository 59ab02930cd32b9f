"""What a gang has noted on its own pods, so that it is known after a restart.

    a pod succeeds              noted after a while: most gangs end as a whole, and need no note
    a succeeded pod is deleted  noted at once: nothing else says any more that it succeeded
    a pod with a note goes      another member gets it

Two live members carry the note, so that one of them may go while Corral does not run. Where only
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

    _due: dict[GangKey, float] = field(default_factory=dict)

    def look(self, gang: Gang, now: float) -> None:
        """The members have changed: look soon at what is noted on them."""
        if gang.succeeded.present or gang.succeeded.gone:
            self._due.setdefault(gang.key, now + PRESENT_SECONDS)

    def hurry(self, gang: Gang, now: float) -> None:
        """A pod is gone of which only a note can say that it succeeded."""
        at = now + GONE_SECONDS
        self._due[gang.key] = min(self._due.get(gang.key, at), at)

    def written(self, gangs: Mapping[GangKey, Gang], now: float) -> Iterator[Annotate]:
        """The notes that are missing by now."""
        for key in [key for key, at in self._due.items() if at <= now]:
            del self._due[key]
            missing = list(_missing(gangs[key])) if key in gangs else []
            if missing:
                self._due[key] = now + SEEN_SECONDS
            yield from missing


def carriers(gang: Gang) -> tuple[PodRecord, ...]:
    """The pods that are to have the gang's note, as the watch shows them."""
    membership = gang.membership
    if membership.spec is None or not membership.spec.lifecycle.remembers_succeeded:
        return ()
    live = (*membership.bound, *membership.joining, *membership.excess)
    # The note may have come since the last roll call.
    return tuple(gang.members[member.pod.uid].pod for member in live[:CARRIERS])


def _missing(gang: Gang) -> Iterator[Annotate]:
    text = gang.succeeded.text
    for pod in carriers(gang):
        if pod.annotations.get(corral.SUCCEEDED, "") != text:
            yield Annotate(pod.namespace, pod.name, pod.uid, ((corral.SUCCEEDED, text),))
