"""How many pods of each kind every domain still takes, kept up to date while a walk assumes pods.

One division per kind and node at the start; then a kind that is asked for costs the nodes that
changed since it was. Each number is what a domain takes if it takes nothing else: never too few, so
that what exceeds it certainly does not fit.
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

    __slots__ = ("_by_kind", "_changed", "_seen", "_view")

    def __init__(self, view: View, kinds: Iterable[Kind]) -> None:
        self._view = view
        self._changed: list[Rows] = []
        self._seen: dict[Kind, int] = {}  # how many of these changes each kind has taken in
        self._by_kind: dict[Kind, list[Counts]] = {}
        for kind in kinds:
            if kind not in self._by_kind:
                pods = self._pods(kind, None)
                self._by_kind[kind] = [
                    np.add.reduceat(pods, starts) if starts.size else pods
                    for starts in view.tree.starts
                ]
                self._seen[kind] = 0

    def pods(self, kind: Kind, level: int) -> Counts:
        """What each domain of a level takes of one kind. Shapes: (D,)."""
        by_level, seen = self._by_kind[kind], self._seen[kind]
        if seen < len(self._changed):
            self._seen[kind] = len(self._changed)
            self._renew(kind, by_level, np.unique(np.concatenate(self._changed[seen:])))
        return by_level[level]

    def note(self, slots: Rows) -> None:
        """Note that what the view assumes on some nodes has changed.

        They are counted anew for the kinds that are asked for: most of what a walk assumes it takes
        back before it asks for another kind.
        """
        self._changed.append(slots)

    def _renew(self, kind: Kind, by_level: list[Counts], slots: Rows) -> None:
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
