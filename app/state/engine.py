"""The heart: what happens when. `apply(event, now) -> effects`; the verbs are its siblings.

    watch event ─▶ books, store of gangs ─▶ roll call of the gang ─▶ plan ─▶ hold ─▶ Requeue
    /filter     ─▶ planned: pin · waiting: reject with one stable sentence · ordinary: pass
    /bind       ─▶ ordinary: Bind · member: held until the last one is there, then Bind all
    tick        ─▶ deadlines, refusals that end, gangs that may fit now

No I/O, no clock, no randomness: the same inputs give the same effects, bit for bit. Nothing here
is durable; all of it is rebuilt from nodes, pods, Jobs and topologies after a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import TypeVar

import msgspec

from app.dialects.registry import DIALECTS, Dialects
from app.dialects.spec import GangKey
from app.kube.core.objects import NodeRecord, PodRecord, Record
from app.kube.core.turns import turn
from app.kube.watch.events import Applied, Deleted, Event, Kind, Listed
from app.state.audit import checks
from app.state.domains.topologies import Change
from app.state.effects import (
    BindFailed,
    BindOutcome,
    Effect,
    Evict,
    EvictOutcome,
    PlaceAnswer,
    ReadAgain,
    RejectBind,
    Requeue,
    RoomAnswer,
    Suspend,
    UngateFailed,
    UngateOutcome,
)
from app.state.filter_result import Candidates, Failed, FilterAnswer, Rejected, Victims
from app.state.gang.gang import Phase
from app.state.isolation import OnFault, confined, reraise
from app.state.pods.arrivals import Arrival
from app.state.report import messages
from app.state.settings import EngineSettings
from app.state.wiring.answers import EngineParts

EARMARK_SECONDS = 5.0  # between two reviews

_T = TypeVar("_T")


class Engine(EngineParts):
    """One cluster's gangs. Every method is one atomic step; `now` is monotonic seconds."""

    def __init__(
        self,
        settings: EngineSettings | None = None,
        on_fault: OnFault = reraise,
        dialects: Dialects = DIALECTS,
    ) -> None:
        super().__init__(settings or EngineSettings(), on_fault, dialects)
        self.is_draining = False
        self._earmarks_at = 0.0  # when they are reviewed next
        self._listed: set[Kind] = set()
        self.reservations.capacity_grew()

    @property
    def is_synced(self) -> bool:
        """Whether every list is in; before that nothing is planned or answered.

        At the start, pods that were read before the nodes are read once more: a gated gang cannot
        be taken back from nodes that it was narrowed to.
        """
        is_listed = self._listed.issuperset(self.settings.kinds)
        return is_listed and (self.planner.is_ready or not self.part_counted.is_behind)

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

    # -- the watch -----------------------------------------------------------------------------

    def apply(self, event: Event, now: float) -> list[Effect]:
        """Apply one event of the watch."""
        if isinstance(event, Listed):
            self._replace_all(event, now)
        elif isinstance(event, Applied):
            self._put(event.record, now)
        elif isinstance(event, Deleted):
            self._drop(event.record, now)
        if not self.planner.is_ready:
            self._start(now)
        self.claims.settle(now)
        self.bind_requests.take_due(now)
        self._yield_nodes(now)
        return self._effects()

    def _replace_all(self, event: Listed, now: float) -> None:
        """Apply a complete list of a kind: an object that it leaves out is gone."""
        match event.kind:
            case "Node":
                named = {record.name for record in event.records}
                gone = [name for name in self.books.nodes if name not in named]
                self._each("Node", gone, lambda name: self.nodes.drop(name, now))
                self._each("Node", gone, lambda name: self.new_nodes.drop(name, now))
                self._each("Node", gone, self.held_nodes.drop)
            case "Pod":
                listed = {record.uid for record in event.records if isinstance(record, PodRecord)}
                known = [
                    *self.books.bound,
                    *self.gangs.key_of,
                    *self.named_pods.unclaimed,
                    *self.arrivals.uids,
                    *self.nominations.uids,
                ]
                # A list may be from before a pod that kube-scheduler has seen already.
                gone = [
                    uid
                    for uid in dict.fromkeys(known)
                    if uid not in listed and uid not in self.unseen
                ]
                self._each("Pod", gone, lambda uid: self._drop_pod(uid, now))
            case kind:  # objects of a vocabulary
                self._replace_objects(kind, event.records, now)
        with self.books.counted_together() if self._is_first(event) else nullcontext():
            self._each(event.kind, event.records, lambda record: self._put(record, now), "{0.name}")
        self.claims.settle(now)
        if event.kind == "Pod" and self.kept_keys.pods_read(event.edition):
            keys = [key for key in self.objects.gangs_with_keys() if key in self.gangs.by_key]
            self._each("Pod", keys, lambda key: self.members.review(key, now))
        self._listed.add(event.kind)

    def _start(self, now: float) -> None:
        """Begin to plan if everything has been read."""
        if self.is_synced:
            self.planner.is_ready = True
            self.roll_calls.review_all(now)
            self.room_plans.take_back(now)
            self.requests.begin()
            self.reservations.capacity_grew()

    def _is_first(self, event: Listed) -> bool:
        """Whether this is the first list of the pods, before which nothing is planned or held."""
        return event.kind == "Pod" and not (self.is_synced or self.books.held)

    def _replace_objects(self, kind: Kind, records: Sequence[Record], now: float) -> None:
        listed = {record.uid for record in records}
        gone = [uid for uid in self.objects.of_kind(kind) if uid not in listed]
        self._each(kind, gone, self.claims.drop_object)
        self._each(kind, gone, self._drop_allowance)
        self._each(kind, gone, self.budgets.drop)
        self._each(kind, gone, self.pools.drop)
        self._each(kind, gone, self._drop_request)
        self._each(kind, gone, self.domain_statuses.drop)
        self._regroup(self.topologies.replace(kind, records), now)

    def _each(
        self, kind: Kind, objects: Iterable[_T], apply: Callable[[_T], None], shown: str = "{}"
    ) -> None:
        """Apply what a list says; an error in one object does not keep the others from it."""
        what = f"{kind} {shown} of a list"
        for one in objects:
            turn()  # of a copy, beside the loop
            with confined(self.on_fault, what, one):
                apply(one)

    def _put(self, record: Record, now: float) -> None:
        if isinstance(record, PodRecord):
            self._put_pod(record, now)
        elif isinstance(record, NodeRecord):
            if self.nodes.put(record, now):
                self.new_nodes.put(record.name, now)
            else:
                self.new_nodes.note_change(record.name)
            self.held_nodes.put(record)
        else:
            self._regroup(self.topologies.put(record), now)
            self.domain_statuses.note(record.uid, now)
            if self.absent_pods.put_object(record):
                self.queue.want_pass()
            self.budgets.put(record)
            self.pools.put(record)
            self.marks.note_request(self.requests.put(record))
            self.claims.put_object(record)

    def _drop(self, record: Record, now: float) -> None:
        if isinstance(record, PodRecord):
            self._drop_pod(record.uid, now)
        elif isinstance(record, NodeRecord):
            self.nodes.drop(record.name, now)
            self.new_nodes.drop(record.name, now)
            self.held_nodes.drop(record.name)
        else:
            self.domain_statuses.drop(record.uid)
            self._regroup(self.topologies.drop(record.uid), now)
            self._drop_allowance(record.uid)
            self.budgets.drop(record.uid)
            self.pools.drop(record.uid)
            self._drop_request(record.uid)
            self.claims.drop_object(record.uid)

    def _regroup(self, change: Change, now: float) -> None:
        """Follow a change of topologies: nodes are in other domains, and gangs may fit by now."""
        if not change:
            return
        self.invalidation.lose_plans_around(change.moved, now, change.levels)
        self.reservations.capacity_grew()
        if change.is_retiered:
            for gang in self.gangs.by_key.values():
                self.gangs.owe_review(gang)

    def _drop_allowance(self, uid: str) -> None:
        if self.absent_pods.drop_object(uid):
            self.queue.want_pass()

    def _drop_request(self, uid: str) -> None:
        self.marks.note_request(self.requests.drop(uid))

    def _put_pod(self, pod: PodRecord, now: float) -> None:
        gang = self.gangs.of_pod(pod.uid)
        was = None if gang is None else gang.members[pod.uid].pod
        if gang is not None and was is not None and was.health != pod.health:
            self.reports.note_health(gang.key)
        if self.gangs.knows(pod) and pod.uid not in self.unseen:
            self.occupants.note_phase(pod)
            if gang is not None and was is not None and was.is_marked != pod.is_marked:
                self.marks.note_seen(gang, pod.uid, is_marked=pod.is_marked)
            return  # as most events of a member: conditions, container statuses
        self.unseen.drop(pod.uid)
        was_behind = False
        if self.settings.is_ours(pod) and not (pod.node or pod.is_finished):
            was_behind = self.arrivals.put(pod)
        else:
            self.arrivals.drop(pod.uid)
        claim = self.claims.in_force(pod, self.claim_reader.claim(pod))
        # A member of a gang has its node by our plan, not by an earlier nomination.
        is_ours = claim is not None and self.settings.is_ours(pod)
        if left := (self.nominations.drop(pod.uid) if is_ours else self.nominations.put(pod)):
            self.reservations.capacity_grew([left])
        if pod.is_finished:
            self.run_times.end(pod.uid, now, has_succeeded=pod.phase == "Succeeded")
            self._unbook(pod.uid)
        elif pod.node:
            self.run_times.begin(pod, now)
            self.rejected_pods.forget(pod.uid)
            self.assumed_pods.end(pod.uid)
            self.occupants.put(pod)
            if pod.offered_then is not None or self.part_counted.then_of:
                self.part_counted.put(pod)
            self._end_grant(self.grants.forget(pod.uid))
            is_new = self.books.bind(pod.uid, pod.node, pod.request, lasts=pod.lasts)
            if is_new and self.settings.fewest_fragments:
                self.usual_requests.note(pod.namespace, pod.request)
            if is_new and pod.node in self.books.held_on:
                by = messages.of_priority(pod.namespace, pod.name, pod.priority)
                self.invalidation.lose_overcommitted(pod.node, now, by)
        elif pod.nominated_node:
            self._end_grant(self.grants.follow(pod.uid, pod.nominated_node))
            self._yield_to(pod, now)
        if claim is not None:
            # A pod that was ordinary at /bind: from now on its gang's plan holds what it takes.
            self.assumed_pods.end(pod.uid)
            self.giving_back.note(pod, claim.gang)
            self.members.put(pod, claim, now, rejected_with=self.filtering.forget_early(pod.uid))
            if was_behind:
                self.requeues.requeue_rejected(self.gangs.by_key[claim.gang], [pod.uid])
        elif pod.uid in self.gangs.key_of:
            self.members.drop(pod.uid, now)
        if claim is None and self.settings.is_ours(pod):
            self.nominating.note_other(pod)
        self.claims.put(pod)
        self.preempting.show(pod, now)
        if pod.is_marked and (known := self.gangs.of_pod(pod.uid)) is not None:
            self.marks.note_seen(known, pod.uid, is_marked=True)

    def _yield_to(self, pod: PodRecord, now: float) -> None:
        """Give up what is held for gangs of lower priority where a pod is nominated."""
        nomination, node = self.nominations.of(pod.uid), pod.nominated_node
        if nomination is None or node not in self.books.held_on or pod.uid in self.books.held:
            return
        leaving = self.occupants.lower(self.books.bound_on.get(node, ()), pod.priority)
        by = messages.of_priority(pod.namespace, pod.name, pod.priority)
        self.invalidation.lose_to_nominated(nomination, leaving, by, now)

    def _end_grant(self, node: str) -> None:
        """Have gangs tried where a grant has ended."""
        if node:
            self.reservations.capacity_grew([node])

    def _drop_pod(self, uid: str, now: float) -> None:
        self.run_times.end(uid, now, has_succeeded=False)
        self.arrivals.drop(uid)
        self._unbook(uid)
        self.members.drop(uid, now)
        self.claims.drop(uid)
        self.filtering.forget_early(uid)
        self.unseen.drop(uid)
        self.giving_back.forget(uid)
        self.nominating.forget(uid)

    def _unbook(self, uid: str) -> None:
        self.rejected_pods.forget(uid)
        self.preempting.forget(uid)
        self.occupants.drop(uid)
        if self.part_counted.then_of:  # hardly ever
            self.part_counted.drop(uid)
        self.room_plans.note_gone(uid)
        self._end_grant(self.grants.forget(uid))
        if left := self.nominations.drop(uid):
            self.reservations.capacity_grew([left])
        held = self.books.held.get(uid)
        booking = self.books.unbind(uid) or (held if self.assumed_pods.end(uid) else None)
        if booking is not None:
            # kube-scheduler may have seen this before /filter rejected its next pod.
            self.reservations.capacity_grew([booking.node])

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
        claim = self.claim_reader.claim(pod) if self.is_synced and not self.is_draining else None
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
        if not self.is_synced or self.is_draining:
            refused = "Corral is not ready: it is starting or stopping"
            self.outbox.add(RejectBind(uid, refused))
        else:
            self.bind_requests.take(Arrival(namespace, name, uid, node), now)
            self._yield_nodes(now)
        return self._effects()

    def _yield_nodes(self, now: float) -> None:
        """Give up plans on nodes that /bind gave to pods of a higher priority."""
        for node, pod in self.assumed_pods.nodes_taken_over().items():
            by = messages.of_priority(pod.namespace, pod.name, pod.priority)
            self.invalidation.lose_overcommitted(node, now, by, below=pod.priority)

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
            self.reports.eviction_refused(gang, uid)
        return self._effects()

    def is_eviction_wanted(self, effect: Evict | Suspend) -> bool:
        """Whether an Evict or a Suspend that has not been sent is still to be."""
        if isinstance(effect, Suspend):
            return effect.ends or self.giving_back.is_suspension_wanted(effect.uid)
        part = self.giving_back if effect.is_given_back else self.room_plans
        return part.is_wanted(effect.uid)

    # -- time ----------------------------------------------------------------------------------

    def tick(self, now: float) -> list[Effect]:
        """Do what is due by now."""
        self.books.refresh()
        self.budget.begin()
        for step in (
            self._follow_books,
            self.roll_calls.review_all,
            self.permit.expire,
            self.passes.expire,
            self._expire,
            self._settle_bindings,
            self._tell_of_room,
            self._read_pods_again,
            self._review_earmarks,
            self._keep_new_nodes,
            self._ask_for_nodes,
            self._search_on,
            self._begin,
            self._protect_nodes,
            self._make_room,
            self._give_back,
            self._tell_of_domains,
        ):
            try:
                step(now)
            except Exception as error:  # deadlines are kept
                self.on_fault(f"tick, {step.__name__}", error)
        return self._effects()

    def _follow_books(self, _now: float) -> None:
        """Have /prioritize know of some of the bookings, and of all resources, since."""
        self.room_for_usual.catch_up()
        self.usual_requests.catch_up(len(self.books.axis))

    def _expire(self, now: float) -> None:
        """End what is over; repair where nodes were down for long; requeue idle preemptors."""
        if self.refusals.expire(now) | self.assumed_pods.expire(now):
            self.reservations.capacity_grew()
        self.bind_requests.expire(now)
        for uid in self.unseen.expired(now):
            self.members.forget(uid, now)
        self.births.expire(now)
        self.nodes.expire(now)
        for node in self.grants.expire(
            now,
            self.books.bound.__contains__,
            self.occupants.any_terminating,
            self.books.takes_pods,
        ):
            self._end_grant(node)
        for uid in self.grants.idle(now):
            if (pod := self.arrivals.of(uid)) is not None:
                self.outbox.add(Requeue(pod.namespace, pod.name, uid))

    def _settle_bindings(self, now: float) -> None:
        """Claim pods anew that objects named while their binding was under way."""
        self.claims.settle_bindings(now)

    def _tell_of_room(self, now: float) -> None:
        """Have gangs tried where the books gave something back, whether or not that was told."""
        freed, self.books.freed = self.books.freed, {}
        if freed:
            self.planner.capacity_grew(freed.keys())
            self.queue.want_pass()

    def _read_pods_again(self, now: float) -> None:
        """Have the pods listed once more if what was read of them is not enough."""
        if self.pod_lists.is_due(now):
            self.outbox.add(ReadAgain("Pod"))

    def _search_on(self, now: float) -> None:
        """Have the next gang tried whose search is to go on elsewhere."""
        if self.planner.is_ready and not self.is_draining:
            key = self.searches_on.next(now)
            if key is not None:
                self.queue.want_turn(self.gangs.by_key[key])

    def _begin(self, now: float) -> None:
        """Plan gangs that may fit now, and requeue pods that may be scheduled now."""
        if self.is_draining:
            return
        self.passes.plan_waiting(now)
        self.outbox.extend(self.notes.written(self.gangs.by_key, now))
        if self.planner.is_ready:  # else pods have gangs that are not known yet
            self.nominating.correct(self.gangs.by_key, now)
        self.requeues.requeue_outdated(self.gangs.by_key)
        woken = self.rejected_pods.woken(self.reservations.taken_freed_nodes(), now)
        # Only the request may have told of such a pod, and it may have lied.
        waiting = (
            each for each in woken if self.arrivals.known(each.namespace, each.name, each.uid)
        )
        self.outbox.extend(waiting)

    def _tell_of_domains(self, now: float) -> None:
        """Write what there is to say of domains that objects declare."""
        if self.planner.is_ready and not self.is_draining:
            self.statuses.review(now)
            self.outbox.extend(self.domain_statuses.review(now))

    def _ask_for_nodes(self, now: float) -> None:
        """Mark pods that node autoscalers are to make nodes for, or make requests for them."""
        if not self.is_draining:
            self.marks.review(now)
            if self.planner.is_ready:
                for gang in self.requests.hand_out(now):
                    self.marks.note(gang)  # it is looked whether that comes to be there
                self.requests.audit(now)

    def _protect_nodes(self, now: float) -> None:
        """Have node autoscalers keep the nodes that gangs have places on."""
        if not self.is_draining:
            self.held_nodes.review(now)

    def _make_room(self, now: float) -> None:
        """Find out who would have to go for gangs that have no place."""
        if self.is_draining:
            self.room_plans.end_over(now)
        else:
            self.making_room.review(now)

    def _give_back(self, now: float) -> None:
        """Give pods back that were born where their gang cannot start."""
        if self.planner.is_ready and not self.is_draining:
            self.giving_back.review(now)

    def _review_earmarks(self, now: float) -> None:
        """Earmark domains for gangs that starve, and free those that are not needed any more."""
        if self.is_draining or now < self._earmarks_at or not self.settings.earmarks_per_namespace:
            return
        self._earmarks_at = now + EARMARK_SECONDS
        starting = (
            gang
            for gang in self.gangs.plannable()
            if not (gang.has_started or self.plans.is_waiting_for_members(gang, now))
        )
        ended = self.starvation.review(starting, now)
        if ended:
            self.reservations.capacity_grew(ended)

    def _keep_new_nodes(self, now: float) -> None:
        """Keep nodes that were made for gangs, before others are placed on them."""
        if self.new_nodes.is_due(now) and (ended := self.new_nodes.review(now)):
            self.reservations.capacity_grew(ended)

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

    def _effects(self) -> list[Effect]:
        effects = list(self.outbox.taken())
        if self.planner.is_ready:  # else a gang may have pods that have not been read yet
            effects.extend(self.statuses.taken(self.gangs.by_key))
        return effects
