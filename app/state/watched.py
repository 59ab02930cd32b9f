"""What follows when the watch shows something: the first storey above the parts.

event ─▶ books, store of gangs, objects ─▶ roll call of the gang ─▶ plan ─▶ hold ─▶ effects
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import TypeVar

from app.dialects.registry import Dialects
from app.kube.core.objects import NodeRecord, PodRecord, Record
from app.kube.core.turns import turn
from app.kube.watch.events import Applied, Deleted, Event, Kind, Listed
from app.state.domains.topologies import Change
from app.state.effects import (
    Effect,
)
from app.state.isolation import OnFault, confined
from app.state.settings import EngineSettings
from app.state.wiring.answers import EngineParts

_T = TypeVar("_T")


class Watched(EngineParts):
    """An engine that follows the cluster."""

    def __init__(self, settings: EngineSettings, on_fault: OnFault, dialects: Dialects) -> None:
        super().__init__(settings, on_fault, dialects)
        self.is_draining = False
        self._listed: set[Kind] = set()

    @property
    def is_synced(self) -> bool:
        """Whether every list is in; before that nothing is planned or answered.

        At the start, pods that were read before the nodes are read once more: a gated gang cannot
        be taken back from nodes that it was narrowed to.
        """
        is_listed = self._listed.issuperset(self.settings.kinds)
        return is_listed and (self.planner.is_ready or not self.part_counted.is_behind)

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
            self.succession.start(now)
            self.roll_calls.review_all(now)
            self.room_plans.take_back(now)
            self.requests.begin()

    def _is_first(self, event: Listed) -> bool:
        """Whether this is the first list of the pods, before which nothing is planned or held."""
        return event.kind == "Pod" and not (self.is_synced or self.books.held)

    def _replace_objects(self, kind: Kind, records: Sequence[Record], now: float) -> None:
        listed = {record.uid for record in records}
        gone = [uid for uid in self.objects.of_kind(kind) if uid not in listed]
        self._each(kind, gone, self.claims.drop_object)
        self._each(kind, gone, self._drop_allowance)
        self._each(kind, gone, self.budgets.drop)
        self._each(kind, gone, self._drop_device_class)
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
            change = self.nodes.put(record, now)
            if change == "new":
                self.new_nodes.put(record.name, now)
            elif change == "changed":
                self.new_nodes.note_change(record.name)
            self.held_nodes.put(record)
        else:
            self._regroup(self.topologies.put(record), now)
            self.domain_statuses.note(record.uid, now)
            if self.absent_pods.put_object(record):
                self.queue.want_pass()
            self.budgets.put(record)
            if self.device_classes.put(record):
                self.reservations.capacity_grew()
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
            self._drop_device_class(record.uid)
            self.pools.drop(record.uid)
            self._drop_request(record.uid)
            self.claims.drop_object(record.uid)

    def _regroup(self, change: Change, now: float) -> None:
        """Follow a change of topologies: nodes are in other domains, and gangs may fit by now."""
        if not change:
            return
        self.invalidation.lose_plans_around(change.moved, now, change.levels)
        self.invalidation.lose_plans_by(change.split, now)
        self.reservations.capacity_grew()
        if change.is_retiered:
            for gang in self.gangs.by_key.values():
                self.gangs.owe_review(gang)

    def _drop_allowance(self, uid: str) -> None:
        if self.absent_pods.drop_object(uid):
            self.queue.want_pass()

    def _drop_device_class(self, uid: str) -> None:
        if self.device_classes.drop(uid):
            self.reservations.capacity_grew()

    def _drop_request(self, uid: str) -> None:
        self.marks.note_request(self.requests.drop(uid))

    def _put_pod(self, pod: PodRecord, now: float) -> None:
        gang = self.gangs.of_pod(pod.uid)
        was = None if gang is None else gang.members[pod.uid].pod
        if gang is not None and was is not None and was.health != pod.health:
            self.reports.note_health(gang.key)
        if self.gangs.knows(pod) and pod.uid not in self.unseen:
            if self.occupants.note_phase(pod):
                self._note_running(pod)
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
            if self.occupants.put(pod):
                self._note_running(pod)
            if pod.offered_then is not None or self.part_counted.then_of:
                self.part_counted.put(pod)
            self._end_grant(self.grants.forget(pod.uid))
            is_new = self.books.bind(pod.uid, pod.node, pod.request, lasts=pod.lasts)
            if is_new and pod.node in self.books.held_on:
                self.invalidation.lose_overcommitted(pod.node, now, pod)
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
            self.stray_gates.note_other(pod, now)
        self.claims.put(pod)
        if resized_on := self.books.resize_hold(pod.uid, pod.request):
            self.reservations.capacity_grew([resized_on])
            self.invalidation.lose_outgrown(pod, resized_on, now)
        self.preempting.show(pod, now)
        if pod.is_marked and (known := self.gangs.of_pod(pod.uid)) is not None:
            self.marks.note_seen(known, pod.uid, is_marked=True)

    def _note_running(self, pod: PodRecord) -> None:
        if self.settings.fewest_fragments:
            self.usual_requests.note(pod.namespace, pod.request)

    def _yield_to(self, pod: PodRecord, now: float) -> None:
        """Give up what is held for gangs of lower priority where a pod is nominated."""
        nomination, node = self.nominations.of(pod.uid), pod.nominated_node
        if nomination is None or node not in self.books.held_on or pod.uid in self.books.held:
            return
        leaving = self.occupants.lower(self.books.bound_on.get(node, ()), pod.priority)
        self.invalidation.lose_to_nominated(nomination, leaving, pod, now)

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
        self.stray_gates.forget(uid)

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

    def _yield_nodes(self, now: float) -> None:
        """Give up plans on nodes that /bind gave to pods of a higher priority."""
        for node, pod in self.assumed_pods.nodes_taken_over().items():
            self.invalidation.lose_overcommitted(node, now, pod, below=pod.priority)

    def _effects(self) -> list[Effect]:
        effects = list(self.outbox.taken())
        if self.planner.is_ready:  # else a gang may have pods that have not been read yet
            effects.extend(self.statuses.taken(self.gangs.by_key))
        return effects
