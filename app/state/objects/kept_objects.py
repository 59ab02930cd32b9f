"""Objects that follow from the labels of nodes: whether there is something to write, and when.

    watch ─▶ labels of nodes, objects ─▶ comparison, in a thread ─▶ difference ─▶ what is due
                                            of the vocabulary        grace, pauses

Nothing is compared while nothing has changed. An object that is not wanted any more is deleted
after a grace, as Nodes are deleted and made anew, and labels are taken off and put on. The same
write is sent again later and later: it may be refused, or another controller may write otherwise.
All of this may be forgotten, and then only takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from app.dialects.dialect import KeptKind, Strings
from app.dialects.written import Difference, ObjectWrite
from app.kube.core.objects import NodeRecord, ObjectRecord, Record
from app.kube.watch.events import Applied, Deleted, Event, Kind, Listed
from app.state.pauses import doubled

NODE = "Node"
GRACE_SECONDS = 10.0  # a Node that is deleted and made anew is back by then
MOST_AT_ONCE = 50  # writes of one look
PAUSE_SECONDS = 1.0  # until the same is written again, doubled each time …
LONGEST_PAUSE_SECONDS = 3_600.0  # … up to this, …
LONGEST_REFUSED_SECONDS = 60.0  # … or to this if it was not taken: a right may be missing


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that a difference depends on, as it was at one moment."""

    kept: KeptKind
    nodes: Mapping[str, Strings]
    there: Mapping[str, ObjectRecord]

    def difference(self) -> Difference:
        """What is to be written. It may take long."""
        return self.kept.difference(self.nodes, self.there)


@dataclass(slots=True)
class _Sent:
    """A write that was sent."""

    body: Mapping[str, object] | None
    at: float
    times: int = 1
    is_refused: bool = False

    @property
    def again_at(self) -> float:
        longest = LONGEST_REFUSED_SECONDS if self.is_refused else LONGEST_PAUSE_SECONDS
        return self.at + doubled(PAUSE_SECONDS, self.times, longest)


@dataclass(slots=True)
class KeptObjects:
    """What the watch shows that concerns the objects of one kind, and what was written of them.

    `_nodes`, `_there`: labels and objects by name. `_unwanted_since`: by uid. `_sent`: by name.
    """

    kept: KeptKind
    _nodes: dict[str, Strings] = field(default_factory=dict)
    _there: dict[str, ObjectRecord] = field(default_factory=dict)
    _listed: set[Kind] = field(default_factory=set)
    _is_changed: bool = False  # since the last comparison
    _again_at: float = inf  # when there is something to write, though nothing changes
    _not_before: float = -inf  # the API server does not answer
    _pauses: int = 0  # in a row
    _unwanted_since: dict[str, float] = field(default_factory=dict)
    _sent: dict[str, _Sent] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of what `apply` is to be told."""
        return NODE, self.kept.kind

    # -- the watch -----------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Learn what the watch shows of nodes, or of the objects."""
        if isinstance(event, Listed):
            (self._nodes if event.kind == NODE else self._there).clear()
            for record in event.records:
                self._put(record)
            self._listed.add(event.kind)
            self._is_changed = True
            self._not_before = -inf
        elif isinstance(event, Applied):
            self._put(event.record)
        elif isinstance(event, Deleted):
            self._drop(event.record)

    def _put(self, record: Record) -> None:
        if isinstance(record, NodeRecord):
            self._is_changed |= self._nodes.get(record.name) != record.labels
            self._nodes[record.name] = record.labels
        elif isinstance(record, ObjectRecord):
            self._is_changed = True
            self._there[record.name] = record

    def _drop(self, record: Record) -> None:
        known = self._nodes if isinstance(record, NodeRecord) else self._there
        self._is_changed |= known.pop(record.name, None) is not None

    # -- what follows --------------------------------------------------------------------------

    def comparison(self, now: float) -> Comparison | None:
        """What is to be compared now; None if there is nothing to do, or not all is read."""
        is_due = (self._is_changed or self._again_at <= now) and not self.is_paused(now)
        if not is_due or not self._listed.issuperset(self.kinds):
            return None
        self._is_changed = False
        return Comparison(self.kept, dict(self._nodes), dict(self._there))

    def due(self, difference: Difference, now: float) -> list[ObjectWrite]:
        """The writes whose time has come, as many as may be sent at once."""
        unwanted = [each.uid for each in difference.writes if each.body is None]
        self._unwanted_since = {uid: self._unwanted_since.get(uid, now) for uid in unwanted}
        self._forget_sent(difference, now)
        self._again_at = inf
        due = list[ObjectWrite]()
        for write in difference.writes:
            at = self._earliest(write)
            if at > now:
                self._again_at = min(self._again_at, at)
            elif len(due) < MOST_AT_ONCE:
                due.append(write)
            else:
                self._again_at = now
                break
        return due

    def _earliest(self, write: ObjectWrite) -> float:
        """When it may be sent."""
        sent = self._sent.get(write.name)
        is_sent = sent is not None and sent.body == write.body
        at = sent.again_at if sent is not None and is_sent else -inf
        if write.body is None:
            return max(at, self._unwanted_since[write.uid] + GRACE_SECONDS)
        return at

    def _forget_sent(self, difference: Difference, now: float) -> None:
        """Forget what has been there for long: another controller may write it for ever."""
        names = {each.name for each in difference.writes}
        for name, sent in list(self._sent.items()):
            if name not in names and now - sent.at > LONGEST_PAUSE_SECONDS:
                del self._sent[name]

    def sent(self, write: ObjectWrite, now: float) -> None:
        """A write is about to be sent."""
        before = self._sent.get(write.name)
        is_repeated = before is not None and before.body == write.body
        times = before.times + 1 if before is not None and is_repeated else 1
        sent = self._sent[write.name] = _Sent(write.body, now, times)
        self._again_at = min(self._again_at, sent.again_at)

    def written(self) -> None:
        """The API server has taken a write; so it answers again."""
        self._pauses = 0

    def refused(self, write: ObjectWrite) -> None:
        """The API server has not taken a write."""
        sent = self._sent[write.name]
        sent.is_refused = True
        self._again_at = min(self._again_at, sent.again_at)

    def pause(self, now: float) -> None:
        """Send nothing for a while: the API server does not answer, or does not know the kind."""
        self._pauses += 1
        self._not_before = now + doubled(PAUSE_SECONDS, self._pauses, LONGEST_REFUSED_SECONDS)
        self._again_at = min(self._again_at, self._not_before)

    def is_paused(self, now: float) -> bool:
        """Whether that while has not passed."""
        return now < self._not_before

    def rest(self) -> None:
        """Another Corral leads: what was unwanted here may have been wanted since."""
        self._unwanted_since.clear()
        self._is_changed = True
