"""What kube-scheduler counts on each node: bound pods, assumed ones, and nominated ones.

A nominated pod counts for pods of no higher priority: what was evicted for it is not for them.
Source: kubernetes v1.36 pkg/scheduler/backend/queue/nominator.go, framework/runtime/framework.go
RunFilterPluginsWithNominatedPods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from app.kube.core.objects import Amounts, PodRecord
from tests.sim.node_filters import lacks, may_be_on, totals_by_node
from tests.sim.watch import Stream


@dataclass(slots=True)
class Cache:
    """One scheduler's memory, of pods by uid."""

    _node_stream: Stream
    bound: dict[str, PodRecord] = field(default_factory=dict)  # that take room
    assumed: dict[str, tuple[PodRecord, str]] = field(default_factory=dict)
    nominated: dict[str, tuple[PodRecord, str]] = field(default_factory=dict)

    @property
    def nodes(self) -> dict[str, Any]:
        """What the watch has told of nodes, by name."""
        return self._node_stream.mirror

    def fitting(self, pod: PodRecord) -> list[str]:
        """The nodes that pass all filters."""
        taken = totals_by_node(
            [
                *((each.node, each.request) for each in self.bound.values()),
                *self.expected(pod),
            ]
        )
        return [
            name
            for name, node in self.nodes.items()
            if may_be_on(node, pod.shape) and not lacks(node, taken.get(name, {}), pod.request)
        ]

    def expected(self, pod: PodRecord) -> Iterator[tuple[str, Amounts]]:
        """What counts on nodes for this pod and is bound to none: assumed and nominated pods."""
        for each, node in (*self.assumed.values(), *self._before(pod)):
            yield node, each.request

    def on(self, name: str) -> Iterator[PodRecord]:
        """The pods on a node, whether bound or assumed."""
        for each in self.bound.values():
            if each.node == name:
                yield each
        for each, node in self.assumed.values():
            if node == name:
                yield each

    def fits(self, pod: PodRecord, name: str, without: Collection[str]) -> bool:
        """Whether a node would pass all filters without the pods of these uids."""
        node = self.nodes.get(name)
        if node is None or not may_be_on(node, pod.shape):
            return False
        there = [(name, each.request) for each in self.on(name) if each.uid not in without]
        there += [(name, each.request) for each, on in self._before(pod) if on == name]
        return not lacks(node, totals_by_node(there).get(name, {}), pod.request)

    def nominate(self, pod: PodRecord, node: str) -> None:
        """Count a pod on a node from now on, or no longer: ""."""
        if node:
            self.nominated[pod.uid] = pod, node
        else:
            self.nominated.pop(pod.uid, None)

    def _before(self, pod: PodRecord) -> Iterator[tuple[PodRecord, str]]:
        """The nominated pods that this one gives way to."""
        for each, node in self.nominated.values():
            if each.priority >= pod.priority and each.uid != pod.uid:
                yield each, node
