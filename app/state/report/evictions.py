"""Gangs of which all running pods are evicted, so that their owners can start them anew as a whole.

    fail_fast    a gang that lost pods with a node, for which no other place was found
    one for all  a gang of which a pod goes for one of higher priority, where that ends all of it

What keeps an eviction from taking effect may be over later, so it is asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.state.effects import Evict
from app.state.gang.gang import Gang
from app.state.gang.lost_nodes import lacks_lost_pods
from app.state.gang.owners import Owners
from app.state.plan.verdict import NoPlan
from app.state.queueing.outbox import Outbox
from app.state.report.messages import gangs as messages
from app.state.report.reports import Reports
from app.state.settings import EngineSettings

EVICT_AGAIN_SECONDS = 60.0  # a disruption budget may allow later what it refuses now


@dataclass(slots=True)
class Evictions:
    """Evicts gangs, and reports that."""

    settings: EngineSettings
    outbox: Outbox
    owners: Owners
    reports: Reports
    _why: dict[GangKey, str] = field(default_factory=dict)
    """Of gangs that are evicted; those asked for again last are the last."""

    def review(self, gang: Gang, verdict: NoPlan, now: float) -> None:
        """With `fail_fast` evict a gang that runs in part, if this is why it has no place."""
        if self._fails_fast(gang, now) and verdict.is_about_cluster:
            self._evict(gang, messages.given_up(gang.key, str(verdict)), now)

    def _fails_fast(self, gang: Gang, now: float) -> bool:
        """Whether a gang is evicted if a search for it finds no place.

        Only for pods that it lost with a node: those that it lacks for another reason may come or
        fit again, and a gang that has all it needs has lost nothing.
        Source: Kueue's documentation, "Feature Gate Interaction Matrix".
        """
        is_set = self.settings.fail_fast and self.settings.replace_failed_nodes
        if now < gang.evicted_at + EVICT_AGAIN_SECONDS:
            return False
        return bool(is_set and gang.membership.bound) and lacks_lost_pods(gang)

    def end_whole(self, gang: Gang, now: float) -> None:
        """Evict the running pods of a gang of which one goes for a pod of higher priority."""
        self.reports.ends_whole(gang)
        self._evict(gang, gang.ending, now)

    def refused(self, gang: Gang, uid: str) -> None:
        """Report that a pod of a gang that is evicted stays."""
        if gang.key in self._why and (member := gang.members.get(uid)) is not None:
            sentence = messages.eviction_refused(gang.key, member.pod, EVICT_AGAIN_SECONDS)
            self.reports.eviction_refused(gang, sentence)

    def evict_again(self, gangs: Mapping[GangKey, Gang], now: float) -> None:
        """Evict pods of gangs that still run in part, whatever kept that from taking effect."""
        for key, sentence in list(self._why.items()):
            gang = gangs.get(key)
            if gang is not None and now < gang.evicted_at + EVICT_AGAIN_SECONDS:
                return  # in the order of time
            del self._why[key]
            if gang is None or not gang.membership.bound:
                continue
            if gang.ending or gang.is_short:
                self._evict(gang, sentence, now)

    def _evict(self, gang: Gang, sentence: str, now: float) -> None:
        gang.evicted_at = now
        self._why.pop(gang.key, None)
        self._why[gang.key] = sentence
        if self.owners.give_up(gang, gang.membership.bound):
            self.reports.not_evicted(gang)
            return
        self.reports.evicted(gang, sentence, now)
        for member in gang.membership.bound:
            pod = member.pod
            self.outbox.add(Evict(pod.namespace, pod.name, pod.uid, sentence))
