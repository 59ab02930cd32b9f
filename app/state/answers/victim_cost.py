"""What it costs to have pods go for one that preempts, and which may never go.

    PDB violations · the highest priority that goes · gangs that are broken by it · pods that end ·
    their priorities · how long they have run · the node's name

A member counts as the most important pod of its gang. A gang is broken if it has all it needs now
and would not after it; one that has lost a pod already costs no further gang. Pods that end anyway
cost nothing.
Source: kubernetes v1.36 pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from app.dialects.spec import GangKey, GangSpec
from app.state.cache.books import Books
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.gang.members import minimum
from app.state.pods.grants import Grants
from app.state.pods.occupants import SYSTEM_PRIORITY, Occupants
from app.state.settings import EngineSettings

Cost = tuple[object, ...]
MOST_DIGITS = 32  # characters of a time; the API server writes 20
_BASE = 2**31  # kube-scheduler's: so that each victim adds to a sum, whatever its priority


@dataclass(frozen=True, slots=True)
class _Needs:
    """What a gang can spare."""

    spare: int  # so many of its pods that stay; below 0: it lacks some already
    spec: GangSpec | None = None  # of one that may run without some of its pods …
    pods: Counter[str] = field(default_factory=Counter)  # … and how many of each leaf it has


@dataclass(slots=True)
class VictimCosts:
    """For one request: what is found of a gang is kept."""

    settings: EngineSettings
    books: Books
    occupants: Occupants
    grants: Grants
    gangs: Gangs
    _needs: dict[GangKey, _Needs] = field(default_factory=dict)

    def may_go(self, uid: str, priority: int) -> bool:
        """Whether a pod may be a victim of one of this priority."""
        occupant, gang = self.occupants.by_uid.get(uid), self.gangs.of_pod(uid)
        if occupant is not None:
            may = occupant.may_go
        else:
            may = gang is not None and self.occupants.may_go(gang.members[uid].pod)
        return may and self._importance(uid) < min(priority, SYSTEM_PRIORITY)

    def by_importance(self, uids: Iterable[str]) -> tuple[str, ...]:
        """The most important first, as kube-scheduler has them."""
        return tuple(sorted(uids, key=lambda uid: (-self._priority(uid), self._created(uid))))

    def live(self, uids: Iterable[str]) -> tuple[str, ...]:
        """Those of them that do not end anyway, in their order."""
        return tuple(uid for uid in uids if not self.occupants.any_terminating((uid,)))

    def of(self, node: str, uids: Collection[str], pdb_violations: int) -> Cost:
        """What it costs to have these go from a node."""
        live = self.live(uids)
        gangs = self.gangs_of(live)
        broken = sum(self._is_broken_by(gang, live) for gang in gangs)
        highest = max((self._importance(uid) for uid in live), default=-_BASE)
        began = [_when(self._created(uid)) for uid in live if self._importance(uid) == highest]
        first = (broken, highest) if self.settings.gangs_as_victims == "last" else (highest, broken)
        return (
            pdb_violations,
            *first,
            self._lost_with(live, gangs),
            sum(self._priority(uid) + _BASE for uid in live),
            -min(began, default=0),
            node,
        )

    def gangs_of(self, uids: Iterable[str]) -> list[Gang]:
        """The gangs that these pods are members of."""
        return [self.gangs.by_key[key] for key in self.gangs.keys_of(uids)]

    def _priority(self, uid: str) -> int:
        occupant = self.occupants.by_uid.get(uid)
        return self.books.priority_of.get(uid, 0) if occupant is None else occupant.priority

    def _importance(self, uid: str) -> int:
        """The pod's priority; for a member the highest of its gang."""
        gang, own = self.gangs.of_pod(uid), self._priority(uid)
        return own if gang is None else max(own, gang.highest_priority)

    def _created(self, uid: str) -> str:
        occupant, gang = self.occupants.by_uid.get(uid), self.gangs.of_pod(uid)
        if occupant is not None:
            return occupant.created
        return gang.members[uid].pod.created if gang is not None else ""

    def _lost_with(self, uids: Collection[str], gangs: Iterable[Gang]) -> int:
        """How many pods end if these do: all of a gang that ends or starts again as a whole."""
        whole = [
            each.running
            for each in gangs
            if each.restarts_together or each.ends_together(self.settings.disruption)
        ]
        # No pod is in two gangs. A gang may have ten thousand pods, and be asked about as often.
        others = sum(not any(uid in running for running in whole) for uid in set(uids))
        return others + sum(map(len, whole))

    def _is_broken_by(self, gang: Gang, uids: Iterable[str]) -> bool:
        """Whether a gang has all it needs, and would not without these pods."""
        if gang.key not in self._needs:
            self._needs[gang.key] = self._needs_of(gang)
        needs = self._needs[gang.key]
        lost = [uid for uid in uids if uid in gang.running and not self.grants.is_victim(uid)]
        if needs.spare < 0:
            return False
        if needs.spec is None:
            return needs.spare < len(lost)
        leaves = [gang.members[uid].leaf for uid in lost]
        rest = needs.pods - minimum.by_leaf(needs.spec, leaves)
        return not minimum.has_enough(needs.spec, rest)

    def _needs_of(self, gang: Gang) -> _Needs:
        spec, going = gang.membership.spec, self._going(gang)
        stay = len(gang.running) - len(going)
        if spec is None:
            return _Needs(stay - len(gang.members))
        if spec.is_elastic:
            leaves = [gang.members[uid].leaf for uid in going]
            pods = Counter(gang.membership.settled) - minimum.by_leaf(spec, leaves)
            return _Needs(0 if minimum.has_enough(spec, pods) else -1, spec, pods)
        done = sum(gang.membership.gone.values())
        if spec.lifecycle.counts_succeeded:
            done += sum(each.is_done for each in gang.members.values())
        return _Needs(stay + done - minimum.least_pods(spec))

    def _going(self, gang: Gang) -> frozenset[str]:
        """Running members that go for another pod already."""
        if not self.grants.of:
            return frozenset()
        return frozenset(uid for uid in gang.running if self.grants.is_victim(uid))


def _when(created: str) -> int:
    """A time as the API server writes it, as a number that grows with it."""
    return int("".join(filter(str.isdecimal, created[:MOST_DIGITS])) or "0")
