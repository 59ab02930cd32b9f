"""The store of gangs: which pod is a member of which gang, and which gangs need something done.

Only this file writes the store. What follows from a change of a gang is decided in `lifecycle/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.cache.totals import Totals
from app.state.gang.gang import Gang, Phase, phase_of
from app.state.gang.members.member import Member


@dataclass(slots=True)
class Gangs:
    """All gangs, and indexes over them; dicts to None are sets that keep their order.

    Invariants: `key_of[uid]` is the gang that has this uid among its members; every key in the
    indexes is in `by_key`; none of the dicts in `plannable_in` is empty.
    """

    by_key: dict[GangKey, Gang] = field(default_factory=dict)
    key_of: dict[str, GangKey] = field(default_factory=dict)  # by the uid of a pod
    plannable_in: dict[str, dict[GangKey, None]] = field(default_factory=dict)
    """By namespace: the gangs of which some member needs a node."""
    planned: dict[GangKey, None] = field(default_factory=dict)
    """Gangs of which members may be on their way to /bind, also where others have no place."""
    with_placeholders: dict[GangKey, None] = field(default_factory=dict)  # or that lack some
    made: int = 0  # gangs, ever
    running_in: Totals = field(default_factory=Totals)
    """What running members request in all."""
    unreviewed: dict[GangKey, bool] = field(default_factory=dict)
    """Gangs that are owed a roll call, and whether the verbs have to wait for it."""
    joining: dict[str, tuple[GangKey, str]] = field(default_factory=dict)
    """By uid: pods, by name, that join a gang when a binding ends that began before that."""

    def of_pod(self, uid: str) -> Gang | None:
        """The gang that a pod is a member of; None for an ordinary pod."""
        key = self.key_of.get(uid)
        return None if key is None else self.by_key[key]

    def keys_of(self, uids: Iterable[str]) -> dict[GangKey, None]:
        """The gangs of these pods, in the order of the pods; ordinary pods have none."""
        return dict.fromkeys(self.key_of[uid] for uid in uids if uid in self.key_of)

    # -- members -------------------------------------------------------------------------------

    def put(self, gang: Gang, member: Member) -> Member | None:
        """Add a member or replace its record, which is returned."""
        uid = member.pod.uid
        before = gang.members.get(uid)
        gang.members[uid] = member
        self.key_of[uid] = gang.key
        if before is not None:
            member.like = before.like
            self._stop_running(gang, before)
        if member.pod.node and member.is_live:
            gang.running.add(uid)
            self.running_in.add(gang.key.namespace, member.pod.request)
        return before

    def drop(self, gang: Gang, uid: str) -> Member:
        """Remove a member; its last record is returned."""
        del self.key_of[uid]
        member = gang.members.pop(uid)
        self._stop_running(gang, member)
        return member

    def _stop_running(self, gang: Gang, member: Member) -> None:
        if member.pod.uid in gang.running:
            gang.running.discard(member.pod.uid)
            self.running_in.remove(gang.key.namespace, member.pod.request)

    def knows(self, pod: PodRecord) -> bool:
        """Whether this says nothing new of a member; its record is brought up to date."""
        gang = self.of_pod(pod.uid)
        if gang is None or not pod.repeats(gang.members[pod.uid].pod):
            return False
        gang.members[pod.uid].pod = pod
        return True

    def add(self, key: GangKey) -> Gang:
        """Add a gang that has no members yet."""
        self.made += 1
        gang = self.by_key[key] = Gang(key, number=self.made)
        return gang

    def foreseen(self, key: GangKey, now: float) -> Gang:
        """A gang without members that is not in the store; `adopt` puts it there.

        It is planned as one that is complete now, after all that have been for longer.
        """
        return Gang(key, number=self.made + 1, complete_at=now)

    def adopt(self, gang: Gang) -> None:
        """Put a gang that was foreseen into the store."""
        self.made += 1
        self.by_key[gang.key] = gang
        self.note_placeholders(gang)

    def remove(self, gang: Gang) -> None:
        """Remove a gang without members; its last roll call has taken it out of the indexes."""
        del self.by_key[gang.key]

    # -- indexes -------------------------------------------------------------------------------

    def owe_review(self, gang: Gang, *, is_pressing: bool = True) -> None:
        """Have a roll call taken, before the next verb about the gang if that is pressing.

        It is not pressing if the change does not matter to the other members.
        """
        self.unreviewed[gang.key] = is_pressing or self.unreviewed.get(gang.key, False)

    def put_off(self, uid: str, name: str, key: GangKey) -> None:
        """Note that a pod joins a gang when its binding ends."""
        if self.joining.get(uid) != (key, name):
            self.end_joining(uid)
            self.joining[uid] = key, name
            self._owe_review_of(key)

    def end_joining(self, uid: str) -> None:
        """Note that a binding has ended, or that the pod does not join the gang any more."""
        if uid in self.joining:
            key, _ = self.joining.pop(uid)
            self._owe_review_of(key)

    def _owe_review_of(self, key: GangKey) -> None:
        if key in self.by_key:
            self.owe_review(self.by_key[key])

    def end_review(self, key: GangKey) -> None:
        """Note that a roll call is owed no more."""
        self.unreviewed.pop(key, None)

    def note_placeholders(self, gang: Gang) -> None:
        """Note that placeholders of a gang have come or gone."""
        _keep(self.with_placeholders, gang.key, bool(gang.placeholders) or gang.absent.is_cut)

    def move(self, gang: Gang, now: float) -> Phase | None:
        """Enter the phase that follows from the record; the phase before, None if it stays."""
        was, phase = gang.phase, phase_of(gang)
        if phase is was:
            return None
        gang.phase = phase
        if was is Phase.GATHERING:
            gang.complete_at = now
        self._keep_plannable(gang)
        is_planned = phase in (Phase.PLACED, Phase.BINDING, Phase.REPAIRING)
        _keep(self.planned, gang.key, is_planned or bool(gang.binding.at_bind))
        return was

    def plannable(self) -> Iterator[Gang]:
        """The gangs of which some member needs a node."""
        for keys in self.plannable_in.values():
            for key in keys:
                yield self.by_key[key]

    def _keep_plannable(self, gang: Gang) -> None:
        namespace = gang.key.namespace
        of_namespace = self.plannable_in.setdefault(namespace, {})
        _keep(of_namespace, gang.key, gang.is_plannable)
        if not of_namespace:
            del self.plannable_in[namespace]


def _keep(keys: dict[GangKey, None], key: GangKey, wanted: bool) -> None:
    if wanted:
        keys[key] = None
    else:
        keys.pop(key, None)
