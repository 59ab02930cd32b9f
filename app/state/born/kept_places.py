"""The place that a gang is given back for is kept for its pods until they are there again.

    given back ──▶ kept ──a pod is made again──▶ kept for that pod ──▶ the gang has a plan: ended

Else two gangs could be given back for one place, or others take it while the pods are made again.
It is kept as for pods that are nominated: those of a higher priority may have it. It is kept for a
moment only: the Job controller takes 10 s for one pod and twice as long for each further one. And
no more of it than the namespace may have held for pods that do not exist: whose controller makes
none again would else hold it in vain, gang after gang.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.fairness.absent_pods import AbsentPods
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.plan.verdict import Plan
from app.state.pods.nominations import Nomination, Nominations
from app.state.reserve.reservations import Reservations

KEEP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Place:
    until: float
    evicted: dict[str, Nomination]
    """By the uid of a pod that is given back, and whose place has passed to no other yet."""
    others: dict[str, Nomination]
    """By the uid of a pod that stays, or was made again."""


@dataclass(slots=True)
class KeptPlaces:
    """Keeps nodes for gangs that were given back."""

    gangs: Gangs
    nominations: Nominations
    reservations: Reservations
    absent_pods: AbsentPods
    _of: dict[GangKey, _Place] = field(default_factory=dict)

    def keep(self, gang: Gang, found: Plan, evicted: Collection[str], now: float) -> None:
        """Keep the nodes of a plan for a gang of which these pods are given back, if it may."""
        self.end(gang.key)
        priority, place = gang.membership.lowest_priority, _Place(now + KEEP_SECONDS, {}, {})
        for uid, node in found.nodes.items():
            if uid not in gang.members:
                continue  # a pod to come: the gang's next plan has a place for it under another uid
            kept = Nomination(node, gang.member(uid).pod.request, priority)
            (place.evicted if uid in evicted else place.others)[uid] = kept
        requests = {uid: each.request for uid, each in place.evicted.items()}
        if not self.absent_pods.keep(gang.key, requests):
            return
        self._of[gang.key] = place
        self.nominations.keep(place.evicted)
        self.nominations.keep(place.others)

    def pass_on(self, pod: PodRecord, key: GangKey) -> None:
        """Keep for a pod what was kept for one that it was made for; before its gang has it."""
        place = self._of.get(key)
        if place is None or pod.uid in place.evicted or pod.uid in place.others:
            return
        alike = (uid for uid, each in place.evicted.items() if each.request == pod.request)
        uid = next(alike, None)
        if uid is not None:
            self.nominations.end_kept((uid,))
            self.absent_pods.end_kept((uid,))
            place.others[pod.uid] = place.evicted.pop(uid)
            self.nominations.keep({pod.uid: place.others[pod.uid]})

    def review(self, now: float) -> None:
        """End what is kept for gangs that have a plan by now, and what was kept for long enough."""
        for key, place in list(self._of.items()):
            gang = self.gangs.by_key.get(key)
            is_placed = gang is not None and (gang.plan.nodes or gang.has_started)
            if is_placed or now >= place.until:
                self.end(key)

    def end(self, key: GangKey) -> None:
        """Keep nothing for a gang any more."""
        place = self._of.pop(key, None)
        if place is None:
            return
        kept = {**place.evicted, **place.others}
        self.nominations.end_kept(kept)
        self.absent_pods.end_kept(place.evicted)
        self.reservations.capacity_grew(dict.fromkeys(each.node for each in kept.values()))
