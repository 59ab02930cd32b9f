"""How much a namespace may have held for pods that do not exist.

A gang that starts before all its pods exist has places held for the rest, and so has one with
spares. What all gangs of a namespace hold so is bounded by a number of pods or a share of the
cluster, whichever is more: a pod of ten millicores may declare a thousand others with a GPU each.
So are the places that are kept for pods to be made again. The place of a lost member is not
counted: its gang had it, and holds it for a while only.

A gang that finds no place holds none, but the pods it waits for are kept in memory one by one. They
are bounded as well, for all gangs of a namespace together.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from app.dialects.declared import Allowance
from app.dialects.registry import Dialects
from app.dialects.spec import GangKey
from app.kube.core.objects import Amounts, ObjectRecord
from app.state.cache.books import ALL_NODES, Books
from app.state.cache.totals import Totals
from app.state.gang.gang import Gang
from app.state.plan.verdict import (
    AbsentRefusal,
    BeyondQuota,
    TooManyAbsent,
    TooManyAwaited,
)
from app.state.settings import EngineSettings
from topology.model.resources import PODS

MOST_IN_SHARE = 1_000  # pods of one gang; more need a number in `absent_pods_in`

MOST_AWAITED = 10_000  # pods of all gangs of a namespace; each takes some 600 bytes

_Held = tuple[GangKey, Amounts]
_Holder = tuple[GangKey, int]


@dataclass(slots=True)
class AbsentPods:
    """The placeholders that hold a place, and what they request.

    Invariant: `held` has every placeholder of a plan that stands for a pod to come or is a spare.
    """

    settings: EngineSettings
    books: Books
    dialects: Dialects
    held: dict[str, _Held] = field(default_factory=dict)  # by uid
    kept: dict[str, _Held] = field(default_factory=dict)
    """By the uid of a pod that is evicted: places for those to be made in their stead."""
    _of_namespace: defaultdict[str, Counter[_Held]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """How many of `held` are alike."""
    _taken_in: Totals = field(default_factory=Totals)
    """What `held` requests in all."""
    _holders: dict[str, Counter[GangKey]] = field(default_factory=dict)
    """By resource: how many of `held` and `kept` request it, by the gang that they are for."""
    _most_of: dict[str, Sequence[_Holder]] = field(default_factory=dict)
    """The two gangs that have most of these; not of a resource that some came or went for since."""
    _allowances: dict[str, dict[str, Allowance]] = field(default_factory=dict)
    """By namespace and the uid of the object that says so."""
    _namespace_of: dict[str, str] = field(default_factory=dict)  # by that uid
    _refused: set[str] = field(default_factory=set)  # namespaces, since something was released
    _awaited: dict[GangKey, int] = field(default_factory=dict)
    """Placeholders, whether or not they hold a place; only of gangs that have some."""
    _awaited_in: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.held)

    def hold(self, gang: Gang, uids: Iterable[str]) -> None:
        """Note which of these members of the plan are absent."""
        for uid in uids:
            place = gang.placeholders.get(uid)
            if place is not None and not place.instead_of:
                self.held[uid] = held = (gang.key, place.member.pod.request)
                self._count(held, 1)

    def release(self, uid: str) -> bool:
        """Forget a placeholder; True if a gang was refused that may be placed now."""
        held = self.held.pop(uid, None)
        if held is None:
            return False
        self._count(held, -1)
        namespace = held[0].namespace
        was_refused = namespace in self._refused
        self._refused.discard(namespace)
        return was_refused

    def keep(self, key: GangKey, requests: Mapping[str, Amounts]) -> bool:
        """Count places for pods to be made again; False: the namespace may not have as many more.

        requests: by the uid of the pod that is evicted.
        """
        wanted = self._taken_in.of(key.namespace)
        for request in requests.values():
            wanted.update(dict(request))
        if not self.allows(key.namespace, wanted):
            return False
        for uid, request in requests.items():
            self.kept[uid] = key, request
            self._count(self.kept[uid], 1)
        return True

    def end_kept(self, uids: Iterable[str]) -> None:
        """Count these no more."""
        for uid in uids:
            if (kept := self.kept.pop(uid, None)) is not None:
                self._count(kept, -1)

    def _count(self, held: _Held, pods: int) -> None:
        """Count so many more of a kind, or fewer."""
        key, request = held
        namespace = key.namespace
        self._taken_in.add(namespace, request, pods)
        of_namespace = self._of_namespace[namespace]
        of_namespace[held] += pods
        if not of_namespace[held]:
            del of_namespace[held]
        if not of_namespace:
            del self._of_namespace[namespace]
        _count_holder(self._holders, held, pods)
        for resource, _ in request:
            self._most_of.pop(resource, None)

    @property
    def awaited(self) -> Mapping[GangKey, int]:
        """How many placeholders each gang has that has some."""
        return self._awaited

    def count_others(self, held: Mapping[str, _Held], awaited: Mapping[GangKey, int]) -> None:
        """Count what gangs have that are not known here; for a copy, which has none of its own."""
        self.held.update(held)
        for each in held.values():
            self._count(each, 1)
        self._awaited.update(awaited)
        for key, pods in awaited.items():
            self._awaited_in[key.namespace] += pods

    def awaited_in(self, namespace: str) -> int:
        """How many placeholders the gangs of a namespace have."""
        return self._awaited_in[namespace]

    def count_awaited(self, gang: Gang) -> bool:
        """Count a gang's placeholders; True if a gang was refused that may be placed now."""
        key, namespace = gang.key, gang.key.namespace
        now, before = len(gang.placeholders), self._awaited.pop(key, 0)
        if now:
            self._awaited[key] = now
        self._awaited_in[namespace] += now - before
        if not self._awaited_in[namespace]:
            del self._awaited_in[namespace]
        may_be_placed = now < before and namespace in self._refused
        if may_be_placed:
            self._refused.discard(namespace)
        if gang.absent.is_cut:
            self._refused.add(namespace)
        return may_be_placed

    def put_object(self, record: ObjectRecord) -> bool:
        """Take what an object lets a namespace have; True if a refused gang may be placed now."""
        allowance, before = self.dialects.allowance(record), self.drop_object(record.uid)
        if allowance is None:
            return before
        self._allowances.setdefault(allowance.namespace, {})[record.uid] = allowance
        self._namespace_of[record.uid] = allowance.namespace
        return allowance.namespace in self._refused

    def drop_object(self, uid: str) -> bool:
        """Forget an object; True if a refused gang may be placed now."""
        namespace = self._namespace_of.pop(uid, None)
        if namespace is None:
            return False
        del self._allowances[namespace][uid]
        if not self._allowances[namespace]:
            del self._allowances[namespace]
        return namespace in self._refused

    def refusal(self, gang: Gang, uids: Collection[str]) -> AbsentRefusal | None:
        """Why the namespace may not have places held for these placeholders as well.

        The gang is to be told when it may.
        """
        found = self.why_not(gang, uids)
        if found is not None:
            self._refused.add(gang.key.namespace)
        return found

    def why_not(self, gang: Gang, uids: Collection[str]) -> AbsentRefusal | None:
        """The same of a gang that does not wait for an answer."""
        namespace = gang.key.namespace
        if pods := gang.absent.too_many:
            if pods > self.most_pods(namespace):
                return self._too_many(namespace, pods)
            most = self._most_awaited(namespace)
            others = self._awaited_in[namespace] - self._awaited.get(gang.key, 0)
            return TooManyAwaited(namespace, pods, others, most)
        if not uids:
            return None
        wanted = self._taken_in.of(namespace)
        alike = Counter(gang.placeholders[uid].member.pod.request for uid in uids)
        for request, pods in alike.items():
            wanted.update({resource: amount * pods for resource, amount in request})
        if beyond := self._beyond_quota(namespace, wanted, len(uids)):
            return beyond
        if self.allows(namespace, wanted):
            return None
        return self._too_many(namespace, len(uids))

    def allows(self, namespace: str, wanted: Counter[str]) -> bool:
        """Whether a namespace may have so much held for pods that do not exist."""
        most, share = self._bound(namespace)
        return (
            wanted[PODS] <= most
            or share == 1.0
            or all(amount <= share * self._in_cluster(each) for each, amount in wanted.items())
        )

    def are_few(self, gangs: Collection[GangKey]) -> bool:
        """Whether these gangs hold no more together than one namespace may that has no number."""
        taken = Counter[str]()
        for namespace in {key.namespace for key in gangs}:
            for (key, request), pods in self._of_namespace.get(namespace, {}).items():
                if key in gangs:
                    taken.update({resource: amount * pods for resource, amount in request})
        return self.allows("", taken)

    def fullest(self) -> float:
        """The highest share of its bound that a namespace has held: 1.0 is all it may have."""
        return max(map(self._used_share, self._of_namespace), default=0.0)

    def _used_share(self, namespace: str) -> float:
        """By pods, or by the resource it has most of; whichever leaves it more."""
        most, share = self._bound(namespace)
        taken = self._taken_in.of(namespace)
        by_pods = taken[PODS] / most if most else math.inf
        if not share:
            return by_pods
        bounds = {resource: share * self._in_cluster(resource) for resource in taken}
        by_share = max(taken[each] / bounds[each] if bounds[each] else math.inf for each in taken)
        return min(by_pods, by_share)

    def allowances(self, namespace: str) -> Collection[Allowance]:
        """What its quotas let a namespace have."""
        return self._allowances.get(namespace, {}).values()

    def _bound(self, namespace: str) -> tuple[int, float]:
        """Pods, or the share of the cluster, that a namespace may hold; 0.0: no share."""
        own = dict(self.settings.absent_pods_in).get(namespace)
        if own is not None:
            return own, 0.0
        settings = self.settings
        return settings.absent_pods_per_namespace, settings.absent_share_per_namespace

    def most_pods(self, namespace: str) -> int:
        """For how many pods at most a gang can have places held, whatever they request."""
        most, share = self._bound(namespace)
        if not share:
            return most
        in_share = MOST_IN_SHARE if share == 1.0 else int(share * self._in_cluster(PODS))
        return max(most, min(in_share, MOST_IN_SHARE))

    def most_for(self, gang: Gang) -> int:
        """For how many pods this gang can have places held, beside what others wait for."""
        namespace = gang.key.namespace
        others = self._awaited_in[namespace] - self._awaited.get(gang.key, 0)
        room = max(self._most_awaited(namespace) - others, 0)
        return min(self.most_pods(namespace), room)

    def _most_awaited(self, namespace: str) -> int:
        return max(MOST_AWAITED, self.most_pods(namespace))

    def _too_many(self, namespace: str, pods: int) -> TooManyAbsent:
        most, share = self._bound(namespace)
        if share and pods > (bound := self.most_pods(namespace)) >= MOST_IN_SHARE:
            return TooManyAbsent(namespace, pods, bound, 0.0)
        return TooManyAbsent(namespace, pods, most, share)

    def _beyond_quota(self, namespace: str, wanted: Counter[str], pods: int) -> BeyondQuota | None:
        """The first quota that would let the API server refuse some of the pods to come."""
        for allowance in self.allowances(namespace):
            for resource, most, used in allowance.lines:
                if wanted[resource] > most - used:
                    return BeyondQuota(allowance.where, resource, most, pods)
        return None

    def in_the_way(self, gang: Gang) -> tuple[GangKey, int] | None:
        """Whose absent pods hold most places of the kind the gang waits for, and how many."""
        asked = {resource for each in gang.unplanned() for resource, _ in each.pod.request}
        scarce = {resource for resource in asked if "/" in resource} or asked - {PODS}
        others = (holder for each in scarce for holder in self._most(each) if holder[0] != gang.key)
        return max(others, key=_rank, default=None)

    def _most(self, resource: str) -> Sequence[_Holder]:
        """The two gangs for whose absent pods most of a resource is held, in number of pods."""
        found, holders = self._most_of.get(resource), self._holders.get(resource)
        if holders is None:
            return ()
        if found is None:
            found = self._most_of[resource] = nlargest(2, holders.items(), key=_rank)
        return found

    def _in_cluster(self, resource: str) -> int:
        """What all nodes have of a resource."""
        axis, capacity = self.books.axis, self.books.topologies[ALL_NODES].capacity
        return int(capacity.allocatable[axis.row(resource)].sum()) if resource in axis else 0

    def differences(self, gangs: Iterable[Gang]) -> Iterator[str]:
        """Where this differs from the gangs' plans; nothing unless Corral has a bug."""
        planned, known = set[str](), set[GangKey]()
        for gang in gangs:
            known.add(gang.key)
            for uid, place in gang.placeholders.items():
                if uid in gang.plan.nodes:
                    planned.add(uid)
                    is_counted = uid in self.held
                    if is_counted is bool(place.instead_of):
                        how = "counted" if is_counted else "not counted"
                        yield f"gang {gang.key}: the place of {uid} is {how}"
        for uid in self.held:
            if uid not in planned:
                yield f"the place of {uid} is counted, and is in no plan"
        awaited = Counter[str]()
        for key, pods in self._awaited.items():
            awaited[key.namespace] += pods
            if key not in known:
                yield f"gang {key} is gone, and its placeholders are counted"
        if awaited != self._awaited_in:
            yield "what gangs of namespaces wait for is not the sum of their placeholders"
        totals: defaultdict[str, Counter[_Held]] = defaultdict(Counter)
        taken, holders = Totals(), dict[str, Counter[GangKey]]()
        for held in (*self.held.values(), *self.kept.values()):
            key, request = held
            totals[key.namespace][held] += 1
            taken.add(key.namespace, request)
            _count_holder(holders, held, 1)
        counted = (self._of_namespace, self._taken_in, self._holders)
        if (totals, taken, holders) != counted:
            yield "what namespaces hold for absent pods is not the sum of those"


def _count_holder(holders: dict[str, Counter[GangKey]], held: _Held, pods: int) -> None:
    """Count so many more for a gang, or fewer, of each resource that they request."""
    key, request = held
    for resource, _ in request:
        of_resource = holders.setdefault(resource, Counter())
        of_resource[key] += pods
        if not of_resource[key]:
            del of_resource[key]
        if not of_resource:
            del holders[resource]


def _rank(holder: _Holder) -> tuple[int, str]:
    key, pods = holder
    return pods, str(key)
