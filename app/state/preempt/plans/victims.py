"""The pods that go for gangs: whether one may still, what is sent, and what is not sent any more.

An eviction waits for its turn before it is sent. Until then it may be withdrawn, and the pod runs
on; one that was sent has its outcome, whatever has become of the gang.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.state.cache.books import Books
from app.state.effects import Evict, RoomVictim
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.lifecycle.disruption import Disruptions
from app.state.pods.occupants import Occupants
from app.state.preempt.left_alone import LeftAlone
from app.state.preempt.plans.room_plan import RoomPlan
from app.state.queueing.outbox import Outbox
from app.state.report.messages import preemption as messages
from app.state.report.naming import Naming
from app.state.report.reports import Reports


@dataclass(slots=True)
class Victims:
    """Has victims evicted, or stops that."""

    books: Books
    occupants: Occupants
    gangs: Gangs
    disruptions: Disruptions
    outbox: Outbox
    reports: Reports
    naming: Naming
    left_alone: LeftAlone
    of: dict[str, GangKey] = field(default_factory=dict)
    """By uid: the gang that a pod goes for."""
    withdrawn: set[str] = field(default_factory=set)
    """Uids whose eviction is wanted no more."""
    evictions: Counter[str] = field(default_factory=Counter)
    """How many gangs and pods outside gangs went: "gang", "pod"."""

    def stands(self, victim: RoomVictim, gang: Gang) -> bool:
        """Whether a victim is as it was, and may still go."""
        if victim.gang is not None:
            its = self.gangs.by_key.get(victim.gang)
            if its is None or its.ending or its.key == gang.key:
                return False
            if its.guarded_priority >= gang.membership.lowest_priority:
                return False  # one of its pods that wait
            here = {uid for uid in its.running if self.is_here(uid)}
            if here != set(victim.uids):
                return False
        known, bare_victims = self.occupants.by_uid, self.left_alone.settings.bare_victims
        return all(
            self.is_here(uid)
            and self.of.get(uid, gang.key) == gang.key
            and known[uid].priority < gang.membership.lowest_priority
            and known[uid].may_go_for_gangs(bare_victims=bare_victims)
            for uid in victim.uids
        )

    def is_here(self, uid: str) -> bool:
        """Whether a pod runs, and does not end."""
        occupant = self.occupants.by_uid.get(uid)
        return uid in self.books.bound and occupant is not None and not occupant.is_terminating

    def named(self, uid: str) -> tuple[str, str]:
        """Its namespace and name."""
        return self.occupants.by_uid[uid].namespace, self.occupants.names[uid]

    def remaining(self, victim: RoomVictim) -> list[str]:
        """Its pods that run on."""
        return [uid for uid in victim.uids if self.is_here(uid)]

    def is_wanted(self, uid: str) -> bool:
        """Whether an eviction that has not been sent is still to be.

        Not of a pod that has ended, or ends: nothing gets free, and one that has succeeded would be
        deleted.
        """
        return uid not in self.withdrawn and self.is_here(uid)

    def evict(self, gang: Gang, victim: RoomVictim, now: float) -> None:
        """Have the pods of a victim evicted for a gang, and report it."""
        priority = gang.membership.lowest_priority
        its = None if victim.gang is None else self.gangs.by_key.get(victim.gang)
        self.evictions["pod" if its is None else "gang"] += 1
        if its is not None:
            to = self.naming.gang(gang.key, its.key.namespace)
            sentence = messages.gives_way_whole(its.key, victim, to, priority)
            self.disruptions.end_for(its, sentence, now)
            self.left_alone.note_evicted(its.key, now)
        for uid in victim.uids:
            namespace, name = self.named(uid)
            if its is None:
                to = self.naming.gang(gang.key, namespace)
                sentence = messages.goes_for(namespace, name, victim, to, priority)
                self.reports.goes_for(namespace, name, uid, sentence)
                if owner := self.occupants.by_uid[uid].owner:
                    self.left_alone.note_evicted(owner, now)
            self.withdrawn.discard(uid)
            self.outbox.add(Evict(namespace, name, uid, sentence))

    def stop(self, plan: RoomPlan, victim: RoomVictim, now: float) -> None:
        """Keep what remains of a victim whose eviction had begun, unless its gang ends whole."""
        remaining = [uid for uid in self.remaining(victim) if uid not in plan.evicted]
        its = None if victim.gang is None else self.gangs.by_key.get(victim.gang)
        if its is None or not its.ending:
            self.withdrawn.update(plan.unsent.intersection(remaining))
        elif all(uid in plan.evicted or not self.is_here(uid) for uid in its.running):
            return  # it ends with the last of them; else pods were bound that we did not know of
        elif len(remaining) == len(victim.uids) or not self.disruptions.ends_whole(its):
            self.withdrawn.update(plan.unsent.intersection(remaining))
            self.disruptions.keep(its)
        else:
            self.disruptions.end_rest(its, now)
