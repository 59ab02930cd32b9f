"""Which nodes kube-scheduler is told to look at first for members: written, and taken back.

    planned          nominated for its node by the write that requeues it; noted in an annotation
    plan moves       nominated anew
    plan lost        taken back, and again for as long as the watch shows it
    in no gang more  taken back if the annotation names the node, so that it is ours

kube-scheduler looks at that node first, however few of all it samples, and keeps pods of no higher
priority off it. The books do not count these nominations: the reservation is the same. What comes
to nothing has to be taken back, for kube-scheduler itself keeps some of that for ever. The
annotation tells ours from its own, of a preemption, also after a restart. A pod of a gang has none
of its own: no pods are evicted for one pod of a gang.

Until kube-scheduler has seen what was changed, it keeps a member off its node for another one that
was planned there before. That says nothing about the node: the member is rejected, nothing is
remembered, and it is requeued when the other one is not nominated for it any more.
Source: kubernetes v1.36 pkg/scheduler/schedule_one.go, evaluateNominatedNode;
framework/runtime/framework.go, addGENominatedPods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.dialects import corral
from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.effects import Requeue
from app.state.gang.gang import Gang
from app.state.queueing.outbox import Outbox
from app.state.settings import EngineSettings

ENDED_SECONDS = 1.0  # after a nomination's end it may count in a search that was under way


@dataclass(slots=True)
class _Stray:
    """A pod of no gang that we have nominated."""

    wake: Requeue
    node: str
    priority: int
    sent_at: float = -math.inf


@dataclass(slots=True)
class Nominating:
    """Nominates members, and takes that back. `Gang.told_first` has what was written."""

    settings: EngineSettings
    outbox: Outbox
    is_preemptor: Callable[[str, str], bool]
    """Whether others may end for the pod of this uid on this node."""
    _followed: dict[GangKey, int] = field(default_factory=dict)
    """Gangs with nominated members -> version of the plan that these were last compared with."""
    _strays: dict[str, _Stray] = field(default_factory=dict)  # by uid
    _corrected_at: float = 0.0  # when all of them were last looked at
    _forbidden: dict[str, float] = field(default_factory=dict)
    """Namespaces whose pods the API server does not let us nominate -> until when we do not try."""
    _ended: dict[str, float] = field(default_factory=dict)
    """Nodes that a nomination has just ended for -> until when it may count."""
    _held_up: dict[str, tuple[GangKey, str]] = field(default_factory=dict)
    """Members that are kept off their node for others: uid -> gang, node."""

    def wake(self, gang: Gang, pod: PodRecord) -> None:
        """Requeue a member by the write that nominates it, or does so no longer, where one is due.

        `pod`: as kube-scheduler has it.
        """
        self.outbox.add(Requeue(pod.namespace, pod.name, pod.uid, self._due(gang, pod)))

    def _due(self, gang: Gang, pod: PodRecord) -> str | None:
        """What is to be written; None: it is there, or the pod needs none."""
        if pod.gates or self.is_forbidden(gang):
            return None
        node, nominated = self._wanted(gang, pod), gang.told_first.nodes
        if not (node or nominated.get(pod.uid) or pod.nominated_node):
            return None
        nominated[pod.uid] = node
        self._followed.setdefault(gang.key, gang.plan.version)
        return None if pod.nominated_node == node != "" else node

    def _wanted(self, gang: Gang, pod: PodRecord) -> str:
        """The node that a member is to be nominated for, "": for none.

        Where none is to be nominated, one that is nominated for its planned node stays so: binding
        it ends that.
        """
        node = gang.plan.nodes.get(pod.uid, "")
        return node if self.settings.nominate_planned or pod.nominated_node == node else ""

    # -- where the API server forbids it -------------------------------------------------------

    def nominates(self, gang: Gang) -> bool:
        """Whether planned members of a gang are nominated as they are requeued."""
        return self.settings.nominate_planned and not self.is_forbidden(gang)

    def is_forbidden(self, gang: Gang) -> bool:
        """Whether no nomination is written, nor taken back."""
        return gang.key.namespace in self._forbidden

    def forbid(self, namespace: str, until: float) -> None:
        """Nominate no pods in a namespace until then: the API server forbids it."""
        self._forbidden[namespace] = until

    # -- what the watch shows ------------------------------------------------------------------

    def note_member(self, gang: Gang, before: PodRecord | None, pod: PodRecord, now: float) -> None:
        """Note what the watch shows of a member, by whom it may have been nominated.

        It may be one of the Corral before this one, of a plan that is lost.
        """
        self._strays.pop(pod.uid, None)
        if pod.node:
            return
        if before is not None and before.nominated_node not in ("", pod.nominated_node):
            self._ended[before.nominated_node] = now + ENDED_SECONDS
        if pod.nominated_node and pod.uid not in gang.told_first.nodes:
            gang.told_first.nodes[pod.uid] = pod.nominated_node
            self._followed.setdefault(gang.key, gang.plan.version)

    def note_other(self, pod: PodRecord) -> None:
        """Note a pod for our scheduler that is in no gang, or not any more."""
        node = pod.nominated_node
        if node and node == pod.annotations.get(corral.NOMINATED) and not _is_over(pod):
            if pod.uid not in self._strays:
                wake = Requeue(pod.namespace, pod.name, pod.uid, "")
                self._strays[pod.uid] = _Stray(wake, node, pod.priority)
        else:
            self._strays.pop(pod.uid, None)

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._strays.pop(uid, None)
        self._held_up.pop(uid, None)

    # -- written anew --------------------------------------------------------------------------

    def correct(self, gangs: Mapping[GangKey, Gang], now: float) -> None:
        """Nominate members anew whose plan has changed, and take back what was lost.

        What is taken back is taken back again for as long as the watch shows it: that write may
        have been lost, and nothing else would end the nomination.
        """
        is_due = now >= self._corrected_at + self.settings.rewake_seconds
        if is_due:
            self._corrected_at = now
            self._forbidden = {
                each: until for each, until in self._forbidden.items() if until > now
            }
        self._ended = {node: until for node, until in self._ended.items() if until > now}
        for key, version in list(self._followed.items()):
            gang = gangs.get(key)
            if gang is None or not gang.told_first.nodes:
                del self._followed[key]
            elif key.namespace in self._forbidden:
                continue
            elif is_due or gang.plan.version != version:
                self._followed[key] = gang.plan.version
                self._correct(gang, is_due=is_due)
        self._take_back_strays(now)
        self._requeue_held_up(gangs, now)

    def _correct(self, gang: Gang, *, is_due: bool) -> None:
        for uid, told in list(gang.told_first.nodes.items()):
            member = gang.members.get(uid)
            if member is None or member.pod.node or uid in gang.binding.posted:
                del gang.told_first.nodes[uid]
                continue
            is_ended = not told and is_due
            has_changed = self._wanted(gang, member.pod) != told
            if has_changed or (is_ended and member.pod.nominated_node):
                self.wake(gang, member.pod)
            elif is_ended:
                del gang.told_first.nodes[uid]

    def _take_back_strays(self, now: float) -> None:
        for uid, stray in self._strays.items():
            is_due = now >= stray.sent_at + self.settings.rewake_seconds
            if (
                is_due
                and stray.wake.namespace not in self._forbidden
                and not self.is_preemptor(uid, stray.node)
            ):
                stray.sent_at = now
                self.outbox.add(stray.wake)

    # -- kept off a node for another one -------------------------------------------------------

    def is_held_up(
        self, gang: Gang, pod: PodRecord, gangs: Mapping[GangKey, Gang], now: float
    ) -> bool:
        """Whether kube-scheduler may keep a planned member off its node for what is over.

        It is requeued then as soon as that has ended.
        """
        node = gang.plan.nodes[pod.uid]
        is_so = pod.priority <= self._kept(gangs, now).get(node, -math.inf)
        if is_so:
            self._held_up[pod.uid] = (gang.key, node)
        return is_so

    def _kept(self, gangs: Mapping[GangKey, Gang], now: float) -> Mapping[str, float]:
        """Nodes that pods are nominated for that are not to go there any more, and the highest
        priority of these; those that may not be taken back are left out.
        """
        kept = {node: math.inf for node, until in self._ended.items() if until > now}
        pods = [
            (stray.wake.namespace, stray.node, stray.priority) for stray in self._strays.values()
        ]
        for key in self._followed:
            gang = gangs.get(key)
            for uid, told in () if gang is None else gang.told_first.nodes.items():
                member = gang.members.get(uid) if gang is not None else None
                if gang is None or member is None or member.pod.node:
                    continue
                wrong = {told, member.pod.nominated_node} - {"", gang.plan.nodes.get(uid)}
                pods.extend((key.namespace, node, member.pod.priority) for node in wrong)
        for namespace, node, priority in pods:
            if namespace not in self._forbidden:
                kept[node] = max(priority, kept.get(node, -math.inf))
        return kept

    def _requeue_held_up(self, gangs: Mapping[GangKey, Gang], now: float) -> None:
        kept = self._kept(gangs, now) if self._held_up else {}
        for uid, (key, node) in list(self._held_up.items()):
            gang = gangs.get(key)
            member = None if gang is None else gang.members.get(uid)
            is_over = gang is None or member is None or gang.plan.nodes.get(uid) != node
            if gang is None or member is None or is_over:
                del self._held_up[uid]
            elif member.pod.priority > kept.get(node, -math.inf):
                del self._held_up[uid]
                self.wake(gang, member.pod)


def _is_over(pod: PodRecord) -> bool:
    """Whether what a pod is nominated for says nothing any more."""
    return bool(pod.node or pod.gates) or pod.is_terminating or pod.is_finished
