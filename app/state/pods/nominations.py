"""Pods that have a node coming, where others still end.

Until such a pod is bound, its node is free on the books. Pods of no higher priority have to leave
it alone: kube-scheduler itself counts those as being there that it has nominated. Of pods for whose
gang we have others evicted it does not know, so /filter has to keep that room for them.
Source: kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go, addGENominatedPods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.kube.core.objects import Amounts, PodRecord
from app.state.cache.books import Books


@dataclass(frozen=True, slots=True)
class Nomination:
    """One pod on its way to a node."""

    node: str
    request: Amounts
    priority: int


class Together(tuple[Nomination, ...]):
    """Some nominations: each search for a gang is compared with those before it, and counts them.

    Hashed once, and added up once.
    """

    _hash: int | None = None
    _pods: Mapping[Amounts, Mapping[str, int]] | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = super().__hash__()
        return self._hash

    @property
    def pods(self) -> Mapping[Amounts, Mapping[str, int]]:
        """How many pods there are by request and by node."""
        if self._pods is None:
            alike = defaultdict[Amounts, Counter[str]](Counter)
            for each in self:
                alike[each.request][each.node] += 1
            self._pods = alike
        return self._pods


@dataclass(slots=True)
class Nominations:
    """The nominations of all pods, whichever scheduler made them; by pod uid."""

    _watched: dict[str, Nomination] = field(default_factory=dict)
    _expected: dict[str, Nomination] = field(default_factory=dict)
    """Those that follow from an answer of ours: newer than what the watch has told of the pods."""
    _kept: dict[str, Nomination] = field(default_factory=dict)
    """Those of gangs that we make room for: kube-scheduler does not know of them."""
    _by_uid: dict[str, Nomination] = field(default_factory=dict)
    """Of all three, the ones that count."""
    _on: dict[str, dict[str, Nomination]] = field(default_factory=dict)  # the same by node
    _changed: int = 0  # so often some of these began or ended to count
    _together: dict[tuple[int, frozenset[str]], Together] = field(default_factory=dict)
    """By priority, and the pods that are left out."""
    _kept_on: dict[tuple[int, frozenset[str]], dict[str, list[Amounts]]] = field(
        default_factory=dict
    )
    """The same of `kept`."""
    _booked: tuple[tuple[int, int], Mapping[str, object]] = (0, 0), {}
    """As `booked` was, when so much had changed here and in the books."""

    def put(self, pod: PodRecord) -> str:
        """Learn of a pod; returns the node it is nominated for no longer, "" if there is none."""
        before = self._watched.pop(pod.uid, None)
        is_waiting = not (pod.node or pod.is_finished or pod.is_terminating)
        if is_waiting and pod.nominated_node:
            self._watched[pod.uid] = Nomination(pod.nominated_node, pod.request, pod.priority)
        self._settle(pod.uid)
        return before.node if before and before != self._watched.get(pod.uid) else ""

    def drop(self, uid: str) -> str:
        """Forget a pod; returns the node it was nominated for, "" if there is none."""
        before = self._watched.pop(uid, None)
        self._settle(uid)
        return before.node if before else ""

    def expect(self, uid: str, nomination: Nomination | None) -> None:
        """Count a nomination before the watch shows it; None: do so no longer."""
        if nomination is None:
            self._expected.pop(uid, None)
        else:
            self._expected[uid] = nomination
        self._settle(uid)

    def keep(self, nominations: Mapping[str, Nomination]) -> None:
        """Count these until they are ended: /filter keeps their nodes for them."""
        self._kept_on.clear()
        for uid, nomination in nominations.items():
            self._kept[uid] = nomination
            self._settle(uid)

    def end_kept(self, uids: Iterable[str]) -> None:
        """Keep no node for these pods any more."""
        self._kept_on.clear()
        for uid in uids:
            self._kept.pop(uid, None)
            self._settle(uid)

    def kept(self, priority: int, *known: Mapping[str, object]) -> Mapping[str, list[Amounts]]:
        """What is kept of each node from pods of this priority, but for pods in one of `known`."""
        left_out = _among(self._kept, known)
        found = self._kept_on.get((priority, left_out))
        if found is None:
            found = self._kept_on[priority, left_out] = {}
            for each in _above(self._kept, priority, (left_out,)):
                found.setdefault(each.node, []).append(each.request)
        return found

    def booked(self, books: Books) -> Mapping[str, object]:
        """The pods that the books hold something for: there they count as well."""
        then, booked = self._booked
        now = self._changed, books.holds_changed
        if then != now:
            booked = dict.fromkeys(self._by_uid.keys() & books.held.keys())
            self._booked = now, booked
        return booked

    def _settle(self, uid: str) -> None:
        """Note which nomination of a pod counts now: mostly the same, or none, as before."""
        before = self._by_uid.get(uid)
        now = self._expected.get(uid) or self._kept.get(uid) or self._watched.get(uid)
        if now == before:
            return
        self._changed += 1
        self._together.clear()
        if before is not None:
            del self._by_uid[uid]
            on_node = self._on[before.node]
            del on_node[uid]
            if not on_node:
                del self._on[before.node]
        if now is not None:
            self._by_uid[uid] = now
            self._on.setdefault(now.node, {})[uid] = now

    @property
    def uids(self) -> Collection[str]:
        """The pods that the watch shows to be nominated."""
        return self._watched.keys()

    @property
    def counted(self) -> Mapping[str, Nomination]:
        """Those that count now, by the uid of the pod."""
        return self._by_uid

    def of(self, uid: str) -> Nomination | None:
        """The nomination of a pod as the watch shows it."""
        return self._watched.get(uid)

    def above(self, priority: int, *known: Mapping[str, object]) -> Together:
        """Those that pods of this priority give way to, but for pods in one of `known`."""
        left_out = _among(self._by_uid, known)
        found = self._together.get((priority, left_out))
        if found is None:
            found = Together(_above(self._by_uid, priority, (left_out,)))
            self._together[priority, left_out] = found
        return found

    def on(self, node: str, priority: int, *known: Container[str]) -> list[Amounts]:
        """What those of `above` request that are nominated for this node."""
        return [each.request for each in _above(self._on.get(node, {}), priority, known)]

    def nodes_of_others(self, uid: str) -> set[str]:
        """The nodes that some pod other than this one is nominated for."""
        return {node for node, its in self._on.items() if len(its) > (uid in its)}

    def __bool__(self) -> bool:
        return bool(self._by_uid)


def _among(
    nominations: Mapping[str, Nomination], known: Iterable[Mapping[str, object]]
) -> frozenset[str]:
    """The pods that are in one of `known`: looks at as many as the smaller one has."""
    return frozenset().union(*(nominations.keys() & some.keys() for some in known))


def _above(
    nominations: Mapping[str, Nomination], priority: int, known: Sequence[Container[str]]
) -> Iterator[Nomination]:
    for uid, each in nominations.items():
        if each.priority >= priority and not any(uid in some for some in known):
            yield each
