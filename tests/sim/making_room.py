"""P1, P3, P4, P6 to P10, P12: pods that are evicted for gangs, by what their Corral has been told.

    found      P1 only of a lower priority: the victims' highest, the gang's lowest · P4 each of
               them is needed · P6 gangs go whole · P9 all of them within the budgets · P10 limits
    begun      P10 so many at a time, and so often
    evicted    P3 with all of them gone the gang has its place · P8 not once it needs it no more
    bound      P7 what is kept for a gang is for it, or for pods of a higher priority
    outcome    P12 heard once more it changes nothing

What its engine remembers is looked at only for what it keeps, and for whom. What the objects of a
gang say of its pods is read by its vocabulary, in P3, P4 and P11.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from app.dialects.budgets.dialect import KIND as BUDGET
from app.dialects.spec import GangKey
from app.kube.core.objects import Amounts, NodeRecord, PodRecord
from app.state.effects import Bind, Effect, EmitEvent, Evict, RoomAnswer, RoomVictim
from app.state.engine import Engine
from app.state.preempt.left_alone import EVICTED_SECONDS
from app.state.preempt.plans.limits import NAMESPACE_SECONDS
from app.state.preempt.plans.room_plan import RoomPlan
from tests.records import REQUIRED
from tests.sim.api import ApiServer, selects
from tests.sim.clock import Clock, History
from tests.sim.corral import Corral
from tests.sim.faults import Hits
from tests.sim.life import Life
from tests.sim.node_filters import counts, is_open, may_be_on, totals_by_node
from tests.sim.oracle import Remaining, Taken, place, wanted
from tests.sim.shadow import state_of
from tests.sim.told import (
    are_together,
    claim_of,
    is_live,
    key_of,
    life_of,
    members_of,
    pods_of,
    role_of,
    topologies_told,
)
from tests.sim.violation import require

if TYPE_CHECKING:
    from tests.sim.vocabulary import Contested

AGAIN = 0.3  # share of the outcomes that are heard twice
GIVES_WAY = "gives way to gang"  # in the sentence of an eviction
SLACK = 0.5  # seconds, beside the tick, until a gang is seen to need no room any more
MOST_PUT_BACK = 6  # units of one set that are put back alone
KEPT_SECONDS = 600.0  # for so long it is remembered for whom a pod was to go

Booked = tuple[str, Amounts]


@dataclass(slots=True, eq=False)
class Tracked:
    """What one engine does for one gang."""

    life: Life
    key: GangKey
    plan: RoomPlan
    began: float
    held: frozenset[tuple[GangKey | str, str]]  # (gang or uid, node) that was held by then
    over_at: float | None = None  # when it was told that the gang needs no room any more
    is_judged: bool = False  # its first eviction


@dataclass(slots=True)
class RoomChecks:
    """One for all Corrals."""

    clock: Clock
    api: ApiServer
    rng: Random
    history: History
    hits: Hits
    vocabularies: Mapping[str, Contested] = field(default_factory=dict)  # by source of gangs
    has_jumped: bool = False  # the wall clock: nobody can tell how old a pod is
    evicted_at: list[float] = field(default_factory=list)
    _of: dict[int, Tracked] = field(default_factory=dict)
    # The last for which a pod was to go, by the identity of the Corral's life and the pod's uid.
    _by_uid: dict[tuple[int, str], Tracked] = field(default_factory=dict)
    _gone_anyway: set[str] = field(default_factory=set)  # pods that go for no other gang
    _gone: list[tuple[Life, float, GangKey | str]] = field(default_factory=list)
    """Who went: a gang, or a pod of this controller."""

    # -- found ---------------------------------------------------------------------------------

    def found(self, corral: Corral, key: GangKey, answer: RoomAnswer) -> None:
        """Raises: Violation."""
        if not answer.victims:
            return
        life = life_of(corral)
        told = {pod.uid: pod for pod in pods_of(life)}
        counted = {member.pod.uid for member in life.engine.gangs.by_key[key].unplanned()}
        waiting = [pod for pod in _waiting(life, key) if pod.uid in counted]
        priority = min((pod.priority for pod in waiting), default=0)  # of none that is in excess
        never = [pod.name for pod in waiting if not pod.preempts]
        require(not never, f"P1: others are to go for gang {key}, and {never} may not preempt")
        for victim in answer.victims:
            self._may_go(life, key, priority, victim, told)
        self._within_budgets(life, answer, told)
        self._all_needed(life, key, answer)

    def _may_go(
        self,
        life: Life,
        key: GangKey,
        priority: int,
        victim: RoomVictim,
        told: dict[str, PodRecord],
    ) -> None:
        pods = [told[uid] for uid in victim.uids]
        highest = max(pod.priority for pod in pods)
        names = [pod.name for pod in pods]
        if victim.gang is not None:
            members = [pod for pod in members_of(life, victim.gang) if is_live(pod)]
            highest = max(highest, *(pod.priority for pod in members))
            going = _going(life)
            rest = {pod.uid for pod in members if pod.node} - set(victim.uids) - going
            require(not rest, f"P6: of gang {victim.gang} {names} are to go, and not {rest}")
        else:
            for pod in pods:
                is_member = claim_of(pod) is not None and key_of(life, pod.uid) is not None
                require(not is_member, f"P6: {pod.name} is to go alone, and is of a gang")
        require(
            highest < priority,
            f"P1: {names} of priority {highest} are to go for gang {key} of {priority}",
        )
        settings = life.engine.settings
        for pod in pods:
            require(
                pod.owner is not None or settings.bare_victims,
                f"P6: {pod.name} is to go, and no controller makes it again",
            )
            require(not pod.is_terminating, f"P6: {pod.name} is to go, and ends already")
        whose = victim.gang or (pods[0].owner.uid if pods[0].owner else "")
        since = self.clock.now - EVICTED_SECONDS
        often = sum(
            of is life and at > since and who == whose for of, at, who in self._gone if whose
        )
        require(
            often < settings.preempted_at_most,
            f"P10: {names} are to go, and {whose} went {often} times before",
        )

    def _within_budgets(self, life: Life, answer: RoomAnswer, told: dict[str, PodRecord]) -> None:
        """P9: all of the set together."""
        budgets: Iterable[Any] = life.streams[BUDGET].mirror.values()
        counted = [
            pod
            for victim in answer.victims
            for uid in victim.uids
            if (pod := told[uid]).phase != "Pending"
        ]
        for budget in budgets:
            names = [pod.name for pod in counted if selects(budget, pod)]
            require(
                len(names) <= budget.allowed,
                f"P9: {names} are to go, and {budget.name} allows {budget.allowed}",
            )
        for pod in counted:
            both = [budget.name for budget in budgets if selects(budget, pod)]
            require(len(both) <= 1, f"P9: {pod.name} is to go, and {both} select it")

    def _all_needed(self, life: Life, key: GangKey, answer: RoomAnswer) -> None:
        """P4: with any one of them back, and all others gone, the gang has no place."""
        engine = life.engine
        gang = engine.gangs.by_key[key]
        uids = {member.pod.uid for member in gang.unplanned()}
        waiting = [pod for pod in _waiting(life, key) if pod.uid in uids]
        bound = [pod for pod in members_of(life, key) if pod.node and is_live(pod)]
        if len(waiting) < len(uids) or bound or engine.refusals._until:
            return  # which pods are to come, and where the rest belongs, is the engine's choice
        if any(pod.gates and gang.member(pod.uid).allowed is not None for pod in waiting):
            return  # narrowed by a write of ours that the watch has not shown yet
        its = self.vocabularies.get(key.source)
        if its is not None and any(life.streams[kind].pending for kind in its.kinds):
            return  # what its objects say now has not been told
        asked = [wanted(pod) for pod in waiting] if its is None else []
        gone = {uid for victim in answer.victims for uid in victim.uids}
        closed = frozenset[str]().union(
            *(
                mark.nodes
                for kept in (engine.starvation.of, engine.new_nodes.of)
                for of, mark in kept.items()
                if of != key
            )
        )
        for victim in answer.victims[:MOST_PUT_BACK]:
            back = set(victim.uids)
            planned = self._planned_for(
                engine, {each.gang for each in answer.victims} - {victim.gang}
            )
            rest = _without(life, _going(life) | (gone - back))
            taken = Taken(closed, tuple(self._others(engine, key, planned, min_priority=None)))
            found: object = (
                place(rest, key, asked, [], taken)
                if its is None
                else its.waits_in_vain(key.name, members_of(life, key), taken, rest)
            )
            names = [pod.name for pod in rest.pods.values() if pod.uid in back]
            require(not found, f"P4: gang {key} fits beside {names}, which are to go for it")

    def _planned_for(self, engine: Engine, keys: Iterable[GangKey | None]) -> set[str]:
        gangs = engine.gangs.by_key
        return {
            uid for key in keys if key is not None and key in gangs for uid in gangs[key].plan.nodes
        }

    def _others(
        self, engine: Engine, key: GangKey, without: set[str], min_priority: int | None
    ) -> list[Booked]:
        """What is held for others, and kept for pods that a gang gives way to."""
        own = engine.gangs.by_key.get(key)
        mine = set() if own is None else {*own.members, *own.placeholders}
        priority = own.membership.lowest_priority if own is not None else 0
        if min_priority is not None:
            priority = min_priority
        held = engine.books.held
        found = [
            (each.node, each.request)
            for uid, each in held.items()
            if uid not in without and uid not in mine
        ]
        found += [
            (each.node, each.request)
            for uid, each in engine.nominations._by_uid.items()
            if each.priority >= priority and uid not in mine and uid not in held
        ]
        return found

    # -- begun ---------------------------------------------------------------------------------

    def taken(self, corral: Corral) -> None:
        """Raises: Violation."""
        life = life_of(corral)
        plans = life.engine.room_plans
        for key, plan in plans.of.items():
            if id(plan) not in self._of:
                self._begun(life, key, plan)
        for number, tracked in list(self._of.items()):
            if self.clock.now > tracked.began + KEPT_SECONDS:
                del self._of[number]
            elif tracked.life is life and not _is_over(tracked):
                tracked.over_at = None  # its pods were made again, and its place is for these
            elif tracked.life is life and tracked.over_at is None:
                tracked.over_at = self.clock.now

    def _begun(self, life: Life, key: GangKey, plan: RoomPlan) -> None:
        engine, now = life.engine, self.clock.now
        tracked = Tracked(life, key, plan, now, frozenset(_held(engine)))
        self.history.say(f"room for {key}: {plan.where or 'anywhere'}, {list(plan.pods)} go")
        self._of[id(plan)] = tracked
        self._by_uid.update(dict.fromkeys(((id(life), uid) for uid in plan.pods), tracked))
        settings = engine.settings
        plans = {key: each for key, each in engine.room_plans.of.items() if not each.is_slow}
        require(len(plans) <= settings.preempt_plans, f"P10: room is made for {list(plans)}")
        pods = sum(len(list(each.pods)) for each in plans.values())
        require(pods <= settings.preempt_pods_at_once, f"P10: {pods} pods go at once")
        recent = [
            each.key
            for each in self._of.values()
            if each.life is life and each.plan.victims and each.began > now - NAMESPACE_SECONDS
        ]
        require(
            len(recent) <= settings.preempt_per_namespace,
            f"P10: others go for {recent} within {NAMESPACE_SECONDS:.0f} s",
        )

    # -- evicted -------------------------------------------------------------------------------

    def decided(self, corral: Corral, effects: Sequence[Effect]) -> None:
        """Raises: Violation."""
        life = life_of(corral)
        units: dict[int, tuple[Tracked, RoomVictim]] = {}
        for effect in effects:
            if isinstance(effect, Evict) and GIVES_WAY in effect.sentence:
                tracked = self._tracked(life, effect.uid)
                if tracked is None and _ends_whole(life, effect.uid):
                    continue  # it was bound after the others of its gang were chosen
                require(tracked is not None, f"P8: {effect.name} goes, and for no gang")
                assert tracked is not None
                is_under_way = life.engine.room_plans.of.get(tracked.key) is tracked.plan
                if not is_under_way and _ends_whole(life, effect.uid):
                    continue
                require(is_under_way, f"P8: {effect.name} goes for {tracked.key}, which is over")
                victim = next(v for v in tracked.plan.victims if effect.uid in v.uids)
                units[id(victim)] = tracked, victim
            elif isinstance(effect, Evict):
                self._gone_anyway.add(effect.uid)
            elif isinstance(effect, Bind):
                self._not_taken(life, effect)
        for tracked, victim in units.values():
            self._evicted(life, tracked, victim)

    def _tracked(self, life: Life, uid: str) -> Tracked | None:
        return self._by_uid.get((id(life), uid))  # which keeps the life, and so its identity

    def _evicted(self, life: Life, tracked: Tracked, victim: RoomVictim) -> None:
        told = {pod.uid: pod for pod in pods_of(life)}
        owner = told[victim.uids[0]].owner
        whose = victim.gang or (owner.uid if owner else "")
        priority = tracked.plan.priority
        self.evicted_at.append(self.clock.now)
        for uid in victim.uids:
            require(uid in told, f"P8: {uid} goes for {tracked.key}, and is gone")
        require(
            max(told[uid].priority for uid in victim.uids) < priority,
            f"P1: {victim.uids} go for {tracked.key} of priority {priority}",
        )
        self._gone.append((life, self.clock.now, whose))
        if not tracked.is_judged:
            tracked.is_judged = True
            self.hits.hit("W made room")
            self._has_place(life, tracked)
            self._has_place_together(life, tracked)
            if any(
                each.gang and each.gang.source in self.vocabularies for each in tracked.plan.victims
            ):
                self.hits.hit("W gave way")

    def _has_place(self, life: Life, tracked: Tracked) -> None:
        """P3: with all of the set gone each pod of the gang fits where its room is kept."""
        engine, plan = life.engine, tracked.plan
        nodes: dict[str, Any] = life.streams["Node"].mirror
        told = {pod.uid: pod for pod in pods_of(life)}
        what = f"P3: others go for gang {tracked.key}, and"
        rest = _without(life, _going(life) | set(plan.pods))
        planned = self._planned_for(engine, (victim.gang for victim in plan.victims))
        taken = totals_by_node(
            [(pod.node, pod.request) for pod in rest.pods.values() if counts(pod)]
            + self._others(engine, tracked.key, planned, plan.priority)
            + [(each.node, each.request) for each in plan.places.values()]
        )
        for uid, place_of in plan.places.items():
            node: NodeRecord | None = nodes.get(place_of.node)
            require(node is not None, f"{what} {place_of.node} is gone")
            assert node is not None
            require(is_open(node), f"{what} {node.name} is closed")
            if uid in told:
                is_allowed = may_be_on(node, told[uid].shape)
                require(is_allowed, f"{what} {told[uid].name} may not be on {node.name}")
            has = dict(node.allocatable)
            for resource, _ in place_of.request:
                asked = taken[node.name][resource]
                require(
                    asked <= has.get(resource, 0),
                    f"{what} {asked} of {resource} would be on {node.name}, which has"
                    f" {has.get(resource, 0)}",
                )
        roles: dict[tuple[object, ...], list[NodeRecord]] = {}
        for uid, place_of in plan.places.items():
            pod = told.get(uid)
            level = pod.annotations.get(REQUIRED, "") if pod is not None else ""
            if pod is not None and level:
                roles.setdefault((level, *role_of(pod)), []).append(nodes[place_of.node])
        topologies = topologies_told(life)
        for (level, *_), where in roles.items():
            topologies = [each for each in topologies if are_together(where, str(level), each)]
            names = sorted({each.name for each in where})
            require(bool(topologies), f"{what} it requires one {level}, and not {names}")

    def _has_place_together(self, life: Life, tracked: Tracked) -> None:
        """P3 of what the objects of a gang say of its pods."""
        its, engine = self.vocabularies.get(tracked.key.source), life.engine
        gang = engine.gangs.by_key.get(tracked.key)
        if its is None or gang is None or tracked.key in engine.gangs.unreviewed:
            return
        self.hits.hit("W made room in words")
        places = {uid: place_of.node for uid, place_of in tracked.plan.places.items()}
        its.checks.together(life, gang, places)

    def sending(self, corral: Corral, effect: Evict) -> None:
        """P8. Raises: Violation."""
        life = life_of(corral)
        tracked = self._tracked(life, effect.uid)
        if tracked is None or tracked.over_at is None or GIVES_WAY not in effect.sentence:
            return
        if life.engine.settings.disruption == "all":
            return  # the rest of a gang goes for what has gone
        if effect.uid in self._gone_anyway:
            return  # an eviction that waits is the one that is sent, whatever it was first for
        if all(pod.uid != effect.uid for pod in pods_of(life)):
            return  # it is gone, and so is nothing lost
        seconds = self.clock.now - tracked.over_at
        most = corral.tick_seconds + SLACK
        if self.clock.now < life.slept_until + most:
            return
        require(
            seconds <= most,
            f"P8: {effect.name} goes for {tracked.key}, which needs no room for {seconds:.1f} s",
        )

    # -- bound ---------------------------------------------------------------------------------

    def _not_taken(self, life: Life, bind: Bind) -> None:
        """P7: a pod gets nothing of what is kept for a gang of its own or a higher priority."""
        engine = life.engine
        key = key_of(life, bind.uid)
        told = {pod.uid: pod for pod in pods_of(life)}
        pod, there_already = told.get(bind.uid), engine.books.bound.get(bind.uid)
        if pod is None or (there_already is not None and there_already.node == bind.node):
            return  # a request that comes twice takes nothing more
        for tracked in self._of.values():
            plan = tracked.plan
            if tracked.life is not life or engine.room_plans.of.get(tracked.key) is not plan:
                continue
            if tracked.key == key or pod.priority > plan.priority:
                continue
            if (key or bind.uid, bind.node) in tracked.held:
                continue
            if bind.node not in plan.nodes:
                continue
            node: Any = life.streams["Node"].mirror.get(bind.node)
            if node is None:
                continue
            there = _beside(life, plan)
            there += [(each.node, each.request) for each in plan.places.values()]
            if bind.uid not in engine.books.held:
                there.append((bind.node, pod.request))
            taken, has = totals_by_node(there)[bind.node], dict(node.allocatable)
            over = [name for name, _ in pod.request if taken.get(name, 0) > has.get(name, 0)]
            require(
                not over,
                f"P7: {bind.name} of priority {pod.priority} gets {over} on {bind.node}, where"
                f" room is kept for {tracked.key} of {plan.priority}",
            )

    # -- outcomes ------------------------------------------------------------------------------

    def ended(self, corral: Corral, take: Callable[[], list[Effect]]) -> None:
        """P12. Raises: Violation."""
        if self.rng.random() >= AGAIN:
            return
        before = _remembered(corral.engine)
        effects = take()
        after = _remembered(corral.engine)
        changed = [name for name in before if before[name] != after[name]]
        require(not changed, f"P12: an outcome that is heard twice changes {changed}")
        acts = [effect for effect in effects if not isinstance(effect, EmitEvent)]
        require(not acts, f"P12: an outcome that is heard twice leads to {acts}")
        corral.carry_out(effects)


def _held(engine: Engine) -> Iterator[tuple[GangKey | str, str]]:
    """Whose reservations there are, and on which nodes: of a gang, or of a pod outside gangs."""
    planned = {uid: gang.key for gang in engine.gangs.by_key.values() for uid in gang.plan.nodes}
    for uid, booking in engine.books.held.items():
        yield planned.get(uid, uid), booking.node


def _waiting(life: Life, key: GangKey) -> list[PodRecord]:
    return [pod for pod in members_of(life, key) if is_live(pod) and not pod.node]


def _going(life: Life) -> set[str]:
    """Uids of pods that count as gone, because they go for others."""
    engine = life.engine
    return {*engine.room_plans.going, *engine.grants._victims}


def _without(life: Life, uids: set[str]) -> Remaining:
    """The cluster once these are gone, and all that end already, but for those that are stuck."""
    nodes: dict[str, Any] = life.streams["Node"].mirror
    stuck = life.engine.room_plans.left_alone.stuck
    evicted = {
        uid for gang in life.engine.gangs.by_key.values() if gang.ending for uid in gang.running
    }
    pods = {
        pod.name: pod
        for pod in pods_of(life)
        if pod.uid in stuck or not (pod.is_terminating or pod.uid in uids or pod.uid in evicted)
    }
    return Remaining(dict(nodes), pods)


def _is_over(tracked: Tracked) -> bool:
    """Whether it has been told that the gang needs no room: a pod of it is gone or has a node."""
    engine = tracked.life.engine
    gang = engine.gangs.by_key.get(tracked.key)
    if gang is None or gang.plan.nodes:
        return True
    told = {pod.uid: pod for pod in pods_of(tracked.life)}
    for uid in tracked.plan.places:
        if not uid.startswith("absent/"):
            pod = told.get(uid)
            if pod is None or not is_live(pod) or pod.node:
                return True
    return False


def _ends_whole(life: Life, uid: str) -> bool:
    """Whether a pod goes as others of its gang have gone, and not for who those went for."""
    gang = life.engine.gangs.of_pod(uid)
    is_ending = gang is not None and bool(gang.ending)
    return is_ending and life.engine.settings.disruption == "all"


def _beside(life: Life, plan: RoomPlan) -> list[Booked]:
    """What runs or is held, but for what pods of a higher priority took since the plan began."""
    books = life.engine.books
    running = (pod for pod in _without(life, _going(life)).pods.values() if counts(pod))
    there = [
        (pod.node, pod.request)
        for pod in running
        if pod.uid in plan.there or pod.priority <= plan.priority
    ]
    return there + [
        (each.node, each.request)
        for uid, each in books.held.items()
        if books.priority_of.get(uid, plan.priority) <= plan.priority
    ]


def _remembered(engine: Engine) -> dict[str, Any]:
    plans = engine.room_plans
    return {
        **state_of(engine),
        "room": {
            key: (plan.stage, plan.begun, sorted(plan.unchecked), sorted(plan.awaited))
            for key, plan in plans.of.items()
        },
        "results": Counter(plans.results),
        "evictions": Counter(plans.victims.evictions),
        "withdrawn": sorted(plans.victims.withdrawn),
        "going": dict(plans.victims.of),
        "kept": dict(engine.nominations._kept),
    }
