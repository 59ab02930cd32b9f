"""What one node takes at once, and what all nodes together can therefore hold.

`Problem` is a question to `packing` in the form that every attempt works on, and `Work` is what
they may still spend on it. Nodes that take the same pods are of one *kind*, and a kind's
*patterns* are the pods that one node of it takes at once, of which none can be added to.

The relaxation (Lagrange's) gives each shape a weight. No node holds more than its best pattern
weighs, so a demand heavier than all best patterns together cannot be met: weights are integers,
so that is a proof. The patterns that come up as weights change, averaged, tell roughly how many
pods of each shape every node should hold, which is where `table` looks first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from topology.model.resources import Counts, Rows

CALL = 2_000
"""Cells one array operation costs beside its own."""
_GRID_MAX = 1_000_000  # combinations looked at to list patterns; tens of MB
_ROUNDS = 96  # of the relaxation
_WEIGHT = 2**40  # of the whole demand: 100,000 nodes' worth still fits an int64


@dataclass(slots=True)
class Work:
    """What is left of the budget."""

    cells: int
    is_short: bool = False
    """Something was left out because it would have cost more than is left."""

    def spend(self, cells: int) -> bool:
        """Takes so many cells, if there are as many."""
        if not self.has(cells):
            return False
        self.cells -= cells
        return True

    def has(self, cells: int) -> bool:
        """Whether there are so many cells."""
        if cells > self.cells:
            self.is_short = True
        return cells <= self.cells


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A question with equal shapes merged, useless nodes gone and alike nodes together.

    Shapes are in ascending order of pods; nodes are in order of kind, then slot.
    """

    free: Counts
    """(R, K) >= 0, in units of each resource's greatest common divisor."""
    requests: Counts
    """(S, R), in the same units."""
    most: Counts
    """(S, K): pods of one shape that a node takes alone, at most the pods asked for."""
    nodes: Counts
    """(K,): how many nodes are of each kind."""
    pods: Counts
    """(S,), each >= 1."""
    slots: Rows
    """(M,): the nodes left, kind by kind."""
    asked: tuple[tuple[tuple[int, int], ...], ...]
    """Per shape, the (shape, pods) of the question that it stands for."""
    shape: tuple[int, int]
    """(S, N) of the question."""

    def spread(self, counts: Counts) -> Counts:
        """Pods by shape and node as the question has them. Shapes: (S, M) -> (S, N)."""
        spread = np.zeros(self.shape, dtype=np.int64)
        for row, members in zip(counts, self.asked, strict=True):
            ends, begin = np.cumsum(row), 0
            for shape, pods in members:
                reached = np.clip(ends, begin, begin + pods)
                spread[shape, self.slots] = reached - np.clip(ends - row, begin, begin + pods)
                begin += pods
        return spread


def pods_alone(free: Counts, requests: Counts) -> Counts:
    """Pods of each shape that each node takes alone. Shapes: (R, N), (S, R) -> (S, N)."""
    most = np.full((len(requests), free.shape[1]), np.iinfo(np.int64).max)
    for shape, request in enumerate(requests):
        for resource in request.nonzero()[0]:
            np.minimum(most[shape], free[resource] // request[resource], out=most[shape])
    return most


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """What one node of each kind takes at once: all that cannot be added to."""

    pods: Counts
    """(S, T)."""
    first: Rows
    """(K,): index of each kind's first pattern."""

    def of_kind(self, kind: int) -> Counts:
        """Shapes: (S, patterns of one kind)."""
        end = self.first[kind + 1] if kind + 1 < self.first.size else self.pods.shape[1]
        return self.pods[:, self.first[kind] : end]


def patterns_of(problem: Problem, work: Work) -> Patterns | None:
    """The patterns of every kind, by counting through all shapes but the last; None: too many."""
    requests, most = problem.requests, problem.most
    shapes, kinds = most.shape
    grid = [prod(column) for column in (most[:-1] + 1).T.tolist()]
    cells = sum(grid)
    if cells > _GRID_MAX or not work.spend(cells * requests.size * 4):
        return None
    kind = np.repeat(np.arange(kinds), grid)
    digits = np.arange(cells) - np.repeat(np.cumsum(grid) - grid, grid)
    pods = np.zeros((shapes, cells), dtype=np.int64)
    for shape in range(shapes - 1):
        digits, pods[shape] = np.divmod(digits, most[shape, kind] + 1)
    left = problem.free[:, kind]
    for shape in range(shapes - 1):
        left -= requests[shape][:, None] * pods[shape]
        np.maximum(left, -1, out=left)
    fits = np.flatnonzero((left >= 0).all(axis=0))
    kind, pods, left = kind[fits], pods[:, fits], left[:, fits]
    pods[-1] = np.minimum(pods_alone(left, requests[-1:])[0], most[-1, kind])
    left -= requests[-1][:, None] * pods[-1]
    is_maximal = np.ones(kind.size, dtype=np.bool_)
    for shape in range(shapes):
        may_add = (left >= requests[shape][:, None]).all(axis=0)
        is_maximal &= ~(may_add & (pods[shape] < most[shape, kind]))
    kind, pods = kind[is_maximal], np.ascontiguousarray(pods[:, is_maximal])
    return Patterns(pods, np.searchsorted(kind, np.arange(kinds)))


def relaxed(problem: Problem, patterns: Patterns, work: Work) -> tuple[bool, Counts]:
    """Whether no packing can be, and the pods of each shape that all nodes of a kind should hold.

    Weights rise for shapes that the best patterns hold too little of, and fall for the others.
    Shapes: -> (S, K), sums over the rounds, so in no particular unit.
    """
    shapes, total = patterns.pods.shape
    held = np.zeros(problem.most.shape, dtype=np.int64)
    importance = [1.0 / shapes] * shapes
    indices = np.arange(total)
    per_kind = np.diff(np.append(patterns.first, total))
    for turn in range(_ROUNDS):
        if not work.spend(total * (shapes + 6) + 12 * CALL):
            break
        weights = np.array(
            [
                int(_WEIGHT * part) // int(pods)
                for part, pods in zip(importance, problem.pods, strict=True)
            ]
        )
        worth = (weights[:, None] * patterns.pods).sum(axis=0)
        best = np.maximum.reduceat(worth, patterns.first)
        if int((best * problem.nodes).sum()) < int((weights * problem.pods).sum()):
            return True, held
        is_best = worth == np.repeat(best, per_kind)
        chosen = np.minimum.reduceat(np.where(is_best, indices, total), patterns.first)
        holds = patterns.pods[:, chosen] * problem.nodes
        if turn >= _ROUNDS // 4:
            held += holds
        step = 0.5 / (1.0 + turn / 4.0)
        covered = [
            int(h) / int(pods) for h, pods in zip(holds.sum(axis=1), problem.pods, strict=True)
        ]
        raised = [
            part * (1.0 + step * min(max(1.0 - cover, -1.0), 1.0))
            for part, cover in zip(importance, covered, strict=True)
        ]
        importance = [part / sum(raised) for part in raised]
    return False, held
