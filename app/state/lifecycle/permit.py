"""The barrier at /bind: planned members wait there until the last one arrives, or time is up.

    /bind ──▶ arrived ──last one──▶ posted: Bind for all
                 └──────deadline──▶ Refuse for all, and the plan is lost

Of a gang that has started each is bound when it arrives. Until a member has arrived, a missed wake
or patch would keep it away: both are sent again.
Source: DESIGN.md 5.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.dialects import corral
from app.state.cache.books import is_open
from app.state.effects import Bind, RejectBind, UngateFailed
from app.state.gang.gang import Gang
from app.state.lifecycle.ledger import Ledger
from app.state.lifecycle.reservations import Reservations
from app.state.report import ungating
from app.state.report.voice import Voice
from app.state.settings import EngineSettings

PUSH_SECONDS = 1.0  # between two looks for gates that are still there
IN_VAIN = 3  # losses that a hold in vain counts for
UNHEARD_SECONDS = 300.0  # kube-scheduler itself tries every pod that often, whatever happens


@dataclass(frozen=True, slots=True)
class Permit:
    """How planned members get from their gates past /bind; what it remembers is in each gang."""

    settings: EngineSettings
    ledger: Ledger
    reservations: Reservations
    voice: Voice

    def arrive(self, gang: Gang, uid: str, now: float) -> None:
        """A planned member is at /bind; the last one opens the way for all."""
        gang.moved_at = now
        gang.answered.add(uid)  # perhaps with an older plan: kube-scheduler has decided
        if uid not in gang.posted:
            gang.arrived.setdefault(uid, now)
        if uid in gang.posted:
            self._bind(gang, uid)
        elif gang.has_started or (len(gang.arrived) == gang.awaited and not gang.unplanned()):
            for ready in sorted(gang.arrived):
                self._bind(gang, ready)
            gang.asked = None
            gang.posted |= gang.arrived.keys()
            gang.arrived.clear()
            self.ledger.move(gang, now)

    def _bind(self, gang: Gang, uid: str) -> None:
        pod = gang.members[uid].pod
        annotations = ((corral.GANG, str(gang.key)), (corral.DOMAIN, gang.domains[uid]))
        self.voice.out.append(Bind(pod.namespace, pod.name, uid, gang.plan[uid], annotations))

    def bind_failed(self, gang: Gang, uid: str, *, is_gone: bool, now: float) -> None:
        """A member's binding did not happen: its slot stays owed, unless the pod is gone."""
        gang.asked = None
        gang.posted.discard(uid)
        gang.answered.discard(uid)
        books, node = self.reservations.books, gang.plan.get(uid, "")
        record = books.nodes.get(node)
        is_lost = record is None or not is_open(record) or books.is_overcommitted(node)
        if uid in gang.plan and (is_gone or is_lost):
            self.reservations.end(gang, uid, "")
        self.ledger.review(gang, now)

    def ungate_failed(self, gang: Gang, uid: str, failure: UngateFailed, now: float) -> None:
        """A gate was not taken off: soon again, in another way if this one is forbidden."""
        if failure.is_gone:
            if not gang.has_started:
                self.ledger.lose_plan(gang, "a member has gone", now)
            elif uid in gang.plan:
                self.reservations.end(gang, uid, "")
                self.ledger.review(gang, now)
            return
        was_bare = uid in gang.unnarrowed
        ungating.has_failed(gang, uid, is_forbidden=failure.is_forbidden)
        if failure.is_forbidden and not was_bare:  # else it is due again with the next push
            self.voice.ungate(gang, now)

    def refuse_arrived(self, sentence: str) -> None:
        """Answer every held /bind with an error; the plans stay."""
        for key in self.ledger.planned:
            gang = self.ledger.gangs[key]
            self.voice.out.extend(RejectBind(uid, sentence) for uid in sorted(gang.arrived))
            gang.arrived.clear()

    def expire(self, now: float) -> None:
        """End waits and holds that took too long; push on where a call may have been missed."""
        for key in list(self.ledger.planned):
            gang = self.ledger.gangs[key]
            first = min(gang.arrived.values(), default=math.inf)
            if now >= first + self.settings.gang_bind_seconds:
                why = "not every member reached its binding in time"
                self._lose_in_vain(gang, why, now)
            elif not gang.has_started and now >= gang.moved_at + self.settings.hold_seconds:
                why = "kube-scheduler did not ask for every member in time"
                self._lose_in_vain(gang, why, now)
            else:
                self._push(gang, now)

    def _lose_in_vain(self, gang: Gang, why: str, now: float) -> None:
        """Others did without these nodes for long: hold none again until there is some hope.

        A member that kube-scheduler has not asked for may be one that its own filters turn away,
        such as for a volume. Those we have turned away ourselves are called.
        """
        unheard = {
            uid
            for uid in gang.plan.keys() & gang.members.keys()
            if uid not in gang.answered and not gang.members[uid].pod.gates
        }
        self.ledger.lose_plan(gang, why, now, losses=IN_VAIN)
        if unheard:
            gang.unheard = unheard
            gang.not_before = now + UNHEARD_SECONDS
            self.voice.call_back(gang, unheard)

    def _push(self, gang: Gang, now: float) -> None:
        """Wake and ungate again where a call or a patch may have been missed."""
        if gang.rejected and now >= gang.woken_at + self.settings.rewake_seconds:
            self.voice.wake(gang, now)
        if now >= gang.pushed_at + PUSH_SECONDS:
            gang.pushed_at = now
            self.voice.ungate(gang, now)
