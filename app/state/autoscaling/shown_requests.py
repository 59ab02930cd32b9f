"""The requests and templates of ours that the watch shows, by the gang they are for.

What is ours and belongs to no gang any more is deleted, by what two looks in a row have found; so
are PodTemplates whose request is not there. A deletion is sent again until it shows, ever later.
A look takes as many steps as there are gangs by hundreds: anybody may make what looks like ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from app.dialects.provisioning import keys
from app.dialects.provisioning.records import RequestRecord, TemplateRecord
from app.kube.core.objects import ObjectRecord
from app.state.effects import EndAsk
from app.state.queueing.outbox import Outbox

UNSEEN_SECONDS, MOST_UNSEEN_SECONDS = 10.0, 60.0  # until what does not show is written again
MOST_LOOKED_AT = 256  # gangs in one step of a look: 8 us each

Place = tuple[str, str]  # namespace, gang uid


@dataclass(slots=True)
class Shown:
    """A request that the watch shows. Times are when we first saw it so."""

    record: RequestRecord
    since: float = math.inf
    over_at: float = math.inf
    mended: int = 0
    mended_at: float = -math.inf
    looked_at: float = -math.inf  # when it was last looked whether the pods fit, but apart …
    is_apart: bool = False  # … and what was found then

    @property
    def attempt(self) -> int:
        return self.record.attempt


@dataclass(slots=True)
class _Sent:
    at: float
    again_after: float = UNSEEN_SECONDS


@dataclass(slots=True)
class ShownRequests:
    """Invariant: `_of` has the uids of both kinds, and no place without any."""

    outbox: Outbox
    _requests: dict[str, Shown] = field(default_factory=dict)  # by uid
    _templates: dict[str, TemplateRecord] = field(default_factory=dict)  # by uid
    _of: dict[Place, dict[str, None]] = field(default_factory=dict)
    _ending: dict[str, _Sent] = field(default_factory=dict)  # by uid: deletions under way
    _strays_at: dict[Place, frozenset[str]] = field(default_factory=dict)
    """Those without a gang, at the last look there."""
    _round: list[Place] = field(default_factory=list)  # what is left of this look

    def __bool__(self) -> bool:
        """Whether there is any of them."""
        return bool(self._of)

    # -- the watch -----------------------------------------------------------------------------

    def put(self, record: ObjectRecord) -> Place | None:
        """Learn of an object; the place it is at, if it is one of ours."""
        if isinstance(record, RequestRecord) and record.attempt:
            if record.uid in self._requests:
                self._requests[record.uid].record = record
            else:
                self._requests[record.uid] = Shown(record)
        elif isinstance(record, TemplateRecord) and record.gang_uid:
            self._templates[record.uid] = record
        else:
            return None
        place = (record.namespace, record.gang_uid)
        self._of.setdefault(place, {})[record.uid] = None
        return place

    def drop(self, uid: str) -> Place | None:
        """Forget an object that is gone; where it was, if it was one of ours."""
        known = self._requests.pop(uid, None)
        record = self._templates.pop(uid, None) if known is None else known.record
        if record is None:
            return None
        self._ending.pop(uid, None)
        place = (record.namespace, record.gang_uid)
        del self._of[place][uid]
        if not self._of[place]:
            del self._of[place]
            self._strays_at.pop(place, None)
        return place

    # -- what is there -------------------------------------------------------------------------

    @property
    def namespaces(self) -> frozenset[str]:
        """Those that have some."""
        return frozenset(namespace for namespace, _ in self._of)

    def at(self, place: Place) -> list[Shown]:
        """The requests of a gang, by attempt."""
        found = (self._requests[uid] for uid in self._of.get(place, ()) if uid in self._requests)
        return sorted(found, key=lambda each: each.attempt)

    def is_whole(self, request: RequestRecord) -> bool:
        """Whether all PodTemplates that a request names are there, and end with it."""
        theirs = self._templates_at((request.namespace, request.gang_uid))
        owned = {each.name for each in theirs if request.uid in each.requests}
        return owned.issuperset(request.templates)

    def _templates_at(self, place: Place) -> Iterator[TemplateRecord]:
        uids = self._of.get(place, ())
        return (self._templates[uid] for uid in uids if uid in self._templates)

    # -- deletions -----------------------------------------------------------------------------

    def end(self, requests: Iterable[Shown], now: float) -> None:
        """Delete these, and the templates that are seen to be theirs."""
        for each in requests:
            record = each.record
            if self._is_due(record.uid, now):
                theirs = sorted(
                    (template.name, template.uid)
                    for template in self._templates_at((record.namespace, record.gang_uid))
                    if keys.request_of(template.name) == record.name
                )
                self.outbox.add(EndAsk(record.namespace, record.name, record.uid, tuple(theirs)))

    def _is_due(self, uid: str, now: float) -> bool:
        """Whether a deletion is to be sent, or sent again."""
        sent = self._ending.get(uid)
        if sent is None:
            self._ending[uid] = _Sent(now)
            return True
        if now < sent.at + sent.again_after:
            return False
        sent.at, sent.again_after = now, min(2 * sent.again_after, MOST_UNSEEN_SECONDS)
        return True

    def begin_look(self) -> None:
        """Begin to look at all there is."""
        self._round = list(self._of)

    def end_strays(self, keeps: Callable[[Place], Collection[str] | None], now: float) -> bool:
        """Delete what belongs to no gang, and send again what does not show; whether more is left.

        `keeps`: requests of a gang whose templates stay although these do not show, for they are
        being made; None: no request is for this gang any more.
        """
        places, self._round = self._round[:MOST_LOOKED_AT], self._round[MOST_LOOKED_AT:]
        for place in places:
            found = frozenset(self._strays(place, keeps(place)))
            known = self._strays_at.pop(place, frozenset())
            for uid in sorted(found & known):  # not those that are found so for the first time
                if uid in self._requests:
                    self.end([self._requests[uid]], now)
                elif self._is_due(uid, now):
                    template = self._templates[uid]
                    self.outbox.add(EndAsk(template.namespace, "", "", ((template.name, uid),)))
            if found:
                self._strays_at[place] = found
            self.end([each for each in self.at(place) if each.record.uid in self._ending], now)
        return bool(self._round)

    def _strays(self, place: Place, kept: Collection[str] | None) -> Iterator[str]:
        requests = self.at(place)
        if kept is None:
            yield from (each.record.uid for each in requests)
        names = {*(each.record.name for each in requests), *(kept or ())}
        for template in self._templates_at(place):
            if keys.request_of(template.name) not in names:
                yield template.uid
