"""P1, P2, P12, P13: what /preempt may answer, by what its Corral has been told.

    P1    no pod ends for one of no higher priority; a member counts as the highest of its gang,
          and no pod at all ends for a member
    P2    one preemptor, one node at a time: while its victims end, or its node is free, nobody
          else ends for it, and a few answers are all that it ever gets
    P12   asked the same again at once, nothing changes and nobody else is named
    P13   at most one node of the question, with uids of the question, and never none

Before its first lists are in, a Corral leaves kube-scheduler's choice as it is: no more is asked
of it then than that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from app.dialects import corral as own
from app.kube.core.objects import Amounts, PodRecord
from app.kube.watch.events import Event, Listed
from app.state.effects import EmitEvent
from app.state.engine import Engine
from app.state.pods.grants import COUNTED_SECONDS, MOST_IN_VAIN, UNHEARD_SECONDS
from tests.sim.api import ApiServer
from tests.sim.clock import Clock
from tests.sim.corral import Corral
from tests.sim.life import Life
from tests.sim.node_filters import counts, is_open, lacks, may_be_on, totals_by_node
from tests.sim.observer import PreemptCall
from tests.sim.shadow import state_of
from tests.sim.told import claim_of, is_live, key_of, life_of, members_of, pods_of
from tests.sim.violation import require

AGAIN = 0.3  # share of the questions that are asked twice


@dataclass(frozen=True, slots=True)
class Nominated:
    """A pod without a node that room on one is kept for."""

    uid: str
    node: str
    request: Amounts
    priority: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What one Corral has given a preemptor that it knew."""

    life: Life
    node: str
    victims: tuple[str, ...]
    at: float


