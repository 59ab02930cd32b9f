"""Who is on the nodes at one moment, and which of them may go for a gang.

    ends already, or is evicted for another ─▶ counts as gone
    a gang ─▶ one victim: all its running pods wherever they are, or none of them
    any other pod ─▶ a victim of its own

Never victims: pods of a priority that is no lower; those of DaemonSets, of a kubelet and of
kube-system; those that say so where they may; those of another controller that plans for itself,
since it would keep their capacity for them; those that no controller would make again, unless the
settings let them go; the gang's own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import msgspec

from app.dialects.spec import GangKey
from app.kube.core.objects import Amounts
from app.kube.core.turns import turn
from app.state.cache.books import Booking
from app.state.cache.counting import Vector
from app.state.cache.resource_rows import bounded
from app.state.gang.owners import Owners
from app.state.objects.budgets import BudgetView
from app.state.pods.occupants import SYSTEM_PRIORITY, Occupant
from topology.model.capacity import Capacity
from topology.model.resources import ResourceAxis
from topology.victims.victim import Victim

WORK_SECONDS = 600  # steps in which the time that pods have run is compared


class Unit(msgspec.Struct, frozen=True, gc=False):
    """Pods that go together: a gang's that run, or one pod."""

    priority: int
    """Of the most important one."""
    uids: Sequence[str]
    """In the order of the pods' names."""
    gang: GangKey | None = None
    ends_for_good: bool = False
    """Its owner would give up if all of them were evicted, as its gang's own object says."""
    planned: Sequence[str] = ()
    """Uids that places are held for, which end with these."""
    is_left_alone: bool = False
    """It could go, and does not for now."""


class RunningGang(msgspec.Struct, frozen=True, gc=False):
    """A gang of which pods run, as it was. There may be thousands, made between two inputs."""

    key: GangKey
    priority: int
    uids: tuple[str, ...]
    """In no order."""
    ends_for_good: bool
    is_ending: bool
    """Its pods are being evicted."""
    planned: tuple[str, ...] = ()
    """Uids that places are held for: pods that do not run yet, or do not exist."""


class Spared(msgspec.Struct, frozen=True, gc=False):
    """Those that are left alone for now, whatever their priority."""

    gangs: frozenset[GangKey] = frozenset()
    owners: frozenset[str] = frozenset()
    """Uids of controllers: their pods outside gangs."""
    pods: frozenset[str] = frozenset()
    """Uids: alone, and with their gangs."""
    stuck: frozenset[str] = frozenset()
    """Uids of pods that end, and should have ended by now: what they take does not get free."""
    nodes: frozenset[str] = frozenset()
    """Nodes that no pod goes from: others took what was freed there."""
    newest: float = math.inf
    """When the newest pods were created that may go, in seconds since 1970; of a gang the first."""


NONE_SPARED = Spared()


class Crowd(msgspec.Struct, frozen=True, gc=False):
    """Who the pods are that run: most of what a copy costs, made in steps before the rest.

    Some of them may have ended when the books are copied, and others come: only who is here and
    in the books may go. Occupants are copied first, so that each member among them has its name,
    and is in its gang.
    """

    occupants: Mapping[str, Occupant]
    names: Mapping[str, str]
    """Of pods, by uid."""
    gangs: Sequence[RunningGang]


