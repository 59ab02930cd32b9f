"""The pods that run on nodes, as far as it matters when one of them might have to go.

The books know what each of them takes; a gang has the records of its members. Of all others only
this is kept, and pods that are alike in it share one object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from app.dialects import corral
from app.kube.core.objects import PodRecord

SYSTEM_PRIORITY = 2_000_000_000  # of the classes system-node-critical and system-cluster-critical
SYSTEM_NAMESPACE = "kube-system"
NEVER_OWNERS = ("DaemonSet", "Node")  # whose pods come back at once; Node: of a kubelet's disk
PENDING = "Pending"  # a phase
EVERYWHERE = "*"  # among namespaces: all of them
MOST_SHARED = 4_096  # objects that later pods are compared with


@dataclass(frozen=True, slots=True)
class Occupant:
    """One pod on a node."""

    namespace: str
    priority: int
    created: str
    is_terminating: bool
    may_go: bool
    """Whether it may ever be a victim. Source: what kube-system and DaemonSets are for."""
    is_managed: bool
    owner: str
    """The uid of its controller; "": it has none."""
    grace_seconds: int
    """While it ends: for how long its containers may run on."""
    has_begun: bool
    """Budgets count it: its containers have started."""
    labels: tuple[tuple[str, str], ...]
    """Those that are kept of it."""

    def may_go_for_gangs(self, *, bare_victims: bool) -> bool:
        """Whether it may go for a gang: a controller makes it again, and Kueue has not admitted it.

        `bare_victims`: pods without a controller may go as well.
        """
        return self.may_go and not self.is_managed and (bool(self.owner) or bare_victims)


@dataclass(slots=True)
class Occupants:
    """The occupants by pod uid: those that the books have bound."""

    unpreemptible_in: Collection[str] = ()
    """Namespaces whose pods may say that they are never victims."""
    is_managed: Callable[[PodRecord], bool] = lambda pod: False
    """Whether a controller that plans for itself has a pod."""
    by_uid: dict[str, Occupant] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # by uid, without the namespace
    _priorities: Counter[int] = field(default_factory=Counter)
    _shared: dict[Occupant, Occupant] = field(default_factory=dict)

    def put(self, pod: PodRecord) -> bool:
        """Learn of a pod that is bound and has not ended; True if its containers start with this.

        So do those of a pod that is not known yet and runs.
        """
        occupant = Occupant(
            pod.namespace,
            pod.priority,
            pod.created,
            pod.is_terminating,
            self.may_go(pod),
            self.is_managed(pod),
            pod.owner.uid if pod.owner is not None else "",
            pod.grace_seconds,
            pod.phase != PENDING,
            tuple(pod.labels.items()),
        )
        before = self.by_uid.get(pod.uid)
        self._uncount(before)
        self._priorities[pod.priority] += 1
        self.names[pod.uid] = pod.name
        self.by_uid[pod.uid] = self._share(occupant)
        return occupant.has_begun and not (before is not None and before.has_begun)

    def recall(self, occupants: Mapping[str, Occupant], names: Mapping[str, str]) -> None:
        """Learn of the occupants of another record, none of which this one has."""
        self.by_uid.update(occupants)
        self.names.update(names)
        self._priorities.update(each.priority for each in occupants.values())

    def _share(self, occupant: Occupant) -> Occupant:
        if len(self._shared) >= MOST_SHARED:
            self._shared.clear()
        return self._shared.setdefault(occupant, occupant)

    def may_go(self, pod: PodRecord) -> bool:
        """Whether a pod may be a victim at all."""
        is_kept = pod.labels.get(corral.PREEMPTIBLE) == "false" and any(
            name in self.unpreemptible_in for name in (pod.namespace, EVERYWHERE)
        )
        return not (
            is_kept
            or pod.priority >= SYSTEM_PRIORITY
            or pod.namespace == SYSTEM_NAMESPACE
            or (pod.owner is not None and pod.owner.kind in NEVER_OWNERS)
        )

    def drop(self, uid: str) -> None:
        """Forget a pod that has ended or is gone."""
        self._uncount(self.by_uid.pop(uid, None))
        self.names.pop(uid, None)

    def _uncount(self, occupant: Occupant | None) -> None:
        if occupant is not None:
            self._priorities[occupant.priority] -= 1
            if not self._priorities[occupant.priority]:
                del self._priorities[occupant.priority]

    def note_phase(self, pod: PodRecord) -> bool:
        """As `put`, of a pod of which nothing else is new."""
        occupant = self.by_uid.get(pod.uid)
        if starts := occupant is not None and not occupant.has_begun and pod.phase != PENDING:
            self.by_uid[pod.uid] = self._share(replace(occupant, has_begun=True))
        return starts

    def any_below(self, priority: int) -> bool:
        """Whether some pod has a lower priority."""
        return any(each < priority for each in self._priorities)

    def lower(self, uids: Iterable[str], priority: int) -> frozenset[str]:
        """Those of these pods that have a lower priority."""
        known = self.by_uid
        return frozenset(uid for uid in uids if uid in known and known[uid].priority < priority)

    def any_terminating(self, uids: Iterable[str]) -> bool:
        """Whether one of these pods is on its way out."""
        return any(uid in self.by_uid and self.by_uid[uid].is_terminating for uid in uids)
