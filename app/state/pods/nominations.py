"""Pods that kube-scheduler has nominated for a node: it evicts others there to make room for them.

Until such a pod is bound, its node is free on the books. Pods of no higher priority have to leave
it alone: kube-scheduler itself counts the nominated pod as being there.
Source: kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go, addGENominatedPods.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from app.kube.core.objects import Amounts, PodRecord


@dataclass(frozen=True, slots=True)
class Nomination:
    """One pod on its way to a node."""

    node: str
    request: Amounts
    priority: int


@dataclass(slots=True)
class Nominations:
    """The nominations of all pods, whichever scheduler made them; by pod uid."""

    _by_uid: dict[str, Nomination] = field(default_factory=dict)
    _expected: dict[str, Nomination] = field(default_factory=dict)
    """Those that follow from an answer of ours and have not come yet, or have."""

    def put(self, pod: PodRecord) -> str:
        """Learn of a pod; returns the node it is nominated for no longer, "" if there is none."""
        before = self._by_uid.pop(pod.uid, None)
        is_waiting = not (pod.node or pod.is_finished or pod.is_terminating)
        if is_waiting and pod.nominated_node:
            self._by_uid[pod.uid] = Nomination(pod.nominated_node, pod.request, pod.priority)
        return before.node if before and before != self._by_uid.get(pod.uid) else ""

    def drop(self, uid: str) -> str:
        """Forget a pod; returns the node it was nominated for, "" if there is none."""
        before = self._by_uid.pop(uid, None)
        return before.node if before else ""

    def expect(self, uid: str, nomination: Nomination | None) -> None:
        """Count a nomination before the watch shows it; None: do so no longer."""
        if nomination is None:
            self._expected.pop(uid, None)
        else:
            self._expected[uid] = nomination

    def has(self, uid: str) -> bool:
        """Whether the watch shows that a pod is nominated for some node."""
        return uid in self._by_uid

    def of(self, uid: str) -> Nomination | None:
        """The nomination of a pod as the watch shows it."""
        return self._by_uid.get(uid)

    def above(self, priority: int, *known: Container[str]) -> Iterator[Nomination]:
        """Those that pods of this priority give way to, but for pods in one of `known`."""
        for uid, each in (self._expected | self._by_uid).items() if self else ():
            if each.priority >= priority and not any(uid in some for some in known):
                yield each

    def on(self, node: str, priority: int, *known: Container[str]) -> list[Amounts]:
        """What those of `above` request that are nominated for this node."""
        return [each.request for each in self.above(priority, *known) if each.node == node]

    def __bool__(self) -> bool:
        return bool(self._by_uid or self._expected)
