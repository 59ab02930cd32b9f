"""Whether candidates are a sample: kube-scheduler stops looking once it has found so many nodes.

The next try begins at another node, so what is missing from one sample may be in the next.
Source: kubernetes v1.36 pkg/scheduler/schedule_one.go, numFeasibleNodesToFind.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.state.cache.books import Books
from app.state.settings import EngineSettings

SAMPLED_FROM = 100  # nodes below which kube-scheduler never samples


@dataclass(frozen=True, slots=True)
class Sampling:
    """Knows the length of a sample by the profile's percentageOfNodesToScore."""

    settings: EngineSettings
    books: Books

    def is_sample(self, offered: int) -> bool:
        """Whether so many candidates are as many as kube-scheduler looks for at most."""
        nodes = len(self.books.nodes)
        wanted = self.settings.percentage_of_nodes_to_score or max(50 - nodes // 125, 5)
        sample = max(nodes * wanted // 100, SAMPLED_FROM)
        return nodes >= SAMPLED_FROM and offered == sample < nodes
