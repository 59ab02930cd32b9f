"""Our gate on pods that are in no gang: it goes, and kube-scheduler has them as ordinary pods.

    gated by the webhook, and in no gang ──a while──▶ an Ungate that narrows it to no nodes

The webhook gates members alone, and labels them. One that is none is a member by settings that are
others now: its vocabulary is switched off, or Kueue has it. Or it has lost the words that made it
one. Nothing would take its gate off. A gate without that label is its user's own, who may have the
pod wait for an object that names it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from app.dialects import corral
from app.kube.core.objects import PodRecord
from app.state.effects import Ungate
from app.state.queueing.outbox import Outbox
from app.state.turns.later import Later

SETTLE_SECONDS = 10.0  # in which an object may come that names the pod
# Until an Ungate whose result the watch does not show is sent again, twice as long each time: an
# admission policy may refuse it for good.
UNSEEN_SECONDS, MOST_UNSEEN_SECONDS = 10.0, 600.0
MOST_LIFTED = 256  # in one tick


@dataclass(slots=True)
class _Stray:
    """A pod whose gate is to go."""

    ungate: Ungate
    again_after: float = UNSEEN_SECONDS


@dataclass(slots=True)
class StrayGates:
    """Takes our gate off pods that are in no gang, or not any more."""

    outbox: Outbox
    _of: dict[str, _Stray] = field(default_factory=dict)  # by uid
    _due: Later[str] = field(default_factory=Later)

    def note_other(self, pod: PodRecord, now: float) -> None:
        """Note a pod for our scheduler that is in no gang, or not any more."""
        if not _is_stray(pod):
            self.forget(pod.uid)
        elif pod.uid not in self._of:
            ungate = Ungate(pod.namespace, pod.name, pod.uid, corral.GATE)
            self._of[pod.uid] = _Stray(ungate)
            self._due.look(pod.uid, now + SETTLE_SECONDS)

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone, in a gang by now, or needs nothing."""
        if self._of.pop(uid, None) is not None:
            self._due.drop(uid)

    def review(self, now: float) -> None:
        """Send what is due."""
        for uid in list(islice(self._due.taken(now), MOST_LIFTED)):
            stray = self._of[uid]
            self.outbox.add(stray.ungate)
            self._due.look(uid, now + stray.again_after)
            stray.again_after = min(2 * stray.again_after, MOST_UNSEEN_SECONDS)


def _is_stray(pod: PodRecord) -> bool:
    """Whether a pod that is in no gang is kept from kube-scheduler by our webhook's gate."""
    return (
        corral.GATE in pod.gates
        and pod.labels.get(corral.MANAGED) == "true"
        and not (pod.is_terminating or pod.is_finished)
    )
