"""Nodes that are kept for gangs from ordinary pods, whatever they are kept for."""

from __future__ import annotations

from dataclasses import dataclass

from app.kube.core.objects import PodRecord
from app.state.autoscaling.new_nodes import NewNodes
from app.state.fairness.starvation import Starvation


@dataclass(frozen=True, slots=True)
class KeptNodes:
    """Those of gangs that have waited too long, and new ones of gangs that asked for nodes."""

    starvation: Starvation
    new_nodes: NewNodes

    def closed_to(self, pod: PodRecord) -> frozenset[str]:
        """The nodes that are closed to an ordinary pod."""
        return self.starvation.closed_to(pod) | self.new_nodes.closed_to(pod)
