"""Pods are claimed anew when the objects that name them come, change or go.

    an object names other pods, or says other things of them ─┐
    the binding of a pod that was due has ended ──────────────┴─▶ due ──▶ leave, change, join

All pods that are due change before a roll call is taken: half of a change may be a gang that no
object declares. A pod whose binding is under way keeps the claim with which that began, since its
capacity is held for that gang, or for an ordinary pod. The gang that it is to join does not start
before that has ended: it might start outside the domain of that pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from app.dialects.spec import Claim, GangKey
from app.kube.core.objects import ObjectRecord, PodRecord
from app.state.claims.claim_reader import ClaimReader
from app.state.claims.named_pods import NamedPods
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.gang.members.member import Member, member_of
from app.state.isolation import OnFault, confined
from app.state.lifecycle.members import Members
from app.state.objects.declared import Objects
from app.state.pods.assumed_pods import AssumedPods
from app.state.pods.nominations import Nominations
from app.state.reserve.plans import Plans
from app.state.turns.pieces import pieces

PODS_A_PIECE = 512  # whose claims are checked in one piece: a millisecond or two


@dataclass(frozen=True, slots=True)
class _Change:
    """What a new claim changes of one pod."""

    pod: PodRecord
    before: GangKey | None
    claim: Claim | None

    @property
    def is_move(self) -> bool:
        """Whether the pod leaves its gang, or joins another one."""
        return self.claim is None or self.claim.gang != self.before


@dataclass(slots=True)
class Claims:
    """Follows the objects of the vocabularies: what they declare of gangs, which pods they name.

    Dicts to None are sets that keep their order.
    """

    named_pods: NamedPods
    objects: Objects
    assumed_pods: AssumedPods
    gangs: Gangs
    members: Members
    plans: Plans
    reader: ClaimReader
    nominations: Nominations
    on_fault: OnFault
    _waiting: dict[str, None] = field(default_factory=dict)
    """Pods that are claimed anew when their binding has ended, by uid."""
    _unreviewed: dict[GangKey, None] = field(default_factory=dict)
    """Gangs of which objects have declared something since `settle`."""

    # -- pods ----------------------------------------------------------------------------------

    def in_force(self, pod: PodRecord, claim: Claim | None) -> Claim | None:
        """The claim that counts now: this one, or the one with which its binding began."""
        if self.named_pods.is_empty:
            return claim
        gang = self.gangs.of_pod(pod.uid)
        key = None if gang is None else gang.key
        if key == (claim.gang if claim else None) or not self._is_being_bound(pod, gang):
            self._stop_waiting(pod.uid)
            return claim
        self._waiting[pod.uid] = None
        if claim is None:
            self.gangs.end_joining(pod.uid)
        else:
            self.gangs.put_off(pod.uid, pod.name, claim.gang)
        return None if gang is None else _claim_of(gang, pod.uid)

    @property
    def waiting(self) -> Collection[str]:
        """The pods, by uid, that are claimed anew once their binding has ended."""
        return self._waiting.keys()

    def put(self, pod: PodRecord) -> None:
        """Remember a pod that objects may name; its gang has its record, if it is in one."""
        self.named_pods.put(pod, is_member=pod.uid in self.gangs.key_of)

    def drop(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._stop_waiting(uid)
        self.named_pods.drop(uid)

    def _stop_waiting(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self.gangs.end_joining(uid)

    def _is_being_bound(self, pod: PodRecord, gang: Gang | None) -> bool:
        if pod.node or pod.is_finished:
            return False
        is_posted = gang is not None and pod.uid in gang.binding.posted
        is_assumed = pod.uid in self.assumed_pods.uids
        return (is_posted or is_assumed) and self.named_pods.may_have(pod)

    def _record(self, uid: str) -> PodRecord | None:
        """What is known of a pod; None: nothing, which is a bug of ours."""
        gang = self.gangs.of_pod(uid)
        return self.named_pods.unclaimed.get(uid) if gang is None else gang.members[uid].pod

    # -- objects -------------------------------------------------------------------------------

    def put_object(self, record: ObjectRecord) -> None:
        """Learn what an object declares and which pods it names; `settle` does what follows."""
        self._unreviewed.update(dict.fromkeys(self.objects.put(record)))
        self.named_pods.put_object(record)

    def drop_object(self, uid: str) -> None:
        """Forget an object that is gone: from now on the pods alone say what their gangs are.

        `settle` does what follows for the pods that it named.
        """
        for key in self.objects.drop(uid):
            if key in self.gangs.by_key:
                self.gangs.owe_review(self.gangs.by_key[key])
        self.named_pods.drop_object(uid)

    # -- claimed anew --------------------------------------------------------------------------

    def settle_bindings(self, now: float) -> None:
        """Claim those pods anew whose binding has ended without success."""
        for uid in list(self._waiting):
            pod = self._record(uid)
            if pod is None or not self._is_being_bound(pod, self.gangs.of_pod(uid)):
                self._stop_waiting(uid)
                self.named_pods.owe(uid)
        self.settle(now)

    def settle(self, now: float) -> None:
        """Claim the pods anew that are due, then take the roll calls that follow."""
        if not (self._unreviewed or self.named_pods.is_due):
            return
        changes = sorted(self._changes(), key=lambda each: (each.pod.created, each.pod.name))
        self._lose_plans(changes, now)
        # No gang may have all its pods while one of them is not yet what it is to be.
        for take in (self._leave, self._stay, self._join):
            for change in changes:
                with confined(self.on_fault, "claim of pod {}", change.pod.key):
                    take(change, now)
        keys, self._unreviewed = self._unreviewed, {}
        touched = (key for change in changes for key in _gangs_of(change))
        for key in dict.fromkeys((*keys, *touched)):
            if key in self.gangs.by_key and (key in keys or key in self.gangs.unreviewed):
                with confined(self.on_fault, "roll call of gang {}", key):
                    self.members.review(key, now)
            elif key in keys:
                self.members.reports.note_object(key)

    def _changes(self) -> Iterator[_Change]:
        for uid in self.named_pods.taken_due():
            change = None
            with confined(self.on_fault, "claim of pod {}", uid):
                change = self._change(uid)
            if change is not None:
                yield change

    def _change(self, uid: str) -> _Change | None:
        """What a new claim changes of a pod; None: nothing."""
        pod, gang = self._record(uid), self.gangs.of_pod(uid)
        if pod is None:
            return None
        claim = self.in_force(pod, self.reader.claim(pod))
        if gang is None:
            return None if claim is None else _Change(pod, None, claim)
        is_same = claim is not None and claim.gang == gang.key
        if claim and is_same and _parts(member_of(pod, claim)) == _parts(gang.members[uid]):
            return None
        return _Change(pod, gang.key, claim)

    def _lose_plans(self, changes: Iterable[_Change], now: float) -> None:
        """Give up plans for what their gangs are no longer."""
        whys: dict[GangKey, str] = {}
        for change in changes:
            gang, name = self.gangs.of_pod(change.pod.uid), change.pod.name
            if gang is None or not gang.plan.nodes:
                continue
            if not change.is_move:
                whys.setdefault(gang.key, f"pod {name} is another part of it than before")
            elif change.pod.uid in gang.plan.nodes:
                whys.setdefault(gang.key, f"pod {name} is no part of it any more")
        for key, why in whys.items():
            self.plans.lose(self.gangs.by_key[key], why, now)

    def _leave(self, change: _Change, now: float) -> None:
        if change.before is not None and change.is_move:
            self.members.drop(change.pod.uid, now)
            self.put(change.pod)
            if change.claim is None:
                self.nominations.put(change.pod)
                self.members.nominating.note_other(change.pod)
                self.members.stray_gates.note_other(change.pod, now)

    def _stay(self, change: _Change, now: float) -> None:
        if change.claim is not None and not change.is_move:
            self.members.put(change.pod, change.claim, now)

    def _join(self, change: _Change, now: float) -> None:
        pod, claim = change.pod, change.claim
        if claim is not None and change.is_move:
            # Its node follows from the gang's plan, not from an earlier nomination.
            if left := self.nominations.drop(pod.uid):
                self.plans.reservations.capacity_grew([left])
            # As an ordinary pod it may have passed /filter, or have been rejected there.
            self.members.put(pod, claim, now, was_tried=not (pod.node or pod.gates))
            self.put(pod)

    # -- audit ---------------------------------------------------------------------------------

    def checks(self) -> Iterator[list[str]]:
        """Sentences for pods whose gang is not that of their claim; of some pods at a time."""
        for uids in pieces(list(self.named_pods.uids), PODS_A_PIECE):
            yield list(self._differences(uids))

    def _differences(self, uids: Iterable[str]) -> Iterator[str]:
        for uid in uids:
            if uid not in self.named_pods.uids:
                continue  # it has gone since
            pod, key = self._record(uid), self.gangs.key_of.get(uid)
            if pod is not None and key is None and not self.named_pods.of(pod):
                continue  # an ordinary pod, as most
            claim = None if pod is None else self.reader.claim(pod)
            if pod is None or (key is not None and uid in self.named_pods.unclaimed):
                yield f"pod {uid} has no record, or two"
            elif uid not in self._waiting and key != (claim.gang if claim else None):
                yield f"pod {uid} is in gang {key}, and claims {claim.gang if claim else None}"

    def heal(self, now: float) -> None:
        """Claim every pod anew that objects may name."""
        for uid in self.named_pods.uids:
            self.named_pods.owe(uid)
        self.settle(now)


def _gangs_of(change: _Change) -> tuple[GangKey, ...]:
    after = change.claim.gang if change.claim else None
    return tuple(key for key in (change.before, after) if key is not None)


def _claim_of(gang: Gang, uid: str) -> Claim:
    """The claim that a member was made of."""
    member = gang.members[uid]
    return Claim(gang.key, member.leaf, member.index, member.said, member.flaw)


def _parts(member: Member) -> tuple[object, ...]:
    return (member.leaf, member.index, member.said, member.flaw)
