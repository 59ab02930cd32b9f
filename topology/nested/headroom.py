"""How many pods of each kind every domain still takes, kept up to date while a walk assumes pods.

One division per kind and node at the start; then a change costs the nodes that changed. Each
number is what a domain takes if it takes nothing else: never too few, so that what exceeds it
certainly does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from topology.fit import fit
from topology.fit.view import View
from topology.model.resources import Counts, Rows
from topology.nested.parts import Kind


class Headroom:
    """Pods per domain and kind, of all levels."""

    __slots__ = ("_by_kind", "_view")

    def __init__(self, view: View, kinds: Iterable[Kind]) -> None:
        self._view = view
        self._by_kind: dict[Kind, list[Counts]] = {}
        for kind in kinds:
            if kind not in self._by_kind:
                pods = self._pods(kind, None)
                self._by_kind[kind] = [
                    np.add.reduceat(pods, starts) if starts.size else pods
                    for starts in view.tree.starts
                ]

    def pods(self, kind: Kind, level: int) -> Counts:
        """What each domain of a level takes of one kind. Shapes: (D,)."""
        return self._by_kind[kind][level]

    def renew(self, slots: Rows) -> None:
        """Counts some nodes anew, after what the view assumes there has changed."""
        for kind, by_level in self._by_kind.items():
            change = self._pods(kind, slots) - by_level[-1][slots]
            if change.any():
                for domain_of, pods in zip(self._view.tree.domain_of, by_level, strict=True):
                    np.add.at(pods, domain_of[slots], change)

    def _pods(self, kind: Kind, slots: Rows | None) -> Counts:
        """What nodes take of one kind. Shapes: (N,) or (len(slots),)."""
        request, shape = kind
        asked = [row for row, amount in enumerate(request) if amount]
        free = self._view.free(asked, slots)
        pods = fit.pods_per_node(free, [request[row] for row in asked])
        may_host = self._view.may_host(shape)
        pods[~(may_host if slots is None else may_host[slots])] = 0
        return pods
