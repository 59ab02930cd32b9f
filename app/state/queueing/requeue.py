"""What makes kube-scheduler look at a pod again.

    Requeue   for rejected members that have a node now, or whose rejection gave an outdated reason
    Ungate    for planned members behind our scheduling gate (`ungating.py` says which, and how)

kube-scheduler keeps a rejected pod in its queue of unschedulable pods for up to five minutes
unless the pod changes, and it does not look at a gated pod at all.

The write that requeues a planned member nominates it for its node as well (`nominating.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.fair_queue import FairQueue
from app.kube.core.objects import PodRecord
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.queueing import ungating
from app.state.queueing.nominating import Nominating
from app.state.queueing.outbox import Outbox
from app.state.settings import EngineSettings

MOST_CORRECTED_PER_TICK = 4  # requeues only to show another reason: 40 of 200 a second


@dataclass(slots=True)
class Requeues:
    """Requeues and ungates members. `_outdated`: gangs, of which namespaces take turns."""

    settings: EngineSettings
    outbox: Outbox
    nominating: Nominating
    _outdated: FairQueue[GangKey, None] = field(default_factory=FairQueue)

    def call(self, gang: Gang, now: float) -> None:
        """Have kube-scheduler schedule every member that has a node now."""
        self.requeue_planned(gang, now)
        self.ungate(gang, now)

    def requeue_planned(self, gang: Gang, now: float) -> None:
        """Requeue rejected members that have a node now."""
        gang.rejections.requeued_at = now
        for uid in sorted(gang.rejections.sentences.keys() & gang.plan.nodes.keys()):
            self.nominating.wake(gang, gang.members[uid].pod)

    def requeue_lost(self, gang: Gang, now: float) -> None:
        """Requeue rejected members again that have a node, in case the first write was lost.

        Not those that the watch shows to be nominated for it: kube-scheduler has seen the same, and
        is only slow.
        """
        gang.rejections.requeued_at = now
        for uid in sorted(gang.rejections.sentences.keys() & gang.plan.nodes.keys()):
            pod = gang.members[uid].pod
            if not self.nominating.nominates(gang) or pod.nominated_node != gang.plan.nodes[uid]:
                self.nominating.wake(gang, pod)

    def requeue_rejected(self, gang: Gang, uids: Iterable[str]) -> None:
        """Requeue those of these members that /filter rejected, whether they have a node or not."""
        for uid in sorted(gang.rejections.sentences.keys() & set(uids)):
            self.nominating.wake(gang, gang.members[uid].pod)

    def ungate(self, gang: Gang, now: float, uids: Iterable[str] | None = None) -> None:
        """Ungate the planned members, or those of these uids, whose ungating is due."""
        self.outbox.extend(ungating.ungate(gang, self.settings, now, uids))

    # -- rejections with an outdated reason ----------------------------------------------------

    def note_sentence(self, gang: Gang, members: Iterable[Member], sentence: str) -> None:
        """Note which of these members /filter rejected with another sentence than this one."""
        for member in members:
            uid = member.pod.uid
            if gang.rejections.sentences.get(uid, "") not in ("", sentence):
                gang.rejections.outdated[uid] = None
                self._outdated.put(gang.key.namespace, gang.key, None)

    def requeue_outdated(self, gangs: Mapping[GangKey, Gang]) -> None:
        """Requeue members whose rejection gave a reason that no longer holds, a few per tick.

        Else their condition would show it for as long as nothing else happens in the cluster.
        """
        budget = MOST_CORRECTED_PER_TICK
        while budget and self._outdated:
            namespace, key, _ = self._outdated.take()
            gang = gangs.get(key)
            if gang is None:
                continue
            budget -= self._requeue_next_outdated(gang)
            if gang.rejections.outdated:
                self._outdated.put(namespace, key, None)

    def _requeue_next_outdated(self, gang: Gang) -> bool:
        """Requeue one member of a gang that was told an outdated reason; False if there is none."""
        while gang.rejections.outdated:
            pod = gang.members[gang.rejections.outdated.popitem()[0]].pod
            if pod.uid not in gang.plan.nodes and not pod.node:
                self.nominating.wake(gang, pod)
                return True
        return False

    # -- members that ask ----------------------------------------------------------------------

    def point(self, gang: Gang, pod: PodRecord) -> bool:
        """Have kube-scheduler look at a member's planned node first; False if it has done so.

        `pod`: as kube-scheduler has it.
        """
        is_told = pod.nominated_node == gang.plan.nodes[pod.uid]
        if is_told or not self.nominating.nominates(gang):
            return False
        self.nominating.wake(gang, pod)
        return True

    def withdraw(self, gang: Gang, pod: PodRecord) -> None:
        """Take back the nomination of a member without a node. `pod`: as kube-scheduler has it."""
        if pod.nominated_node and not self.nominating.is_forbidden(gang):
            self.nominating.wake(gang, pod)


def reject(gang: Gang, uid: str, sentence: str) -> None:
    """Remember that /filter rejected a member with this sentence; "" if that is not known."""
    gang.rejections.sentences[uid] = sentence
    gang.rejections.outdated.pop(uid, None)


def forget(gang: Gang, uid: str) -> None:
    """Forget a member's rejection: /filter answered with its node, or the pod is gone."""
    gang.rejections.sentences.pop(uid, None)
    gang.rejections.outdated.pop(uid, None)
