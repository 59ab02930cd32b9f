"""What must hold after every step: I1 to I13.

Judged by what the API server has, and by what it has told this very Corral (its streams' mirrors),
which is all a Corral can know; the engine's own view is looked at only for what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from app.dialects import autoscalers
from app.dialects import corral as own
from app.dialects.spec import GangKey
from app.kube.core.objects import NodeRecord, PodRecord
from app.kube.watch.events import Event, Listed
from app.state.effects import (
    Bind,
    BindFailed,
    BindOutcome,
    Effect,
    Evict,
    EvictOutcome,
    RejectBind,
    RoomAnswer,
    Suspend,
    TryEviction,
    Ungate,
)
from app.state.filter_result import FilterAnswer, Pinned, Rejected
from app.state.gang.gang import Gang
from app.state.pods.arrivals import EARLY_SECONDS
from tests.records import REQUIRED
from tests.sim.absent import AbsentPlaces
from tests.sim.api import ApiServer
from tests.sim.arrivals import Arrivals, arrived_of
from tests.sim.asking import AskingChecks
from tests.sim.born_checks import BornChecks
from tests.sim.bypass import Bypass
from tests.sim.clock import Clock
from tests.sim.corral import Corral
from tests.sim.evictions import Evictions
from tests.sim.faults import Hits
from tests.sim.isolation import Admission, Isolation, Subject
from tests.sim.life import Life
from tests.sim.making_room import RoomChecks
from tests.sim.node_filters import counts, is_open, totals_by_node
from tests.sim.observer import PreemptCall
from tests.sim.preemption import PreemptionChecks
from tests.sim.shadow import check_books, shadow, state_of
from tests.sim.told import (
    are_together,
    claim_of,
    domain,
    has_started,
    is_waiting,
    key_of,
    life_of,
    members_of,
    named,
    note_losses,
    outermost_told,
    places_held,
    pods_of,
    role_in,
    role_of,
    roles_of,
    start_of,
    taken_by_pods,
    topologies_told,
)
from tests.sim.violation import require
from tests.sim.vocabulary import VocabularyChecks

HEAVY_EVERY = 11  # inputs
SHADOW_EVERY = 91
SLACK = 0.5  # seconds a deadline may be seen late, beside the tick
LATE = 1.0  # seconds of lag that count as a fault

PROTECTION = dict(autoscalers.PROTECTION)


@dataclass(slots=True)
class Asked:
    """The last /filter: asking the same again at once must give the same."""

    life: Life
    inputs: int
    pod: PodRecord
    names: frozenset[str]
    answer: FilterAnswer


@dataclass(slots=True)
class Checks:
    """Looks on while a world runs; `again` and `dies` are shares of the inputs."""

    clock: Clock
    api: ApiServer
    rng: Random
    hits: Hits
    named: dict[tuple[str, str], str]
    again: float = 0.03
    dies: float = 0.0
    restart: Any = None
    preemption: PreemptionChecks | None = None
    room: RoomChecks | None = None
    evictions: Evictions | None = None
    born: BornChecks | None = None
    vocabularies: Sequence[VocabularyChecks] = ()
    _asked: Asked | None = None
    _inputs: int = 0
    _split: dict[GangKey, None] = field(default_factory=dict)
    """Gangs that run in several domains of their level, because nodes moved under them."""
    _versions: dict[tuple[str, int, str], int] = field(default_factory=dict)
    _isolation: Isolation = field(default_factory=Isolation)
    _bypass: Bypass = field(init=False)
    absent: AbsentPlaces = field(init=False)
    _arrivals: Arrivals = field(default_factory=Arrivals)
    _asking: AskingChecks = field(init=False)
    _is_idle: bool = False  # a tick that finds nothing held and nothing kept

    def __post_init__(self) -> None:
        self._bypass = Bypass(self.hits)
        self._asking = AskingChecks(self.clock)
        self.absent = AbsentPlaces(self.api)
        self.api.subscribe("Node", self._note_split)
        self.api.subscribe("Pod", self._note_split)

    def _note_split(self) -> None:
        """Remember for good which gangs are split: where the rest belongs is nobody's fault."""
        domains: dict[tuple[GangKey, str, object], str] = {}
        for pod in self.api.pods.values():
            level = pod.annotations.get(REQUIRED, "")
            if not (level and pod.node in self.api.nodes and counts(pod)):
                continue
            claim = claim_of(pod)
            assert claim is not None
            role = (claim.gang, level, role_of(pod))
            here = domain(self.api.nodes[pod.node], level)
            if domains.setdefault(role, here) != here:
                self._split[claim.gang] = None

    # -- before and after each input -----------------------------------------------------------

    def takes(self, corral: Corral, subject: Subject) -> None:
        life = life_of(corral)
        if self.born is not None and isinstance(subject, Admission):
            self.born.asking(life, subject.gang)
        note_losses(life)
        engine = life.engine
        is_kept = bool(engine.starvation.of or engine.new_nodes.of)
        self._is_idle = subject is None and not engine.books.held and not is_kept
        if not self._is_idle:
            self._isolation.takes(life, subject)
            self._bypass.takes(life)

    def taken(self, corral: Corral, subject: Subject, effects: Sequence[Effect]) -> None:
        life = life_of(corral)
        if not self._is_idle:
            self._isolation.taken(life, subject, effects)
            self._bypass.taken(life)
        if self.room is not None:
            self.room.taken(corral)
        for each in self.vocabularies:
            each.taken(corral, subject, effects)
        if life.engine.is_synced:
            # After each input: once a node has gone, what was held before is not judged any more.
            self.absent.took(life)

    # -- /filter -------------------------------------------------------------------------------

    def answered(
        self, corral: Corral, pod: PodRecord, names: Sequence[str], answer: FilterAnswer
    ) -> None:
        life = life_of(corral)
        self._count_lag(life)
        self._bypass.answered(life, pod, names, answer)
        if isinstance(answer, Pinned):
            require(answer.node in names, f"I6: {pod.name} is sent to {answer.node}, not offered")
            self._whole_when_pinned(life, pod)
        if isinstance(answer, Rejected):
            require(len(answer.sentence.encode()) <= 512, f"the sentence is long: {answer}")
        asked, offered = self._asked, frozenset(names)
        if (
            asked is not None
            and asked.life is life
            and (asked.inputs, asked.pod, asked.names) == (life.inputs - 1, pod, offered)
        ):
            same = type(answer) is type(asked.answer) and answer == asked.answer
            require(same, f"I9: asked again, {pod.name} hears {answer}, not {asked.answer}")
        self._asked = Asked(life, life.inputs, pod, offered, answer)

    def _count_lag(self, life: Life) -> None:
        for stream, fault in (
            (life.streams["Pod"], "F3 pods lag"),
            (life.streams["Node"], "F3 nodes lag"),
        ):
            if stream.pending and stream.lag[1] > LATE:
                self.hits.hit(fault)

    def _whole_when_pinned(self, life: Life, pod: PodRecord) -> None:
        """I2: no member is let through before all that are declared are there."""
        claim = claim_of(pod)
        if claim is None:
            return
        key = outermost_told(life, claim.gang, pod)
        members = members_of(life, key)
        if has_started(life, members) or key in life.engine.gangs.unreviewed:
            return  # the next tick, or the barrier at /bind, knows better
        needed = start_of(life, key, members)
        ready = [each for each in members if is_waiting(each)]
        gang = life.engine.gangs.by_key[key]
        # One that is born waits at /bind for the others, whose places are held, and so do pods that
        # the watch has not shown.
        unseen = sum(uid in life.engine.unseen for uid in gang.members)
        require(
            len(ready) + unseen >= needed.together or gang.birth is not None,
            f"I2: {pod.name} passes /filter, {len(ready)} of {needed.together} members are there",
        )
        held = places_held(gang)
        require(
            held >= needed.places,
            f"I2: {pod.name} passes /filter, {held} of {needed.places} places are held",
        )

    # -- /mutate -------------------------------------------------------------------------------

    def admitted(self, corral: Corral, gang: GangKey, answer: tuple[str, ...] | None) -> None:
        if self.born is not None:
            self.born.admitted(corral, gang, answer)

    # -- /preempt ------------------------------------------------------------------------------

    def chose(self, corral: Corral, asked: PreemptCall) -> None:
        if self.preemption is not None:
            self.preemption.chose(corral, asked)

    def preempted(self, corral: Corral, asked: PreemptCall) -> None:
        if self.preemption is not None:
            self.preemption.preempted(corral, asked)

    # -- /bind and effects ---------------------------------------------------------------------

    def arriving(self, corral: Corral, uid: str, node: str) -> None:
        self._arrivals.arriving(life_of(corral), uid, node)

    def arrived(self, corral: Corral, uid: str, node: str) -> None:
        self._arrivals.arrived(life_of(corral), uid, node)

    def decided(self, corral: Corral, effects: Sequence[Effect]) -> None:
        life = life_of(corral)
        if self.room is not None:
            self.room.decided(corral, effects)
        else:
            self._evicts_for_none(life, effects)
        for each in self.vocabularies:
            each.decided(corral, effects)
        self._asking.decided(corral, effects)
        if self.born is not None:
            self.born.decided(corral, effects)
        binds = [effect for effect in effects if isinstance(effect, Bind)]
        nodes: dict[str, Any] = life.streams["Node"].mirror
        for bind in binds:
            if bind.node in nodes and life.posted.get(bind.uid) != bind.node:
                life.bound_for[bind.uid] = nodes[bind.node]
        for key in dict.fromkeys(key_of(life, bind.uid) for bind in binds):
            if key is not None:
                self._starts_whole(life, key, [b for b in binds if key_of(life, b.uid) == key])
        for effect in effects:
            if isinstance(effect, Bind):
                self._protects(life, effect)
                ours = (name for name, _ in effect.annotations if name not in PROTECTION)
                self._only_ours(ours, effect)
            elif isinstance(effect, Ungate):
                require(effect.gate == own.GATE, f"I12: a foreign gate: {effect}")
                self._only_ours((name for name, _ in effect.annotations), effect)
            elif isinstance(effect, RejectBind) and "reach their binding" in effect.sentence:
                self._not_early(corral, effect)
            elif isinstance(effect, RejectBind) and "waits for a node" in effect.sentence:
                self._arrivals.was_early(life, effect.uid)

    def _evicts_for_none(self, life: Life, effects: Sequence[Effect]) -> None:
        """P8: none goes for a gang while it is only explained who would have to."""
        asked = [effect for effect in effects if isinstance(effect, TryEviction)]
        require(not asked, f"P8: only explained, and yet {asked}")
        plans = list(life.engine.room_plans.of)
        require(not plans, f"P8: only explained, and yet room is made for {plans}")

    def _protects(self, life: Life, bind: Bind) -> None:
        """I12: a binding says that its pod is not to be moved, unless the pod says otherwise."""
        pod = life.streams["Pod"].mirror.get(bind.name)
        if pod is None or pod.uid != bind.uid or pod.node:
            return  # one that has a node is bound once more in vain, and not written
        said = [pair for pair in bind.annotations if pair[0] in PROTECTION]
        is_member = key_of(life, bind.uid) is not None
        wanted = [each for each in PROTECTION.items() if each[0] not in pod.annotations]
        require(said == (wanted if is_member else []), f"I12: {bind} says {said}, not {wanted}")

    def _only_ours(self, names: Iterable[str], effect: Effect) -> None:
        foreign = [name for name in names if not name.startswith(own.PREFIX)]
        require(not foreign, f"I12: {effect} writes {foreign}")

    def _starts_whole(self, life: Life, key: GangKey, binds: list[Bind]) -> None:
        members = members_of(life, key)
        # One that is bound, comes to /bind once more and hears the same again starts nothing.
        bound = {bind.uid for bind in binds} - {pod.uid for pod in members if pod.node}
        if not bound or has_started(life, members):
            return
        needed = start_of(life, key, members)
        gang = life.engine.gangs.by_key[key]
        held, there = places_held(gang), arrived_of(life, gang)
        require(
            len(there) >= needed.together and held >= needed.places,
            f"I2: gang {key} starts with {len(there)} members and {held} places: {needed}",
        )
        if len(bound) < len(there):
            self.hits.hit("W in waves")
        for is_spare in {
            gang.placeholders[uid].is_spare for uid in gang.placeholders if uid in gang.plan.nodes
        }:
            self.hits.hit("W spare held" if is_spare else "W expected")

    def _not_early(self, corral: Corral, refuse: RejectBind) -> None:
        """F9: no deadline passes before its time."""
        held = life_of(corral).desk.get(refuse.uid)
        if held is not None:
            age = self.clock.now - held.since
            require(
                age >= corral.settings.gang_bind_seconds - 1e-6,
                f"F9: {refuse.uid} is refused after {age:.1f} s: {refuse.sentence}",
            )

    def crash_after(self, corral: Corral, effects: Sequence[Effect]) -> int | None:
        if self.evictions is not None:
            index = self.evictions.crash_after(effects)
            if index is not None:
                self.hits.hit("F21 crash evicting")
                self.restart(corral)
                return index
        if not self.dies or self.rng.random() >= self.dies:
            return None
        index = self.rng.randrange(len(effects))
        self.hits.hit("F5 between effects" if index else "F5 before effects")
        self.restart(corral)
        return index

    def posting(self, corral: Corral, bind: Bind) -> None:
        """I5: only to the node kube-scheduler named."""
        require(
            (bind.uid, bind.node) in self.named,
            f"I5: {bind.name} is bound to {bind.node}, which kube-scheduler never named",
        )

    def bind_ended(self, corral: Corral, bind: Bind, outcome: BindOutcome) -> None:
        life = life_of(corral)
        key = key_of(life, bind.uid)
        if isinstance(outcome, BindFailed) and key is not None:
            others = [each for each in members_of(life, key) if each.uid != bind.uid]
            if any(counts(each) or each.uid in life.posted for each in others):
                self.hits.hit("F7 partial")

    # -- evictions -----------------------------------------------------------------------------

    def found_room(self, corral: Corral, gang: GangKey, answer: RoomAnswer) -> None:
        if self.room is not None:
            self.room.found(corral, gang, answer)

    def evicting(self, corral: Corral, effect: Evict) -> None:
        if self.room is not None:
            self.room.sending(corral, effect)

    def suspending(self, corral: Corral, effect: Suspend) -> None:
        if self.born is not None:
            self.born.suspending(corral, effect)

    def suspended(self, corral: Corral, effect: Suspend, outcome: EvictOutcome) -> None:
        if self.born is not None and not effect.ends and outcome == "done":
            self.born.suspended(corral)

    def eviction_ended(self, corral: Corral, take: Callable[[], list[Effect]]) -> None:
        if self.room is not None:
            self.room.ended(corral, take)

    # -- inputs --------------------------------------------------------------------------------

    def heard(self, corral: Corral, event: Event) -> None:
        """I9: hearing it again changes nothing."""
        self._count_order(corral, event)
        if self.preemption is not None and corral.life is not None:
            self.preemption.heard(corral.life, event)
        if self.rng.random() >= self.again or corral.life is None:
            return
        engine = corral.engine
        before = state_of(engine)
        effects = engine.apply(event, corral.now)
        after = state_of(engine)
        changed = [name for name in before if before[name] != after[name]]
        require(not changed, f"I9: a repeated {named(event)} changes {changed}")
        corral.carry_out(effects)

    def _count_order(self, corral: Corral, event: Event) -> None:
        if isinstance(event, Listed):
            return
        name, number = corral.name, corral.incarnation
        kind, version = type(event.record).__name__, int(event.record.version)
        if self._versions.get((name, number, kind)) == version:
            self.hits.hit("F4 repeated")
        others = (
            seen
            for (of, at, which), seen in self._versions.items()
            if (of, at) == (name, number) and which != kind
        )
        if max(others, default=0) > version:
            self.hits.hit("F4 reordered")
        self._versions[name, number, kind] = version

    def took(self, corral: Corral, text: str) -> None:
        self._inputs += 1
        life = life_of(corral)
        self._answers_in_time(corral, life)
        self._asking.took(corral, life)
        if not life.engine.is_synced:
            return
        if self.born is not None:
            self.born.took(corral, life)
        self._binding_is_booked(life)
        self._held_too_long(corral, life)
        self._plans(life)
        for each in self.vocabularies:
            each.took(life)
        if self._inputs % HEAVY_EVERY == 0:
            check_books(life)
        if self._inputs % SHADOW_EVERY == 0:
            shadow(life, corral.now, is_dated=not self.clock.wall_went_back)

    def _answers_in_time(self, corral: Corral, life: Life) -> None:
        """I3, F9: a held /bind is answered by its gang's deadline, or its binding is under way."""
        hold = corral.settings.gang_bind_seconds
        # Of its gang's deadline, which begins when the watch shows the pod.
        most = min(EARLY_SECONDS, hold) + hold + corral.tick_seconds + SLACK
        if self.clock.now < life.slept_until + most:
            return
        for uid, held in life.desk.items():
            age = self.clock.now - held.since
            require(
                age <= most or uid in life.binding,
                f"I3: /bind of {uid} is held for {age:.1f} s",
            )

    def _binding_is_booked(self, life: Life) -> None:
        """I1: whatever is being bound for a gang is on the books there."""
        cluster = life.engine.books
        waiting = {pod.uid for pod in pods_of(life) if is_waiting(pod)} if life.binding else ()
        for uid in life.binding:
            if uid in waiting and key_of(life, uid) is not None and uid in life.posted:
                booking = cluster.held.get(uid)
                require(
                    booking is not None and booking.node == life.posted[uid],
                    f"I1: {uid} is being bound to {life.posted[uid]}, where nothing is held",
                )

    def _held_too_long(self, corral: Corral, life: Life) -> None:
        """I3: a plan that does not become a start is given up."""
        most = corral.settings.hold_seconds + corral.tick_seconds + SLACK
        if self.clock.now < life.slept_until + most:
            return
        for key in life.engine.gangs.planned:
            gang = life.engine.gangs.by_key[key]
            age = corral.now - gang.binding.moved_at
            require(
                age <= most or gang.has_started, f"I3: gang {key} holds its plan for {age:.0f} s"
            )

    def _plans(self, life: Life) -> None:
        """I1, I4: what is held fits beside what runs, on nodes that are there and together."""
        engine = life.engine
        if not engine.books.held:
            return
        nodes: dict[str, Any] = life.streams["Node"].mirror
        planned = {uid: gang for gang in engine.gangs.by_key.values() for uid in gang.plan.nodes}
        waiting = [
            (uid, booking, gang)
            for uid, booking in engine.books.held.items()
            if (gang := planned.get(uid)) is not None and uid not in gang.binding.posted
        ]
        runs = taken_by_pods(life)
        holds = totals_by_node((each.node, each.request) for each in engine.books.held.values())
        for uid, booking, gang in waiting:
            node: NodeRecord | None = nodes.get(booking.node)
            require(node is not None, f"I1: {uid} is planned on {booking.node}, which is gone")
            assert node is not None
            require(is_open(node), f"I1: {uid} is planned on {node.name}, which is closed")
            has, there = dict(node.allocatable), runs.get(node.name, {})
            for resource, amount in booking.request:
                asked = holds[node.name][resource] + there.get(resource, 0)
                require(
                    not amount or asked <= has.get(resource, 0),
                    f"I1: {asked} of {resource} are booked on {node.name} of gang {gang.key},"
                    f" it has {has.get(resource, 0)}",
                )
        for key in dict.fromkeys(gang.key for _, _, gang in waiting):
            self._together(life, engine.gangs.by_key[key], nodes)

    def _together(self, life: Life, gang: Gang, nodes: dict[str, Any]) -> None:
        """I4: a required level's planned members are in one domain, with those that run.

        By some topology, which is the same for all roles of the gang.
        """
        topologies = topologies_told(life)
        for role in roles_of(life, gang):
            level = role[0].annotations.get(REQUIRED, "")
            if not level:
                continue
            # A node that is gone tells no domain; what ran there is about to go as well.
            bound = [nodes[each.node] for each in role if each.node in nodes]
            # What is being bound is not called back when its node moves: it counts as bound there.
            moved = {each.uid: now for each in role if (now := _moved_to(life, each, level))}
            bound.extend(moved.values())
            # Who takes a place that is kept has a roll call first.
            is_owed = gang.key in life.engine.gangs.unreviewed
            absent = () if is_owed else gang.placeholders.values()
            kept = (each.member for each in absent if not each.is_spare)
            its = role_of(role[0])
            like = [each.pod for each in kept if role_in(each.leaf, each.pod) == its]
            planned = [
                nodes[gang.plan.nodes[each.uid]]
                for each in (*role, *like)
                if not each.node and each.uid not in moved
                if gang.plan.nodes.get(each.uid) in nodes
            ]
            if not planned or len(_domains(bound, level)) > 1 or gang.key in self._split:
                continue
            topologies = [
                each for each in topologies if are_together((*planned, *bound), level, each)
            ]
            require(
                bool(topologies),
                f"I4: gang {gang.key} requires one {level}: planned in {_domains(planned, level)},"
                f" bound in {_domains(bound, level)}",
            )


def _domains(nodes: Iterable[NodeRecord], level: str) -> list[str]:
    return sorted({domain(node, level) for node in nodes})


def _moved_to(life: Life, pod: PodRecord, level: str) -> NodeRecord | None:
    """The node that the pod is being bound to if that has moved to another domain meanwhile."""
    if pod.node or pod.uid not in life.posted or pod.uid not in life.bound_for:
        return None
    before = life.bound_for[pod.uid]
    node: Any = life.streams["Node"].mirror.get(before.name)
    is_moved = node is not None and domain(node, level) != domain(before, level)
    return node if is_moved else None
