"""How much a namespace may have held for pods that it has lost.

A lost member's node is held for its replacement, and nothing says that one will ever come: a gang
whose pods fail one after the other would have a place held for each, while the failed ones use up
neither nodes nor quota. So beyond what a namespace may have held for pods that do not exist, such
places request no more in all than its members that run; with these no more than its quotas allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.kube.core.objects import Amounts
from app.state.cache.totals import Totals
from app.state.fairness.absent_pods import AbsentPods
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs


@dataclass(slots=True)
class OwedPlaces:
    """The places held for lost pods: `held` by uid, their requests in all by namespace."""

    gangs: Gangs
    absent_pods: AbsentPods
    held: dict[str, tuple[str, Amounts]] = field(default_factory=dict)
    _in: Totals = field(default_factory=Totals)

    def hold(self, gang: Gang, uids: Iterable[str]) -> None:
        """Note which of these parts of the plan are for lost pods."""
        for uid in uids:
            place = gang.placeholders.get(uid)
            if place is not None and place.instead_of:
                self.held[uid] = held = (gang.key.namespace, place.member.pod.request)
                self._in.add(*held)

    def release(self, uid: str) -> None:
        """Note that a place is held no more."""
        if held := self.held.pop(uid, None):
            self._in.remove(*held)

    def may_hold(self, namespace: str, request: Amounts) -> bool:
        """Whether a place for one more lost pod may be held."""
        wanted = self._in.of(namespace)
        wanted.update(dict(request))
        running = self.gangs.running_in.of(namespace)
        for allowance in self.absent_pods.allowances(namespace):
            if any(wanted[each] + running[each] > most for each, most, _ in allowance.lines):
                return False
        return self.absent_pods.allows(namespace, wanted) or all(
            amount <= running[each] for each, amount in wanted.items()
        )

    def differences(self, gangs: Iterable[Gang]) -> Iterator[str]:
        """Where this differs from the gangs' plans; nothing unless Corral has a bug."""
        planned = {
            uid
            for gang in gangs
            for uid, place in gang.placeholders.items()
            if place.instead_of and uid in gang.plan.nodes
        }
        if planned != self.held.keys():
            yield "the places that are counted for lost pods are not those in plans"
        totals = Totals()
        for held in self.held.values():
            totals.add(*held)
        if totals != self._in:
            yield "what namespaces hold for lost pods is not the sum of those"
