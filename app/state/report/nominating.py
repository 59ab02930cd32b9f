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

Source: kubernetes v1.36 pkg/scheduler/schedule_one.go, evaluateNominatedNode.
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
from app.state.report.outbox import Outbox
from app.state.settings import EngineSettings


@dataclass(slots=True)
class _Stray:
    """A pod of no gang that we have nominated."""

    wake: Requeue
    node: str
    sent_at: float = -math.inf


@dataclass(slots=True)
class Nominating:
    """Nominates members, and takes that back. `Gang.rejections.nominated` has what was written."""

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

    def wake(self, gang: Gang, pod: PodRecord) -> None:
        """Requeue a member by the write that nominates it, or does so no longer, where one is due.

        `pod`: as kube-scheduler has it.
        """
        self.outbox.add(Requeue(pod.namespace, pod.name, pod.uid, self._due(gang, pod)))

    def _due(self, gang: Gang, pod: PodRecord) -> str | None:
        """What is to be written; None: it is there, or the pod needs none."""
        if pod.gates or self.is_forbidden(gang):
            return None
        node, nominated = self._wanted(gang, pod), gang.rejections.nominated
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

    def note_member(self, gang: Gang, pod: PodRecord) -> None:
        """Note what the watch shows of a member, whoever nominated it.

        It may be one of the Corral before this one, of a plan that is lost.
        """
        self._strays.pop(pod.uid, None)
        if pod.node:
            return
        if pod.nominated_node and pod.uid not in gang.rejections.nominated:
            gang.rejections.nominated[pod.uid] = pod.nominated_node
            self._followed.setdefault(gang.key, gang.plan.version)

    def note_other(self, pod: PodRecord) -> None:
        """Note a pod for our scheduler that is in no gang, or not any more."""
        node = pod.nominated_node
        if node and node == pod.annotations.get(corral.NOMINATED) and not _is_over(pod):
            if pod.uid not in self._strays:
                wake = Requeue(pod.namespace, pod.name, pod.uid, "")
                self._strays[pod.uid] = _Stray(wake, node)
        else:
            self._strays.pop(pod.uid, None)

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._strays.pop(uid, None)

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
        for key, version in list(self._followed.items()):
            gang = gangs.get(key)
            if gang is None or not gang.rejections.nominated:
                del self._followed[key]
            elif key.namespace in self._forbidden:
                continue
            elif is_due or gang.plan.version != version:
                self._followed[key] = gang.plan.version
                self._correct(gang, is_due=is_due)
        self._take_back_strays(now)

    def _correct(self, gang: Gang, *, is_due: bool) -> None:
        for uid, told in list(gang.rejections.nominated.items()):
            member = gang.members.get(uid)
            if member is None or member.pod.node or uid in gang.binding.posted:
                del gang.rejections.nominated[uid]
                continue
            is_ended = not told and is_due
            has_changed = self._wanted(gang, member.pod) != told
            if has_changed or (is_ended and member.pod.nominated_node):
                self.wake(gang, member.pod)
            elif is_ended:
                del gang.rejections.nominated[uid]

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


def _is_over(pod: PodRecord) -> bool:
    """Whether what a pod is nominated for says nothing any more."""
    return bool(pod.node or pod.gates) or pod.is_terminating or pod.is_finished
