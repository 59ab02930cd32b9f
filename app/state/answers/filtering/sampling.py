"""Whether candidates are a sample: kube-scheduler stops looking once it has found so many nodes.

The next try begins at another node, so what is missing from one sample may be in the next. Of a
pod that names its nodes it looks at no others, and takes the sample of these.
Source: kubernetes v1.36 pkg/scheduler/schedule_one.go, numFeasibleNodesToFind;
framework/plugins/nodeaffinity/node_affinity.go, PreFilter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.kube.core.objects import Shape, Term
from app.state.cache.books import Books
from app.state.cache.eligibility.one_node import NODE_NAME
from app.state.settings import EngineSettings

SAMPLED_FROM = 100  # nodes below which kube-scheduler never samples


@dataclass(frozen=True, slots=True)
class Sampling:
    """Knows the length of a sample by the profile's percentageOfNodesToScore."""

    settings: EngineSettings
    books: Books

    def is_sample(self, offered: int, shape: Shape) -> bool:
        """Whether so many candidates are as many as kube-scheduler looks for at most.

        `shape`: the pod's, as kube-scheduler has it.
        """
        if offered < SAMPLED_FROM:
            return False
        nodes = self._looked_at(shape.terms)
        wanted = self.settings.percentage_of_nodes_to_score or max(50 - nodes // 125, 5)
        sample = max(nodes * wanted // 100, SAMPLED_FROM)
        return offered == sample < nodes

    def _looked_at(self, terms: Sequence[Term]) -> int:
        """How many nodes kube-scheduler has to look at: all, or those that every term names."""
        known = self.books.nodes
        named = [_named(term) for term in terms]
        if not named or any(each is None for each in named):
            return len(known)
        return len(known.keys() & frozenset[str]().union(*filter(None, named)))


def _named(term: Term) -> frozenset[str] | None:
    """The nodes that a term names; None: it names none."""
    names = [
        frozenset(line.values)
        for line in term.fields
        if (line.key, line.operator) == (NODE_NAME, "In")
    ]
    return frozenset.intersection(*names) if names else None
