"""How full the domains around a node are, for one ordinary pod: the fuller, the better.

    tier 2   |------- 0.4 -------|  1.0      1.0: the node is in no domain of this tier
    tier 1   |-- 0.6 --|-- 0.2 --|  1.0
    weight of tier 2 = fading x weight of tier 1

    domains of a tier ──utilization──▶ shares[D] ─┐
    the same of every tier ───────────────────────┴─around_nodes──▶ shares[N] ──points──▶ 0..10

Of a domain counts what its open nodes offer, and what of that is used or held, with the pod. Sums
are of integers and points are made of millionths, so no rounding of a float decides.
Source: volcano pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go (v1.14),
batchNodeOrderFnForNormalPods, getPodHyperNodeBinPackingScore.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import typing as npt

from topology.model.capacity import Capacity
from topology.model.resources import PODS_ROW, Counts, Mask
from topology.model.tree import Tree

Shares = npt.NDArray[np.float64]
"""0 to 1, one per node or domain."""

NOWHERE = 1.0  # the share of a tier that a node has no domain of: such nodes are filled first
_PARTS = 1_000_000  # of a whole: finer than one pod, coarser than what rounding does to a float


@dataclass(frozen=True, slots=True)
class Tier:
    """A level of a tree whose domains have a tier."""

    level: int
    number: int
    """Smaller is closer together."""
    is_domain: Mask
    """(D,) False: a node, or a narrower domain, that stands for itself on this level."""


def tier_weights(tiers: Sequence[int], fading: float) -> list[float]:
    """The weight of each tier: `fading` to the power of how much wider than the narrowest it is.

    The largest one is 1, whatever the tiers are numbered. With 0 only the narrowest tier counts.
    """
    if not tiers:
        return []
    heaviest = min(tiers) if fading <= 1 else max(tiers)
    return [float(fading) ** (tier - heaviest) for tier in tiers]


def weights_of(rows: Iterable[int], weights: Mapping[int, int] | None) -> dict[int, int]:
    """The weights of those rows that count, in their order; None: all alike but the pods' slots."""
    if weights is None:
        return {row: 1 for row in rows if row != PODS_ROW}
    return {row: weights[row] for row in rows if row in weights}


def utilization(
    tree: Tree,
    capacity: Capacity,
    level: int,
    request: Sequence[int],
    weights: Mapping[int, int] | None = None,
) -> Shares:
    """How full each domain is with the pod: the weighted mean over the resources that count.

    0 where a domain has less of one of them than the pod requests, also if that weighs nothing;
    and 0 if none counts. `weights`: by resource row, of those that count among the requested ones.
    Shapes: request, any number of rows -> (D,), of a tree with nodes.
    """
    starts = tree.starts[level]
    counted = weights_of((row for row, amount in enumerate(request) if amount), weights)
    total, rows = sum(counted.values()), capacity.allocatable.shape[0]
    shares, has_room = np.zeros(starts.size), np.ones(starts.size, dtype=np.bool_)
    for row, weight in counted.items():
        if row >= rows:  # no node has offered any of it yet
            return np.zeros(starts.size)
        offered = _offered(capacity, row)
        has: Counts = np.add.reduceat(offered, starts) if starts.size < offered.size else offered
        free = capacity.free_by_domain[level][row]
        has_room &= free >= request[row]
        used = (has - free).astype(np.float64) + float(request[row])
        shares += used / np.maximum(has, 1) * weight
    return np.where(has_room, shares / max(total, 1), 0.0)


def _offered(capacity: Capacity, row: int) -> Counts:
    """What each open node counts for in `free_by_domain` while it is empty. Shapes: (N,)."""
    clipped = np.clip(capacity.allocatable[row], 0, capacity.counted_max)
    return np.where(capacity.is_open, clipped, 0)


def around_nodes(
    tree: Tree,
    capacity: Capacity,
    tiers: Sequence[Tier],
    request: Sequence[int],
    fading: float,
    weights: Mapping[int, int] | None = None,
) -> Shares:
    """How full the domains around each node are: the mean of its tiers, by `tier_weights`.

    Shapes: request, any number of rows -> (N,).
    """
    shares = np.zeros(len(tree.nodes))
    if not tree.nodes:
        return shares
    by_tier = tier_weights([tier.number for tier in tiers], fading)
    for tier, weight in zip(tiers, by_tier, strict=True):
        of_domain = utilization(tree, capacity, tier.level, request, weights)
        counted = np.where(tier.is_domain, of_domain, NOWHERE)
        shares += (counted * weight)[tree.domain_of[tier.level]]
    return shares / (sum(by_tier) or 1.0)


def points(shares: Shares, most: int) -> Counts:
    """Shares as whole points: `most` for the largest, 0 for the smallest, the rest in proportion.

    Whole points of 0 to 1 would hide which of two half full domains is fuller.
    Shapes: (N,) -> (N,), 0 to `most`; all 0 if they are equal.
    """
    if shares.size == 0:
        return np.zeros(0, dtype=np.int64)
    parts = np.rint(shares * _PARTS).astype(np.int64)
    parts -= parts.min()
    span = int(parts.max())
    return (2 * parts * most + span) // (2 * span) if span else parts
