"""Domains kept free for gangs that have waited too long.

Smaller gangs can overtake a gang that needs a whole rack for ever. After `starvation_seconds` it
earmarks the domain that is likely to be free first: of those that could take all of it, the one
where most of it fits already. No gang behind it in the queue is placed there, and no ordinary pod
that requests what the gang needs, but for pods of a higher priority and pods of DaemonSets, which
belong to the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.cache.books import Books, TopologyBooks
from app.state.cache.eligibility import Eligibility
from app.state.gang.gang import Gang
from app.state.plan.planner import Planner
from app.state.plan.pod_sets import PodSetMembers
from app.state.plan.queue import in_order, rank_in_queue
from app.state.settings import EngineSettings
from topology.fit import fit
from topology.model.capacity import Capacity
from topology.model.resources import PODS, Counts, Mask
from topology.model.tree import Tree

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Earmark:
    """The nodes kept for one gang, and which pods they are closed to."""

    nodes: frozenset[str]
    priority: int
    scarce: frozenset[str]  # pods that request any of these are kept off

    def bars(self, pod: PodRecord) -> bool:
        """Whether these nodes are closed to an ordinary pod."""
        if pod.priority > self.priority or (pod.owner and pod.owner.kind == "DaemonSet"):
            return False
        return any(resource in self.scarce for resource, _ in pod.request)


@dataclass(slots=True)
class Starvation:
    """The earmarks by gang; at most `earmarks_per_namespace` in one namespace."""

    settings: EngineSettings
    books: Books
    eligibility: Eligibility
    planner: Planner
    of: dict[GangKey, Earmark] = field(default_factory=dict)

    def review(self, waiting: Iterable[Gang], now: float) -> frozenset[str]:
        """Give and end earmarks; returns the nodes whose earmark ended or changed."""
        limit = now - self.settings.starvation_seconds
        starving = in_order(gang for gang in waiting if gang.complete_at <= limit)
        before = dict(self.of)
        keys = {gang.key for gang in starving}
        for key in [key for key in self.of if key not in keys]:
            del self.of[key]
        held = Counter(key.namespace for key in self.of)
        for gang in starving:
            if gang.key in self.of or held[gang.key.namespace] >= self._most:
                continue
            try:
                earmark = self._chosen(gang)
            except Exception as error:
                self.planner.on_fault(f"earmark for gang {gang.key}", error)
                continue
            if earmark is not None:
                self.of[gang.key] = earmark
                held[gang.key.namespace] += 1
        rank = {gang.key: rank_in_queue(gang) for gang in starving}
        self.planner.earmarked = {key: (each.nodes, rank[key]) for key, each in self.of.items()}
        return NOTHING.union(
            *(each.nodes for key, each in before.items() if self.of.get(key) is not each)
        )

    def nodes(self) -> frozenset[str]:
        """Every earmarked node."""
        return NOTHING.union(*(earmark.nodes for earmark in self.of.values()))

    def closed_to(self, pod: PodRecord) -> frozenset[str]:
        """The nodes that are closed to an ordinary pod."""
        if not self.of:
            return NOTHING
        return NOTHING.union(*(each.nodes for each in self.of.values() if each.bars(pod)))

    @property
    def _most(self) -> int:
        return self.settings.earmarks_per_namespace

    def _chosen(self, gang: Gang) -> Earmark | None:
        """The nodes where most of the gang fits now, of those that could take all of it."""
        viewed = self.planner.view(gang)
        if viewed is None:
            return None
        pod_sets, topology = viewed
        taken = self.nodes()
        is_left = np.array([name not in taken for name in topology.tree.nodes], dtype=np.bool_)
        fits = [self._fit(pod_set, topology, is_left) for pod_set in pod_sets]
        levels = [
            topology.levels.index(pod_set.constraint.required)
            for pod_set in pod_sets
            if pod_set.constraint.required
        ]
        slots = _domain(fits, topology.tree, min(levels)) if levels else _fewest(fits)
        if slots is None:
            return None
        asked = {resource for pod_set in pod_sets for resource, _ in pod_set.shaped[0]}
        devices = {resource for resource in asked if "/" in resource}
        return Earmark(
            frozenset(topology.tree.nodes[slot] for slot in slots),
            gang.priority,
            frozenset(devices or asked - {PODS}),
        )

    def _fit(self, pod_set: PodSetMembers, topology: TopologyBooks, is_left: Mask) -> _Fit:
        request = self.books.vector(pod_set.shaped[0])
        rows = [row for row, amount in enumerate(request) if amount]
        asked = [request[row] for row in rows]
        capacity = topology.capacity
        allowed = self.eligibility.mask(pod_set.shaped[1], topology.tree, self.books.nodes)
        may_host = allowed & is_left & capacity.is_open
        now = fit.pods_per_node(capacity.free(rows), asked)
        empty = fit.pods_per_node([_row(capacity, row) for row in rows], asked)
        return _Fit(
            len(pod_set.unplanned), np.where(may_host, now, 0), np.where(may_host, empty, 0)
        )


@dataclass(frozen=True, slots=True)
class _Fit:
    """Pods of one role: how many to place, fit on each node now, and would fit on it empty."""

    pods: int
    now: Counts
    empty: Counts


def _domain(fits: list[_Fit], tree: Tree, level: int) -> Iterable[int] | None:
    """The slots of the domain that lacks the least, ties to the first; None if none could do."""
    if not tree.nodes:
        return None
    fitting = np.zeros(len(tree.starts[level]), dtype=np.int64)
    is_large_enough = np.ones(fitting.size, dtype=np.bool_)
    for each in fits:
        is_large_enough &= np.add.reduceat(each.empty, tree.starts[level]) >= each.pods
        fitting += np.minimum(np.add.reduceat(each.now, tree.starts[level]), each.pods)
    if not is_large_enough.any():
        return None
    chosen = int(np.where(is_large_enough, fitting, -1).argmax())
    slots = tree.slots(level, chosen)
    return range(slots.start, slots.stop)


def _fewest(fits: list[_Fit]) -> Iterable[int] | None:
    """The slots with most room now, as few as could take everything; None if all cannot."""
    chosen: set[int] = set()
    for each in fits:
        order = np.lexsort((-each.empty, -each.now))
        enough = np.searchsorted(np.cumsum(each.empty[order]), each.pods) + 1
        if enough > order.size:
            return None
        chosen.update(order[:enough].tolist())
    return sorted(chosen)


def _row(capacity: Capacity, row: int) -> Counts:
    """What the nodes have of a resource; zeros for one that no node ever had."""
    if row < len(capacity.allocatable):
        amounts: Counts = capacity.allocatable[row]
        return amounts
    return np.zeros(len(capacity.tree.nodes), dtype=np.int64)