@dataclass(slots=True)
class Standing:
    """A copy of all that says who is where; may be read in another thread."""

    axis: ResourceAxis
    bound_on: Mapping[str, Mapping[str, Amounts]]
    """By node, and by uid of its pods."""
    occupants: Mapping[str, Occupant]
    """Those that are not in `bound` have ended by now."""
    names: Mapping[str, str]
    """Of pods, by uid."""
    gangs: Sequence[RunningGang]
    going: frozenset[str]
    """Uids of pods that are preempted for others, whether or not they end already."""
    budgets: BudgetView
    bare_victims: bool
    """Pods without a controller may go."""
    spared: Spared = NONE_SPARED
    held: Mapping[str, Booking] = field(default_factory=dict)
    owners: Owners | None = None
    """The controllers of these pods; None: none of them ever gives up."""
    _bound: dict[str, Booking] | None = None
    _vectors: dict[Amounts, Vector] = field(default_factory=dict)

    @property
    def bound(self) -> Mapping[str, Booking]:
        """By uid: what is bound. It is made by who first asks, which takes long."""
        if self._bound is None:
            self._bound = {}
            for node, pods in self.bound_on.items():
                turn()
                self._bound.update((uid, Booking(node, request)) for uid, request in pods.items())
        return self._bound

    def ending(self) -> Iterator[Booking]:
        """What is taken by pods that count as gone."""
        evicted = self._evicted()
        for uid, booking in self.bound.items():
            turn()
            if uid in self.spared.stuck:
                continue
            if uid in evicted or self._is_terminating(uid):
                yield booking

    def _evicted(self) -> frozenset[str]:
        return self.going.union(*(gang.uids for gang in self.gangs if gang.is_ending))

    def counted(self, request: Amounts, rows: int) -> Vector:
        """What a pod that is bound is counted with in books of so many resources."""
        vector = self._vectors.get(request)
        if vector is None:
            vector = self._vectors[request] = bounded(self.axis.taken(request)[:rows])
        return vector

    def units(self, priority: int, own: GangKey) -> Iterator[Unit]:
        """All that may ever go for a gang of this priority, with those of their pods that stay."""
        limit, members = min(priority, SYSTEM_PRIORITY), set[str]()
        for gang in self.gangs:
            turn()
            members.update(gang.uids)
            if gang.key == own or gang.is_ending or gang.priority >= limit:
                continue
            pods = [uid for uid in gang.uids if self._stays(uid)]
            if not pods or not all(self._may_go(self.occupants[uid]) for uid in pods):
                continue
            # A gang whose members have not been sorted out yet has no priority of its own.
            its = max(gang.priority, *(self.occupants[uid].priority for uid in pods))
            if its < limit:
                pods.sort(key=self.names.__getitem__)
                alone = self._is_left_alone(pods, gang.key)
                yield Unit(its, pods, gang.key, gang.ends_for_good, gang.planned, alone)
        # Of these there may be ten thousands.
        bound = self.bound
        for uid, occupant in self.occupants.items():
            turn()
            if occupant.priority >= limit or occupant.is_terminating or uid in members:
                continue
            if uid in bound and uid not in self.going and self._may_go(occupant):
                alone = self._is_left_alone((uid,), occupant.owner)
                yield Unit(occupant.priority, (uid,), is_left_alone=alone)

    # -- owners that give up -------------------------------------------------------------------

    def lasts(self, units: Iterable[Unit]) -> dict[str, int]:
        """By owner that would give up if all of these went: how many pods it may lose."""
        owners, wanted = self.owners, Counter[str]()
        if owners is None:
            return {}
        for unit in units:
            wanted.update(self._owned(unit))
        bounded = [uid for uid in wanted if owners.limit(uid) is not None]
        ending = self._ending_by_owner() if bounded else Counter()
        lefts = {uid: owners.left(uid, ending[uid]) for uid in bounded}
        return {uid: left for uid, left in lefts.items() if left is not None and wanted[uid] > left}

    def ending_for_good(self, gone: Sequence[Unit], lasts: Mapping[str, int]) -> list[bool]:
        """Of each unit, whether an owner of its pods gives up when all of these go."""
        lost = Counter[str]()
        for unit in gone:
            lost.update(self._owned(unit))
        over = {uid for uid, left in lasts.items() if lost[uid] > left}
        return [unit.ends_for_good or not over.isdisjoint(self._owned(unit)) for unit in gone]

    def _owned(self, unit: Unit) -> Counter[str]:
        """How many pods of a unit each controller has; none where the gang's own object says."""
        if unit.ends_for_good:
            return Counter()
        return Counter(owner for uid in unit.uids if (owner := self.occupants[uid].owner))

    def _counted(self, unit: Unit, lasts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        owned = self._owned(unit).items() if lasts else ()
        return tuple((uid, pods) for uid, pods in owned if uid in lasts)

    def _ending_by_owner(self) -> Counter[str]:
        evicted = self._evicted()
        return Counter(
            occupant.owner
            for uid, occupant in self.occupants.items()
            if occupant.is_terminating or uid in evicted
        )

    def _is_left_alone(self, uids: Sequence[str], whose: GangKey | str) -> bool:
        """Whether these pods of a gang, or of a controller, do not go for now."""
        spared = self.spared
        if whose in spared.gangs or whose in spared.owners or not spared.pods.isdisjoint(uids):
            return True
        if spared.nodes and any(self.bound[uid].node in spared.nodes for uid in uids):
            return True
        if spared.newest == math.inf:
            return False
        return min(seconds_of(self.occupants[uid].created) for uid in uids) > spared.newest

    def name(self, unit: Unit) -> str:
        """A unit in words."""
        if unit.gang is not None:
            return f"gang {unit.gang}"
        (uid,) = unit.uids
        return f"pod {self.occupants[uid].namespace}/{self.names[uid]}"

    def victims(
        self, units: Iterable[Unit], capacity: Capacity, lasts: Mapping[str, int]
    ) -> list[Victim]:
        """The units on the nodes of these books; the key of each is its number.

        `lasts`: of the owners whose pods are counted together, how many each may lose.
        """
        slot_of, occupants = capacity.tree.slot_of, self.occupants
        counted = partial(self.counted, rows=len(capacity.allocatable))
        began = {each: seconds_of(each) for each in {one.created for one in occupants.values()}}
        newest = max(began.values(), default=0)
        steps = {each: (newest - at) // WORK_SECONDS for each, at in began.items()}
        vectors, bookings = self._vectors, self.bound
        found = []
        for number, unit in enumerate(units):
            turn()
            if len(unit.uids) == 1 and not (unit.planned or self.budgets.budgets):
                # Pods outside gangs: of these there may be ten thousands.
                (uid,) = unit.uids
                booking = bookings[uid]
                slot = slot_of.get(booking.node)
                if slot is not None:
                    one = (slot, vectors.get(booking.request) or counted(booking.request))
                    occupant = occupants[uid]
                    owned = ((occupant.owner, 1),) if occupant.owner in lasts else ()
                    found.append(
                        Victim(
                            str(number), (one,), unit.priority, unit.gang is not None,
                            unit.ends_for_good, steps[occupant.created],
                            counted=() if unit.ends_for_good else owned,
                        )
                    )  # fmt: skip
                continue
            pods = []
            for uid in unit.uids:
                booking = bookings[uid]
                slot = slot_of.get(booking.node)
                if slot is not None:
                    pods.append((slot, counted(booking.request)))
            bound = len(pods)
            for uid in unit.planned:
                held = self.held.get(uid)
                slot = None if held is None else slot_of.get(held.node)
                if held is not None and slot is not None:
                    pods.append((slot, counted(held.request)))
            if pods:
                victim = Victim(
                    str(number),
                    tuple(pods),
                    unit.priority,
                    is_gang=unit.gang is not None,
                    ends_for_good=unit.ends_for_good,
                    elsewhere=len(unit.uids) - bound,
                    held=len(pods) - bound,
                    lost_work=sum([steps[occupants[uid].created] for uid in unit.uids]),
                    protected=self._protected(unit.uids) if self.budgets.budgets else (),
                    counted=self._counted(unit, lasts),
                )
                found.append(victim)
        return found

    def _stays(self, uid: str) -> bool:
        is_here = uid in self.bound and uid in self.occupants
        return is_here and not (uid in self.going or self._is_terminating(uid))

    def _is_terminating(self, uid: str) -> bool:
        return uid in self.occupants and self.occupants[uid].is_terminating

    def _may_go(self, occupant: Occupant) -> bool:
        return occupant.may_go_for_gangs(bare_victims=self.bare_victims)

    def allowed(self) -> dict[str, int]:
        """By budget: how many pods may go beside those that are to go for others.

        What the API server says of a budget counts these only once they end.
        """
        allowed = dict(self.budgets.allowed)
        begun = (uid for uid in self.going if uid in self.occupants)
        for name, pods in self._protected(uid for uid in begun if not self._is_terminating(uid)):
            allowed[name] = max(0, allowed.get(name, 0) - pods)
        return allowed

    def is_protected(self, unit: Unit) -> bool:
        """Whether some budget counts pods of it."""
        return bool(self.budgets.budgets) and bool(self._protected(unit.uids))

    def _protected(self, uids: Iterable[str]) -> tuple[tuple[str, int], ...]:
        """The budgets that count these pods, each with how many of them.

        Source: kubernetes v1.36 pkg/registry/core/pod/storage/eviction.go, canIgnorePDB. A pod that
        is not ready counts here, and may not there.
        """
        counted = Counter[str]()
        for uid in uids:
            occupant = self.occupants[uid]
            if occupant.has_begun:
                name = self.budgets.counting(occupant.namespace, occupant.labels)
                counted.update((name,) if name else ())
        return tuple(counted.items())


def seconds_of(created: str) -> int:
    """A time as the API server writes it, in seconds since 1970; 0 for anything else."""
    try:
        return int(datetime.fromisoformat(created).timestamp())
    except (ValueError, OverflowError):
        return 0
