"""The answer to /prioritize: whole domains stay free, and so does what others end for.

    domains that have tiers ──▶ how full those around each node are    `topology.fit.utilization`
    levels by label, or none ─▶ where usual pods lose least room       `topology.fragments.growth`
                                then which nodes keep whole domains free   `topology.fit.order`
                                then where the least is left

Where no usual pod loses any room, or no pod requests devices, whole domains alone decide.

A pod of higher priority may take a node that is freed for another one, for which more pods go then.
So it is led elsewhere as long as there is any other node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat

import numpy as np

from app.kube.core.objects import PodRecord
from app.state.answers.room_for_usual import RoomForUsual
from app.state.cache.books import ALL_NODES, Books
from app.state.cache.counting import Vector
from app.state.cache.topology_books import TopologyBooks
from app.state.domains.topologies import Topologies
from app.state.filter_result import Candidates
from app.state.pods.nominations import Nominations
from app.state.settings import EngineSettings
from topology.fit import order, utilization
from topology.fit.use import KnownUse
from topology.fit.utilization import Tier
from topology.model.explicit_tree import has_tier
from topology.model.resources import Counts, Mask, Rows
from topology.model.tree import Tree


@dataclass(slots=True)
class Scoring:
    """Scores nodes for ordinary pods."""

    settings: EngineSettings
    books: Books
    topologies: Topologies
    nominations: Nominations
    room_for_usual: RoomForUsual
    _tree: Tree | None = None  # the one that `_tiers` are of
    _tiers: tuple[Tier, ...] = ()
    _known_use: KnownUse = field(default_factory=KnownUse)

    def scores(self, pod: PodRecord, candidates: Candidates) -> list[int]:
        """Scores 0..10, in the order of `candidates.names()`; 0 for a node that is not known."""
        self.books.refresh()
        self.room_for_usual.catch_up()
        topology, names = self._topology(), candidates.names()
        tiers = self._tiers_of(topology)
        given = self._scored(topology, tiers, self.books.vector(pod.request), names)
        awaited = self.nominations.nodes_of_others(pod.uid)
        if not awaited:
            return given
        return [
            0 if name in awaited else max(1, score)
            for name, score in zip(names, given, strict=True)
        ]

    def _topology(self) -> TopologyBooks:
        """The first whose domains have tiers, else the first that has levels, else all nodes."""
        named = [
            each
            for name, each in self.books.topologies.items()
            if name != ALL_NODES and self.topologies.is_declared(name)
        ]
        tiered = [each for each in named if self.topologies.tiers(each.name)]
        return (*tiered, *named, self.books.topologies[ALL_NODES])[0]

    def unchanged(self, pod: PodRecord, names: Sequence[str]) -> list[int]:
        """The same for nodes by name, and nothing is remembered, rebuilt or brought up to date."""
        topology = self._topology()
        request = self.books.axis.request(pod.request)
        alone = replace(self, _known_use=KnownUse())
        given = alone._scored(topology, self._tiers_in(topology), request, names)
        awaited = self.nominations.nodes_of_others(pod.uid)
        return [0 if name in awaited else score for name, score in zip(names, given, strict=True)]

    def _scored(
        self,
        topology: TopologyBooks,
        tiers: tuple[Tier, ...],
        request: Vector,
        names: Sequence[str],
    ) -> list[int]:
        """The scores of nodes by their names; 0 for one that is not in the tree."""
        slot_of = topology.tree.slot_of
        slots = np.fromiter(map(slot_of.get, names, repeat(-1)), np.intp, len(names))
        found, known = np.zeros(slots.size, dtype=np.int64), _where(slots >= 0)
        found[known] = self._of(topology, tiers, request, slots[known])
        scores: list[int] = found.tolist()
        return scores

    def _of(
        self, topology: TopologyBooks, tiers: tuple[Tier, ...], request: Vector, slots: Rows
    ) -> Counts:
        """The scores of some nodes. Shapes: slots (S,) -> (S,)."""
        tree, capacity, packing = topology.tree, topology.capacity, self.settings.packing
        if not tiers:
            return self._packed(topology, request, slots)
        found = np.zeros(slots.size, dtype=np.int64)
        if packing.for_ordinary_pods:
            weights = packing.weights_by_row(self.books.axis)
            shares = utilization.around_nodes(
                tree, capacity, tiers, request, packing.fading, weights
            )
            has_room = capacity.may_cover(tree.node_level, request)[slots]
            found[has_room] = utilization.points(shares[slots[has_room]], order.SCORE_MAX)
        return found

    def _packed(self, topology: TopologyBooks, request: Vector, slots: Rows) -> Counts:
        """As `_of` where no domain has a tier."""
        tree, capacity = topology.tree, topology.capacity
        used = self._known_use.by_domain(tree, capacity) if tree.nodes else None
        found = order.packing_scores(tree, capacity, request, used)[slots]
        if self.settings.fewest_fragments and slots.size:
            roomy = _where(capacity.may_cover(tree.node_level, request)[slots])
            found[roomy] = self.room_for_usual.scores(capacity, request, slots[roomy], found[roomy])
        return found

    def _tiers_of(self, topology: TopologyBooks) -> tuple[Tier, ...]:
        """The tiers of a topology as its tree is now; none if it has levels by label."""
        if self._tree is not topology.tree:
            self._tree, self._tiers = topology.tree, self._tiers_in(topology)
        return self._tiers

    def _tiers_in(self, topology: TopologyBooks) -> tuple[Tier, ...]:
        tree = topology.tree
        levels = {
            tier: tree.levels.index(key)
            for tier, key in self.topologies.tiers(topology.name).items()
        }
        return tuple(Tier(level, tier, has_tier(tree, level)) for tier, level in levels.items())


def _where(holds: Mask) -> Mask | slice:
    """Where it holds: everywhere as a rule, for kube-scheduler's own filters left these nodes."""
    return slice(None) if holds.all() else holds
