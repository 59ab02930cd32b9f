"""Every number of pods that the first nodes can hold: a table that decides whether all fit.

    layer 0 ──patterns of node 0──▶ layer 1 ──patterns of node 1──▶ .. ──▶ layer M: one entry
        ◀────────────────────────────── the way back ──────────────────────────────

It goes from node to node. Entry (a, b, ..) of layer m is the most pods of the last shape that the
first m nodes take beside at least a, b, .. of the others; a node takes one of its patterns, or a
part of it. All entries of a layer are filled at once, as one shift of the layer before per
pattern. Whole, the table decides; in a corridor around what the relaxation says it is small, and
finds a packing or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import typing as npt

from topology.errors import BrokenInvariant
from topology.model.resources import Counts, Rows
from topology.packing.patterns import CALL, Patterns, Problem, Work

_ENTRIES_MAX = 32_000_000  # of one table, kept for the way back; 64 or 128 MB


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Layer m has an entry for every number from low to high of each shape but the last."""

    problem: Problem
    patterns: Patterns
    kinds: Rows
    """(M,): the kind of each node."""
    low: Counts
    """(M + 1, S - 1): what the first m nodes must hold, since the others cannot."""
    high: Counts
    """(M + 1, S - 1): what they can hold at most, or need to."""

    @classmethod
    def whole(cls, problem: Problem, patterns: Patterns) -> Table:
        """The table that decides."""
        kinds = np.repeat(np.arange(problem.nodes.size), problem.nodes)
        alone = np.zeros((kinds.size + 1, problem.pods.size - 1), dtype=np.int64)
        np.cumsum(problem.most[:-1, kinds].T, axis=0, out=alone[1:])
        pods = problem.pods[:-1]
        low = np.maximum(pods - (alone[-1] - alone), 0)
        return cls(problem, patterns, kinds, low, np.minimum(pods, alone))

    def corridor(self, held: Counts, width: int) -> Table:
        """Its part around the pods (S, K) that the nodes of each kind should hold."""
        pods = self.problem.pods[:-1]
        path = np.zeros(self.low.shape)
        np.cumsum((held[:-1] / self.problem.nodes)[:, self.kinds].T, axis=0, out=path[1:])
        middle = np.rint(path / np.maximum(path[-1], 1e-9) * pods).astype(np.int64)
        low = np.clip(middle - width, self.low, self.high)
        high = np.clip(middle + width, self.low, self.high)
        return Table(self.problem, self.patterns, self.kinds, low, high)

    @property
    def entries(self) -> npt.NDArray[np.float64]:
        """(M + 1,): entries of each layer; as floats, since a product may leave an int64."""
        sides = (self.high - self.low + 1).astype(np.float64)
        entries: npt.NDArray[np.float64] = sides.prod(axis=1)
        return entries

    @property
    def cost(self) -> int:
        """Cells touched to fill it."""
        per_kind = np.diff(np.append(self.patterns.first, self.patterns.pods.shape[1]))
        calls = 2 * per_kind[self.kinds] + 8
        return int((calls * (self.entries[1:] + CALL)).sum())

    def is_within(self, work: Work) -> bool:
        """It can be filled with what is left of the budget, and all of its layers kept."""
        return work.has(self.cost) and float(self.entries.sum()) <= _ENTRIES_MAX

    def solve(self) -> Counts | None:
        """A packing (S, M) if the table has one."""
        layers = self._layers()
        if int(layers[-1].item()) < int(self.problem.pods[-1]):
            return None
        return self._way_back(layers)

    def _layers(self) -> list[Counts]:
        most = int((self.problem.most[-1] * self.problem.nodes).sum())
        # An entry that nothing leads to stays below 0, whatever is added to it.
        number = np.int16 if most < 2**14 else np.int32 if most < 2**30 else np.int64
        layer: Any = np.zeros((1,) * self.low.shape[1], dtype=number)
        layers = [layer]
        kind, ways, reach = -1, [], self.low[0]
        for node, next_kind in enumerate(self.kinds.tolist()):
            if next_kind != kind:
                kind, pods = next_kind, self.patterns.of_kind(next_kind)
                ways, reach = pods.T.tolist(), pods[:-1].max(axis=1)
            layer = self._next(layer, node, ways, reach, -1 - most)
            layers.append(layer)
        return layers

    def _next(
        self, before: Any, node: int, ways: list[list[int]], reach: Counts, unreached: int
    ) -> Any:
        """The layer after one more node: the best of its patterns, entry by entry."""
        low, high = self.low[node + 1], self.high[node + 1]
        shift = low - self.low[node]
        below = np.maximum(reach - shift, 0)
        above = np.maximum(high - self.high[node], 0)
        padded = np.full(below + before.shape + above, unreached, dtype=before.dtype)
        core = tuple(
            slice(b, b + size) for b, size in zip(below.tolist(), before.shape, strict=True)
        )
        padded[core] = before
        for axis, b in enumerate(below.tolist()):
            # Asking for fewer than the lowest entry is met by the lowest entry.
            head = (slice(None),) * axis
            padded[(*head, slice(0, b))] = padded[(*head, slice(b, b + 1))]
        start, size = (below + shift).tolist(), (high - low + 1).tolist()
        layer = np.full(size, unreached, dtype=before.dtype)
        added = np.empty_like(layer)
        for way in ways:
            source = tuple(
                slice(s - w, s - w + n) for s, w, n in zip(start, way, size, strict=False)
            )
            np.add(padded[source], way[-1], out=added)
            np.maximum(layer, added, out=layer)
        return layer

    def _way_back(self, layers: list[Counts]) -> Counts:
        """The pods of every node on a way to the last entry."""
        placed = np.zeros((self.problem.pods.size, self.kinds.size), dtype=np.int64)
        *need, last = self.problem.pods.tolist()
        lows, highs = self.low.tolist(), self.high.tolist()
        for node in range(self.kinds.size - 1, -1, -1):
            low, high = lows[node], highs[node]
            for way in self.patterns.of_kind(int(self.kinds[node])).T.tolist():
                rest = [max(n - w, least) for n, w, least in zip(need, way, low, strict=False)]
                if any(r > most for r, most in zip(rest, high, strict=True)):
                    continue
                entry = tuple(r - least for r, least in zip(rest, low, strict=True))
                if int(layers[node][entry]) + way[-1] >= last:
                    break
            else:
                raise BrokenInvariant(f"entry {need} of layer {node + 1} has no way to it")
            taken = min(way[-1], last)
            placed[:, node] = [*(n - r for n, r in zip(need, rest, strict=True)), taken]
            need, last = rest, last - taken
        return placed
