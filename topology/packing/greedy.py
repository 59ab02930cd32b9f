"""Fills nodes with runs of equal pods: the attempt that most questions need no other after.

One shape after the other goes to the nodes with the least left that take a pod of it, all of it
that fits. What is left of a node is one number: its resources, each weighted by how scarce it is.
Which shape comes first and how much scarcity matters are tried in several combinations. Greedy
proves nothing; where it fails, its best attempt says how far it came.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topology.model.resources import Counts
from topology.packing.patterns import CALL, Problem, Work


class Greedy:
    """Runs of equal pods, tightest node first; remembers the attempt that placed most."""

    __slots__ = ("_free", "_left", "_most", "_problem", "_work", "best")

    best: Counts
    """(S, M)."""

    def __init__(self, problem: Problem, work: Work) -> None:
        self._problem = problem
        self._work = work
        self._free = np.repeat(problem.free, problem.nodes, axis=1)
        self._most = np.repeat(problem.most, problem.nodes, axis=1)
        self._left = self._attempts()
        self.best = np.zeros_like(self._most)

    def run(self, *, is_single: bool) -> Counts | None:
        """The first of several orders that places all pods, or None. Shapes: (S, M).

        `is_single`: only the next order is tried; a later call goes on after it.
        """
        needed, cost = int(self._problem.pods.sum()), self._free.size * 4 + 12 * CALL
        for weights, order in self._left:
            if self.best.any() and not self._work.spend(cost * len(order)):
                return None
            placed = self._filled_in_order(weights, order)
            if placed.sum() > self.best.sum():
                self.best = placed
            if self.best.sum() == needed:
                return self.best
            if is_single:
                return None
        return None

    def _attempts(self) -> Iterator[tuple[list[float], list[int]]]:
        """Weights of resources, and shapes in the order in which they are placed."""
        problem = self._problem
        supply = (problem.free.astype(np.float64) * problem.nodes).sum(axis=1).tolist()
        demand = (problem.requests.astype(np.float64).T * problem.pods).sum(axis=1).tolist()
        share = [asked / max(has, 1.0) for asked, has in zip(demand, supply, strict=True)]
        seen = []
        for power in (2.0, 0.0, 8.0, 1.0):
            weights = [s**power / max(has, 1.0) for s, has in zip(share, supply, strict=True)]
            sizes = (problem.requests * np.array(weights)).sum(axis=1)
            by_size = sorted(range(sizes.size), key=lambda shape: (-sizes[shape], shape))
            for first in by_size:
                order = [first, *(shape for shape in by_size if shape != first)]
                seen.append((weights, order))
        yield from sorted(seen, key=lambda attempt: attempt[1] != seen[0][1])

    def _filled_in_order(self, weights: list[float], order: list[int]) -> Counts:
        """Every shape in turn on the nodes with the least left that take a pod of it."""
        left, placed = self._free.copy(), np.zeros_like(self._most)
        for shape in order:
            request = self._problem.requests[shape]
            asked = request.nonzero()[0]
            takes = self._most[shape].copy()
            for resource in asked:
                np.minimum(takes, left[resource] // request[resource], out=takes)
            view = np.zeros(takes.size)
            for resource, weight in enumerate(weights):
                view += left[resource] * weight
            nodes = np.argsort(view, kind="stable")
            ends = np.minimum(np.cumsum(takes[nodes]), self._problem.pods[shape])
            placed[shape, nodes] = np.diff(ends, prepend=0)
            for resource in asked:
                left[resource] -= placed[shape] * request[resource]
        return placed
