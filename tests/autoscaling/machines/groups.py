"""Groups of like nodes, as a test describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.cluster import HOSTNAME, Object

Labels = Mapping[str, str]


@dataclass(frozen=True)
class NodeGroup:
    """A node group of cluster-autoscaler, or a NodePool of Karpenter.

    max: nodes at a time, those that are on their way included. min: none is removed below that,
    which is no reason to make one.
    labels: of every node from its registration on. late_labels: what the nth node gets
    `label_seconds` later, in turn: a group of one rack has one entry, one that spans racks several.
    tags: the labels that are known while the group has no node; None: `labels`.
    *_seconds: from the order to the registration; the others from the registration on. GPUs and
    other extended resources are reported as 0 until `resource_seconds` have passed.
    late_seconds: what the nth machine takes longer to register than the group does, in turn.
    stock: how many the cloud has at a time; what is ordered beyond that never comes.
    sizes, values: of a NodePool only: what a node may have, cheapest first (`allocatable` alone if
    there are none), and the values of labels that Karpenter may choose.
    """

    name: str
    max: int
    allocatable: Mapping[str, str] = field(default_factory=dict)
    labels: Labels = field(default_factory=dict)
    late_labels: tuple[Labels, ...] = ()
    tags: Labels | None = None
    taints: tuple[Object, ...] = ()
    register_seconds: float = 30.0
    ready_seconds: float = 10.0
    label_seconds: float = 0.0
    resource_seconds: float = 0.0
    stock: int | None = None
    late_seconds: tuple[float, ...] = ()
    min: int = 0
    sizes: tuple[Mapping[str, str], ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def known_labels(self) -> Labels:
        """Those of the template while there is no node to copy."""
        return self.labels if self.tags is None else self.tags

    def labels_of(self, number: int) -> Labels:
        """What the nth node is given late."""
        return self.late_labels[number % len(self.late_labels)] if self.late_labels else {}

    def register_seconds_of(self, number: int) -> float:
        """From the order of the nth machine to its registration."""
        late = self.late_seconds[number % len(self.late_seconds)] if self.late_seconds else 0.0
        return self.register_seconds + late


def is_extended(resource: str) -> bool:
    """Whether a device plugin reports it."""
    return "/" in resource


def node_body(
    name: str, labels: Labels, taints: tuple[Object, ...], allocatable: Mapping[str, str]
) -> Object:
    """A node as its kubelet registers it: not ready, and without its devices."""
    amounts = {key: "0" if is_extended(key) else value for key, value in allocatable.items()}
    not_ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady"}
    spec: Object = {"taints": [dict(each) for each in taints]} if taints else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, HOSTNAME: name}},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [not_ready]},
    }