@dataclass(slots=True)
class PreemptionChecks:
    """One for all Corrals.

    `is_late`: whether kube-scheduler has not heard of all changes yet. `expected`: what it
    counts on nodes for a pod and is bound to none.
    """

    clock: Clock
    api: ApiServer
    rng: Random
    is_late: Callable[[], bool]
    expected: Callable[[PodRecord], Iterable[tuple[str, Amounts]]]
    _answers: dict[str, list[Answer]] = field(default_factory=dict)  # by the preemptor's uid
    _changed_at: dict[str, float] = field(default_factory=dict)  # by node

    def __post_init__(self) -> None:
        self.api.subscribe("Node", self._note_node)

    def _note_node(self) -> None:
        self._changed_at[self.api.changes["Node"][-1].record.name] = self.clock.now

    def heard(self, life: Life, event: Event) -> None:
        """Note since when pods end, as far as this Corral knows."""
        for record in event.records if isinstance(event, Listed) else (event.record,):
            if isinstance(record, PodRecord) and record.is_terminating:
                life.ending.setdefault(record.uid, self.clock.now)

    def chose(self, corral: Corral, asked: PreemptCall) -> None:
        """Raises: Violation."""
        life, pod = life_of(corral), asked.pod
        _within_the_question(life, asked)
        for node, victims in asked.answer.items():
            require(claim_of(pod) is None, f"P1: pods end on {node} for member {pod.name}")
            require(pod.preempts, f"P1: pods end on {node} for {pod.name}, which may not preempt")
            if life.engine.is_synced:
                _only_lower(life, pod, victims.uids)
                self._only_once(life, pod, node, victims.uids)

    def preempted(self, corral: Corral, asked: PreemptCall) -> None:
        """Ask again. Raises: Violation."""
        if corral.life is None or self.rng.random() >= AGAIN:
            return
        before, pod, answer = _remembered(corral.engine), asked.pod, asked.answer
        again, effects = corral.taking.preempt(pod, asked.offered, corral.now)
        after = _remembered(corral.engine)
        changed = [name for name in before if before[name] != after[name]]
        require(not changed, f"P12: {pod.name} asks again, and that changes {changed}")
        require(
            not again or again == answer,
            f"P12: {pod.name} asks again and hears {again}, not {answer}",
        )
        acts = [effect for effect in effects if not isinstance(effect, EmitEvent)]
        require(not acts, f"P12: {pod.name} asks again, and that leads to {acts}")
        corral.carry_out(effects)

    # -- P2 ------------------------------------------------------------------------------------

    def _only_once(self, life: Life, pod: PodRecord, node: str, uids: tuple[str, ...]) -> None:
        told = _told(life)
        known = told.get(pod.uid)
        if known is None or known.node:
            return  # nothing can be remembered of a pod that the watch does not show
        answers = self._answers.setdefault(pod.uid, [])
        own = [each for each in answers if each.life is life]
        if own and answers[-1] is own[-1]:
            if not _end_already(life, own[-1], node, uids, told):
                self._used_up(life, known, own[-1], told)
        elif not own:
            self._nobody_ends_for(life, known, told)
        recent = [each for each in own if each.at > self.clock.now - COUNTED_SECONDS]
        require(
            len(recent) < MOST_IN_VAIN,
            f"P2: {pod.name} gets {node} after {[each.node for each in recent]}",
        )
        answers.append(Answer(life, node, uids, self.clock.now))

    def _used_up(
        self, life: Life, pod: PodRecord, last: Answer, told: Mapping[str, PodRecord]
    ) -> None:
        """Require that the last answer was lost, or has come to nothing."""
        if self._changed_at.get(last.node, -1.0) >= last.at - 60.0:
            return  # it may have been closed, or have shrunk
        if pod.nominated_node not in ("", last.node):
            return  # by another Corral's answer, or by one that was given before
        left = [told[uid] for uid in last.victims if uid in told and counts(told[uid])]
        ending = [each.name for each in left if each.is_terminating]
        require(
            not ending or _was_lost(life, pod, last, told),
            f"P2: {pod.name} gets another node, while {ending} end for it",
        )
        seconds = self.clock.now - last.at
        require(
            not left or seconds >= UNHEARD_SECONDS,
            f"P2: {pod.name} gets another node {seconds:.1f} s after {last.node}",
        )
        is_up_to_date = not (self.is_late() or any(each.pending for each in life.streams.values()))
        if not left and is_up_to_date:
            is_free = self._takes(life, pod, last.node)
            require(not is_free, f"P2: {pod.name} gets another node, and {last.node} is free")

    def _takes(self, life: Life, pod: PodRecord, name: str) -> bool:
        """Whether the node takes the pod beside what runs there and what may come before it."""
        node = self.api.nodes.get(name)
        if node is None or not may_be_on(node, pod.shape):
            return False
        books = life.engine.books
        there = [(each.node, each.request) for each in self.api.pods.values() if counts(each)]
        there += [
            (each.node, each.request)
            for uid, each in books.held.items()
            if uid != pod.uid and books.priority_of.get(uid, pod.priority) >= pod.priority
        ]
        there += self.expected(pod)
        there += [
            (each.nominated_node, each.request)
            for each in self.api.pods.values()
            if not each.node and each.uid != pod.uid and each.priority >= pod.priority
        ]
        return not lacks(node, totals_by_node(there).get(name, {}), pod.request)

    def _nobody_ends_for(self, life: Life, pod: PodRecord, told: Mapping[str, PodRecord]) -> None:
        """As after a restart: a nominated node, and pods that end there, say the same."""
        node: Any = life.streams["Node"].mirror.get(pod.nominated_node)
        if node is None or not is_open(node):
            return
        ending = [
            each.name
            for each in told.values()
            if counts(each) and each.node == pod.nominated_node and each.is_terminating
            if each.priority < pod.priority
        ]
        require(not ending, f"P2: {pod.name} gets a node, while {ending} end on {node.name}")


def _told(life: Life) -> dict[str, PodRecord]:
    return {pod.uid: pod for pod in pods_of(life)}


def _was_lost(life: Life, pod: PodRecord, last: Answer, told: Mapping[str, PodRecord]) -> bool:
    """Whether no victim of an answer ended in time: others end for another pod.

    kube-scheduler has heard the answer if the pod is nominated, however late its victims end.
    """
    if pod.nominated_node:
        return False
    ended = [uid for uid in last.victims if uid not in told or told[uid].is_terminating]
    ends = (life.ending.get(uid, last.at) for uid in ended)
    return not any(last.at <= at < last.at + UNHEARD_SECONDS for at in ends)


def _end_already(
    life: Life, last: Answer, node: str, uids: tuple[str, ...], told: Mapping[str, PodRecord]
) -> bool:
    """Whether the same node is answered, and only victims that began to end for others.

    kube-scheduler may fail to delete the last victim of an answer, which is over some time later;
    the pod that is left may then go for another reason. Nobody ends for this answer.
    """
    if node != last.node or not {*uids} <= {*last.victims}:
        return False
    return all(
        uid in told
        and told[uid].is_terminating
        and life.ending.get(uid, last.at) >= last.at + UNHEARD_SECONDS
        for uid in uids
    )


