"""The heart: what happens when. `apply(event, now) -> effects`; the verbs are its siblings.

    watch event ─▶ books, store of gangs ─▶ roll call of the gang ─▶ plan ─▶ hold ─▶ Requeue
    /filter     ─▶ planned: pin · waiting: reject with one stable sentence · ordinary: pass
    /bind       ─▶ ordinary: Bind · member: held until the last one is there, then Bind all
    tick        ─▶ deadlines, refusals that end, gangs that may fit now

No I/O, no clock, no randomness: the same inputs give the same effects, bit for bit. Nothing here
is durable; all of it is rebuilt from nodes, pods, Jobs and topologies after a restart.

This file has the verbs and the outcomes of effects. It stands on `ticks.py` (what is due), that on
`watched.py` (what the watch shows), and that on the parts (`wiring/`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

import msgspec

from app.dialects.registry import DIALECTS, Dialects
from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.audit.differences import checks
from app.state.effects import (
    BindFailed,
    BindOutcome,
    Effect,
    Evict,
    EvictOutcome,
    PlaceAnswer,
    RejectBind,
    RoomAnswer,
    Suspend,
    UngateFailed,
    UngateOutcome,
)
from app.state.filter_result import Candidates, Failed, FilterAnswer, Rejected, Victims
from app.state.gang.gang import Phase
from app.state.isolation import OnFault, reraise
from app.state.pods.arrivals import Arrival
from app.state.report.messages import gangs as messages
from app.state.settings import EngineSettings
from app.state.ticks import Ticking


class Engine(Ticking):
    """One cluster's gangs. Every method is one atomic step; `now` is monotonic seconds."""

    def __init__(
        self,
        settings: EngineSettings | None = None,
        on_fault: OnFault = reraise,
        dialects: Dialects = DIALECTS,
    ) -> None:
        super().__init__(settings or EngineSettings(), on_fault, dialects)
        self.reservations.capacity_grew()

    def gangs_by_phase(self) -> dict[str, int]:
        """How many gangs stand in each phase, for metrics."""
        found = Counter(gang.phase.value for gang in self.gangs.by_key.values())
        return {phase.value: found[phase.value] for phase in Phase}

    @property
    def lost_writes(self) -> int:
        """How many events, statuses and deletions were not written and wait to be repeated."""
        return len(self.reports.lost)

    def warnings(self) -> tuple[str, ...]:
        """What is wrong with topologies and objects of the cluster, for the operator's log."""
        problem = (self.topologies.problem,) if self.topologies.problem else ()
        return (
            *problem,
            *self.books.split_values,
            *self.books.uncounted,
            *self.named_pods.problems,
            *self.kept_keys.problems,
        )

    # -- the verbs -----------------------------------------------------------------------------

    def filter(
        self, pod: PodRecord, candidates: Candidates, now: float
    ) -> tuple[FilterAnswer, list[Effect]]:
        """Which of these nodes the pod may have.

        A pod that the watch shows is what the watch shows, whatever the request says of it.
        """
        self._keep_new_nodes(now)
        is_member = pod.uid in self.gangs.key_of
        claim = None if is_member else self.claim_reader.claim(pod)
        if claim is None and not is_member:
            return self.ordinary_pods.answer(pod, candidates, now), self._effects()
        if not self.is_synced or self.is_draining:
            return self._unready(pod)
        known = self.arrivals.known(pod.namespace, pod.name, pod.uid)
        if known is not None and self.assumed_pods.end(pod.uid):
            # An attempt to bind it has failed that began before an object named it.
            self.claims.settle_bindings(now)
            self.reservations.capacity_grew()
        return self.filtering.answer(pod, claim, candidates, now), self._effects()

    def _unready(self, pod: PodRecord) -> tuple[FilterAnswer, list[Effect]]:
        """The answer for a member before everything is known."""
        if not pod.nominated_node:
            return Failed(messages.not_ready()), []
        # A failed one would take away the node that others may have been evicted from.
        answer = Rejected(messages.not_ready())
        self.filtering.note_unready(pod.uid, answer)
        return answer, []

    def admit(
        self, pod: PodRecord, namespace: str, now: float
    ) -> tuple[tuple[str, ...] | None, list[Effect]]:
        """The nodes to narrow a pod to that is about to be created; None: it gets our gate.

        (): it was narrowed by an earlier call. `namespace`: where it will be.
        """
        pod = msgspec.structs.replace(pod, namespace=namespace)
        may_plan = self.is_synced and self.planner.leads and not self.is_draining
        claim = self.claim_reader.claim(pod) if may_plan else None
        found = None if claim is None else self.births.admit(pod, claim, now)
        return found, self._effects()

    def prioritize(self, pod: PodRecord, candidates: Candidates, now: float) -> list[int]:
        """Scores 0..10, in the order of `candidates.names()`: the lowest for what is to stay free.

        All are 0 before the first lists are in.
        """
        if not self.is_synced:
            return [0] * len(candidates.names())
        return self.scoring.scores(pod, candidates)

    def preempt(
        self, pod: PodRecord, offered: Mapping[str, Victims], now: float
    ) -> tuple[Mapping[str, Victims], list[Effect]]:
        """On which of these nodes the pod may have the victims offered: on one, or on none.

        Before the first lists are in, what kube-scheduler has chosen stands where no gang runs.
        """
        if not self.is_synced or self.is_draining:
            return self.preempting.answer_unready(pod, offered), self._effects()
        return self.preempting.answer(pod, offered, now), self._effects()

    def bind_arrived(
        self, namespace: str, name: str, uid: str, node: str, now: float
    ) -> list[Effect]:
        """Take a request to bind a pod: a member waits for its gang, other pods do not."""
        self._keep_new_nodes(now)
        if not self.is_synced or self.is_draining:
            refused = "Corral is not ready: it is starting or stopping"
            self.outbox.add(RejectBind(uid, refused))
        else:
            self.bind_requests.take(Arrival(namespace, name, uid, node), now)
            self._yield_nodes(now)
        return self._effects()

    def bind_finished(self, uid: str, outcome: BindOutcome, now: float) -> list[Effect]:
        """Take the outcome of a Bind; that it succeeded is learned from the watch alone."""
        gang = self.gangs.of_pod(uid)
        if isinstance(outcome, BindFailed):
            if gang is not None:
                self.permit.bind_failed(gang, uid, is_gone=outcome.is_gone, now=now)
            elif self.assumed_pods.end(uid):
                self.reservations.capacity_grew()
        return self._effects()

    def ungate_finished(self, uid: str, outcome: UngateOutcome, now: float) -> list[Effect]:
        """Take the outcome of an Ungate; that it succeeded is learned from the watch alone."""
        gang = self.gangs.of_pod(uid)
        if isinstance(outcome, UngateFailed) and gang is not None:
            self.permit.ungate_failed(gang, uid, outcome, now)
        return self._effects()

    def write_lost(self, gang: GangKey, what: str, uid: str, now: float) -> list[Effect]:
        """Note that an event about a gang, its status or a deletion was not written.

        `what`: the event's reason, STATUS or DELETE; `uid`: of the object that it is about.
        """
        if known := self.gangs.by_key.get(gang):
            self.reports.note_lost(known, what, uid)
        # That of an object without pods is sent again when it does not show.
        return self._effects()

    def nominating_forbidden(self, namespace: str, seconds: float, now: float) -> list[Effect]:
        """Note that the API server lets us nominate no pods of a namespace, for so long at least.

        Its members are woken by the annotation, and a sample of the nodes is a mistake again.
        """
        self.nominating.forbid(namespace, now + seconds)
        return self._effects()

    def room_found(
        self, gang: GangKey, answer: RoomAnswer | None, seconds: float, now: float
    ) -> list[Effect]:
        """Take the answer to a SeekRoom, which took so long; None: the search has failed."""
        self.making_room.answered(gang, answer, seconds, now)
        return self._effects()

    def place_found(
        self, gang: GangKey, answer: PlaceAnswer | None, seconds: float, now: float
    ) -> list[Effect]:
        """Take the answer to a SeekPlace, which took so long; None: the search has failed."""
        for key in self.searches_on.answered(gang, answer, seconds, now):
            self.queue.want_turn(self.gangs.by_key[key])  # not at once: a roll call may be owed
        return self._effects()

    def eviction_tried(self, uid: str, outcome: EvictOutcome, now: float) -> list[Effect]:
        """Take the outcome of a TryEviction."""
        self.room_plans.tried(uid, outcome, now)
        return self._effects()

    def eviction_finished(self, uid: str, outcome: EvictOutcome, now: float) -> list[Effect]:
        """Take the outcome of an Evict or a Suspend; that pods end the watch alone tells."""
        self.room_plans.evicted(uid, outcome, now)
        self.giving_back.evicted(uid, outcome, now)
        gang = self.gangs.of_pod(uid)
        if gang is not None and outcome in ("failed", "refused"):
            self.evictions.refused(gang, uid)
        return self._effects()

    def is_eviction_wanted(self, effect: Evict | Suspend) -> bool:
        """Whether an Evict or a Suspend that has not been sent is still to be."""
        if isinstance(effect, Suspend):
            return effect.ends or self.giving_back.is_suspension_wanted(effect.uid)
        part = self.giving_back if effect.is_given_back else self.room_plans
        return part.is_wanted(effect.uid)

    def lead(self, is_leading: bool, now: float) -> list[Effect]:
        """Decide from now on where gangs go, or follow another Corral; at the start, decide."""
        self.succession.lead(is_leading=is_leading, now=now)
        if is_leading and self.planner.is_ready:
            self.room_plans.take_back(now)
        return self._effects()

    # -- the audit, and the end ----------------------------------------------------------------

    def checks(self) -> Iterator[list[str]]:
        """Where the books differ from the records, a piece at a time; see `audit.checks`."""
        yield from checks(self.books, self.gangs, self.assumed_pods.uids)
        yield list(self.absent_pods.differences(self.gangs.by_key.values()))
        yield list(self.owed_places.differences(self.gangs.by_key.values()))
        yield from self.claims.checks()
        yield list(self.pools.differences())
        yield list(self.held_nodes.differences(self.gangs.by_key.values()))

    def differences(self) -> list[str]:
        """The same at once; empty unless Corral has a bug."""
        return list(chain.from_iterable(self.checks()))

    def heal(self, now: float) -> list[Effect]:
        """Correct the books by the records; what was planned on wrong books is planned again."""
        self.claims.heal(now)
        self.pools.heal()
        self.healing.heal(self.assumed_pods.uids, now)
        self.held_nodes.recount(self.gangs.by_key.values())
        return self._effects()

    def drain(self, now: float) -> list[Effect]:
        """Prepare to stop: refuse held /bind requests, and begin nothing new."""
        self.is_draining = True
        self.permit.refuse_arrived("Corral is stopping; kube-scheduler tries again")
        self.bind_requests.expire()
        return self._effects()
