"""How many pods like the largest of some each node of a cluster has room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from app.dialects import corral as own
from app.kube.core.objects import NodeRecord, PodRecord
from tests.sim.node_filters import counts, may_be_on, totals_by_node
from tests.sim.oracle import Cluster, Taken


@dataclass(frozen=True, slots=True)
class Places:
    """Pods that each node has room for, by name."""

    of: Mapping[str, int]

    @property
    def total(self) -> int:
        """Of all nodes."""
        return sum(self.of.values())

    def inside(self, nodes: Collection[str]) -> Places:
        """Those of some nodes."""
        return Places({name: pods for name, pods in self.of.items() if name in nodes})

    def first(self, pods: int) -> Places:
        """So many of them, on the first nodes."""
        found: dict[str, int] = {}
        for name, most in sorted(self.of.items()):
            found[name] = min(most, pods)
            pods -= found[name]
        return Places(found)

    def without(self, taken: Places) -> Places:
        """Those that are left when some are taken."""
        return Places({name: pods - taken.of.get(name, 0) for name, pods in self.of.items()})

    def used(self, left: Places) -> dict[str, int]:
        """How many are taken of each node."""
        taken = self.without(left).of
        return {name: pods for name, pods in sorted(taken.items()) if pods}


def places_for(api: Cluster, pods: Collection[PodRecord], taken: Taken) -> Places:
    """The places that all of these pods may have, each as large as the largest of them."""
    largest = Counter[str]()
    for pod in pods:
        largest |= Counter(dict(pod.request))
    runs = [(pod.node, pod.request) for pod in api.list("Pod") if counts(pod)]
    totals = totals_by_node([*runs, *taken.amounts])
    return Places(
        {
            name: _times(node, totals.get(name, {}), largest)
            for name, node in api.nodes.items()
            if name not in taken.nodes and all(may_be_on(node, pod.shape) for pod in pods)
        }
    )


def is_ready(pod: PodRecord) -> bool:
    """Whether nothing but our own gate keeps the pod back."""
    return all(gate == own.GATE for gate in pod.gates)


def _times(node: NodeRecord, taken: Mapping[str, int], request: Mapping[str, int]) -> int:
    has = dict(node.allocatable)
    left = (
        (has.get(resource, 0) - taken.get(resource, 0)) // amount
        for resource, amount in request.items()
    )
    return max(min(left), 0)
