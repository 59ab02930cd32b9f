"""The nodes kept free for one gang, and the pods that they are closed to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from app.kube.core.objects import Amounts, PodRecord
from app.state.pods.arrivals import WaitingPod
from topology.model.resources import PODS


@dataclass(frozen=True, slots=True)
class Earmark:
    """The nodes kept for one gang, which pods they are closed to, and for how long."""

    nodes: frozenset[str]
    priority: int
    scarce: frozenset[str]  # pods that request any of these are kept off
    since: float
    until: float
    free_at: float = -math.inf
    """When all of them are likely to be free; -infinity: nothing says when."""

    @property
    def is_expected(self) -> bool:
        """Whether it is likely to become free at some time."""
        return self.free_at > -math.inf

    def opens_more_than(self, other: Earmark) -> bool:
        """Whether pods may pass this one that the other one keeps off."""
        return not other.nodes <= self.nodes or self.free_at > other.free_at

    def bars(self, pod: PodRecord | WaitingPod) -> bool:
        """Whether these nodes are closed to an ordinary pod.

        Pods of DaemonSets are ordinary: an owner is what the pod says, and those that a node needs
        have a higher priority.
        """
        return pod.priority <= self.priority and any(
            resource in self.scarce for resource, _ in pod.request
        )


def scarce_in(requests: Iterable[Amounts]) -> frozenset[str]:
    """What an earmark for such pods keeps: the devices that they request, else all of it."""
    asked = {resource for request in requests for resource, _ in request}
    devices = {resource for resource in asked if "/" in resource}
    return frozenset(devices or asked - {PODS})