def _within_the_question(life: Life, asked: PreemptCall) -> None:
    """P13."""
    offered, answer = asked.offered, asked.answer
    what = f"P13: {asked.pod.name} hears {answer}, asked about {offered}"
    require(len(answer) <= 1 or not life.engine.is_synced, what)
    for node, victims in answer.items():
        require(node in offered and bool(victims.uids), what)
        require(set(victims.uids) <= set(offered[node].uids), what)
        require(victims.pdb_violations <= offered[node].pdb_violations, what)


def _only_lower(life: Life, pod: PodRecord, uids: Iterable[str]) -> None:
    """P1: by what the watch says of the preemptor and of each victim's gang."""
    told = _told(life)
    priority = told.get(pod.uid, pod).priority
    for uid in uids:
        key = key_of(life, uid)
        gang = [] if key is None else [each for each in members_of(life, key) if is_live(each)]
        highest = max(each.priority for each in (told[uid], *gang))
        require(
            highest < priority,
            f"P1: {told[uid].name} of priority {highest} ends for {pod.name} of {priority}",
        )


def _remembered(engine: Engine) -> dict[str, Any]:
    grants, nominations = engine.grants, engine.nominations
    return {
        **state_of(engine),
        "grants": {uid: (each.node, each.victims, each.made_at) for uid, each in grants.of.items()},
        "in vain": {uid: tuple(made) for uid, made in grants._in_vain.items()},
        "nominations": dict(nominations._by_uid),
    }


# -- when all is quiet -------------------------------------------------------------------------


def check_nothing_stays(api: ApiServer, corrals: Iterable[Corral]) -> None:
    """I7: no grant and no nomination is of a pod that is gone, or has a node; and no member of a
    gang is nominated for a node that is not planned for it, and no other pod by us.

    Raises: Violation.
    """
    waiting = {pod.uid: pod for pod in api.pods.values() if not pod.node}
    nominated = {uid: pod.nominated_node for uid, pod in waiting.items() if pod.nominated_node}
    for corral in corrals:
        grants, nominations = corral.engine.grants, corral.engine.nominations
        kept = nominations._kept.keys()
        for name, uids in (
            ("grants", grants.of),
            ("grants in vain", grants._in_vain),
            ("nominations", nominations._by_uid.keys() - kept),
        ):
            gone = [uid for uid in uids if uid not in waiting]
            require(not gone, f"I7: {corral.name} has {name} of {gone}")
        ordinary = {
            uid: node for uid, node in nominated.items() if uid not in corral.engine.gangs.key_of
        }
        known = {uid: each.node for uid, each in nominations._watched.items()}
        require(known == ordinary, f"I7: {corral.name} has nominations {known}, not {ordinary}")
        if corral.is_leading:
            planned = {
                uid: corral.engine.gangs.by_key[key].plan.nodes.get(uid)
                for uid, key in corral.engine.gangs.key_of.items()
                if uid in nominated
            }
            stale = [uid for uid, node in planned.items() if node != nominated[uid]]
            require(not stale, f"I7: {stale} are nominated for nodes that are not theirs")
            left = [
                uid
                for uid, node in ordinary.items()
                if node == waiting[uid].annotations.get(own.NOMINATED) and uid not in grants.of
            ]
            require(not left, f"I7: {left} are in no gang, and nominated by {corral.name}")
        going = {uid for each in grants.of.values() for uid in each.victims}
        require(grants._victims.keys() == going, f"I7: {corral.name} has victims of no grant")


def nominated_by(
    api: ApiServer, in_memory: Collection[tuple[PodRecord, str]], corrals: Iterable[Corral]
) -> list[Nominated]:
    """For whom room is kept on a node: in a status, by kube-scheduler, or by a Corral's grant."""
    found = [
        Nominated(pod.uid, pod.nominated_node, pod.request, pod.priority)
        for pod in api.list("Pod")
        if pod.nominated_node and not pod.node
    ]
    found += [Nominated(pod.uid, node, pod.request, pod.priority) for pod, node in in_memory]
    for corral in corrals:
        for uid, each in corral.engine.nominations._by_uid.items():
            found.append(Nominated(uid, each.node, each.request, each.priority))
    unique = {(each.uid, each.node): each for each in found}
    return list(unique.values())
