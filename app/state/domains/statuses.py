"""What is written into the status of objects that declare domains, and told of them.

    a domain's nodes or flaws change, or ─▶ due ─▶ dialect.domain_status ─▶ WriteStatus, EmitEvent
    the watch shows its object ──────────┘  └──────────── until it is there

What does not come to be there is written again, less and less often: the API server may be away,
another Corral may lead and write it, or another controller may count otherwise, for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from app.dialects.declared import DomainView
from app.dialects.registry import Dialects
from app.dialects.spec import GangKey
from app.dialects.written import StatusPatch
from app.kube.core.objects import ObjectRecord
from app.state.domains.topologies import Topologies
from app.state.effects import Effect, EmitEvent, ObjectRef, WriteStatus
from app.state.objects.declared import Objects
from app.state.pauses import doubled

MOST_PER_TICK = 50  # domains looked at
LEAST_SECONDS = 1.0  # between two statuses of one object: nodes come one by one
AGAIN_SECONDS = 30.0  # until the same is written again, doubled each time …
LONGEST_SECONDS = 3_600.0  # … up to this


@dataclass(slots=True)
class _Sent:
    view: DomainView
    at: float
    times: int = 1

    @property
    def again_at(self) -> float:
        return self.at + doubled(AGAIN_SECONDS, self.times, LONGEST_SECONDS)


@dataclass(slots=True)
class DomainStatuses:
    """The objects whose status may have to be written.

    `_due`: by uid, when it is looked at. `_told`: the reasons that events have named.
    """

    dialects: Dialects
    objects: Objects
    topologies: Topologies
    _due: dict[str, float] = field(default_factory=dict)
    _sent: dict[str, _Sent] = field(default_factory=dict)
    _told: dict[str, frozenset[str]] = field(default_factory=dict)

    def note(self, uid: str, now: float) -> None:
        """Look at an object: the watch shows it, with whatever status."""
        if self.topologies.has_domain(uid):
            self._due[uid] = now

    def drop(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._due.pop(uid, None)
        self._sent.pop(uid, None)
        self._told.pop(uid, None)

    def review(self, now: float) -> Iterator[Effect]:
        """What is to be written now."""
        self._due.update((uid, now) for uid in self.topologies.taken_touched())
        due = [uid for uid, at in self._due.items() if at <= now]
        for uid in due[:MOST_PER_TICK]:
            del self._due[uid]
            record, view = self.objects.by_uid.get(uid), self.topologies.view(uid)
            if record is not None and view is not None:
                yield from self._of(record, view, now)

    def _of(self, record: ObjectRecord, view: DomainView, now: float) -> Iterator[Effect]:
        patch, uid = self.dialects.domain_status(record, view), record.uid
        reasons = frozenset(flaw.reason for flaw in view.flaws)
        if patch is None:  # it is there
            self._told[uid] = reasons
            return
        sent = self._sent.get(uid)
        is_new = sent is None or sent.view != view
        if sent is not None and now < (not_before := _not_before(sent, is_new=is_new)):
            self._due[uid] = not_before
            return
        if not reasons <= self._told.get(uid, frozenset()):
            yield _event(record, patch, view)
        self._told[uid] = reasons
        sent = self._sent[uid] = _Sent(view, now, 1 if sent is None or is_new else sent.times + 1)
        self._due[uid] = sent.again_at
        yield WriteStatus(_key(record), patch.path, patch.uid, patch.status, patch.version)


def _not_before(sent: _Sent, *, is_new: bool) -> float:
    return sent.at + LEAST_SECONDS if is_new else sent.again_at


def _event(record: ObjectRecord, patch: StatusPatch, view: DomainView) -> EmitEvent:
    _, _, group, version, *_ = patch.path.split("/")
    about = ObjectRef(f"{group}/{version}", record.kind, record.namespace, record.name, record.uid)
    first, *more = view.flaws
    sentence = f"{first.text}; and {len(more)} more" if more else first.text
    return EmitEvent(_key(record), about, first.reason, sentence, is_warning=True)


def _key(record: ObjectRecord) -> GangKey:
    """No gang: who takes turns, in the queues of what is written."""
    return GangKey(record.namespace, record.name, record.kind, record.uid)
