"""Workloads that are suspended so that their controller makes all their pods anew.

    suspended, with an annotation ──▶ the watch shows that ──▶ its pods are gone ──▶ it goes on

What is suspended says so itself: the Corral that leads has it go on, also after a restart, and also
where its pods stay for longer than their controller takes. One that others have go on before is not
ours any more, whatever it still says: they may suspend it again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from app.dialects.spec import Suspension
from app.state.effects import Suspend
from app.state.gang.gangs import Gangs
from app.state.objects.declared import Objects
from app.state.pauses import doubled
from app.state.queueing.outbox import Outbox
from app.state.report.messages import given_back as messages

LONGEST_SECONDS = 60.0  # suspended, whether or not the pods are gone
# Before it is sent once more that a workload goes on, doubled each time: we may lack the right, and
# without the policies anybody may say that a Job is ours.
AGAIN_SECONDS, MOST_SECONDS = 10.0, 3_600.0


@dataclass(slots=True)
class Suspended:
    """Has workloads that Corral has suspended go on."""

    objects: Objects
    gangs: Gangs
    outbox: Outbox
    _since: dict[str, float] = field(default_factory=dict)  # by uid, as the watch has shown
    _others: set[str] = field(default_factory=set)  # uids: they were made to go on by others
    _sent: dict[str, tuple[float, int]] = field(default_factory=dict)
    """By uid, when it was sent that it goes on, and how often."""

    def is_shown(self, suspension: Suspension) -> bool:
        """Whether a workload is suspended, by us or by its user: its pods go in any case."""
        return self.objects.is_suspended(suspension.uid)

    def begun(self, suspension: Suspension, sentence: str) -> Suspend:
        """The suspension of a workload."""
        self._others.discard(suspension.uid)
        return self._effect(suspension, sentence, ends=False)

    def review(self, now: float, *, leads: bool) -> None:
        """Have those go on whose pods are gone, if we lead."""
        shown = self.objects.suspended
        for uid in self._since.keys() - shown.keys():
            del self._since[uid]
            self._others.discard(uid)
            self._sent.pop(uid, None)
        for uid, suspension in shown.items():
            since = self._since.setdefault(uid, now)
            if not self.objects.is_suspended(uid):
                self._others.add(uid)  # what is sent takes the annotation off
            elif uid in self._others or (self._has_pods(uid) and now < since + LONGEST_SECONDS):
                continue
            sent_at, times = self._sent.get(uid, (-math.inf, 0))
            if leads and now >= sent_at + doubled(AGAIN_SECONDS, times, MOST_SECONDS):
                self._sent[uid] = now, times + 1
                self.outbox.add(self._effect(suspension, messages.goes_on(), ends=True))

    def _has_pods(self, uid: str) -> bool:
        gangs = (self.gangs.by_key.get(key) for key in self.objects.keys_of(uid))
        return any(gang is not None and gang.members for gang in gangs)

    def _effect(self, suspension: Suspension, sentence: str, *, ends: bool) -> Suspend:
        its, known = suspension, self.objects.by_uid.get(suspension.uid)
        version = "" if known is None else known.version
        return Suspend(its.path, its.namespace, its.name, its.uid, version, sentence, ends)
