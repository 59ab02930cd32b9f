"""What makes kube-scheduler look at a pod again.

    Requeue   for rejected members that have a node now, or whose rejection gave an outdated reason
    Ungate    for planned members behind our scheduling gate (`ungating.py` says which, and how)

kube-scheduler keeps a rejected pod in its queue of unschedulable pods for up to five minutes
unless the pod changes, and it does not look at a gated pod at all.

The write that requeues a planned member nominates it for its node as well: kube-scheduler looks at
that node first, however few of all it samples, and keeps pods of no higher priority off it. The
books do not count these nominations: the reservation is the same. When the plan is lost they are
taken back, for kube-scheduler itself keeps some that come to nothing.
Source: kubernetes v1.36 pkg/scheduler/schedule_one.go, evaluateNominatedNode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.fair_queue import FairQueue
from app.kube.core.objects import PodRecord
from app.state.effects import Requeue
from app.state.gang.gang import Gang
from app.state.gang.membership import Member
from app.state.report import ungating
from app.state.report.outbox import Outbox
from app.state.settings import EngineSettings

MOST_CORRECTED_PER_TICK = 4  # requeues only to show another reason: 40 of 200 a second


@dataclass(slots=True)
class Requeues:
    """Requeues and ungates members. `_outdated`: gangs, of which namespaces take turns."""

    settings: EngineSettings
    outbox: Outbox
    _outdated: FairQueue[GangKey, None] = field(default_factory=FairQueue)
    _nominating: dict[GangKey, int] = field(default_factory=dict)
    """Gangs with nominated members -> version of the plan that these were last compared with."""
    _corrected_at: float = 0.0  # when all of them were last looked at
    _forbidden: dict[str, float] = field(default_factory=dict)
    """Namespaces whose pods the API server does not let us nominate -> until when we do not try."""

    def call(self, gang: Gang, now: float) -> None:
        """Have kube-scheduler schedule every member that has a node now."""
        self.requeue_planned(gang, now)
        self.ungate(gang, now)

    def requeue_planned(self, gang: Gang, now: float) -> None:
        """Requeue rejected members that have a node now."""
        gang.rejections.requeued_at = now
        for uid in sorted(gang.rejections.sentences.keys() & gang.plan.nodes.keys()):
            self._requeue(gang, gang.members[uid].pod)

    def requeue_lost(self, gang: Gang, now: float) -> None:
        """Requeue rejected members again that have a node, in case the first write was lost.

        Not those that the watch shows to be nominated for it: kube-scheduler has seen the same, and
        is only slow.
        """
        gang.rejections.requeued_at = now
        for uid in sorted(gang.rejections.sentences.keys() & gang.plan.nodes.keys()):
            pod = gang.members[uid].pod
            if not self.nominates(gang) or pod.nominated_node != gang.plan.nodes[uid]:
                self._requeue(gang, pod)

    def requeue_rejected(self, gang: Gang, uids: Iterable[str]) -> None:
        """Requeue those of these members that /filter rejected, whether they have a node or not."""
        for uid in sorted(gang.rejections.sentences.keys() & set(uids)):
            self._requeue(gang, gang.members[uid].pod)

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
                self._requeue(gang, pod)
                return True
        return False

    def _requeue(self, gang: Gang, pod: PodRecord) -> None:
        nominated = self._nomination(gang, pod) if self.nominates(gang) else None
        self.outbox.add(Requeue(pod.namespace, pod.name, pod.uid, nominated))

    # -- nominations ---------------------------------------------------------------------------

    def nominates(self, gang: Gang) -> bool:
        """Whether planned members of a gang are nominated as they are requeued."""
        return self.settings.nominate_planned and gang.key.namespace not in self._forbidden

    def forbid(self, namespace: str, until: float) -> None:
        """Nominate no members in a namespace until then: the API server forbids it."""
        self._forbidden[namespace] = until

    def point(self, gang: Gang, pod: PodRecord) -> bool:
        """Have kube-scheduler look at a member's planned node first; False if it has done so.

        `pod`: as kube-scheduler has it.
        """
        if not self.nominates(gang) or pod.nominated_node == gang.plan.nodes[pod.uid]:
            return False
        self._requeue(gang, pod)
        return True

    def withdraw(self, gang: Gang, pod: PodRecord) -> None:
        """Take back the nomination of a member without a node. `pod`: as kube-scheduler has it."""
        if self.nominates(gang) and pod.nominated_node:
            self._requeue(gang, pod)

    def note_nominated(self, gang: Gang, pod: PodRecord) -> None:
        """Note a nomination of a member that the watch shows, whoever made it.

        It may be one of the Corral before this one, of a plan that is lost.
        """
        if self.settings.nominate_planned and pod.uid not in gang.rejections.nominated:
            gang.rejections.nominated[pod.uid] = pod.nominated_node
            self._nominating.setdefault(gang.key, gang.plan.version)

    def correct_nominations(self, gangs: Mapping[GangKey, Gang], now: float) -> None:
        """Nominate members anew whose plan has changed, and take back what was lost.

        What is taken back is taken back again for as long as the watch shows it: that write may
        have been lost, and nothing else would end the nomination.
        """
        is_due = now >= self._corrected_at + self.settings.rewake_seconds
        if is_due:
            self._corrected_at = now
            for namespace in [each for each, until in self._forbidden.items() if until <= now]:
                del self._forbidden[namespace]
        for key, version in list(self._nominating.items()):
            gang = gangs.get(key)
            if gang is None or not gang.rejections.nominated:
                del self._nominating[key]
            elif self.nominates(gang) and (is_due or gang.plan.version != version):
                self._nominating[key] = gang.plan.version
                self._correct(gang, is_due=is_due)

    def _correct(self, gang: Gang, *, is_due: bool) -> None:
        for uid, told in list(gang.rejections.nominated.items()):
            member = gang.members.get(uid)
            if member is None or member.pod.node or uid in gang.binding.posted:
                del gang.rejections.nominated[uid]
                continue
            is_ended = not told and is_due
            has_changed = gang.plan.nodes.get(uid, "") != told
            if has_changed or (is_ended and member.pod.nominated_node):
                self._requeue(gang, member.pod)
            elif is_ended:
                del gang.rejections.nominated[uid]

    def _nomination(self, gang: Gang, pod: PodRecord) -> str | None:
        """What is to be written; None: it is there, or the pod needs none."""
        if pod.gates:
            return None
        node = gang.plan.nodes.get(pod.uid, "")
        was_told = gang.rejections.nominated.get(pod.uid, "")
        if not (node or was_told or pod.nominated_node):
            return None
        gang.rejections.nominated[pod.uid] = node
        self._nominating.setdefault(gang.key, gang.plan.version)
        return None if pod.nominated_node == node != "" else node


def reject(gang: Gang, uid: str, sentence: str) -> None:
    """Remember that /filter rejected a member with this sentence; "" if that is not known."""
    gang.rejections.sentences[uid] = sentence
    gang.rejections.outdated.pop(uid, None)


def forget(gang: Gang, uid: str) -> None:
    """Forget a member's rejection: /filter answered with its node, or the pod is gone."""
    gang.rejections.sentences.pop(uid, None)
    gang.rejections.outdated.pop(uid, None)
