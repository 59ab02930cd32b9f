"""I10: what is about one gang changes nothing of another's, and what fails for one fails for it.

    verb about a pod of A,
    also one not created yet    no other gang's plan changes, nobody else is refused, bound, woken;
                                but /bind of an ordinary pod ends plans of lower priority on its
                                node where there is no room for both; /preempt, those of members
                                at /bind on the node that it grants
    event of a HyperNode        no gang gets a plan; those of PodGroups may lose theirs
    event of a ClusterTopology  no gang gets a plan; those of PodGangs may lose theirs
    event of a pod, of a Job    no other gang gets a plan; one loses its own only to a binding, or
                                to a pod of higher priority: with a nominated node, or one that
                                /preempt was asked about before there was an event of it
    tick                        what is held moves nowhere: a plan ends, a later tick plans anew;
                                but spare places, which yield to members and are held elsewhere

Deadlines, nodes and lists concern every gang. `make_fail` has the search for some gangs raise, as
a bug of ours would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.dialects.grove.topology import ClusterTopologyRecord
from app.dialects.spec import GangKey
from app.dialects.volcano.hyper_nodes import HyperNodeRecord
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.watch.events import Applied, Event, Listed
from app.state.cache.books import Booking
from app.state.effects import Bind, Effect, RejectBind, Requeue, Ungate
from app.state.engine import Engine
from app.state.gang.gang import Gang
from app.state.plan.planner import Planner
from app.state.reserve import placeholders
from tests.sim.dialects import DIALECTS
from tests.sim.faults import Hits
from tests.sim.life import Life
from tests.sim.node_filters import counts, lacks, totals_by_node
from tests.sim.told import named
from tests.sim.violation import require


@dataclass(frozen=True, slots=True)
class Admission:
    """A question about a pod of this gang that is about to be created."""

    gang: GangKey


Subject = str | Event | Admission | None
"""What an input is about: the pod of this uid, what an event says, such a pod, or the time."""

Plans = dict[GangKey, dict[str, str]]
# By the objects that topologies follow from: the source of the only gangs that may lose plans then.
PLACED_IN: dict[type, str] = {HyperNodeRecord: "volcano", ClusterTopologyRecord: "grove"}


class EvaluationFailed(Exception):
    """The search for one gang has raised."""


def make_fail(engine: Engine, fails: Callable[[GangKey], bool], hits: Hits) -> None:
    """Have every search for such gangs raise from now on."""

    class Failing(Planner):
        __slots__ = ()

        def kept_from(self, gang: Gang) -> frozenset[str]:  # on the way of every search
            if fails(gang.key):
                hits.hit("I10 failed")
                raise EvaluationFailed(str(gang.key))
            return Planner.kept_from(self, gang)

    engine.planner.__class__ = Failing


@dataclass(slots=True)
class Isolation:
    """Compares the plans before and after each input; one for all Corrals."""

    _plans: Plans = field(default_factory=dict)
    _held: dict[str, Booking] = field(default_factory=dict)
    _key: GangKey | None = None
    _was_bound: bool = False
    _was_granted: bool = False

    def takes(self, life: Life, subject: Subject) -> None:
        """Remember what might change."""
        engine = life.engine
        self._held = dict(engine.books.held)
        if subject is None:
            return
        self._plans = _plans(engine)
        uid = _uid_of(subject)
        is_new = isinstance(subject, Admission)
        self._key = subject.gang if is_new else engine.gangs.key_of.get(uid)
        self._was_bound = uid in engine.books.bound
        self._was_granted = uid in engine.grants.of

    def taken(self, life: Life, subject: Subject, effects: Sequence[Effect]) -> None:
        """Raises: Violation."""
        if subject is None:
            self._nothing_moves(life)
        elif isinstance(subject, str | Admission):
            self._only_its_own(life, _uid_of(subject), effects)
        elif not isinstance(subject, Listed) and isinstance(
            subject.record, PodRecord | ObjectRecord
        ):
            self._event(life, subject, subject.record, effects)

    def _nothing_moves(self, life: Life) -> None:
        held = life.engine.books.held
        for uid, before in self._held.items():
            now = held.get(uid)
            require(
                now is None or now.node == before.node or _is_spare(life, uid),
                f"I10: {uid} is held on {before.node}, and a tick later on {now and now.node}",
            )

    def _only_its_own(self, life: Life, uid: str, effects: Sequence[Effect]) -> None:
        if self._key is None:  # a pod that takes its place before the watch shows it
            self._key = life.engine.gangs.key_of.get(uid)
        ended: set[GangKey | None] = set()
        for key, before, now in self._changed(life, (self._key,)):
            what = f"I10: a request about {uid} changes the plan of {key}: {before}, {now}"
            self._takes_over(life, _pod_of(life, uid), effects, key, what)
            require(now.items() <= before.items(), what)
            ended.add(key)
        for effect in effects:
            if isinstance(effect, Bind | RejectBind | Requeue | Ungate) and effect.uid != uid:
                other = life.engine.gangs.key_of.get(effect.uid)
                if isinstance(effect, RejectBind) and other in ended:
                    continue  # waits at /bind for a gang whose plan has just ended
                require(
                    other is not None and other == self._key,
                    f"I10: a request about {uid} of gang {self._key} has {effect} of {other}",
                )

    def _takes_over(
        self,
        life: Life,
        pod: PodRecord | None,
        effects: Sequence[Effect],
        key: GangKey,
        what: str,
    ) -> None:
        """Require that an ordinary pod of higher priority takes a node of the gang's plan."""
        require(self._key is None and pod is not None, what)
        assert pod is not None
        node, grant = _bound_to(pod.uid, effects), life.engine.grants.of.get(pod.uid)
        is_granted = node is None and grant is not None and not grant.victims
        node = grant.node if is_granted and grant is not None else node
        require(node is not None, what)
        assert node is not None
        require(node in self._plans.get(key, {}).values(), f"{what}; not on {node}")
        priority = self._priority_on(life, key, node)
        require(pod.priority > priority, f"{what}: {pod.priority} is not above {priority}")
        # Whose binding kube-scheduler wants to end is its own choice.
        has_no_room = is_granted or self._is_taken(life, pod, node)
        require(has_no_room, f"{what}; {node} had room for both")

    def _event(
        self,
        life: Life,
        event: Event,
        record: PodRecord | ObjectRecord,
        effects: Sequence[Effect],
    ) -> None:
        if isinstance(record, ObjectRecord):
            own: tuple[GangKey | None, ...] = tuple(DIALECTS.keys_of(record))
            own += (DIALECTS.inside(record),)
        else:
            own = (self._key, life.engine.gangs.key_of.get(record.uid))
        for key, before, now in self._changed(life, own):
            what = f"I10: the {named(event)} changes the plan of {key}: {before}, {now}"
            require(now.items() <= before.items(), what)
            if type(record) in PLACED_IN:
                require(key.source == PLACED_IN[type(record)], what)
                continue
            require(isinstance(record, PodRecord) and isinstance(event, Applied), what)
            assert isinstance(record, PodRecord)
            is_granted = record.uid in life.engine.grants.of and not self._was_granted
            # Its /bind came before the watch, or its /preempt.
            if is_granted or _bound_to(record.uid, effects) is not None:
                self._takes_over(life, record, effects, key, what)
                continue
            if record.nominated_node and not record.node:
                self._yields(life, record, key, what)
                continue
            is_news = bool(record.node) and not self._was_bound
            require(is_news and record.node in before.values(), what)
            has_room = f"{what}; {record.node} had room for both"
            require(self._is_taken(life, record, record.node), has_room)

    def _yields(self, life: Life, pod: PodRecord, key: GangKey, what: str) -> None:
        """Require that the gang gives way to a nominated pod of higher priority."""
        node = pod.nominated_node
        priority = self._priority_on(life, key, node)
        require(node in self._plans.get(key, {}).values(), f"{what}; not on {node}")
        require(pod.priority > priority, f"{what}: {pod.priority} is not above {priority}")
        has_room = f"{what}; {node} had room for both"
        require(self._is_taken(life, pod, node, leaving=pod.priority), has_room)

    def _priority_on(self, life: Life, key: GangKey, node: str) -> int:
        """The lowest of the gang's pods that something was held for on the node."""
        gang = life.engine.gangs.by_key[key]
        planned = [uid for uid, on in self._plans.get(key, {}).items() if on == node]
        known = [gang.members[uid].pod.priority for uid in planned if uid in gang.members]
        return min(known) if len(known) == len(planned) else gang.membership.lowest_priority

    def _is_taken(self, life: Life, pod: PodRecord, on: str, leaving: int | None = None) -> bool:
        """Whether what was held on the node has no room beside this pod and what runs there.

        `leaving`: pods of a lower priority than this count as gone.
        """
        node: Any = life.streams["Node"].mirror.get(on)
        pods: dict[str, Any] = life.streams["Pod"].mirror
        runs = [
            each
            for each in pods.values()
            if counts(each) and each.uid != pod.uid
            if leaving is None or each.priority >= leaving
        ]
        there = [(on, pod.request), *((each.node, each.request) for each in runs)]
        held = [each for uid, each in self._held.items() if each.node == on and uid != pod.uid]
        there += [(on, each.request) for each in held]
        totals = totals_by_node(there).get(on, {})
        return node is None or bool(lacks(node, {}, tuple(totals.items())))

    def _changed(
        self, life: Life, own: Sequence[GangKey | None]
    ) -> Iterator[tuple[GangKey, dict[str, str], dict[str, str]]]:
        now = _plans(life.engine)
        if now == self._plans:
            return
        for key in dict.fromkeys((*self._plans, *now)):
            before, after = self._plans.get(key, {}), now.get(key, {})
            if key not in own and before != after:
                yield key, before, after


def _is_spare(life: Life, uid: str) -> bool:
    return any(placeholders.is_spare(gang, uid) for gang in life.engine.gangs.by_key.values())


def _pod_of(life: Life, uid: str) -> PodRecord | None:
    """The pod as the watch has told of it."""
    pods: Any = life.streams["Pod"].mirror.values()
    return next((pod for pod in pods if pod.uid == uid), None)


def _bound_to(uid: str, effects: Sequence[Effect]) -> str | None:
    """The node that these effects bind a pod to."""
    return next((e.node for e in effects if isinstance(e, Bind) and e.uid == uid), None)


def _plans(engine: Engine) -> Plans:
    return {
        key: dict(gang.plan.nodes) for key, gang in engine.gangs.by_key.items() if gang.plan.nodes
    }


def _uid_of(subject: str | Event | Admission) -> str:
    """The pod that an input is about; "": none that exists."""
    if isinstance(subject, str):
        return subject
    if isinstance(subject, Listed | Admission):
        return ""
    return getattr(subject.record, "uid", "")
