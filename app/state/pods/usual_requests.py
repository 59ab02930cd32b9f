"""What running pods request of devices: the requests that room is to be left for.

    a pod starts ──▶ its namespace counts its request ──▶ all namespaces together: `usual`
                       halved when it has MOST_WEIGHT, so the last few hundred pods say most

Every namespace has the same say at most, however many pods it starts and whatever these request;
it is MOST_WEIGHT, and few pods have as much as they are. A pod counts once, when its containers
start. One that waits does not, nor one that names a node and is failed by its kubelet; nor does
what no node has. After a restart the list of pods tells of those that run.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest

from app.kube.core.cached import weight
from app.kube.core.objects import Amounts

MOST_WEIGHT = 512  # of a namespace
MOST_REQUESTS = 64  # of a namespace; then the rarest one is forgotten
MOST_NAMESPACES = 64  # then the one whose last pod is longest ago is forgotten
MOST_USUAL = 32  # that are compared with every node
MOST_BYTES = 2_048  # of a request; pods have four or five amounts
ANEW_AFTER = 64  # counted pods; the first ones sooner


def is_device(resource: str) -> bool:
    """Whether it is a resource of devices, which are scarce beside cores and memory."""
    return "/" in resource


@dataclass(slots=True)
class UsualRequests:
    """Counts requests by namespace. A function of the pods counted, in their order."""

    largest: Callable[[], Mapping[str, int]]
    """The most that one node has of each resource."""
    usual: tuple[tuple[Amounts, int], ...] = ()
    """With weights, those that ask for the most devices together first; replaced, not changed."""
    _weights: OrderedDict[str, Counter[Amounts]] = field(default_factory=OrderedDict)
    _counted: int = 0
    _anew_at: int = 1  # so many counted
    _resources: int = 0  # that nodes had when that was looked at last

    def __len__(self) -> int:
        return sum(map(len, self._weights.values()))

    def note(self, namespace: str, request: Amounts) -> None:
        """Count a pod that starts; one that requests no device has nothing to say."""
        if not _devices(request) or weight(request, MOST_BYTES) > MOST_BYTES:
            return
        weights = self._weights.setdefault(namespace, Counter())
        self._weights.move_to_end(namespace)
        if len(self._weights) > MOST_NAMESPACES:
            self._weights.popitem(last=False)
        _count(weights, request)
        self._counted += 1
        if self._counted >= self._anew_at:
            self._anew_at = self._counted + min(self._counted, ANEW_AFTER)
            self._choose()

    def catch_up(self, resources: int) -> None:
        """Follow nodes that have resources which none had before; `resources`: how many."""
        if self._weights and resources != self._resources:
            self._resources = resources
            self._choose()

    def _choose(self) -> None:
        self.usual = self._most_usual(self.largest())

    def _most_usual(self, largest: Mapping[str, int]) -> tuple[tuple[Amounts, int], ...]:
        together: Counter[Amounts] = Counter()
        for weights in self._weights.values():
            together.update(
                {request: pods for request, pods in weights.items() if _is_had(request, largest)}
            )
        asked: Counter[str] = Counter()
        for request, pods in together.items():
            asked.update({name: amount * pods for name, amount in _devices(request)})

        def share(each: tuple[Amounts, int]) -> tuple[float, Amounts]:
            request, pods = each
            return max(amount * pods / asked[name] for name, amount in _devices(request)), request

        return tuple(nlargest(MOST_USUAL, together.items(), key=share))


def _devices(request: Amounts) -> list[tuple[str, int]]:
    return [(name, amount) for name, amount in request if amount and is_device(name)]


def _is_had(request: Amounts, largest: Mapping[str, int]) -> bool:
    """Whether a node may have room for it: none need have as much of everything."""
    return all(amount <= largest.get(name, 0) for name, amount in request)


def _count(weights: Counter[Amounts], request: Amounts) -> None:
    weights[request] += 1
    if len(weights) > MOST_REQUESTS:
        del weights[min(weights, key=lambda each: (weights[each], each == request, each))]
    if weights.total() >= MOST_WEIGHT:
        for each, counted in list(weights.items()):
            if counted > 1:
                weights[each] = counted // 2
            else:
                del weights[each]
