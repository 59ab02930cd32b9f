"""What is written into the status of a vocabulary's objects: once per change of a gang.

a gang's phase or its objects change ──▶ due ──▶ dialect.status ──▶ WriteStatus, if new
                                          ▲                              │
                                          └── it does not show ◀─────────┘
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from app.dialects.registry import Dialects
from app.dialects.spec import GangKey, GangSpec
from app.dialects.written import GangView, StatusPatch
from app.state.effects import WriteStatus
from app.state.gang.gang import Gang, Phase
from app.state.gang.members import minimum
from app.state.isolation import OnFault, confined, reraise
from app.state.objects.declared import Objects
from app.state.objects.pools import Pools

LEAST_SECONDS, MOST_SECONDS = 10.0, 300.0  # until a status that does not show is sent again
LOST_SECONDS = 1.0  # the same of one that was lost, and is for a version of its object
REVIEW_SECONDS = 1.0
# A gang's own changes are fewer. Another controller may write otherwise, as soon as it sees ours.
MOST_AT_ONCE, ONE_MORE_SECONDS = 20, 5.0  # writes of one object's status
_WAITS = (Phase.GATHERING, Phase.WAITING, Phase.REPAIRING)  # pods wait


@dataclass(slots=True)
class _Sent:
    patch: StatusPatch
    again_after: float = LEAST_SECONDS
    at: float | None = None  # known from the next review on
    is_lost: bool = False


@dataclass(slots=True)
class Statuses:
    """The gangs whose status may have changed; `_sent` is what was sent last and does not show.

    `_written`: by path, how often of late. `_put_off`: gangs whose status was written too often.
    """

    dialects: Dialects
    objects: Objects
    pools: Pools
    on_fault: OnFault = reraise
    nearness: Callable[[Gang], float | None] = lambda _: None
    """How near the pods of a gang are to what it prefers."""
    _due: dict[GangKey, None] = field(default_factory=dict)
    _sent: dict[GangKey, dict[str, _Sent]] = field(default_factory=dict)  # by path
    _reviewed_at: float = -math.inf
    _written: Counter[str] = field(default_factory=Counter)
    _put_off: dict[GangKey, None] = field(default_factory=dict)
    _eased_at: float = -math.inf

    def note(self, key: GangKey) -> None:
        """Note that a gang changed in something that its vocabulary may report."""
        if self.dialects.of(key).writes_status:
            self._due[key] = None

    def repeat_lost(self, key: GangKey) -> None:
        """Have the statuses of a gang written again, one of which was lost.

        One that is for a version of its object was most likely refused for another: it is refused
        again until the watch shows that, and so is not written on every tick.
        """
        its = self._sent.get(key, {}).values()
        for sent in its:
            if sent.patch.version:
                sent.again_after, sent.at = LOST_SECONDS, None
            else:
                sent.is_lost = True
        if not its or any(sent.is_lost for sent in its):
            self.note(key)

    def review(self, now: float) -> None:
        """Have what was sent a while ago and does not show sent again.

        What is sent is not written while another Corral leads; once this one does, this has it
        written.
        """
        if now < self._reviewed_at + REVIEW_SECONDS:
            return
        self._reviewed_at = now
        if now >= self._eased_at + ONE_MORE_SECONDS:
            self._eased_at = now
            self._written -= Counter(dict.fromkeys(self._written, 1))  # those at 0 are forgotten
            self._due.update(self._put_off)
            self._put_off.clear()
        for key, of_gang in self._sent.items():
            for sent in of_gang.values():
                if sent.at is None:
                    sent.at = now
                elif now >= sent.at + sent.again_after:
                    sent.again_after = min(2 * sent.again_after, MOST_SECONDS)
                    sent.is_lost = True
                    self.note(key)

    def awaited(self, key: GangKey) -> str:
        """What has to happen before it is known what a gang is."""
        return self.dialects.of(key).awaited(key)

    def taken(self, gangs: Mapping[GangKey, Gang]) -> Iterator[WriteStatus]:
        """Every status that differs from what was written last."""
        self._due.update(dict.fromkeys(self.pools.taken_freed()))
        due, self._due = self._due, {}
        for key in sorted(due, key=self.pools.since):
            gang, patches = gangs.get(key), tuple[StatusPatch, ...]()
            if gang is not None and _has_its_turn_to_come(gang):
                continue  # its verdict, or its place, has it asked for again
            with confined(self.on_fault, "status of gang {}", key):
                # One that is being born has none yet, and may never have.
                has_pods = gang is not None and (gang.members or gang.birth is None)
                patches = self._of(gang) if gang and has_pods else self._of_no_pods(key)
            before = self._sent.pop(key, {})
            for patch in patches:
                sent = before.get(patch.path)
                if sent is None or sent.is_lost or patch != sent.patch:
                    if self._written[patch.path] >= MOST_AT_ONCE:
                        self._put_off[key] = None
                        continue
                    self._written[patch.path] += 1
                    again = _Sent(patch)
                    if sent is not None and sent.is_lost:
                        again.again_after = sent.again_after
                    sent = again
                    yield WriteStatus(key, patch.path, patch.uid, patch.status, patch.version)
                self._sent.setdefault(key, {})[patch.path] = sent

    def _of(self, gang: Gang) -> tuple[StatusPatch, ...]:
        spec = gang.membership.spec
        if spec is None:
            return ()
        ended = Counter(each.pod.phase for each in gang.members.values() if each.pod.is_finished)
        # What comes for a gang that ends waits beside pods that run.
        has_waiting = gang.phase in _WAITS or bool(gang.ending)
        says_why = has_waiting and not gang.reporting.is_pending
        view = GangView(
            gang.phase.value,
            gang.membership.members_live,
            len(gang.membership.bound),
            gang.reporting.sentence if says_why else "",
            ended["Succeeded"],
            ended["Failed"],
            # What its pods had was its earlier object's: a vcjob that restarts waits like any.
            no_room="" if gang.membership.members_live else self.pools.refusal(gang.key),
            is_binding=gang.is_binding,
            is_scheduled=_is_scheduled(gang, spec),
            settled=gang.membership.settled if spec.counts_by_leaf else None,
        )
        dialect = self.dialects.of(gang.key)
        if dialect.reads_health and view.bound:
            view = self._with_health(view, gang, spec)
        patches = tuple(dialect.statuses(spec, self.objects.of(gang.key), view))
        if patches and not view.no_room:
            self.pools.grant(gang.key)
        return patches

    def _with_health(self, view: GangView, gang: Gang, spec: GangSpec) -> GangView:
        names = minimum.names_of(spec)
        ready, sound = Counter[str](), Counter[str]()
        for each in gang.members.values():
            leaf, has_node = minimum.leaf_of(names, each.leaf), each.is_live and each.pod.node
            ready[leaf] += bool(has_node and each.pod.health == "ready")
            sound[leaf] += each.is_done or bool(has_node and each.pod.health != "failing")
        return replace(
            view,
            is_ready=bool(ready.total()) and minimum.has_enough(spec, ready),
            is_unhealthy=view.is_scheduled and not minimum.has_enough(spec, sound),
            nearness=self.nearness(gang) if view.is_scheduled else None,
        )

    def _of_no_pods(self, key: GangKey) -> tuple[StatusPatch, ...]:
        """The status of a gang that has objects and no pods: these may have to wait for a pool."""
        dialect = self.dialects.of(key)
        if not (dialect.writes_first or dialect.writes_last):
            return ()
        objects = self.objects.of(key)
        spec = self.objects.spec(key) if objects else None
        if spec is None:
            return ()
        view = GangView("", 0, 0, "", no_room=self.pools.refusal(key))
        patches = tuple(dialect.statuses(spec, objects, view))
        if dialect.writes_first and patches and not view.no_room:
            self.pools.grant(key)
        return patches


def _has_its_turn_to_come(gang: Gang) -> bool:
    """Whether no place has been searched for a gang since it is complete: why it waits is old."""
    attempts = gang.reporting.attempts
    return gang.phase is Phase.WAITING and not (
        attempts and attempts[-1].last_at >= gang.complete_at
    )


def _is_scheduled(gang: Gang, spec: GangSpec) -> bool:
    """Whether all pods that a gang takes have nodes, or have ended and need no other."""
    if spec.counts_by_leaf:
        return minimum.has_enough(spec, gang.membership.settled)
    done = sum(each.is_done for each in gang.members.values())
    return len(gang.membership.bound) + done * spec.lifecycle.counts_succeeded >= spec.pods
